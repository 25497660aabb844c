"""Weights of sum-product structures (SPN-MKL) by alternation with Anderson acceleration.

For fixed node weights the function is that of an SVM on the combined kernel; for fixed functions
the best node weights minimise a sum of exponentials (`SumProduct.update`). Steps are mixed in the
logarithms of the weights. Where the problem is convex in powers of the weights, every dual point
bounds the optimum from below; otherwise the search ends at a stationary point.

References
----------
Regularization for multiple kernel learning via sum-product networks (2014), arXiv:1402.3032,
problem (2) and equations (5) to (8). The coefficient in equation (7) is corrected to
``c_v = sum_m a_mv``; the concave-convex linearisation (9) is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelOperator
from kernelweave.banks.paths import NetworkBank, PathForms
from kernelweave.errors import InputError
from kernelweave.inner import Solution, solve_inner, unsolved
from kernelweave.losses import Loss
from kernelweave.weights.sum_product import SumProduct, is_convex

from .anderson import Alternation, Patience
from .bounds import Bounds, Result
from .problem import Limits
from .published.projected_gradient import projected_gradient
from .rounding import diagonal_roots, dual_error, form_error, loss_error, unit


@dataclass(frozen=True)
class StructureOptions:
    """Constants of `alternate_structure`, chosen by hand on networks of up to 1000 paths."""

    zero_log: float = -300.0  # logarithm of a weight that counts as zero
    max_still: int = 5  # rounds of hardly any decrease after which an uncertified search ends
    decrease: float = 0.01  # relative decrease that counts, in units of the tolerance
    patience: int = 40  # inner solves without lowering the gap by a tenth before plain steps
    first_gap: float = 0.03  # largest relative gap of an inner solve
    inner_gap: float = 0.1  # gap of an inner solve, relative to the outer gap or tolerance
    failed: float = 10.0  # gap of an inner solve, relative to its tolerance, that counts as failure


OPTIONS = StructureOptions()
Update = Callable[[Floats, PathForms], Floats]


@dataclass(frozen=True)
class StructureProblem:
    """``min 1/2 sum_m |w_m|^2 / g_m(beta) + penalty(beta) + sum_i cost_i loss(y_i, f(x_i))``.

    The minimum is over functions and the weights ``beta`` of the nodes of a network.
    """

    bank: NetworkBank
    Y: Floats
    cost: Floats
    loss: Loss
    penalty: SumProduct

    @cached_property
    def is_convex(self) -> bool:
        """Whether lower bounds hold, so that a certificate exists."""
        return is_convex(self.bank.largest_exponents(self.penalty.p))


def learn_structure(
    problem: StructureProblem,
    limits: Limits,
    *,
    solver: str = "newton",
    starts: Sequence[Floats | None] = (None,),
) -> Result:
    """Return the best of several searches; a convex problem needs one only.

    ``solver`` is "newton", or "projected" for the published updates without acceleration. Starts
    are logarithms of the node weights; None stands for zeros.
    """
    published = projected_gradient(problem.penalty) if solver == "projected" else None
    results = [
        alternate_structure(problem, limits, start=start, update=published, mix=published is None)
        for start in (starts[:1] if problem.is_convex else starts)
    ]
    return min(results, key=lambda result: result.objective)


def alternate_structure(
    problem: StructureProblem,
    limits: Limits,
    *,
    start: Floats | None = None,
    update: Update | None = None,
    mix: bool = True,
) -> Result:
    """Learn the weights of the products of a network and a classifier from one start.

    Without a certificate the tolerance is a hundred times the relative decrease per round, and the
    lower bound minus infinity. Weights of the result are those of the products, quadratic forms
    their shares of the squared norm of the decision function. ``start`` holds logarithms of the
    first weights, zeros by default; ``update`` finds the weights for given functions,
    `SumProduct.update` by default; ``mix`` accelerates.
    """
    bank, Y, cost, loss = problem.bank, problem.Y, problem.cost, problem.loss
    penalty, certified, tol = problem.penalty, problem.is_convex, limits.tol
    bounds = limits.bounds()
    update = penalty.update if update is None else update
    u = np.zeros(bank.n_nodes) if start is None else start
    alternation, patience = Alternation(), Patience(0.9, OPTIONS.patience)
    last: Solution | None = None
    best: tuple[KernelOperator, Floats] | None = None  # kernel and fitted values of the upper bound
    tighter, still = 1.0, 0
    while bounds.solves < limits.max_iter:
        with np.errstate(all="ignore"):
            kernel = bank.kernel(u)
            diagonal = kernel.diag()
        room = float(np.finfo(kernel.dtype).max) / 1e8  # for sums over the rows
        if not diagonal.max() < room:  # products of large kernels and weights
            if not bounds.solves:
                raise InputError(
                    "structure: products of its kernels overflow; rescale the columns first, for "
                    "example with scikit-learn's StandardScaler."
                )
            break
        begin = None if last is None else unsolved(last.dual_coef, kernel @ last.dual_coef)
        gap = bounds.gap if certified else tol
        inner = max(min(OPTIONS.first_gap, OPTIONS.inner_gap * gap), OPTIONS.inner_gap * tol)
        last = solve_inner(loss, kernel, Y, cost, tol=inner * tighter, start=begin)
        bounds.solves += 1
        bounds.work += last.work
        bounds.n_passes += 1
        with np.errstate(over="ignore", invalid="ignore"):
            forms = bank.path_forms(last.dual_coef)
            total, nodes = forms.sums(u)
        fitted = kernel.exact_product(last.dual_coef)  # computed afresh: running sums drift
        total_loss, intercept = loss.value(fitted, Y, cost)
        before, value = bounds.upper, 0.5 * total + total_loss + penalty.penalty(u)
        if bounds.offer_upper(value, np.exp(u), last.dual_coef, intercept, nodes):
            best = kernel, fitted
        if certified:
            linear = loss.linear(last.dual_coef, Y, cost)
            bounds.offer_lower(penalty.best_bound(linear, forms, u), last.dual_coef)
        bounds.note()
        if certified and bounds.converged:
            bounds.rounding = _upper_rounding(problem, bounds, best)
            bounds.rounding += _lower_rounding(problem, bounds, best)
            if bounds.converged:
                break
        if certified:
            solved = last.gap <= OPTIONS.failed * inner * tighter * abs(last.primal)
            if patience.is_exhausted(bounds.gap, bounds.solves, solved):
                if not mix:
                    bounds.at_rounding = patience.is_at_rounding
                    break
                mix = False  # plain steps never raise the objective
                patience.renew(patience.gap, bounds.solves)
            elif not patience.progressed:
                tighter = max(1e-4, 0.7 * tighter)  # a loose inner solve may be in the way
        else:
            small = before - bounds.upper <= OPTIONS.decrease * tol * abs(bounds.upper)
            still = still + 1 if small else 0
            if still >= OPTIONS.max_still:
                break
        plain = alternation.fallback(value)
        if plain is not None:
            u = plain
            continue
        plain = update(u, forms)
        # Residuals count by the square root of the penalty of each weight.
        u = alternation.advance(u, plain, np.exp(0.5 * penalty.p * plain), mix=mix)
    error = _offer_zero(problem, bounds, _upper_rounding(problem, bounds, best))
    if certified and not (bounds.rounding > 0.0 and bounds.converged):
        bounds.rounding = error + _lower_rounding(problem, bounds, best)
    result = bounds.result()
    if certified:
        return result
    return replace(result, lower_bound=-np.inf, converged=still >= OPTIONS.max_still)


def _offer_zero(problem: StructureProblem, bounds: Bounds, error: float) -> float:
    """Replace the best model by the zero function if that is better, or may be by rounding.

    ``error`` is the rounding error of the best objective; that of the returned one is returned.
    """
    zero, n = np.zeros_like(problem.Y), problem.bank.n_nodes
    value, intercept = problem.loss.value(zero, problem.Y, problem.cost)
    u = np.full(n, OPTIONS.zero_log)
    value += problem.penalty.penalty(u)
    if not value < bounds.upper + error:
        return error
    bounds.at_rounding |= value >= bounds.upper
    bounds.upper = np.inf
    bounds.offer_upper(value, np.exp(u), zero, intercept, np.zeros(n))
    bounds.note()
    return 0.0


def _upper_rounding(
    problem: StructureProblem, bounds: Bounds, best: tuple[KernelOperator, Floats] | None
) -> float:
    """Bound the rounding error of the best objective, that of a kernel and its fitted values."""
    if best is None:  # no objective was a number
        return np.inf
    (kernel, fitted), V = best, bounds.dual_coef
    loss = loss_error(
        problem.loss, problem.Y, problem.cost, kernel.diag(), V, fitted, bounds.intercept
    )
    bound = 0.5 * form_error(V, kernel.diag()) + loss
    return bound if bound >= 0 else np.inf  # NaN after overflow


def _lower_rounding(
    problem: StructureProblem, bounds: Bounds, best: tuple[KernelOperator, Floats] | None
) -> float:
    """Bound the rounding error of the best lower bound."""
    V, Y, penalty = bounds.proof, problem.Y, problem.penalty
    if V is None:
        return 0.0
    if best is None:
        return np.inf
    linear, upper = problem.loss.linear(V, Y, problem.cost), bounds.upper
    with np.errstate(over="ignore", invalid="ignore"):
        roots = diagonal_roots(best[0].diag())
        # What `form_errors` adds to the form of every path, as weights of its diagonal.
        sizes = np.abs(V)
        added = unit(len(V)) * (sizes @ (roots @ sizes)) / roots
        forms = problem.bank.path_forms(V, added)
        raised = penalty.best_bound(linear, forms, np.log(bounds.weights))
        # The penalty of the best weights is no larger than the objective, nor is half the squared
        # norm of the best function: together they bound its values, and so the intercept.
        largest = np.log(upper / (penalty.lam * penalty.counts)) / penalty.p
        size = float(problem.bank.diagonal(largest).max())
        bias = float(np.abs(Y).max() + np.sqrt(2.0 * upper * size))
    return max(bounds.lower - raised, 0.0) + dual_error(problem.loss, Y, V, linear, 0.0, bias)
