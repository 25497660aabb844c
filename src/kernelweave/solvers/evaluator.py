"""Evaluation of kernel weights: objective, lower bound, and their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import CombinedKernel
from kernelweave.inner import Solution, solve_inner
from kernelweave.losses import Loss
from kernelweave.weights import WeightSet

from .bounds import Bounds
from .rounding import dual_error, form_error, form_errors, loss_error

_HALVES = 50  # times that a function is halved in search of a better one
_CORRECTION = 0.1  # share of the tolerance that what features leave out may take without a look


@dataclass(frozen=True)
class Iterate:
    """Weights, coefficients, and what the kernels of interest say about them.

    Parameters
    ----------
    kernel : CombinedKernel
        The weighted kernel.
    solution : Solution
        The loss's answer.
    which : ndarray of int
        The kernels of interest, in increasing order; all with a weight are among them.
    quadratic_forms : ndarray of shape (len(which),)
        ``tr(dual_coef' K_j dual_coef)``.
    linear, ridge, loss_value : float
        Parts of the dual and the primal value.
    """

    kernel: CombinedKernel
    solution: Solution
    which: Indices
    quadratic_forms: Floats
    linear: float
    ridge: float
    loss_value: float
    _products: dict[int, Floats] = field(default_factory=dict)

    @property
    def weights(self) -> Floats:
        """Weights of all kernels."""
        return self.kernel.weights

    @property
    def dual_coef(self) -> Floats:
        """Dual coefficients."""
        return self.solution.dual_coef

    @property
    def inner(self) -> Floats:
        """Weights of the kernels of interest."""
        return self.weights[self.which]

    @property
    def cut(self) -> float:
        """``J(x) >= cut - x . quadratic_forms / 2`` for all x; no optimality needed."""
        return self.linear - 0.5 * self.ridge

    def products(self, ids: Indices) -> Floats:
        """Return ``K_j @ dual_coef`` for some kernels; computed once."""
        fresh = np.array([j for j in ids if int(j) not in self._products], dtype=np.intp)
        if len(fresh):
            values = self.kernel.bank.products(self.dual_coef, fresh)
            self._products.update(zip(fresh.tolist(), values, strict=True))
        return np.array([self._products[int(j)] for j in ids])

    def start_at(self, kernel: CombinedKernel) -> Solution:
        """Return where a machine begins for other weights of the same kernels."""
        if kernel.bank.by_features:
            return replace(self.solution, primal=np.inf, dual=-np.inf)
        return moved(self.dual_coef, self._fitted_at(kernel))

    def _fitted_at(self, kernel: CombinedKernel) -> Floats:
        """Return ``kernel @ dual_coef``."""
        if kernel.forms_for(self.dual_coef) or kernel.sums_rows:
            return kernel @ self.dual_coef
        change = kernel.weights - self.weights  # mostly zero
        ids = np.flatnonzero(change)
        if not len(ids):
            return self.solution.fitted
        return self.solution.fitted + np.tensordot(change[ids], self.products(ids), axes=1)


def moved(dual_coef: Floats, fitted: Floats) -> Solution:
    """Return a start for a loss: coefficients with their fitted values, nothing proved."""
    return Solution(dual_coef, np.zeros(dual_coef.shape[1]), fitted, np.inf, -np.inf)


@dataclass(frozen=True)
class DualPoint:
    """Dual coefficients with the parts of their value that no kernel is needed for."""

    dual_coef: Floats
    linear: float
    ridge: float


class Evaluator:
    """Solves machines on a bank, keeps count of it and offers the bounds.

    Parameters
    ----------
    bank : KernelBank or FeatureBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    weight_set : WeightSet
        Where weights live.
    bounds : Bounds
        Receives bounds and work.
    """

    def __init__(
        self,
        bank: Any,
        Y: Floats,
        cost: Floats,
        loss: Loss,
        weight_set: WeightSet,
        bounds: Bounds,
    ) -> None:
        self.bank, self.Y, self.cost = bank, Y, cost
        self.loss, self.weight_set, self.bounds = loss, weight_set, bounds
        with np.errstate(over="ignore"):
            bounds.scale = loss.zero_loss(Y, cost)
        # Steps use the running sums of a loss, which drift by rounding, and factored kernels.
        # What is returned is recomputed from the exact kernels by `verify`; if the gap then no
        # longer holds, so is everything after it. None: never, these bounds are internal.
        self.exact: bool | None = False
        # What features leave out needs a share of the tolerance.
        bounds.tol *= 1.0 - _CORRECTION if bank.by_features else 1.0
        self._lowest: tuple[float, DualPoint | None] = (-np.inf, None)
        self._best: CombinedKernel  # of the best upper bound
        self._fitted: Floats  # by it
        self._settled = (np.inf, -np.inf)
        self._rounding: tuple[Floats | None, float] = (None, 0.0)  # of fitted values
        # Coefficients, kernels and their forms that were evaluated last, not read from storage.
        self._exactly: tuple[Floats, Indices, Floats] | None = None

    def at(self, weights: Floats, dual_coef: Floats, which: Indices | None = None) -> Iterate:
        """Look at feasible coefficients without solving."""
        kernel = self.bank.combine(weights)
        return self.evaluate(kernel, self.start(kernel, dual_coef), which)

    def start(self, kernel: CombinedKernel, dual_coef: Floats) -> Solution:
        """Return where a machine begins, from feasible coefficients."""
        # A machine on features computes what it needs itself.
        return moved(dual_coef, dual_coef if self.bank.by_features else kernel @ dual_coef)

    def dual_value(self, start: Solution) -> float:
        """Return the dual value of the coefficients that a machine begins from."""
        dual_coef = start.dual_coef
        quadratic = float(np.vdot(dual_coef, start.fitted))
        ridge = self.loss.ridge_term(dual_coef, self.Y, self.cost)
        return self.loss.linear(dual_coef, self.Y, self.cost) - 0.5 * (quadratic + ridge)

    def solve(
        self,
        kernel: CombinedKernel,
        *,
        tol: float = 0.0,
        floor: float = 0.0,
        start: Solution | None = None,
        enough: float = np.inf,
    ) -> Solution:
        """Solve the machine for a kernel."""
        solution = solve_inner(
            self.loss,
            kernel,
            self.Y,
            self.cost,
            tol=tol,
            floor=floor,
            start=start,
            enough=enough,
        )
        self.bounds.solves += 1
        self.bounds.work += solution.work
        if solution.scores is not None:
            at_hand = kernel.at_hand  # type: ignore[attr-defined]
            self.bank.remember(solution.dual_coef, at_hand, solution.scores)
        return solution

    def evaluate(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        which: Indices | None = None,
        quadratic_forms: Floats | None = None,
    ) -> Iterate:
        """Read the forms of the kernels of interest, unless known, and offer the upper bound."""
        which = np.flatnonzero(kernel.weights) if which is None else which
        if self._needs_exact_forms:
            self.bounds.n_passes += len(which) / self.bank.n_kernels
            fitted, quadratic_forms = self._evaluate_exactly(kernel, solution.dual_coef, which)
            return self._look(
                kernel, solution.dual_coef, fitted, which, quadratic_forms, solution.work
            )
        if quadratic_forms is None:
            quadratic_forms = self.bank.quadratic_forms(solution.dual_coef, which)
            self.bounds.n_passes += len(which) / self.bank.n_kernels
        if self.bank.by_features:
            return self._look_at_function(kernel, solution, which, quadratic_forms)
        fitted = kernel.exact_product(solution.dual_coef) if self.exact else solution.fitted
        return self._look(kernel, solution.dual_coef, fitted, which, quadratic_forms, solution.work)

    def _look_at_function(
        self, kernel: Any, solution: Solution, which: Indices, quadratic_forms: Floats
    ) -> Iterate:
        """Offer the function of a solution on features, which the coefficients only bound."""
        function = solution.function
        if function is None:  # the coefficients come without one
            w = kernel.sums(solution.dual_coef)
            function = kernel.raise_weights(w)
            solution = replace(solution, function=function, fitted=kernel.times(w))
        loss_value, intercept = self.loss.value(solution.fitted, self.Y, self.cost)
        linear = self.loss.linear(solution.dual_coef, self.Y, self.cost)
        ridge = self.loss.ridge_term(solution.dual_coef, self.Y, self.cost)
        norms = self.bank.norms(function)
        weights = kernel.weights
        used = weights > 0
        solution = replace(
            solution,
            intercept=intercept,
            primal=0.5 * float((norms[used] ** 2 / weights[used]).sum()) + loss_value,
            dual=linear - 0.5 * ridge - 0.5 * float(weights[which] @ quadratic_forms),
        )
        known = np.zeros(len(weights))
        known[which] = quadratic_forms
        constant = self.loss.constant(solution.fitted, self.Y, self.cost)
        upper = self.weight_set.penalty(norms) + loss_value
        if self.bounds.offer_upper(upper, weights, solution.dual_coef, intercept, known, constant):
            self.bounds.function = function
            self._best, self._fitted = kernel, solution.fitted
        return Iterate(kernel, solution, which, quadratic_forms, linear, ridge, loss_value)

    def _look(
        self,
        kernel: CombinedKernel,
        dual_coef: Floats,
        fitted: Floats,
        which: Indices,
        quadratic_forms: Floats,
        work: int = 0,
    ) -> Iterate:
        weights = kernel.weights
        loss_value, intercept = self.loss.value(fitted, self.Y, self.cost)
        linear = self.loss.linear(dual_coef, self.Y, self.cost)
        ridge = self.loss.ridge_term(dual_coef, self.Y, self.cost)
        quadratic = float(weights[which] @ quadratic_forms)
        solution = Solution(
            dual_coef=dual_coef,
            intercept=intercept,
            fitted=fitted,
            primal=0.5 * quadratic + loss_value,
            dual=linear - 0.5 * ridge - 0.5 * quadratic,
            work=work,
        )
        dropped = self.bank.residual_forms(dual_coef)[which] if self.bank.leaves_out else 0.0
        norms = np.zeros(len(weights))
        norms[which] = weights[which] * np.sqrt(quadratic_forms + dropped)
        upper = self.weight_set.penalty(norms) + loss_value
        known = np.zeros(len(weights))
        known[which] = quadratic_forms
        constant = self.loss.constant(fitted, self.Y, self.cost)
        if self.bounds.offer_upper(upper, weights, dual_coef, intercept, known, constant):
            self._best, self._fitted = kernel, fitted
        return Iterate(kernel, solution, which, quadratic_forms, linear, ridge, loss_value)

    @property
    def _needs_exact_forms(self) -> bool:
        """Whether bounds count, and storage in single precision would be in them."""
        return bool(self.exact and not self.bank.by_features and self.bank.rounded.any())

    def _evaluate_exactly(
        self, kernel: CombinedKernel, dual_coef: Floats, which: Indices
    ) -> tuple[Floats, Floats]:
        """Return fitted values and quadratic forms without the rounding of storage."""
        known = np.full(self.bank.n_kernels, np.nan)
        fitted = self.bank.exact_product(kernel.weights, dual_coef, known)
        rest = which[np.isnan(known[which])]
        if len(rest):
            known[rest] = self.bank.exact_forms(dual_coef, rest)
        self._exactly = (dual_coef, which, known[which])
        return fitted, known[which]

    def _bound_forms(self, point: Iterate | DualPoint) -> Floats:
        """Bound the forms of all exact kernels.

        Bounds of the storage error are added to the forms of stored kernels. Kernels are evaluated
        only where that would take more than `_CORRECTION` of the tolerance.
        """
        dual_coef, allowed = point.dual_coef, _CORRECTION * self.bounds.tol * self.bounds.size
        quadratic_forms, slack = (
            self.bank.quadratic_forms(dual_coef),
            self.bank.storage_errors(dual_coef),
        )
        if self._exactly is not None and np.array_equal(self._exactly[0], dual_coef):
            which = self._exactly[1]
            quadratic_forms[which], slack[which] = self._exactly[2], 0.0
        # First those that may be the largest, which is all that counts for weights on a simplex.
        for far in (
            quadratic_forms + slack > quadratic_forms.max(),
            np.full(len(quadratic_forms), True),
        ):
            if (
                self.lower_bound(point, quadratic_forms)
                - self.lower_bound(point, quadratic_forms + slack)
                <= allowed
            ):
                break
            which = np.flatnonzero(far & (slack > 0))
            quadratic_forms[which], slack[which] = self.bank.exact_forms(dual_coef, which), 0.0
        return np.asarray(quadratic_forms + slack)

    def lower_bound(self, point: Iterate | DualPoint, quadratic_forms: Floats) -> float:
        """Return the lower bound that a point proves when no form is larger than these."""
        return self.weight_set.lower_bound(
            point.linear, point.ridge, quadratic_forms, bounded=self.loss.bounded
        )

    def offer_lower(self, point: Iterate | DualPoint, quadratic_forms: Floats) -> None:
        """Offer the lower bound from the forms of all kernels, plus what their forms drop."""
        if self._needs_exact_forms:
            quadratic_forms = self._bound_forms(point)
        dropped = self.bank.residual_forms(point.dual_coef) if self.bank.leaves_out else 0.0
        value = self.lower_bound(point, quadratic_forms + dropped)
        if value > self._lowest[0]:
            self._lowest = (value, DualPoint(point.dual_coef, point.linear, point.ridge))
        self.bounds.offer_lower(value, point.dual_coef)

    def verify(self) -> bool:
        """Tell whether the gap meets the tolerance for the exact kernels too."""
        if self.bounds.converged and not self.bank.by_features:
            self.settle()
        return self.bounds.converged

    def settle(self) -> None:
        """Recompute the best bounds from the exact kernels, once, and measure their rounding."""
        bounds = self.bounds
        if self.exact is None or not np.isfinite(bounds.upper):
            return
        if self.bank.by_features:  # a function of features is one of the exact kernels as it is
            self._offer_less()
            self.measure_rounding()
            self._settle_lower()
            return
        if not self.exact:
            self.exact = True
            bounds.upper = np.inf
            kernel, dual_coef = self._best, bounds.dual_coef
            which = np.flatnonzero(kernel.weights)
            if self._needs_exact_forms:
                fitted, quadratic_forms = self._evaluate_exactly(kernel, dual_coef, which)
                self._look(kernel, dual_coef, fitted, which, quadratic_forms)
                bounds.lower, (_, point), self._lowest = -np.inf, self._lowest, (-np.inf, None)
                if point is not None:
                    self.offer_lower(point, np.empty(0))
            else:
                fitted = kernel.exact_product(dual_coef)
                self._look(kernel, dual_coef, fitted, which, bounds.quadratic_forms[which])
            bounds.note()
        before = bounds.upper
        if (before, bounds.lower) == self._settled:  # at the same bounds, no need to look again
            return
        self._offer_less()
        if bounds.upper != before:
            bounds.note()
        self.measure_rounding()
        self._settled = (bounds.upper, bounds.lower)

    def _offer_less(self) -> None:
        """Offer less of the best function, or none but its bias, where that may be better."""
        if not self.loss.is_sum:  # whose callers look at it themselves
            return
        bounds, nothing = self.bounds, np.zeros_like(self.Y)
        loss_value, _ = self.loss.value(nothing, self.Y, self.cost)
        if self.bank.by_features:
            if loss_value < bounds.upper:
                self.at(bounds.weights, nothing)
            return
        rounding = self._upper_rounding()
        if loss_value >= bounds.upper + rounding:
            return
        bounds.at_rounding = rounding > bounds.tol * loss_value
        kernel, dual_coef, fitted = self._best, bounds.dual_coef, self._fitted
        which = np.flatnonzero(kernel.weights)
        quadratic_forms = bounds.quadratic_forms[which]
        if loss_value < bounds.upper:
            for share in (0.5 ** np.arange(1.0, _HALVES)).tolist():
                self._look(
                    kernel, share * dual_coef, share * fitted, which, share**2 * quadratic_forms
                )
        if loss_value < bounds.upper + self._upper_rounding():
            bounds.upper = np.inf
            self._look(kernel, nothing, nothing, which, np.zeros(len(which)))

    def measure_rounding(self) -> None:
        """Bound what rounding did to the best bounds.

        Zero where that is not known, or far less than what landmarks leave out.
        """
        if np.isfinite(self.bounds.upper):
            self.bounds.rounding = self._upper_rounding() + self._lower_rounding()

    @property
    def _rounds(self) -> bool:
        return self.loss.is_sum and not self.bank.by_features

    def _upper_rounding(self) -> float:
        bounds = self.bounds
        if self.bank.by_features and self.loss.is_sum and bounds.function is not None:
            slopes = self.loss.slope_bounds(bounds.dual_coef, self.Y, self.cost)
            return float(self.bank.value_rounding(bounds.function, slopes))
        if not self._rounds:
            return 0.0
        if self._rounding[0] is self._fitted:  # the same function as before
            return self._rounding[1]
        dual_coef, diagonal = bounds.dual_coef, self._best.diag()
        loss_value = loss_error(
            self.loss, self.Y, self.cost, diagonal, dual_coef, self._fitted, bounds.intercept
        )
        bound = 0.5 * form_error(dual_coef, diagonal) + loss_value
        # Not a number where it overflows.
        self._rounding = (self._fitted, bound if bound >= 0 else np.inf)
        return self._rounding[1]

    def _lower_rounding(self) -> float:
        point = self._lowest[1]
        if point is None or not self._rounds:
            return 0.0
        errors = form_errors(point.dual_coef, self.bank.diagonal_sums, self._best.diag())
        # The best objective is no larger than ours, which bounds the best bias.
        most = self.weight_set.support_value(self.bank.traces())
        bias = float(np.abs(self.Y).max()) + float(np.sqrt(2.0 * self.bounds.upper * most))
        rest = dual_error(self.loss, self.Y, point.dual_coef, point.linear, point.ridge, bias)
        return 0.5 * self.weight_set.support_value(errors) + rest

    def _settle_lower(self) -> None:
        """Replace the lower bound by one that holds for the exact kernels, once.

        The best dual point keeps its place, and forms are corrected by what features leave out:
        by a bound that costs nothing where that does no harm, by all landmarks elsewhere.
        """
        bounds = self.bounds
        if bounds.landmark_lower is not None or not np.isfinite(bounds.lower):
            return
        bounds.tol /= 1.0 - _CORRECTION
        bounds.complete = self.bank.is_complete
        point = self._lowest[1]
        assert point is not None
        quadratic_forms = self.bank.quadratic_forms(point.dual_coef)
        slack = self.bank.slack(point.dual_coef, quadratic_forms)
        allowed = _CORRECTION * bounds.tol * bounds.size
        for _ in range(self.bank.n_kernels):
            bound = self.lower_bound(point, quadratic_forms + slack)
            if bounds.lower - bound <= allowed:
                break
            # What matters to a bound is a large form, and how much of it is not known.
            doubt = np.where(slack > 0, quadratic_forms + slack, 0.0)
            j = int(doubt.argmax())
            if not doubt[j] > 0 or not self.bank.landmarks[j].complete:
                break
            quadratic_forms[j], slack[j] = self.bank.exact_form(point.dual_coef, j), 0.0
        bounds.landmark_lower = bounds.lower
        bounds.lower = min(bounds.lower, self.lower_bound(point, quadratic_forms + slack))
        bounds.note()
