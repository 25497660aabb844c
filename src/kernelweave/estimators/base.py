"""Base class of the kernel estimators: fitting a bank, fitted attributes, prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelweave._dask import PartedTable, gather
from kernelweave._progress import Progress
from kernelweave._summary import NotebookSummary
from kernelweave._threads import run_blocks, threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import N_JOBS, Interval, StrOptions, check_table, pick_rows
from kernelweave.banks import Views, cross_block, make_bank
from kernelweave.banks.build import NORMALIZATIONS
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.banks.nystroem.landmarks import LandmarkFunction
from kernelweave.errors import InputError, numbering, warn
from kernelweave.inner import MAX_FREE
from kernelweave.kernels import Kernel, expand_kernels
from kernelweave.kernels.vector import centre_linear
from kernelweave.losses import Loss
from kernelweave.solvers import Callback, Limits, Problem, Result, WarmStart, learn_weights
from kernelweave.weights import LpBall, Simplex, Uniform, WeightSet

from .duplicates import Merged, merge_rows, spread_rows

if TYPE_CHECKING:
    import pandas as pd

_BLOCK_BYTES = 1.6e7  # of the kernel blocks that prediction works in, one per thread


class RefinedBank:
    """A bank of kernels that is made anew, once, where its features turn out too coarse.

    Parameters
    ----------
    make : callable
        Returns the bank for a C; the larger it is, the less features and factors leave out.
    C : float
        The largest one that the bank is meant for.
    factors : bool
        Whether factors may turn out too coarse, too.
    """

    def __init__(self, make: Callable[[float], Any], C: float, *, factors: bool = False) -> None:
        self._make, self._C = make, C
        self.bank = bank = make(C)
        self._final = not (bank.complete.all() if bank.by_features else factors and bank.leaves_out)

    def solve(self, run: Callable[..., Result], start: WarmStart | None, tol: float) -> Result:
        """Return what ``run`` finds with the bank, and with a finer one where it fell short.

        Features did where the problem with them alone was solved to the tolerance: what they leave
        out then took more of it than expected.
        """
        result = run(self.bank, start=start)
        features = self.bank.by_features
        met = result.landmark_gap <= tol * result.size if features else not result.converged
        if self._final or result.converged or not met:
            return result
        self._final, self.bank = True, None  # no need to hold both
        self.bank = self._make((100.0 if features else 1e9) * self._C)
        return run(self.bank, start=WarmStart(result.weights, result.dual_coef))


class BaseMKL(NotebookSummary, BaseEstimator):
    """Base of the estimators that learn one weight per kernel."""

    kernels: Any
    norm: Any
    normalize: str | None
    C: float
    tol: float
    max_iter: int
    fit_intercept: bool
    warm_start: bool
    memory_limit: float | str | None
    n_jobs: int | None
    verbose: int

    _takes_features: ClassVar[bool] = False  # whether many rows may be held as features
    _adds_passes: ClassVar[bool] = False  # whether these are also read by other landmarks
    _function: LandmarkFunction | None = None  # what predicts then, in place of support rows

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernels": "no_validation",  # kernels check themselves, with the name of the wrong item
        "norm": [Interval(Real, 1, None, closed="left"), StrOptions({"uniform"})],
        "normalize": [StrOptions(set(NORMALIZATIONS)), None],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 1e-9, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "warm_start": ["boolean"],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def _machine(self) -> Loss:
        raise AssertionError("a subclass says which loss it has")

    def _fit(self, X: Any, Y: Floats, cost: Floats, sample_weight: Floats | None) -> Self:
        rows = merge_rows(X, Y, cost, sample_weight)
        with threads(self.n_jobs):
            held = RefinedBank(lambda C: self._bank(rows, C), self.C)
            start = self._warm(held.bank, rows.Y)
            with Progress(self.verbose, self.tol) as report:
                solve = partial(self._solve, Y=rows.Y, cost=rows.cost, report=report)
                result = held.solve(solve, start, self.tol)
        self._store(held.bank, result, rows)
        return self

    def _bank(self, rows: Merged, C: float) -> Any:
        # The other normalisations depend on where zero is.
        centre = self.fit_intercept and self.normalize not in ("diagonal", "cosine")
        kernels = self._expand(self.kernels, rows.X, rows.weight, centre=centre)
        return self._hold(
            kernels, rows, C, centred=self.fit_intercept, features=self._takes_features
        )

    def _hold(
        self, kernels: list[Kernel], rows: Merged, C: float, *, centred: bool, features: bool
    ) -> Any:
        """Return a bank of kernels, as features of many rows where these will do."""
        options: dict[str, Any] = {
            "normalize": self.normalize,
            "centred": centred,
            "tol": self.tol / max(1.0, C),  # what a factor leaves out counts with C
            "memory_limit": self.memory_limit,
            "sample_weight": rows.weight,
        }
        bank = None
        if features:
            bank = make_feature_bank(kernels, rows.X, passes=self._adds_passes, **options)
        if bank is None:
            options["n_combined"] = 1 if len(kernels) == 1 else self._n_combined()
            options["n_solved"] = self._n_solved(len(rows.Y))
            return make_bank(kernels, gather(rows.X), **options)
        return bank

    def _n_combined(self) -> int:
        """Return how many sums of kernels are held: in hand, of a trial, of the best bound."""
        return 1 if getattr(self, "norm", None) == "uniform" else 3

    def _n_solved(self, n: int) -> int:
        """Return how many rows the largest linear system in coefficients may have."""
        return min(n, MAX_FREE)

    def _expand(
        self, kernels: Any, X: Any, weight: Floats | None = None, *, centre: bool = False
    ) -> list[Kernel]:
        """Write out kernels; default widths are those of rows spread over the table.

        With ``centre``, linear kernels on columns far from zero are centred.
        """
        n = _num_samples(X)
        some = spread_rows(n)
        if not self._takes_features or len(some) == n:
            X = gather(X)
            expanded = expand_kernels(kernels, X, weight)
            return centre_linear(expanded, X) if centre else expanded
        if weight is not None:  # rows without weight say nothing
            there = np.flatnonzero(weight)
            some = there[spread_rows(len(there))]
        X = X.take(some) if isinstance(X, PartedTable) else pick_rows(X, some)
        with numbering(some):
            expanded = expand_kernels(kernels, X, None if weight is None else weight[some])
            return centre_linear(expanded, X) if centre else expanded

    def _solve(
        self, bank: Any, Y: Floats, cost: Floats, start: WarmStart | None, report: Callback | None
    ) -> Result:
        """Learn weights with the norm asked for."""
        problem = Problem(bank, Y, cost, self._machine(), self._weight_set())
        return learn_weights(problem, Limits(self.tol, self.max_iter, report), start)

    def _weight_set(self) -> WeightSet:
        if self.norm == "uniform":
            return Uniform()
        return Simplex() if self.norm == 1 else LpBall(float(self.norm))

    def _warm(self, bank: Any, Y: Floats) -> WarmStart | None:
        """Return where the last fit ended, scaled to the present C, if it can serve."""
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None:
            return None
        weights, dual_coef, C = last
        if len(weights) != bank.n_kernels or dual_coef.shape != Y.shape:
            return None
        return WarmStart(weights, dual_coef * (self.C / C))

    def _store(self, bank: Any, result: Result, rows: Merged) -> None:
        self.kernels_: list[Kernel] = list(bank.kernels)
        self.weights_ = result.weights
        self.scales_ = bank.scales
        self.objective_ = result.objective
        self.duality_gap_ = result.gap
        self.n_iter_ = result.history[-1].solves
        self.converged_ = result.converged
        self.history_ = list(result.history)
        support = np.flatnonzero(result.dual_coef.any(axis=1))
        order = np.argsort(rows.index[support], kind="stable")
        support = support[order]
        self.support_ = rows.index[support]
        self.dual_coef_ = np.ascontiguousarray(result.dual_coef[support].T)
        self.intercept_ = result.intercept
        active = in_use(result.weights)
        parts = result.weights * result.quadratic_forms
        self.contributions_ = parts / (parts.sum() or 1.0)
        if result.function is None:
            self._support_views = bank.views.take(support).subset([int(j) for j in active])
            self.__dict__.pop("_function", None)
        else:
            self._function = bank.function(result.function)
            self.__dict__.pop("_support_views", None)
        if self._takes_features:
            self.landmark_gap_ = result.landmark_gap
        self._last = (result.weights, result.dual_coef, self.C) if self.warm_start else None
        self._warn_unless_converged(result)

    def _warn_unless_converged(self, result: Result) -> None:
        if not result.converged:
            gap = result.gap / result.size
            known = np.isfinite(gap)
            where = (
                f"at a relative duality gap of {gap:.1e}" if known else "before it was stationary"
            )
            hint = f"raise max_iter, or accept {'the gap' if known else 'this'} by raising tol."
            if result.at_rounding:
                where += ", as near as rounding error lets it"
                hint = "centre or rescale the columns of the kernels in use, or lower C."
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} solves {where} "
                f"(tol={self.tol:g}). Hint: {hint}",
                ConvergenceWarning,
            )

    def _path(
        self, X: Any, Y: Floats, cost: Floats, Cs: Iterable[float], sample_weight: Floats | None
    ) -> list[Self]:
        """Fit one estimator per C on one bank, from small to large C, each from the last."""
        values = check_costs(Cs)
        fitted: dict[float, Self] = {}
        warm: WarmStart | None = None
        rows = merge_rows(X, Y, cost, sample_weight)
        with threads(self.n_jobs):
            held = RefinedBank(lambda C: self._bank(rows, C), max(values))
            before = 1.0
            for C in sorted(set(values)):
                model = self._with_cost(C)
                if warm is not None:
                    warm = WarmStart(warm.weights, warm.dual_coef * (C / before))
                with Progress(self.verbose, self.tol) as report:
                    solve = partial(model._solve, Y=rows.Y, cost=rows.cost * C, report=report)
                    result = held.solve(solve, warm, self.tol)
                model._store(held.bank, result, rows)
                warm, before = WarmStart(result.weights, result.dual_coef), C
                fitted[C] = model
        return [fitted[C] for C in values]

    def _with_cost(self, C: float) -> Self:
        """Return a copy for another C that knows what was learned from the data so far."""
        known = {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_in_") or name in ("classes_", "_one_output", "_several")
        }
        model: Self = clone(self).set_params(C=C)
        model.__dict__.update(known)
        return model

    def kernel(self, X: Any, Y: Any = None) -> Floats:
        """Return the learned kernel between the rows of ``X`` and of ``Y``.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows like those of the training data.
        Y : array, sparse matrix or data frame, optional
            Rows of the other side; ``X`` by default.

        Returns
        -------
        block : ndarray of shape (n_rows of X, n_rows of Y)
            ``sum_j weights_j k_j``, with the normalisation of the training data; for the radius
            methods divided by `squared_radius_`.
        """
        check_is_fitted(self)
        kernels, weights = self._active()
        A = Views.of(kernels, check_table(self, X, reset=False))
        B = A if Y is None else Views.of(kernels, check_table(self, Y, reset=False))
        with threads(self.n_jobs):
            return cross_block(kernels, weights, A, B)

    def _active(self) -> tuple[list[Kernel], Floats]:
        """Return the kernels in use, with weights for the kernels as written."""
        active = in_use(self.weights_)
        radius = getattr(self, "squared_radius_", 1.0)  # the radius methods divide by it
        weights = (self.weights_ * self.scales_)[active] / radius
        return [self.kernels_[j] for j in active], weights

    def _decide(self, X: Any) -> Floats:
        """Return decision values, one column per output."""
        check_is_fitted(self)
        kernels, weights = self._active()
        n_support = max(1, len(self.support_))
        if self._function is not None:
            kernels = [self.kernels_[j] for j in self._function.which]
            n_support = max(1, self._function.n_landmarks)
        rows = Views.of(kernels, check_table(self, X, reset=False))
        return self._in_blocks(
            lambda part: self._values(kernels, weights, rows.take(part)), rows.n_samples, n_support
        )

    def _in_blocks(self, values: Callable[[slice], Floats], n: int, entries: int) -> Floats:
        """Return decision values, block by block of rows that need so many entries each."""
        at_a_time = int(max(1, _BLOCK_BYTES / (8 * entries)))
        with threads(self.n_jobs):
            return np.concatenate(run_blocks(values, n, at_a_time)) + self.intercept_

    def _values(self, kernels: list[Kernel], weights: Floats, rows: Views) -> Floats:
        """Return decision values of a block of rows, without the intercept."""
        if self._function is not None:
            return self._function.values(kernels, rows)
        block = cross_block(kernels, weights, rows, self._support_views)
        return np.asarray(block @ self.dual_coef_.T)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all kernels, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``kernel`` (name), ``weight``, and ``contribution``, the share of the squared norm of
            the decision function, which unlike the weight does not depend on the kernel's scale.
        """
        check_is_fitted(self)
        import pandas as pd

        frame = pd.DataFrame(
            {
                "kernel": [str(kernel) for kernel in self.kernels_],
                "weight": self.weights_,
                "contribution": self.contributions_,
            }
        )
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def in_use(weights: Floats) -> Indices:
    """Return the kernels that prediction needs; one of them even where only a bias was learned."""
    active = np.flatnonzero(weights)
    return active if len(active) else np.arange(1)


def check_costs(Cs: Iterable[float]) -> list[float]:
    """Return the values of C for a path, or say what is wrong with them."""
    try:
        values = [float(C) for C in Cs]
    except (TypeError, ValueError):
        values = []
    if not values or not all(np.isfinite(C) and C > 0 for C in values):
        raise InputError(f"Cs: must be one or more finite numbers > 0, got {Cs!r}.")
    return values
