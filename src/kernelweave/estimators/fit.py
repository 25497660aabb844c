"""Steps that all fits share: merged rows, paths over C, warm starts, results and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelweave._progress import Progress
from kernelweave._threads import threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import fit_context
from kernelweave.banks.protocol import Bank
from kernelweave.errors import InputError, warn
from kernelweave.solvers import Callback, Result, WarmStart

from .duplicates import MergedRows, merge_rows
from .targets import Targets


@contextmanager
def quiet_overflow() -> Iterator[None]:
    """Silence numpy's floating-point warnings; results are checked where a fit ends."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        yield


def check_costs(Cs: Iterable[float], name: str = "Cs", largest: float = np.inf) -> list[float]:
    """Return the values of a parameter along a path as floats."""
    try:
        values = [float(C) for C in Cs]
    except (TypeError, ValueError):
        values = []
    if not values or not all(np.isfinite(C) and 0 < C <= largest for C in values):
        limit = "" if np.isinf(largest) else f" and at most {largest:g}"
        raise InputError(f"{name}: must be one or more finite numbers > 0{limit}, got {Cs!r}.")
    return values


class RefinableBank:
    """A bank that is rebuilt once where its Nystroem features or factors are too coarse.

    Parameters
    ----------
    make : callable
        Returns the bank for a C; a larger C asks for more accurate features and factors.
    C : float
        Largest C of the fits on this bank.
    factors : bool
        Whether the bank is also rebuilt where low-rank factors are too coarse.
    """

    def __init__(self, make: Callable[[float], Bank], C: float, *, factors: bool = False) -> None:
        self._make, self._C = make, C
        self.bank: Bank = make(C)
        refines = factors or self.bank.n_features is not None
        self._refinement = self.bank.refinement if refines else None

    def keep(self) -> None:
        """Never rebuild the bank from now on: fits without some rows use it as it is."""
        self._refinement = None

    def solve(self, run: Callable[..., Result], start: WarmStart | None, tol: float) -> Result:
        """Return the result of ``run`` on the bank, or on a finer one where the bank is too coarse.

        Features are too coarse where the Nystroem problem was solved to the tolerance, but the gap
        for the exact kernels is larger.
        """
        result = run(self.bank, start=start)
        nystroem = self.bank.n_features is not None
        too_coarse = not nystroem or result.landmark_gap <= tol * result.size
        if self._refinement is None or result.converged or not too_coarse:
            return result
        finer = self._refinement * self._C
        self._refinement = None
        del self.bank  # before the finer one is made, to save memory
        self.bank = self._make(finer)
        return run(self.bank, start=WarmStart(result.weights, result.dual_coef))


