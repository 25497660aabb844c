"""Base of the learned-metric estimators: encoding, metric, function and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import is_dask, is_parted
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
    check_table,
)
from kernelweave.errors import InputError, warn
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.kernels.metric import MetricLaplacian
from kernelweave.ridge.all_rows import (
    CANDIDATES,
    LANDMARKS,
    RowLimits,
    fit_all_rows,
    fit_parts,
)
from kernelweave.ridge.metric import MetricOptions
from kernelweave.ridge.metric_family import ChosenStep, choose_step, read_grids

from .metric_intervals import LeftOutRows
from .targets import Targets
from .terms import KernelTerm, KernelTerms

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 10
_COLUMNS_PER_ROW = 5.0  # rows per encoded column below which leave-one-out misjudges the metric
_BLOCK_BYTES = 6.4e7  # of the kernel blocks that prediction works in


@dataclass(eq=False, repr=False)
class BaseMetricKernel(LeftOutRows, NotebookSummary, BaseEstimator):
    """Base of the estimators with a learned metric.

    Parameters
    ----------
    columns : names, positions, slice, mask, callable, selector or None
        Columns to learn from; None: all.
    n_steps : int
        Number of updates of the metric. 0: all columns count alike.
    shrink : float
        Share of the off-diagonal part of the gradient outer product that the metric keeps; 1 lets
        it follow oblique directions freely, 0 keeps it diagonal.
    shares : sequence of float
        Shares of the product Laplacian, which follows the axes, to choose from. ``(1.0,)``: that
        alone, whose explanations are exact for any number of columns.
    widths : sequence of float
        Widths to choose from, in medians of the distances.
    select : "loo" or "cv"
        How the step is chosen: by leave-one-out errors, or by three folds in each of which the
        metric is learned again, which takes about three times as long. Leave-one-out errors are too
        small where rows are few for the number of encoded columns.
    metric_rows : int
        Where there are more than `max_exact` rows: rows drawn to learn the metric.
    max_exact : int
        Rows up to which metric and function are learned from all rows in closed form.
    max_full : int
        Rows up to which the function is fitted to all rows by conjugate gradients on the full
        kernel, in single precision; beyond, or where `memory_limit` does not hold the kernel,
        Nystroem landmarks stand for the rows.
    n_landmarks : int or "auto"
        Number of landmarks. "auto": 1000, doubled up to 4000 while the leave-one-out error with all
        of them is more than 0.002 below that with half; tables with many levels need more.
    random_state : int, RandomState or None
        Draws rows and landmarks where there are more than `max_exact`.
    verbose : int
        1 counts the steps.
    """

    _: KW_ONLY
    columns: Any = None
    n_steps: int = 2
    shrink: float = 0.3
    shares: Sequence[float] = (0.15, 0.5, 0.85)
    widths: Sequence[float] = (1.0, 2.5, 6.0)
    ridges: Sequence[float] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
    select: str = "loo"
    metric_rows: int = 1500
    max_exact: int = 2000
    max_full: int = 20000
    n_landmarks: int | str = "auto"
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

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
            "loo_values_": "partial[rows, outputs?]",
            "trace_left_out_": "real",
            "cv_error_": "real",
            "solver_": "any",
            "support_": "int[support]",
            "dual_coef_": "float[outputs, support]",
            "intercept_": "float[outputs]",
            "_rows": "float[support, encoded]",
            "_residuals": "float[used, outputs]",
            "_row_weight": "float[used]",
            "coverage_guarantee_": "real",
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
        "select": [StrOptions({"loo", "cv"})],
        "metric_rows": [Interval(Integral, _LEAST_ROWS, None, closed="left")],
        "max_exact": [Interval(Integral, 0, None, closed="left")],
        "max_full": [Interval(Integral, 0, None, closed="left")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _options(self) -> MetricOptions:
        grids = read_grids(shares=self.shares, widths=self.widths, ridges=self.ridges)
        return MetricOptions(self.n_steps, self.shrink, **grids)

    def _fit(self, X: Any, targets: Targets) -> Floats:
        """Learn encoding, metric and function; return leave-one-out values of all outputs."""
        options = self._options()
        auto = isinstance(self.n_landmarks, str)
        landmarks = LANDMARKS if auto else (int(self.n_landmarks), int(self.n_landmarks))
        limits = RowLimits(
            self.max_exact,
            self.max_full,
            landmarks,
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
        weight = weight / weight[used].mean()
        random = check_random_state(self.random_state)
        with threads(self.n_jobs):
            shift, scale = self._units(targets.Y[used], weight[used])
            Y = (targets.Y - shift) / scale
            self.solver_ = limits.solver(len(used), Y.shape[1], parted=is_parted(X))
            # Numbers of the rows that are encoded here, and places among them of those that the
            # metric is learned from.
            sample, part = used, np.arange(len(used))
            if self.solver_ != "cholesky" and self.metric_rows < len(used):
                part = np.sort(random.choice(len(used), self.metric_rows, replace=False))
            if is_parted(X):
                n_more = min(len(used), CANDIDATES * landmarks[0])
                places = np.union1d(part, random.choice(len(used), n_more, replace=False))
                sample, part = used[places], np.searchsorted(places, part)
            table, known = (X.take(sample), sample) if is_parted(X) else (X, np.arange(len(Y)))
            encoding = TableEncoding.learn(table, self.columns, weight[known])
            rows = encoding.encode(table)[np.searchsorted(known, sample)]
            groups = np.array([column.group for column in encoding.columns])
            report = Counter(self.verbose, options.n_steps + 1, "steps")
            learned = (rows[part], Y[sample[part]], weight[sample[part]])
            chosen = choose_step(*learned, groups, options, self.select, random, lambda _: report())
            self._keep_metric(encoding, chosen)
            squares = np.diag(chosen.step.outer_product)
            self.column_weights_ = _column_weights(encoding, squares)
            if is_parted(X):
                found = fit_parts(X, sample, rows, self.kernel_, Y, weight, landmarks[0])
                support, residuals = np.searchsorted(sample, found.support), found.residuals[used]
            else:
                data = (rows, Y[used], weight[used])
                marks = limits.affordable_landmarks(len(used), Y.shape[1])
                found = fit_all_rows(self.solver_, chosen.step, self.kernel_, *data, marks, random)
                support, residuals = found.support, found.residuals
        self.ridge_, self.loo_error_, self.trace_left_out_ = (
            found.ridge,
            found.error,
            found.left_out,
        )
        self.objective_ = self.loo_error_
        self.weights_ = self._weights_by_column()
        self.support_ = sample[support]
        self._rows = rows[support]
        self.dual_coef_ = np.ascontiguousarray((found.dual_coef * scale).T)
        self.intercept_ = found.intercept * scale + shift
        self._residuals, self._row_weight = residuals * scale, weight[used]
        self.coverage_guarantee_ = float("nan")  # the metric has seen the targets of all rows
        values = np.full(targets.Y.shape, np.nan)
        values[used] = targets.Y[used] - self._residuals
        return values

    def _table(self, X: Any) -> Any:
        """Check a table to learn from; that of Dask stays in its parts where rows are many."""
        if not is_dask(X):
            return check_mixed_table(self, X, reset=True)
        parted = check_table(self, X, reset=True, parts=True, finite=False)
        return parted if len(parted) > self.max_exact else parted.take(np.arange(len(parted)))

    def _units(self, Y: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return what is subtracted from the targets, and what they are then divided by."""
        raise NotImplementedError

    def _keep_metric(self, encoding: TableEncoding, chosen: ChosenStep) -> None:
        steps, step = chosen.steps, chosen.step
        self.kernel_ = MetricLaplacian(encoding, step.metric, step.widths, step.share)
        self.metric_ = step.metric.root @ step.metric.root
        self.share_, self.widths_ = step.share, step.widths
        self.step_ = chosen.index
        self.encoded_names_ = [column.name for column in encoding.columns]
        names = ("loo_error", "ridge", "share", "width", "widths", "n_solves")
        self.steps_ = [{name: getattr(s, name) for name in names} for s in steps]
        self.cv_error_ = float("nan")
        if self.select == "cv":
            for k, error in enumerate(chosen.errors.tolist()):
                self.steps_[k]["cv_error"] = error
            self.cv_error_ = float(chosen.errors.min(initial=np.inf))
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

    def _terms(self) -> KernelTerms:
        """Return the outputs as a sum over support rows or landmarks."""
        check = partial(check_mixed_table, self, reset=False)
        coef = np.ascontiguousarray(self.dual_coef_.T)
        term = KernelTerm(str(self.kernel_), ((self.kernel_, self._rows),), coef)
        return KernelTerms((term,), self.intercept_, check)

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
