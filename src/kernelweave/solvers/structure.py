"""Weights of sum-product structures by alternation with Anderson acceleration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.paths import NodeSystem, Reading
from kernelweave.errors import InputError
from kernelweave.inner import Solution, solve_inner
from kernelweave.kernels.base import all_finite
from kernelweave.losses import Loss
from kernelweave.weights.sum_product import SumProduct

from .anderson import Mixer
from .bounds import Bounds, Callback, Result
from .evaluator import moved
from .rounding import diagonal_roots, dual_error, form_error, loss_error, unit

_NONE = -300.0  # logarithm of a weight that is nothing
_STILL = 5  # steps of hardly any decrease in a row after which an uncertified search ends
_PATIENCE = 40  # solves without lowering the gap by a tenth before trying otherwise
_LINEARISATIONS = 20
_GRADIENT_STEPS = 1000
_BALANCE = 1e-4  # relative difference of what raises and what lowers a weight
_RECENT = 10  # values of which a gradient step has to undercut the largest
_SMALLEST = 1e-30  # of a weight: zero would never be left again

Update = Callable[[Floats, Reading], Floats]


def alternate(
    system: NodeSystem,
    Y: Floats,
    cost: Floats,
    machine: Loss,
    weights: SumProduct,
    *,
    certified: bool,
    tol: float,
    max_iter: int,
    start: Floats | None = None,
    update: Update | None = None,
    mix: bool = True,
    report: Callback | None = None,
) -> Result:
    """Learn the weights of the products of a network and a classifier.

    Every step minimises over one of the two exactly. Mixing earlier steps in the logarithms of the
    weights shortens the way; a mixture that raises the objective is taken back.

    Parameters
    ----------
    system : NodeSystem
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Loss
        The loss.
    weights : SumProduct
        The penalty.
    certified : bool
        Whether the problem is convex, so that its lower bounds hold.
    tol : float
        Relative duality gap to stop at; without a certificate, a hundred times the relative
        decrease.
    max_iter : int
        Maximum number of inner solves.
    start : ndarray of shape (n_nodes,), optional
        Logarithms of the first weights; zeros by default.
    update : callable, optional
        Another way to find the weights for given functions.
    mix : bool
        Whether to mix.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        The weights are those of the products, and forms what each adds to the squared norm of the
        decision function. Without a certificate the lower bound is minus infinity.
    """
    bounds = Bounds(tol, report)
    step = weights.update if update is None else update
    u = np.zeros(system.n_nodes) if start is None else start
    mixer, plain, accepted = Mixer(), None, np.inf
    begin: Solution | None = None
    best: tuple[GramKernel, Floats] | None = None  # kernel and fitted values of the upper bound
    tighter, still = 1.0, 0
    mark_gap, mark_solves = np.inf, 0
    while bounds.solves < max_iter:
        with np.errstate(all="ignore"):
            gram = system.combine(u)
        if not all_finite(gram):  # products of large kernels and weights
            if not bounds.solves:
                raise InputError(
                    "structure: products of its kernels overflow; rescale the columns first, for "
                    "example with scikit-learn's StandardScaler."
                )
            break
        kernel = GramKernel(gram)
        if begin is not None:
            begin = moved(begin.dual_coef, kernel @ begin.dual_coef)
        gap = bounds.gap if certified else tol
        inner = max(min(0.03, 0.1 * gap), 0.1 * tol) * tighter
        solution = solve_inner(machine, kernel, Y, cost, tol=inner, start=begin)
        bounds.solves += 1
        bounds.work += solution.work
        bounds.n_passes += 1
        with np.errstate(over="ignore", invalid="ignore"):
            reading = system.read(solution.dual_coef)
            total, nodes = reading.sums(u)
        fitted = kernel @ solution.dual_coef  # fresh: running sums drift
        loss, intercept = machine.value(fitted, Y, cost)
        before, value = bounds.upper, 0.5 * total + loss + weights.penalty(u)
        if bounds.offer_upper(value, np.exp(u), solution.dual_coef, intercept, nodes):
            best = kernel, fitted
        if certified:
            linear = machine.linear(solution.dual_coef, Y, cost)
            bounds.offer_lower(weights.best_bound(linear, reading, u), solution.dual_coef)
        bounds.note()
        if certified and bounds.converged:
            bounds.rounding = _upper_rounding(best, Y, cost, machine, bounds)
            bounds.rounding += _lower_rounding(system, best, Y, cost, machine, weights, bounds)
            if bounds.converged:
                break
        if certified:
            if bounds.gap <= 0.9 * mark_gap:
                mark_gap, mark_solves = bounds.gap, bounds.solves
            elif bounds.solves - mark_solves < _PATIENCE:
                tighter = max(1e-4, 0.7 * tighter)
            elif mix:
                mix, mark_solves = False, bounds.solves  # plain steps cannot fail
            else:
                break
        else:
            still = still + 1 if before - bounds.upper <= 0.01 * tol * abs(bounds.upper) else 0
            if still >= _STILL:
                break
        begin = solution
        if plain is not None and value > accepted * (1.0 + 1e-12):
            u, plain = plain, None  # the mixture was worse than what it came from
            mixer = Mixer()
            continue
        accepted = value
        plain = step(u, reading)
        u = mixer.mix(u, plain, np.exp(0.5 * weights.p * plain)) if mix else plain
    nothing = np.zeros_like(Y)  # no function but a bias needs no weights to speak of
    loss, intercept = machine.value(nothing, Y, cost)
    u = np.full(system.n_nodes, _NONE)
    value = loss + weights.penalty(u)
    error = _upper_rounding(best, Y, cost, machine, bounds)
    if value < bounds.upper + error:  # or may be better, by rounding
        bounds.at_rounding = value >= bounds.upper
        bounds.upper, error = np.inf, 0.0
        bounds.offer_upper(value, np.exp(u), nothing, intercept, np.zeros(system.n_nodes))
        bounds.note()
    if certified and not (bounds.rounding > 0.0 and bounds.converged):
        bounds.rounding = error + _lower_rounding(system, best, Y, cost, machine, weights, bounds)
    result = bounds.result()
    if certified:
        return result
    return replace(result, lower_bound=-np.inf, converged=still >= _STILL)


def _upper_rounding(
    best: tuple[GramKernel, Floats] | None,
    Y: Floats,
    cost: Floats,
    machine: Loss,
    bounds: Bounds,
) -> float:
    """Bound the rounding error of the best objective, that of a kernel and its fitted values."""
    if best is None:  # no objective was a number
        return np.inf
    (kernel, fitted), V = best, bounds.dual_coef
    loss = loss_error(machine, Y, cost, kernel.diag(), V, fitted, bounds.intercept)
    bound = 0.5 * form_error(V, kernel.diag()) + loss
    return bound if bound >= 0 else np.inf  # not a number where it overflows


def _lower_rounding(
    system: NodeSystem,
    best: tuple[GramKernel, Floats] | None,
    Y: Floats,
    cost: Floats,
    machine: Loss,
    weights: SumProduct,
    bounds: Bounds,
) -> float:
    """Bound the rounding error of the best lower bound."""
    V = bounds.proof
    if V is None:
        return 0.0
    if best is None:
        return np.inf
    linear, upper, u = machine.linear(V, Y, cost), bounds.upper, np.log(bounds.weights)
    with np.errstate(over="ignore", invalid="ignore"):
        roots = diagonal_roots(best[0].diag())
        # What `form_errors` adds to the form of every path, as weights of its diagonal.
        sizes = np.abs(V)
        added = unit(len(V)) * (sizes @ (roots @ sizes)) / roots
        raised = weights.best_bound(linear, system.read(V, added), u)
        # The penalty of the best weights is no larger than the objective, nor is half the squared
        # norm of the best function: together they bound its values, and so the bias.
        largest = np.log(upper / (weights.lam * weights.counts)) / weights.p
        size = float(system.diagonal(largest).max())
        bias = float(np.abs(Y).max() + np.sqrt(2.0 * upper * size))
    return max(bounds.lower - raised, 0.0) + dual_error(machine, Y, V, linear, 0.0, bias)


def projected_update(weights: SumProduct) -> Update:
    """Return the published way to find weights: projected gradient steps on the weights themselves.

    Weights with an exponent below one are handled by linearising their penalty again and again.

    Parameters
    ----------
    weights : SumProduct
        The penalty.
    """

    def update(u: Floats, reading: Reading) -> Floats:
        beta = np.exp(u)
        for _ in range(_LINEARISATIONS if (weights.p < 1.0).any() else 1):
            moved_on = _descend(weights, u, beta, reading)
            change = float(np.abs(np.log(moved_on / beta)).max())
            beta = moved_on
            if change < 1e-3:
                break
        return np.log(beta)

    return update


def _descend(weights: SumProduct, u: Floats, anchor: Floats, reading: Reading) -> Floats:
    """Minimise by projected gradient steps; concave penalties are linear.

    Weights may differ by many orders, so each is moved in a unit of its own. The lengths of the
    steps are those of Barzilai and Borwein, with the line search of Birgin, Martinez and Raydan
    (2000); of its points the lowest is returned.
    """
    slope = weights.lam * weights.counts * weights.p * anchor ** (weights.p - 1.0)
    concave = weights.p < 1.0

    def value(beta: Floats) -> tuple[float, Floats, Floats]:
        with np.errstate(over="ignore"):  # such a point is refused
            total, nodes = reading.sums(2.0 * u - np.log(beta))
            powers = weights.lam * weights.counts * beta**weights.p
            terms = np.where(concave, slope * beta, powers)
            slopes = np.where(concave, slope, weights.p * powers / beta)
            return 0.5 * total + float(terms.sum()), 0.5 * nodes / beta, slopes

    beta, length = anchor, 1.0
    here, pull, push = value(beta)
    best, lowest, recent = beta, here, [here]
    for _ in range(_GRADIENT_STEPS):
        gradient = push - pull
        unsettled = np.abs(gradient) > _BALANCE * push + 1e-16 * here / beta
        if not (unsettled & ((beta > _SMALLEST) | (gradient < 0.0))).any():
            break
        unit = beta / np.maximum(pull + np.maximum(weights.p, 1.0) * push, 1e-300)
        while length > 1e-12:
            trial = np.maximum(beta - length * unit * gradient, _SMALLEST)
            there, pull, push = value(trial)
            if there <= max(recent) - 1e-4 * float(gradient @ (beta - trial)):
                break
            length *= 0.25
        else:
            break
        change = trial - beta
        bend = float(change @ (push - pull - gradient))
        length = float(change @ (change / unit)) / bend if bend > 0.0 else 4.0 * length
        length = min(length, 1e6)
        beta, here, recent = trial, there, [*recent[1 - _RECENT :], there]
        if here < lowest:
            best, lowest = beta, here
    return best