class FitMixin:
    """Fit of one or several models on the same rows, each started from the one before.

    A subclass prepares what all models share (`_prepare`: a bank, a graph, a lattice), solves the
    problem of one model (`_learn`), and stores the result (`_store`).
    """

    C: float
    tol: float
    max_iter: int
    n_jobs: int | None
    verbose: int
    warm_start: bool

    # Attributes learned from the data before the first fit of a path, which its models share.
    _shared_attributes: ClassVar[frozenset[str]] = frozenset(
        "classes_ tasks_ propositions_ _linear _one_output _several _multilabel".split()
    )

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> Any:
        """Return what the models share: kernels over the rows."""
        raise NotImplementedError

    def _learn(self, shared: Any, rows: MergedRows, start: Any, report: Callback) -> Result:
        """Solve the problem of this model."""
        raise NotImplementedError

    def _store(self, shared: Any, result: Result, rows: MergedRows) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    @property
    def _needs_folds(self) -> bool:
        """Whether models without each fold are wanted, for probabilities or intervals."""
        return False

    def _leave_out(self, shared: Any, result: Result, rows: MergedRows, targets: Targets) -> None:
        """Fit models without each fold, and store what follows from them."""

    def _resume(self, shared: Any, rows: MergedRows) -> Any:
        """Return the start of the first model: the last fit, where ``warm_start`` is set."""
        return None

    def _continue(self, result: Result, ratio: float) -> Any:
        """Return a start from the result for another C; ``ratio`` is the new C over the old."""
        return None

    def _start(self, shared: Any, rows: MergedRows, last: tuple[Self, Result] | None) -> Any:
        if last is None:
            return self._resume(shared, rows)
        model, result = last
        return self._continue(result, self.C / model.C)

    def _merge(self, X: Any, targets: Targets) -> MergedRows:
        return merge_rows(X, targets.Y, targets.cost, targets.weight)

    def _scale(self, rows: MergedRows, models: list[Self]) -> MergedRows:
        """Return the rows with costs in the units of the targets, which the models store."""
        return rows

    def _fit_models(self, models: list[Self], X: Any, targets: Targets) -> list[Self]:
        """Fit models in the given order on one preparation of the rows."""
        with threads(self.n_jobs), quiet_overflow():
            rows = self._scale(self._merge(X, targets), models)
            shared = self._prepare(rows, targets, models)
            last: tuple[Self, Result] | None = None
            fitted: list[tuple[Self, Result]] = []
            for model in models:
                start = model._start(shared, rows, last)
                with Progress(self.verbose, self.tol) as report:
                    result = model._learn(shared, rows, start, report)
                model._check_finite(result)
                model._store(shared, result, rows)
                last = model, result
                if model._needs_folds:
                    fitted.append(last)
            # After the last fit: leaving rows out may activate further nodes of a shared graph.
            for model, result in fitted:
                model._leave_out(shared, result, rows, targets)
        return models

    def _fit_path(self, Cs: Iterable[float], X: Any, targets: Targets) -> list[Self]:
        """Return a fitted model for each C; they are fitted from small to large C."""
        values = check_costs(Cs)
        models = {C: self._copy(C=C) for C in sorted(set(values))}
        self._fit_models(list(models.values()), X, targets)
        return [models[C] for C in values]

    def _copy(self, **parameters: Any) -> Self:
        """Return a copy with other parameters that knows columns and classes."""
        known = {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_in_") or name in self._shared_attributes
        }
        model: Self = clone(self).set_params(**parameters)
        model.__dict__.update(known)
        return model

    def _check_finite(self, result: Result) -> None:
        """Refuse a result with coefficients that overflowed; no model would be returned."""
        parts = (result.weights, result.dual_coef, result.intercept)
        if not all(np.isfinite(part).all() for part in parts):
            raise InputError(
                f"{type(self).__name__}: kernel values or targets are too large, so that "
                "coefficients overflow. Hint: rescale the columns, for example with scikit-learn's "
                "StandardScaler, or lower C."
            )

    def _store_bounds(self, result: Result) -> None:
        """Store the objective, its gap and the work done."""
        self.objective_ = result.objective
        self.duality_gap_ = result.gap
        self.n_iter_ = result.history[-1].solves
        self.converged_ = result.converged
        self.history_ = list(result.history)

    def _store_support(self, dual_coef: Floats, intercept: Floats, rows: MergedRows) -> Indices:
        """Store dual coefficients; return the merged rows that have some, in the given order."""
        support = np.flatnonzero(dual_coef.any(axis=1))
        support = support[np.argsort(rows.index[support], kind="stable")]
        self.support_ = rows.index[support]
        self.dual_coef_ = np.ascontiguousarray(dual_coef[support].T)
        self.intercept_ = intercept
        return support

    def _warn_unless_converged(self, result: Result) -> None:
        if result.converged:
            return
        gap = result.gap / result.size
        known = np.isfinite(gap)
        where = f"at a relative duality gap of {gap:.1e}" if known else "before it was stationary"
        hint = f"raise max_iter, or accept {'the gap' if known else 'this'} by raising tol."
        if result.at_rounding:
            where += ", as near as rounding error lets it"
            hint = "centre or rescale the columns of the kernels in use, or lower C."
        self._warn_stopped(where, hint)

    def _warn_stopped(self, where: str, hint: str) -> None:
        warn(
            f"{type(self).__name__} stopped after {self.n_iter_} solves {where} "
            f"(tol={self.tol:g}). Hint: {hint}",
            ConvergenceWarning,
        )


class PathMixin(FitMixin):
    """Public `fit` and `fit_path` of the estimators on kernels."""

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        """Return the checked table and the targets; learn columns and classes."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a decision or regression function.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, two classes or more; or targets of a regression.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; a weight of two is the same as giving the row twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_models([self], *self._targets(X, y, sample_weight))[0]

    @fit_context(prefer_skip_nested_validation=True)
    def fit_path(
        self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None
    ) -> list[Self]:
        """Fit for several values of C, sharing kernels and starting each fit from the last.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels or targets.
        Cs : iterable of float
            Values of C in any order.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row.

        Returns
        -------
        models : list
            A fitted estimator for each C, in the order given.
        """
        return self._fit_path(Cs, *self._targets(X, y, sample_weight))
