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
    check_mixed_table,
)
from kernelweave.errors import InputError, MemoryBudgetError, warn
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.kernels.metric import MetricLaplacian
from kernelweave.ridge.landmarks import nystroem_bytes, solve_nystroem
from kernelweave.ridge.metric import (
    MetricOptions,
    MetricStep,
    gradient_outer_product,
    learn_metric,
)

from .targets import Targets

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 10
_MATRICES = 5  # of n x n numbers that an exact fit holds at once
_CANDIDATES = 4  # rows among which landmarks are chosen, in multiples of their number
_NYSTROEM_RIDGES = np.geomspace(1e-4, 10.0, 11)  # chosen anew on all rows
_COLUMNS_PER_ROW = 5.0  # rows per encoded column below which leave-one-out misjudges the metric
_BLOCK_BYTES = 1.6e7  # of the kernel blocks that prediction works in


class BaseMetricKernel(NotebookSummary, BaseEstimator):
    """Base of the estimators with a learned metric."""

    columns: Any
    n_steps: int
    shrink: float
    shares: Sequence[float]
    widths: Sequence[float]
    ridges: Sequence[float]
    metric_rows: int
    max_exact: int
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
            "support_": "int[support]",
            "dual_coef_": "float[outputs, support]",
            "intercept_": "float[outputs]",
            "_rows": "float[support, encoded]",
        },
        optional={"feature_names_in_": "names"},
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
        "metric_rows": [Interval(Integral, _LEAST_ROWS, None, closed="left")],
        "max_exact": [Interval(Integral, 0, None, closed="left")],
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
        metric_rows: int = 1500,
        max_exact: int = 2000,
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
        self.metric_rows = metric_rows
        self.max_exact = max_exact
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
            exact = len(used) <= self.max_exact
            part = np.arange(len(used))
            if not exact and self.metric_rows < len(used):
                part = np.sort(random.choice(len(used), self.metric_rows, replace=False))
            self._check_memory(len(part), None if exact else Y.shape)
            report = Counter(self.verbose, options.n_steps + 1, "steps")
            steps = learn_metric(
                rows[part], Y[part], weight[part], groups, options, random, lambda _: report()
            )
            if not steps:
                raise InputError(
                    "X: no kernel on these columns can be solved. Hint: raise ridges, or look for "
                    "columns in which nearly all values are equal."
                )
            step = min(steps, key=lambda s: s.loo_error)
            self._keep_metric(encoding, steps, step)
            F = gradient_outer_product(rows[part], weight[part], step, random)
            self.column_weights_ = _column_weights(encoding, np.diag(F))
            if exact:
                support, residuals = part, step.solution.loo_residuals
                coef, intercept, self.ridge_ = (
                    step.solution.dual_coef,
                    step.solution.intercept,
                    step.ridge,
                )
                self.loo_error_, self.trace_left_out_ = step.loo_error, 0.0
            else:
                n_candidates = min(len(used), _CANDIDATES * self.n_landmarks)
                candidates = np.sort(random.choice(len(used), n_candidates, replace=False))
                found = solve_nystroem(
                    lambda a, b: self.kernel_.block(rows[a], rows[b]),
                    Y,
                    weight,
                    candidates,
                    self.n_landmarks,
                    _NYSTROEM_RIDGES,
                )
                support, residuals, coef = found.landmarks, found.loo_residuals, found.dual_coef
                intercept, self.ridge_ = found.intercept, found.ridge
                self.loo_error_, self.trace_left_out_ = found.loo_error, found.left_out
        self.objective_ = self.loo_error_
        self.weights_ = self._weights_by_column()
        self.support_ = used[support]
        self._rows = rows[support]
        self.dual_coef_ = np.ascontiguousarray((coef * scale).T)
        self.intercept_ = intercept * scale + shift
        values = np.full(targets.Y.shape, np.nan)
        values[used] = targets.Y[used] - residuals * scale
        return values

    def _units(self, Y: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return what is subtracted from the targets, and what they are then divided by."""
        raise NotImplementedError

    def _check_memory(self, n: int, nystroem: tuple[int, ...] | None) -> None:
        """Refuse what the limit does not hold: matrices of n rows, or Nystroem features."""
        limit = parse_bytes(self.memory_limit)
        needs = {f"{_MATRICES} matrices of {n} rows": _MATRICES * 8.0 * n * n}
        if nystroem is not None:
            rows, n_outputs = nystroem
            marks = min(self.n_landmarks, rows)
            need = nystroem_bytes(rows, marks, n_outputs, len(_NYSTROEM_RIDGES))
            needs[f"{marks} features of {rows} rows"] = need
        for what, need in needs.items():
            if need > limit:
                raise MemoryBudgetError(
                    f"memory_limit: {what} need {need / 1e9:.3g} GB, but the limit is "
                    f"{limit / 1e9:.3g} GB. Hint: lower max_exact, metric_rows or n_landmarks."
                )

    def _keep_metric(
        self, encoding: TableEncoding, steps: list[MetricStep], step: MetricStep
    ) -> None:
        self.kernel_ = MetricLaplacian(encoding, step.metric, step.widths, step.share)
        self.metric_ = step.metric.root @ step.metric.root
        self.share_, self.widths_ = step.share, step.widths
        self.step_ = steps.index(step)
        self.encoded_names_ = [column.name for column in encoding.columns]
        names = ("loo_error", "ridge", "share", "widths", "n_solves")
        self.steps_ = [{name: getattr(s, name) for name in names} for s in steps]
        self.n_iter_ = sum(s.n_solves for s in steps)
        # Every ridge problem is solved exactly; no bound is known for the choice of the metric.
        self.duality_gap_, self.converged_ = float("nan"), True
        self.history_: list[Any] = []
        n, d = len(step.solution.dual_coef), len(self.metric_)
        if self.step_ > 0 and n < _COLUMNS_PER_ROW * d:
            warn(
                f"{type(self).__name__}: {n} rows are few for {d} encoded columns, so that the "
                "leave-one-out errors of the learned metric are too small. Hint: compare with "
                "n_steps=0 by cross-validation."
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
