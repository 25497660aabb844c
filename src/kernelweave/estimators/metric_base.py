"""Base of the learned-metric estimators: encoding, metric, function and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import CERTIFICATE, Declaration
from kernelweave._memory import parse_bytes
from kernelweave._progress import Counter
from kernelweave._summary import NotebookSummary
from kernelweave._threads import run_blocks, threads
from kernelweave._types import Floats
from kernelweave._validation import (
    N_JOBS,
    Interval,
    StrOptions,
    check_mixed_table,
)
from kernelweave.errors import InputError, warn
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.kernels.metric import MetricLaplacian
from kernelweave.ridge.all_rows import RowLimits, fit_all_rows
from kernelweave.ridge.conjugate import stratified_folds
from kernelweave.ridge.metric import (
    MetricOptions,
    MetricStep,
    cross_validate,
    gradient_outer_product,
    learn_metric,
)

from .targets import Targets

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 10
_SELECT_FOLDS = 3  # in which the metric is learned anew to choose the step
_COLUMNS_PER_ROW = 5.0  # rows per encoded column below which leave-one-out misjudges the metric
_BLOCK_BYTES = 6.4e7  # of the kernel blocks that prediction works in


class BaseMetricKernel(NotebookSummary, BaseEstimator):
    """Base of the estimators with a learned metric."""

    columns: Any
    n_steps: int
    shrink: float
    shares: Sequence[float]
    widths: Sequence[float]
    ridges: Sequence[float]
    select: str
    metric_rows: int
    max_exact: int
    max_full: int
    n_landmarks: int
    memory_limit: float | str | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    _declaration: ClassVar[Declaration] = Declaration(
        learns="metric",
        saved={
            **CERTIFICATE,
            "n_features_in_": "integer",
            "weights_": "weights[columns]",
            "column_weights_": "dict",
            "kernel_": "kernel",
            "metric_": "float[encoded, encoded]",
            "encoded_names_": "list[encoded]",
            "share_": "real",
            "widths_": "any",
            "ridge_": "positive",
            "step_": "integer",
            "steps_": "any",
            "loo_error_": "real",
            "loo_values_": "float[rows, outputs?]",
            "trace_left_out_": "real",
            "solver_": "any",
            "support_": "int[support]",
            "dual_coef_": "float[outputs, support]",
            "intercept_": "float[outputs]",
            "_rows": "float[support, encoded]",
        },
        optional={"feature_names_in_": "names", "cv_error_": "real"},
        substitutes={"columns": "_columns"},
        aspects=("kernels",),
    )
    kernels_ = None  # weights are those of columns

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "columns": "no_validation",
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "shrink": [Interval(Real, 0, 1, closed="both")],
        "shares": ["array-like"],
        "widths": ["array-like"],
        "ridges": ["array-like"],
        "select": [StrOptions({"loo", "cv"})],
        "metric_rows": [Interval(Integral, _LEAST_ROWS, None, closed="left")],
        "max_exact": [Interval(Integral, 0, None, closed="left")],
        "max_full": [Interval(Integral, 0, None, closed="left")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        columns: Any = None,
        n_steps: int = 2,
        shrink: float = 0.3,
        shares: Sequence[float] = (0.15, 0.5, 0.85),
        widths: Sequence[float] = (1.0, 2.5, 6.0),
        ridges: Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0, 10.0),
        select: str = "loo",
        metric_rows: int = 1500,
        max_exact: int = 2000,
        max_full: int = 20000,
        n_landmarks: int = 1000,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.columns = columns
        self.n_steps = n_steps
        self.shrink = shrink
        self.shares = shares
        self.widths = widths
        self.ridges = ridges
        self.select = select
        self.metric_rows = metric_rows
        self.max_exact = max_exact
        self.max_full = max_full
        self.n_landmarks = n_landmarks
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _options(self) -> MetricOptions:
        grids = {}
        for name in ("shares", "widths", "ridges"):
            given = getattr(self, name)
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
            grids[name] = values
        return MetricOptions(self.n_steps, self.shrink, **grids)

    def _fit(self, X: Any, targets: Targets) -> Floats:
        """Learn encoding, metric and function; return leave-one-out values of all outputs."""
        options = self._options()
        limits = RowLimits(
            self.max_exact,
            self.max_full,
            self.n_landmarks,
            self.metric_rows,
            parse_bytes(self.memory_limit),
        )
        weight = targets.cost.mean(axis=1)
        used = np.flatnonzero(weight > 0)
        if len(used) < _LEAST_ROWS:
            raise InputError(
                f"X: {type(self).__name__} needs {_LEAST_ROWS} rows of positive weight or more, "
                f"got {len(used)}."
            )
        weight = weight[used] / weight[used].mean()
        random = check_random_state(self.random_state)
        with threads(self.n_jobs):
            encoding = TableEncoding.learn(X, self.columns, targets.cost.mean(axis=1))
            rows = encoding.encode(X)[used]
            Y = targets.Y[used]
            shift, scale = self._units(Y, weight)
            Y = (Y - shift) / scale
            groups = np.array([column.group for column in encoding.columns])
            self.solver_ = limits.solver(*Y.shape)
            part = np.arange(len(used))
            if self.solver_ != "cholesky" and self.metric_rows < len(used):
                part = np.sort(random.choice(len(used), self.metric_rows, replace=False))
            report = Counter(self.verbose, options.n_steps + 1, "steps")
            steps = learn_metric(
                rows[part], Y[part], weight[part], groups, options, random, lambda _: report()
            )
            if not steps:
                raise InputError(
                    "X: no kernel on these columns can be solved. Hint: raise ridges, or look for "
                    "columns in which nearly all values are equal."
                )
            errors = np.array([s.loo_error for s in steps])
            if self.select == "cv":
                folds = stratified_folds(Y[part], random, _SELECT_FOLDS)
                sample = (rows[part], Y[part], weight[part])
                errors = cross_validate(*sample, groups, options, random, folds)[: len(steps)]
            step = steps[int(np.argmin(errors)) if len(errors) else 0]
            self._keep_metric(encoding, steps, step, errors)
            F = gradient_outer_product(rows[part], weight[part], step, random)
            self.column_weights_ = _column_weights(encoding, np.diag(F))
            found = fit_all_rows(
                self.solver_, step, self.kernel_, rows, Y, weight, self.n_landmarks, random
            )
        self.ridge_, self.loo_error_, self.trace_left_out_ = (
            found.ridge,
            found.error,
            found.left_out,
        )
        self.objective_ = self.loo_error_
        self.weights_ = self._weights_by_column()
        self.support_ = used[found.support]
        self._rows = rows[found.support]
        self.dual_coef_ = np.ascontiguousarray((found.dual_coef * scale).T)
        self.intercept_ = found.intercept * scale + shift
        values = np.full(targets.Y.shape, np.nan)
        values[used] = targets.Y[used] - found.residuals * scale
        return values

    def _units(self, Y: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return what is subtracted from the targets, and what they are then divided by."""
        raise NotImplementedError

    def _keep_metric(
        self, encoding: TableEncoding, steps: list[MetricStep], step: MetricStep, errors: Floats
    ) -> None:
        self.kernel_ = MetricLaplacian(encoding, step.metric, step.widths, step.share)
        self.metric_ = step.metric.root @ step.metric.root
        self.share_, self.widths_ = step.share, step.widths
        self.step_ = steps.index(step)
        self.encoded_names_ = [column.name for column in encoding.columns]
        names = ("loo_error", "ridge", "share", "widths", "n_solves")
        self.steps_ = [{name: getattr(s, name) for name in names} for s in steps]
        self.__dict__.pop("cv_error_", None)
        if self.select == "cv":
            for k, error in enumerate(errors.tolist()):
                self.steps_[k]["cv_error"] = error
            self.cv_error_ = float(errors.min(initial=np.inf))
        self.n_iter_ = sum(s.n_solves for s in steps)
        # Every ridge problem is solved exactly; no bound is known for the choice of the metric.
        self.duality_gap_, self.converged_ = float("nan"), True
        self.history_: list[Any] = []
        n, d = len(step.solution.dual_coef), len(self.metric_)
        if self.select == "loo" and self.step_ > 0 and n < _COLUMNS_PER_ROW * d:
            warn(
                f"{type(self).__name__}: {n} rows are few for {d} encoded columns, so that the "
                "leave-one-out errors of the learned metric are too small. Hint: select='cv' "
                "chooses the step by cross-validation."
            )

    @property
    def feature_importances_(self) -> Floats:
        """Weight of every column of the table."""
        check_is_fitted(self)
        return self.weights_

    @property
    def contributions_(self) -> Floats:
        """The same: shares in the squared gradients of the function."""
        check_is_fitted(self)
        return self.weights_

    @property
    def _columns(self) -> list[Any]:
        """The columns in use, which a model file holds where they were chosen by a function."""
        return list(self.kernel_.encoding.keys)

    def _weights_by_column(self) -> Floats:
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        weights = self.column_weights_
        return np.array([weights.get(n, 0.0) + weights.get(f"{n}?", 0.0) for n in names])

    def _decide(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = check_mixed_table(self, X, reset=False)
        rows = self.kernel_.prepare(X)

        def values(part: slice) -> Floats:
            return np.asarray(self.kernel_.block(rows[part], self._rows) @ self.dual_coef_.T)

        at_a_time = int(max(1, _BLOCK_BYTES / (8 * len(self._rows))))
        with threads(self.n_jobs):
            return np.concatenate(run_blocks(values, len(rows), at_a_time)) + self.intercept_

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the columns, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``column`` (``name?`` is the indicator of the gaps of a column) and ``weight``: the
            share of the column in the squared gradients of the fitted function, per unit of its
            spread. It says what the function reacts to, not what causes the target.
        """
        check_is_fitted(self)
        import pandas as pd

        frame = pd.DataFrame(self.column_weights_.items(), columns=["column", "weight"])
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _column_weights(encoding: TableEncoding, squares: Floats) -> dict[Any, float]:
    """Return the share of each column of the table in the squared gradients."""
    out: dict[Any, float] = {}
    for column, value in zip(encoding.columns, squares, strict=True):
        out[column.source] = out.get(column.source, 0.0) + float(value)
    total = sum(out.values()) or 1.0
    return {source: value / total for source, value in out.items()}
