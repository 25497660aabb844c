"""Evaluation of kernel weights: objective, lower bound, and their rounding errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import WeightedSum
from kernelweave.inner import Solution, solve_inner, unsolved

from .bounds import Bounds, DualPoint, Iterate
from .problem import Problem
from .rounding import dual_error, form_error, form_errors, loss_error

_HALVES = 50  # times that a function is halved in search of a better one
_CORRECTION = 0.1  # share of the tolerance that bounds of the storage error may take; by hand


class Evaluator:
    """Solves inner problems on a bank, counts the work and offers the bounds.

    Steps use the running sums of inner solvers, which drift by rounding, and kernels as they are
    stored. `settle` makes the best bounds those of the exact kernels; `verify` does so whenever
    they meet the tolerance.
    """

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        self.problem, self.bounds = problem, bounds
        self.bank, self.Y, self.cost = problem.bank, problem.Y, problem.cost
        self.loss, self.weight_set = problem.loss, problem.weight_set
        with np.errstate(over="ignore"):
            bounds.scale = self.loss.zero_loss(self.Y, self.cost)
        # Whether bounds are those of the exact kernels. None: never, these bounds are internal.
        self.exact: bool | None = None if bounds.provisional else False
        self._lowest: tuple[float, DualPoint | None] = (-np.inf, None)
        self._best: WeightedSum  # of the best upper bound
        self._fitted: Floats  # by it
        self._upper_error: float | None = None  # of the best upper bound, once measured

    def at(self, weights: Floats, dual_coef: Floats, which: Indices | None = None) -> Iterate:
        """Evaluate feasible coefficients without solving."""
        kernel = self.bank.combine(weights)
        return self.evaluate(kernel, self.start(kernel, dual_coef), which)

    def start(self, kernel: WeightedSum, dual_coef: Floats) -> Solution:
        """Return the start of an inner solve from feasible coefficients."""
        return unsolved(dual_coef, kernel.start_values(dual_coef))

    def dual_point(self, dual_coef: Floats) -> DualPoint:
        """Return feasible coefficients with the parts of their dual value that need no kernel."""
        args = dual_coef, self.Y, self.cost
        return DualPoint(dual_coef, self.loss.linear(*args), self.loss.ridge_term(*args))

    def dual_value(self, start: Solution) -> float:
        """Return the dual value of the coefficients that an inner solve starts from."""
        dual_coef = start.dual_coef
        quadratic = float(np.vdot(dual_coef, start.fitted))
        ridge = self.loss.ridge_term(dual_coef, self.Y, self.cost)
        return self.loss.linear(dual_coef, self.Y, self.cost) - 0.5 * (quadratic + ridge)

    def solve(
        self,
        kernel: WeightedSum,
        *,
        tol: float = 0.0,
        floor: float = 0.0,
        start: Solution | None = None,
        enough: float = np.inf,
    ) -> Solution:
        """Solve the inner problem for a kernel; see `solve_inner`."""
        options = {"tol": tol, "floor": floor, "enough": enough}
        solution = solve_inner(self.loss, kernel, self.Y, self.cost, start=start, **options)
        self.bounds.solves += 1
        self.bounds.work += solution.work
        if solution.scores is not None and len(solution.scores):
            kernel.remember(solution.dual_coef, solution.scores)
        return solution

    def evaluate(
        self,
        kernel: WeightedSum,
        solution: Solution,
        which: Indices | None = None,
        quadratic_forms: Floats | None = None,
    ) -> Iterate:
        """Compute the quadratic forms of interest, unless known, and offer the upper bound."""
        which = np.flatnonzero(kernel.weights) if which is None else which
        if quadratic_forms is None:
            quadratic_forms = self.bank.quadratic_forms(solution.dual_coef, which)
            self.bounds.n_passes += len(which) / self.bank.n_kernels
        return self._offer(kernel, solution, which, quadratic_forms)

    def _offer(
        self, kernel: WeightedSum, solution: Solution, which: Indices, quadratic_forms: Floats
    ) -> Iterate:
        """Offer the upper bound of the function of a solution."""
        dual_coef, weights, Y, cost = solution.dual_coef, kernel.weights, self.Y, self.cost
        function = kernel.function(
            dual_coef, solution.fitted, which, quadratic_forms, solution.function
        )
        loss_value, intercept = self.loss.value(function.fitted, Y, cost)
        linear = self.loss.linear(dual_coef, Y, cost)
        ridge = self.loss.ridge_term(dual_coef, Y, cost)
        solution = replace(
            solution,
            intercept=intercept,
            fitted=function.fitted,
            function=function.columns,
            primal=0.5 * function.squared_norm + loss_value,
            dual=linear - 0.5 * ridge - 0.5 * float(weights[which] @ quadratic_forms),
        )
        known = np.zeros(len(weights))
        known[which] = quadratic_forms
        constant = self.loss.constant(function.fitted, Y, cost)
        upper = self.weight_set.penalty(function.norms) + loss_value
        if self.bounds.offer_upper(upper, weights, dual_coef, intercept, known, constant):
            self.bounds.function = function.columns
            self._best, self._fitted, self._upper_error = kernel, function.fitted, None
        return Iterate(kernel, solution, which, quadratic_forms, linear, ridge, loss_value)

    def lower_bound(self, point: Iterate | DualPoint, quadratic_forms: Floats) -> float:
        """Return the lower bound that a point proves when no form is larger than these."""
        return self.weight_set.lower_bound(
            point.linear, point.ridge, quadratic_forms, bounded=self.loss.bounded
        )

    def offer_lower(self, point: Iterate | DualPoint, quadratic_forms: Floats) -> None:
        """Offer the lower bound from the quadratic forms of all kernels, as they are stored."""
        dropped = self.bank.residual_forms(point.dual_coef) if self.bank.leaves_out else 0.0
        value = self.lower_bound(point, quadratic_forms + dropped)
        if value > self._lowest[0]:
            self._lowest = (value, DualPoint(point.dual_coef, point.linear, point.ridge))
        self.bounds.offer_lower(value, point.dual_coef)

    def verify(self) -> bool:
        """Return whether the gap meets the tolerance for the exact kernels too."""
        raise NotImplementedError

    def settle(self) -> None:
        """Make the best bounds those of the exact kernels, and measure their rounding."""
        raise NotImplementedError

    def _match_weights(self) -> None:
        """Move to the best weights of the best function, if its own leave more than the tolerance.

        The objective of a function is that at its best weights. A solver that meets the tolerance
        at once may stand at others, with which the same function has a larger one. One solve at the
        best weights gives a function that belongs to them, and may use half of what is left of the
        tolerance.
        """
        bounds, weight_set = self.bounds, self.weight_set
        forms = np.maximum(bounds.quadratic_forms, 0.0)
        norms = bounds.weights * np.sqrt(forms)
        with np.errstate(over="ignore", invalid="ignore"):
            excess = 0.5 * float(bounds.weights @ forms) - weight_set.penalty(norms)
        allowed, before = bounds.tol * bounds.size, bounds.upper
        floor = 0.5 * (allowed - (before - bounds.lower))
        if weight_set.is_fixed or not (floor > 0.0 and allowed < excess < np.inf):
            return
        kernel = self.bank.combine(weight_set.update(bounds.weights, norms))
        solution = self.solve(kernel, floor=floor, start=self.start(kernel, bounds.dual_coef))
        bounds.upper = before + floor
        self.evaluate(kernel, solution)
        if self._best is kernel:
            bounds.note()
        else:
            bounds.upper = before

    def measure_rounding(self) -> None:
        """Bound the rounding error of the best bounds; zero where it is not known."""
        if np.isfinite(self.bounds.upper):
            self.bounds.rounding = self._upper_rounding() + self._lower_rounding()

    def _upper_rounding(self) -> float:
        if self._upper_error is None:
            self._upper_error = self._measure_upper() if self.loss.is_sum else 0.0
        return self._upper_error

    def _measure_upper(self) -> float:
        raise NotImplementedError

    def _lower_rounding(self) -> float:
        return 0.0


class ExactEvaluator(Evaluator):
    """Evaluates kernels whose values are at hand: exact bounds are recomputed from these."""

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        super().__init__(problem, bounds)
        self._settled = (np.inf, -np.inf)
        # Coefficients, kernels and their quadratic forms that were evaluated last.
        self._evaluated: tuple[Floats, Indices, Floats] | None = None

    @property
    def _needs_exact_forms(self) -> bool:
        """Whether bounds count, and would include the rounding of single precision storage."""
        return bool(self.exact and self.bank.rounded.any())

    def evaluate(
        self,
        kernel: WeightedSum,
        solution: Solution,
        which: Indices | None = None,
        quadratic_forms: Floats | None = None,
    ) -> Iterate:
        which = np.flatnonzero(kernel.weights) if which is None else which
        if self._needs_exact_forms:
            self.bounds.n_passes += len(which) / self.bank.n_kernels
            return self._offer_exactly(kernel, solution, which)
        if self.exact:
            solution = replace(solution, fitted=kernel.exact_product(solution.dual_coef))
        return super().evaluate(kernel, solution, which, quadratic_forms)

    def _offer_exactly(self, kernel: WeightedSum, solution: Solution, which: Indices) -> Iterate:
        """Offer an upper bound without the rounding of storage."""
        known = np.full(self.bank.n_kernels, np.nan)
        fitted = self.bank.exact_product(kernel.weights, solution.dual_coef, known)
        rest = which[np.isnan(known[which])]
        if len(rest):
            known[rest] = self.bank.exact_forms(solution.dual_coef, rest)
        self._evaluated = (solution.dual_coef, which, known[which])
        return self._offer(kernel, replace(solution, fitted=fitted), which, known[which])

    def offer_lower(self, point: Iterate | DualPoint, quadratic_forms: Floats) -> None:
        if self._needs_exact_forms:
            quadratic_forms = self._bound_forms(point)
        super().offer_lower(point, quadratic_forms)

    def _bound_forms(self, point: Iterate | DualPoint) -> Floats:
        """Bound the quadratic forms of all exact kernels.

        Bounds of the storage error are added to the forms of stored kernels. Kernels are evaluated
        only where that would take more than `_CORRECTION` of the tolerance.
        """
        dual_coef, allowed = point.dual_coef, _CORRECTION * self.bounds.tol * self.bounds.size
        forms = self.bank.quadratic_forms(dual_coef)
        slack = self.bank.form_errors(dual_coef, forms)
        if self._evaluated is not None and np.array_equal(self._evaluated[0], dual_coef):
            which = self._evaluated[1]
            forms[which], slack[which] = self._evaluated[2], 0.0
        # First those that may be the largest, which is all that counts for weights on a simplex.
        for far in (forms + slack > forms.max(), np.full(len(forms), True)):
            loss_of_bound = self.lower_bound(point, forms) - self.lower_bound(point, forms + slack)
            if loss_of_bound <= allowed:
                break
            which = np.flatnonzero(far & (slack > 0))
            forms[which], slack[which] = self.bank.exact_forms(dual_coef, which), 0.0
        return np.asarray(forms + slack)

    def verify(self) -> bool:
        if self.bounds.converged:
            self.settle()
        return self.bounds.converged

    def settle(self) -> None:
        bounds = self.bounds
        if self.exact is None or not np.isfinite(bounds.upper):
            return
        self._match_weights()
        if not self.exact:
            self.exact = True
            bounds.upper = np.inf
            kernel, start = self._best, unsolved(bounds.dual_coef, self._fitted)
            which = np.flatnonzero(kernel.weights)
            if self._needs_exact_forms:
                self._offer_exactly(kernel, start, which)
                bounds.lower, (_, point), self._lowest = -np.inf, self._lowest, (-np.inf, None)
                if point is not None:
                    self.offer_lower(point, np.empty(0))
            else:
                start = replace(start, fitted=kernel.exact_product(bounds.dual_coef))
                self._offer(kernel, start, which, bounds.quadratic_forms[which])
            bounds.note()
        before = bounds.upper
        if (before, bounds.lower) == self._settled:  # nothing changed since the last time
            return
        self._offer_smaller()
        if bounds.upper != before:
            bounds.note()
        self.measure_rounding()
        self._settled = (bounds.upper, bounds.lower)

    def _offer_smaller(self) -> None:
        """Offer fractions of the best function, or none but its bias, where that may be better."""
        if not self.loss.is_sum:  # the solvers of such losses offer the zero function themselves
            return
        bounds, nothing = self.bounds, np.zeros_like(self.Y)
        loss_value, _ = self.loss.value(nothing, self.Y, self.cost)
        rounding = self._upper_rounding()
        if loss_value >= bounds.upper + rounding:
            return
        bounds.at_rounding = rounding > bounds.tol * loss_value
        kernel, dual_coef, fitted = self._best, bounds.dual_coef, self._fitted
        which = np.flatnonzero(kernel.weights)
        forms = bounds.quadratic_forms[which]
        if loss_value < bounds.upper:
            for share in (0.5 ** np.arange(1.0, _HALVES)).tolist():
                part = unsolved(share * dual_coef, share * fitted)
                self._offer(kernel, part, which, share**2 * forms)
        if loss_value < bounds.upper + self._upper_rounding():
            bounds.upper = np.inf
            self._offer(kernel, unsolved(nothing, nothing), which, np.zeros(len(which)))

    def _measure_upper(self) -> float:
        bounds, diagonal = self.bounds, self._best.diag()
        dual_coef, Y, cost = bounds.dual_coef, self.Y, self.cost
        error = loss_error(self.loss, Y, cost, diagonal, dual_coef, self._fitted, bounds.intercept)
        bound = max(0.5 * form_error(dual_coef, diagonal), self._penalty_error(diagonal)) + error
        return bound if bound >= 0 else np.inf  # NaN where it overflows

    def _penalty_error(self, diagonal: Floats) -> float:
        """Return how much the penalty gains when quadratic forms grow by their rounding errors.

        At the best weights of a function, the penalty is a concave function of its quadratic forms:
        an error of a form near zero counts by the power p / (p + 1), half for p = 1.
        """
        bounds, penalty = self.bounds, self.weight_set.penalty
        errors = form_errors(bounds.dual_coef, self.bank.diagonal_sums, diagonal)
        forms = np.maximum(bounds.quadratic_forms, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (penalty(bounds.weights * np.sqrt(q)) for q in (forms, forms + errors))
        return high - low

    def _lower_rounding(self) -> float:
        point = self._lowest[1]
        if point is None or not self.loss.is_sum:
            return 0.0
        errors = form_errors(point.dual_coef, self.bank.diagonal_sums, self._best.diag())
        # The best objective is no larger than ours, which bounds the best bias.
        most = self.weight_set.support_value(self.bank.traces())
        reach = float(np.sqrt(2.0 * self.bounds.upper * most))
        bias = self.loss.bias_bound(self.Y, self.cost) + self.loss.bias_reach * reach
        rest = dual_error(self.loss, self.Y, point.dual_coef, point.linear, point.ridge, bias)
        return 0.5 * self.weight_set.support_value(errors) + rest


class NystroemEvaluator(Evaluator):
    """Evaluates Nystroem features: the lower bound is corrected once, after the last step.

    A function of features is one of the exact kernels, so upper bounds need no correction. A share
    of the tolerance is reserved for that of the lower bound.
    """

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        super().__init__(problem, bounds)
        bounds.tol *= 1.0 - self.bank.correction_share

    def verify(self) -> bool:
        return self.bounds.converged

    def settle(self) -> None:
        bounds = self.bounds
        if self.exact is None or not np.isfinite(bounds.upper):
            return
        self._match_weights()
        nothing = np.zeros_like(self.Y)
        if self.loss.is_sum and self.loss.value(nothing, self.Y, self.cost)[0] < bounds.upper:
            self.at(bounds.weights, nothing)
        self._sum_anew()
        self.measure_rounding()
        self._settle_lower()

    def _sum_anew(self) -> None:
        """Compute the values of the best function again: running sums of inner solvers drift."""
        bounds = self.bounds
        if bounds.function is None or not self.loss.is_sum:
            return
        fitted = self.bank.values(bounds.function)
        loss_value, intercept = self.loss.value(fitted, self.Y, self.cost)
        which = np.flatnonzero(bounds.weights)
        forms = bounds.quadratic_forms[which]
        best = self._best.function(bounds.dual_coef, fitted, which, forms, bounds.function)
        upper = self.weight_set.penalty(best.norms) + loss_value
        if upper > bounds.upper:
            bounds.upper, bounds.intercept, self._fitted = upper, intercept, fitted

    def _measure_upper(self) -> float:
        bounds = self.bounds
        if bounds.function is None:
            return 0.0
        slopes = self.loss.slope_bounds(bounds.dual_coef, self.Y, self.cost)
        return float(self.bank.value_rounding(bounds.function, slopes))

    def _settle_lower(self) -> None:
        """Replace the lower bound by one that holds for the exact kernels, once.

        The best dual point keeps its place, and quadratic forms are corrected: by a bound that
        costs nothing where that is enough, by all landmarks elsewhere.
        """
        bounds, share = self.bounds, self.bank.correction_share
        if bounds.landmark_lower is not None or not np.isfinite(bounds.lower):
            return
        bounds.tol /= 1.0 - share
        complete = self.bank.complete
        bounds.complete = bool(complete.all())
        point = self._lowest[1]
        assert point is not None
        forms = self.bank.quadratic_forms(point.dual_coef)
        slack = self.bank.form_errors(point.dual_coef, forms)
        allowed = share * bounds.tol * bounds.size
        for _ in range(self.bank.n_kernels):
            if bounds.lower - self.lower_bound(point, forms + slack) <= allowed:
                break
            # A bound depends on the largest forms, and on how much of them is not known.
            doubt = np.where(slack > 0, forms + slack, 0.0)
            j = int(doubt.argmax())
            if not doubt[j] > 0 or not complete[j]:
                break
            forms[j], slack[j] = self.bank.exact_forms(point.dual_coef, np.array([j]))[0], 0.0
        bounds.landmark_lower = bounds.lower
        bounds.lower = min(bounds.lower, self.lower_bound(point, forms + slack))
        bounds.note()


def make_evaluator(problem: Problem, bounds: Bounds) -> Evaluator:
    """Return the evaluator that fits the bank of a problem."""
    corrects_last = problem.bank.correction_share > 0.0
    return (NystroemEvaluator if corrects_last else ExactEvaluator)(problem, bounds)
