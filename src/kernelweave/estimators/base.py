"""Base class of the kernel estimators: fitting a bank, fitted attributes, prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelweave._dask import gather, is_parted
from kernelweave._declaration import CERTIFICATE, Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import run_blocks, threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import N_JOBS, Interval, StrOptions, check_table, pick_rows
from kernelweave.banks import Views, cross_block, make_bank
from kernelweave.banks.build import NORMALIZATIONS
from kernelweave.banks.nystroem.build import make_feature_bank, may_compute
from kernelweave.banks.nystroem.landmarks import LandmarkFunction
from kernelweave.banks.protocol import Bank, Predictor
from kernelweave.errors import numbering, warn
from kernelweave.inner import MAX_FREE
from kernelweave.kernels import Kernel, expand_kernels
from kernelweave.kernels.given import with_targets
from kernelweave.kernels.vector import centre_linear
from kernelweave.losses import Loss
from kernelweave.solvers import Callback, Limits, Problem, Result, WarmStart, learn_weights
from kernelweave.weights import LpBall, Simplex, Uniform, WeightSet

from .duplicates import MergedRows, spread_rows
from .fit import FitMixin, RefinableBank
from .given_kernels import CONSTRAINTS, GivenKernels
from .out_of_fold import SAVED, HeldProblem, HeldSolution, LeftOut, OutOfFold
from .targets import Targets
from .terms import FunctionTerms, KernelTerm, KernelTerms

if TYPE_CHECKING:
    import pandas as pd

BlockFunction = Callable[..., Floats]  # of two sets of rows, and of what to multiply by

_BLOCK_BYTES = 1.6e7  # of the kernel blocks of prediction, one per thread


class BaseMKL(GivenKernels, OutOfFold, FitMixin, NotebookSummary, BaseEstimator):
    """Base of the estimators that learn one weight per kernel."""

    norm: Any
    normalize: str | None
    fit_intercept: bool
    memory_limit: float | str | None
    n_landmarks: int | None = None

    _takes_features: ClassVar[bool] = False  # whether Nystroem features may replace large kernels
    _adds_passes: ClassVar[bool] = False  # whether further landmarks are added to these features
    _support_views: Views
    _function: LandmarkFunction | None = None  # of a Nystroem fit, in place of support rows

    _declaration: ClassVar[Declaration] = Declaration(
        "kernels",
        saved={
            "weights_": "weights[kernels]",
            "scales_": "float[kernels]",
            "contributions_": "float[kernels]",
            **CERTIFICATE,
            "support_": "int[support]",
            "dual_coef_": "float[outputs, support]",
            "intercept_": "float[outputs]",
            "n_features_in_": "integer",
        },
        optional={
            "feature_names_in_": "names",
            "_last": "any",
            "landmark_gap_": "real",
            **SAVED,
        },
        substitutes={"kernels": "kernels_"},
        aspects=("kernels",),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
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

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> Any:
        C = max(model.C for model in models)
        return RefinableBank(lambda C: self._bank(rows, C), C)

    def _learn(self, shared: Any, rows: MergedRows, start: Any, report: Callback) -> Result:
        solve = partial(self._solve, Y=rows.Y, cost=self.C * rows.cost, report=report)
        result: Result = shared.solve(solve, start, self.tol)
        return result

    def _resume(self, shared: Any, rows: MergedRows) -> WarmStart | None:
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None:
            return None
        weights, dual_coef, C = last
        if len(weights) != shared.bank.n_kernels or dual_coef.shape != rows.Y.shape:
            return None
        return WarmStart(weights, dual_coef * (self.C / C))

    def _continue(self, result: Result, ratio: float) -> Any:
        return WarmStart(result.weights, result.dual_coef * ratio)

    def _bank(self, rows: MergedRows, C: float) -> Bank:
        # The other normalisations depend on where zero is.
        centre = self.fit_intercept and self.normalize not in ("diagonal", "cosine")
        kernels = self._expand_kernels(rows.X, rows.weight, rows.Y, centre=centre)
        return self._make_bank(
            kernels, rows, C, centred=self.fit_intercept, features=self._takes_features
        )

    def _make_bank(
        self, kernels: list[Kernel], rows: MergedRows, C: float, *, centred: bool, features: bool
    ) -> Bank:
        """Return a bank of kernels; where n is large, of Nystroem features or kernels on demand."""
        options: dict[str, Any] = {
            "normalize": self.normalize,
            "centred": centred,
            "tol": self.tol / max(1.0, C),  # the error of a factor is multiplied by C
            "memory_limit": self.memory_limit,
            "sample_weight": rows.weight,
        }
        bank = None
        reach = self._on_demand() if self.n_landmarks is None else None
        if reach is not None:
            table = kernels, rows.X, self.normalize, self.memory_limit
            options["on_demand"] = may_compute(*table, whole=reach == "whole", features=features)
        if features:
            given: dict[str, Any] = {"passes": self._adds_passes, "n_landmarks": self.n_landmarks}
            bank = make_feature_bank(kernels, rows.X, **given, **options)
        if bank is None:
            options["n_combined"] = 1 if len(kernels) == 1 else self._n_combined()
            options["n_solved"] = self._n_solved(len(rows.Y))
            return make_bank(kernels, gather(rows.X), **options)
        return bank

    def _on_demand(self) -> Literal["parts", "whole"] | None:
        """Return what of a kernel on demand its solver reads in a step; None: it takes none."""
        return None

    def _n_combined(self) -> int:
        """Return the number of kernel sums in memory: current, trial and best bound."""
        return 1 if getattr(self, "norm", None) == "uniform" else 3

    def _n_solved(self, n: int) -> int:
        """Return the number of rows of the largest linear system in dual coefficients."""
        return min(n, MAX_FREE)

    def _expand_kernels(
        self,
        X: Any,
        weight: Floats | None = None,
        Y: Floats | None = None,
        *,
        centre: bool = False,
    ) -> list[Kernel]:
        """Return the kernels with families written out; widths come from rows spread over X.

        Families that learn from targets get those of the rows. With ``centre``, linear kernels on
        columns far from zero are centred.
        """
        n, kernels = _num_samples(X), self._given_kernels()
        some = spread_rows(n)
        if not self._takes_features or len(some) == n:
            X = gather(X)
            expanded = expand_kernels(self._with_targets(kernels, Y), X, weight)
            return centre_linear(expanded, X) if centre else expanded
        if weight is not None:  # rows without weight do not count
            there = np.flatnonzero(weight)
            some = there[spread_rows(len(there))]
        X = X.take(some) if is_parted(X) else pick_rows(X, some)
        kernels = self._with_targets(kernels, None if Y is None else Y[some])
        with numbering(some):
            expanded = expand_kernels(kernels, X, None if weight is None else weight[some])
            return centre_linear(expanded, X) if centre else expanded

    def _with_targets(self, kernels: Any, Y: Floats | None) -> Any:
        """Give targets to the kernels that learn from them, which weights of norm 1 prefer."""
        found = kernels if Y is None else with_targets(kernels, Y)
        if found is not kernels and getattr(self, "norm", None) == 1:
            warn(
                "norm=1: prefers kernels that have seen the targets, as those of learned_metric "
                "have. Hint: norm=2 or norm='uniform'."
            )
        return found

    def _solve(
        self, bank: Bank, Y: Floats, cost: Floats, start: WarmStart | None, report: Callback | None
    ) -> Result:
        """Learn weights with the norm asked for."""
        problem = Problem(bank, Y, cost, self._make_loss(), self._weight_set())
        limits = Limits(self.tol, self.max_iter, report, self._is_provisional)
        return learn_weights(problem, limits, start)

    def _weight_set(self) -> WeightSet:
        if self.norm == "uniform":
            return Uniform()
        return Simplex() if self.norm == 1 else LpBall(float(self.norm))

    def _store(self, shared: Any, result: Result, rows: MergedRows) -> None:
        self._store_model(shared.bank, result, rows)

    def _store_model(self, bank: Bank, result: Result, rows: MergedRows) -> None:
        self.kernels_: list[Kernel] = list(bank.kernels)
        self.weights_ = result.weights
        self.scales_ = bank.scales
        self._store_bounds(result)
        support = self._store_support(result.dual_coef, result.intercept, rows)
        self._store_contributions(result.weights * result.quadratic_forms)
        self._store_predictor(bank.predictor(support, in_use(result.weights), result.function))
        if self._takes_features:
            self.landmark_gap_ = result.landmark_gap
        self._last = (result.weights, result.dual_coef, self.C) if self.warm_start else None
        self._warn_unless_converged(result)

    def _n_learned(self, shared: Any) -> float:
        n_kernels = shared.bank.n_kernels
        return 0 if getattr(self, "norm", None) == "uniform" or n_kernels == 1 else n_kernels

    def _hold(self, shared: Any, result: Result, rows: MergedRows) -> HeldProblem | None:
        bank = shared.bank
        return HeldProblem(
            bank.combine(result.weights / self._divisor),
            self._make_loss(),
            rows.Y,
            self.C * rows.cost,
            result.dual_coef,
            self.tol,
            bank=bank,
            function=result.function,
        )

    def _place(self, shared: Any, rows: MergedRows, solution: HeldSolution) -> None:
        support = self._store_support(solution.dual_coef, solution.intercept, rows)
        used = in_use(self.weights_)
        self._store_predictor(shared.bank.predictor(support, used, solution.function))

    def _row_values(self, shared: Any, result: Result, rows: MergedRows, test: Indices) -> Floats:
        if result.function is not None:
            values = shared.bank.values(result.function)[test]
        else:
            kernel = shared.bank.combine(result.weights / self._divisor)
            values = (kernel @ result.dual_coef)[test]
        return np.asarray(values + result.intercept)

    def _leave_out_learned(
        self, shared: Any, result: Result, rows: MergedRows, *options: Any
    ) -> LeftOut:
        refinable = getattr(shared, "refinable", shared)
        if isinstance(refinable, RefinableBank):
            refinable.keep()
        return super()._leave_out_learned(shared, result, rows, *options)

    def _outputs(self, X: Any) -> Floats:
        return self._decide(X)

    def _store_predictor(self, predictor: Predictor) -> None:
        found = {"_support_views": predictor.support, "_function": predictor.function}
        for name, value in found.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _store_contributions(self, squared_norms: Floats) -> None:
        self.contributions_ = squared_norms / (squared_norms.sum() or 1.0)

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
        kernels, block = self._learned_kernel()
        A = Views.of(kernels, check_table(self, X, reset=False))
        B = A if Y is None else Views.of(kernels, check_table(self, Y, reset=False))
        with threads(self.n_jobs):
            return block(A, B)

    def _learned_kernel(self) -> tuple[list[Kernel], BlockFunction]:
        """Return the kernels that rows are prepared for, and a function of two sets of rows."""
        kernels, weights = self._active()
        return kernels, partial(cross_block, kernels, weights)

    def _active(self) -> tuple[list[Kernel], Floats]:
        """Return the kernels in use, with weights for the kernels as written."""
        active = in_use(self.weights_)
        weights = (self.weights_ * self.scales_)[active] / self._divisor
        return [self.kernels_[j] for j in active], weights

    @property
    def _divisor(self) -> float:
        """What the weighted kernel is divided by: of the radius methods, the squared radius."""
        return float(getattr(self, "squared_radius_", 1.0))

    def _decide(self, X: Any) -> Floats:
        """Return decision values, one column per output."""
        check_is_fitted(self)
        kernels, block = self._learned_kernel()
        function = self._function
        entries = max(1, len(self.support_)) * self._blocks_at_once(kernels)
        if function is not None:
            kernels = [self.kernels_[j] for j in function.which]
            entries = max(1, function.n_landmarks)
        rows = Views.of(kernels, check_table(self, X, reset=False))

        def values(part: slice) -> Floats:
            some = rows.take(part)
            return self._values(block, some) if function is None else function.values(kernels, some)

        with threads(self.n_jobs):
            size = int(max(1, _BLOCK_BYTES / (8 * entries)))
            return np.concatenate(run_blocks(values, rows.n_samples, size)) + self.intercept_

    def _terms(self) -> KernelTerms | FunctionTerms:
        """Return the decision function as a sum of kernels over support rows or landmarks."""
        function = self._function
        if function is not None:
            found = zip(function.which.tolist(), function.rows, function.coefs, strict=True)
            terms = [KernelTerm(str(k := self.kernels_[j]), ((k, X),), c) for j, X, c in found]
        else:
            terms = self._support_terms()
        return KernelTerms(tuple(terms), self.intercept_, partial(check_table, self, reset=False))

    def _support_terms(self) -> list[KernelTerm]:
        coefs = self._support_coefs()
        return [
            KernelTerm(str(kernel), ((kernel, self._support_views[j]),), coefs[j].T)
            for j, kernel in enumerate(self._active()[0])
        ]

    def _support_coefs(self) -> Floats:
        """Return coefficients of the kernels in use, (n_kernels, n_outputs, n_support)."""
        return np.asarray(self._active()[1][:, None, None] * self.dual_coef_)

    def _blocks_at_once(self, kernels: list[Kernel]) -> int:
        """Return the number of kernel blocks in memory while a block of rows is predicted."""
        return 1

    def _values(self, block: BlockFunction, rows: Views) -> Floats:
        """Return decision values of prepared rows from the support rows, without the intercept."""
        return block(rows, self._support_views, np.ascontiguousarray(self.dual_coef_.T))

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all kernels, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``kernel`` (name), ``weight``, and ``contribution``, the share of the squared norm of
            the decision function, which unlike the weight does not depend on the kernel's scale.
        """
        check_is_fitted(self)
        names = [str(kernel) for kernel in self.kernels_]
        return self._sorted_frame({"kernel": names, "weight": self.weights_}, by="weight")

    def _sorted_frame(self, columns: dict[str, Any], by: str) -> pd.DataFrame:
        """Return columns and `contributions_` as a table, largest entries of one column first."""
        import pandas as pd

        frame = pd.DataFrame({**columns, "contribution": self.contributions_})
        return frame.sort_values(by, ascending=False, kind="stable", ignore_index=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")


def in_use(weights: Floats) -> Indices:
    """Return the kernels that prediction needs; one of them even where only a bias was learned."""
    active = np.flatnonzero(weights)
    return active if len(active) else np.arange(1)
