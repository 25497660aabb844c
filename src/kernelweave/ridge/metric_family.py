"""A family of two kernels in a metric that is learned from the targets of a fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel, KernelFamily, MetricLaplacian
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.kernels.table import Columns, describe_columns, normal_columns

from .conjugate import stratified_folds
from .metric import MetricOptions, MetricStep, cross_validate, learn_metric

_SELECT_FOLDS = 3  # folds, each with its own metric, to choose the step


def read_grids(**grids: Any) -> dict[str, tuple[float, ...]]:
    """Return shares, widths and ridges in increasing order, or refuse them."""
    out = {}
    for name, given in grids.items():
        try:
            values = tuple(sorted(float(value) for value in given))
        except (TypeError, ValueError):
            values = ()
        low, high = (0.0, 1.0) if name == "shares" else (np.nextafter(0.0, 1.0), np.inf)
        if not values or not all(np.isfinite(v) and low <= v <= high for v in values):
            allowed = "between 0 and 1" if name == "shares" else "> 0"
            raise InputError(
                f"{name}: must be one or more finite numbers {allowed}, got {given!r}."
            )
        out[name] = values
    return out


@dataclass(frozen=True, eq=False)
class ChosenStep:
    """The steps of a learned metric, their errors, and the step with the smallest one."""

    steps: list[MetricStep]
    errors: Floats
    index: int

    @property
    def step(self) -> MetricStep:
        """The chosen step."""
        return self.steps[self.index]


def choose_step(
    rows: Floats,
    Y: Floats,
    weight: Floats,
    groups: Indices,
    options: MetricOptions,
    select: str,
    random: np.random.RandomState,
    callback: Callable[[MetricStep], None] | None = None,
) -> ChosenStep:
    """Learn the metric, and choose the step by leave-one-out errors or by folds ("cv")."""
    steps = learn_metric(rows, Y, weight, groups, options, random, callback)
    if not steps:
        raise InputError(
            "X: no kernel on these columns can be solved. Hint: raise ridges, or look for "
            "columns in which nearly all values are equal."
        )
    errors = np.array([step.loo_error for step in steps])
    if select == "cv":
        folds = stratified_folds(Y, random, _SELECT_FOLDS)
        errors = cross_validate(rows, Y, weight, groups, options, random, folds)[: len(steps)]
    return ChosenStep(steps, errors, int(np.argmin(errors)) if len(errors) else 0)


@dataclass(frozen=True)
class LearnedMetric(KernelFamily):
    """What `learned_metric` returns."""

    encodes_gaps: ClassVar[bool] = True

    columns: Columns
    n_steps: int
    shrink: float
    shares: tuple[float, ...]
    widths: tuple[float, ...]
    ridges: tuple[float, ...]
    select: str
    metric_rows: int
    random_state: int

    def __str__(self) -> str:
        return "learned_metric" + describe_columns(self.columns)

    def on(self, columns: Columns) -> Self:
        """Return this family on other columns."""
        return dataclasses.replace(self, columns=normal_columns(columns, str(self)))

    def with_targets(self, y: Floats) -> KernelFamily:
        """Return this family with the targets of a fit."""
        return _Targeted(self, y)

    def expand(self, X: Any, sample_weight: Floats | None = None, y: Any = None) -> list[Kernel]:
        """Learn the metric from rows and targets; return its l1 part and its l2 part."""
        if y is None:
            raise InputError(
                f"{self}: learns from targets, and here there are none. Hint: fit "
                "MetricKernelClassifier or MetricKernelRegressor first, and use its kernel_."
            )
        Y = _target_columns(y)
        weight = np.ones(len(Y)) if sample_weight is None else sample_weight
        encoding = TableEncoding.learn(X, self.columns, weight)
        random = check_random_state(self.random_state)
        part = np.flatnonzero(weight > 0)
        if len(part) > self.metric_rows:
            part = np.sort(random.choice(part, self.metric_rows, replace=False))
        own = weight[part] / weight[part].mean()
        centred = Y[part] - (own @ Y[part]) / own.sum()
        scale = np.sqrt(own @ centred**2 / own.sum())
        varies = scale > 1e-12 * np.abs(Y[part]).max(axis=0)
        if not varies.any():
            raise InputError(f"{self}: y has one value only: {Y[part[0], 0]:g}.")
        groups = np.array([column.group for column in encoding.columns])
        options = MetricOptions(self.n_steps, self.shrink, self.shares, self.widths, self.ridges)
        targets = centred[:, varies] / scale[varies]
        rows = encoding.encode(X)[part]
        step = choose_step(rows, targets, own, groups, options, self.select, random).step
        return [MetricLaplacian(encoding, step.metric, step.widths, share) for share in (1.0, 0.0)]


def _target_columns(y: Any) -> Floats:
    """Return targets as columns of numbers; labels become one column of signs for each class."""
    y = np.asarray(y)
    if y.dtype.kind in "fiu":
        return np.asarray(y.reshape(len(y), -1), dtype=np.float64)
    classes, codes = np.unique(y.astype(str), return_inverse=True)
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


@dataclass(frozen=True)
class _Targeted(KernelFamily):
    """A family that learns from targets, with the targets of a fit."""

    family: LearnedMetric
    y: Floats

    def on(self, columns: Columns) -> Self:
        return dataclasses.replace(self, family=self.family.on(columns))

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        return self.family.expand(X, sample_weight, self.y)


def learned_metric(
    columns: Columns = None,
    *,
    n_steps: int = 2,
    shrink: float = 0.3,
    shares: Sequence[float] = (0.15, 0.5, 0.85),
    widths: Sequence[float] = (1.0, 2.5, 6.0),
    ridges: Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0, 10.0),
    select: str = "loo",
    metric_rows: int = 1500,
    random_state: int = 0,
) -> KernelFamily:
    """Offer two kernels in a metric that is learned from the targets, for lists of kernels.

    The metric is that of `MetricKernelRegressor`, learned inside every fit and hence inside every
    fold of a search. Its two parts are kernels of their own: the product Laplacian, which follows
    the axes, and the Laplacian in the learned Mahalanobis distance. Weights with ``norm=1`` prefer
    kernels that have seen the targets; use ``norm=2`` or ``norm="uniform"`` beside other kernels.

    Parameters
    ----------
    columns : names, positions, slice, mask, callable, selector or None
        Columns to learn from; None: all.
    n_steps, shrink, shares, widths, ridges, select
        As in `MetricKernelRegressor`.
    metric_rows : int
        Maximum number of rows from which the metric is learned; they are drawn at random.
    random_state : int
        Draws them.

    Returns
    -------
    family : KernelFamily
        Estimators with targets expand it when they see the data.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave import MKLRegressor, learned_metric
    >>> X, y = make_friedman1(120, random_state=0)
    >>> model = MKLRegressor([learned_metric()], norm=2, C=10.0).fit(X, y)
    >>> [str(kernel) for kernel in model.kernels_]
    ['learned metric (l1) on 10 columns', 'learned metric (l2) on 10 columns']
    """
    whole = {
        "n_steps": (n_steps, 0),
        "metric_rows": (metric_rows, 10),
        "random_state": (random_state, 0),
    }
    for name, (value, least) in whole.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise InputError(
                f"learned_metric({name}={value!r}): must be a whole number >= {least}."
            )
    if not 0 <= shrink <= 1:
        raise InputError(f"learned_metric(shrink={shrink!r}): must be a number between 0 and 1.")
    if select not in ("loo", "cv"):
        raise InputError(f"learned_metric(select={select!r}): must be 'loo' or 'cv'.")
    grids = read_grids(shares=shares, widths=widths, ridges=ridges)
    return LearnedMetric(
        normal_columns(columns, "learned_metric"),
        int(n_steps),
        float(shrink),
        **grids,
        select=select,
        metric_rows=int(metric_rows),
        random_state=int(random_state),
    )
