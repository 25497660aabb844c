"""The contract of losses and their inner solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelBank
from kernelweave.inner import Curvature, Solution, solve_inner, weight_curvature
from kernelweave.losses import DualBox, Loss
from kernelweave.losses.base import InnerSolver

from .assertions import ROUNDING, close, require, unchanged


@dataclass(frozen=True)
class InnerTask:
    """One loss on one bank, solved for several weights."""

    loss: Loss
    bank: KernelBank
    Y: Floats
    cost: Floats
    tol: float
    solver: Callable[..., Solution] = solve_inner
    curvature: Callable[..., Curvature] = weight_curvature

    @property
    def box(self) -> DualBox:
        return self.loss.box(self.Y, self.cost)

    def solve(self, weights: Floats, tol: float, start: Solution | None = None) -> Solution:
        kernel = self.bank.combine(weights)
        return self.solver(self.loss, kernel, self.Y, self.cost, tol=tol, start=start)

    def loss_at(self, fitted: Floats) -> float:
        """Return the conjugate of the dual shape, which is the loss by definition."""
        if self.loss.inner_solver is InnerSolver.NEWTON:
            # The conjugate is attained at minus the derivatives of the loss.
            loss: Any = replace(self.loss, fit_intercept=False)  # type: ignore[type-var]
            dual_coef = loss.tangent(fitted, self.Y, self.cost).dual_coef
            linear = loss.linear(dual_coef, self.Y, self.cost)
            return float(linear - np.vdot(fitted, dual_coef))
        box, r = self.box, self.Y - fitted
        slack = np.maximum(np.abs(r) - box.dead_zone, 0.0)
        limit = np.where(r > 0, box.upper, -box.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(box.ridge > 0, slack / box.ridge, np.inf)
        t = np.where(slack > 0, np.minimum(free, limit), 0.0)
        return float((t * slack - 0.5 * box.ridge * t * t).sum())

    def quadratic_forms(self, dual_coef: Floats) -> Floats:
        return self.bank.quadratic_forms(dual_coef)

    def infeasibility(self, dual_coef: Floats, like: Floats | None = None) -> float:
        """Return how far coefficients are outside their boxes or off balance, relative to sizes."""
        box = self.box
        off = np.maximum(box.lower - dual_coef, dual_coef - box.upper).max(initial=0.0)
        if self.loss.fit_intercept:
            off = max(off, np.abs(dual_coef.sum(axis=0)).max(initial=0.0))
        if self.loss.is_coupled:
            off = max(off, np.abs(dual_coef.sum(axis=1)).max(initial=0.0))
        size = np.abs(dual_coef if like is None else like).sum()
        return float(off / max(size, 1e-300))


def check_loss(
    loss: Loss,
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    *,
    tol: float = 1e-10,
    random_state: int = 0,
    solve: Callable[..., Solution] = solve_inner,
    curvature: Callable[..., Curvature] = weight_curvature,
) -> None:
    """Check a loss with its inner solver.

    Bounds lie on the right sides, the gap asked for is met, the intercept is the best one, slopes
    ``-q_j / 2`` and the curvature agree with finite differences over the kernel weights.

    Parameters
    ----------
    loss : Loss
        What to check.
    bank : KernelBank
        Two or more kernels over a few dozen rows.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    tol : float
        The tightest relative gap asked of the solver.
    random_state : int
        Seed of the weights and coefficients tried.
    solve, curvature : callable
        The inner solver, and the second derivatives of the optimal value in the kernel weights.

    Raises
    ------
    AssertionError
        If a promise of `Loss` is broken, or the problem has no point where second derivatives
        can be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> from kernelweave.losses import Square
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> Y = np.sin(X[:, :1])
    >>> check_loss(Square(), make_bank([Linear(), RBF(width=1.0)], X), Y, np.ones_like(Y))
    """
    rng = np.random.default_rng(random_state)
    task = InnerTask(loss, bank, Y, cost, tol, solve, curvature)
    weights = rng.uniform(0.5, 1.5, bank.n_kernels) / bank.n_kernels
    best = task.solve(weights, tol)
    for asked in (0.3, 1e-2, 1e-4, tol):
        _check_solution(task, weights, task.solve(weights, asked), asked, best)
    _check_floor(task, weights, best)
    _check_warm(task, weights, best)
    _check_loss(task, best.fitted, rng)
    _check_repair(task, best, rng)
    _check_slopes(task, weights, best)
    _check_curvature(task, weights)


def _check_solution(
    task: InnerTask, weights: Floats, solution: Solution, asked: float, best: Solution
) -> None:
    what = f"solve(tol={asked:g})"
    dual_coef, loss = solution.dual_coef, task.loss
    require(dual_coef.shape == task.Y.shape, f"{what}: dual_coef has shape {dual_coef.shape}.")
    require(solution.intercept.shape == task.Y.shape[1:], f"{what}: intercept has a wrong shape.")
    size = abs(solution.primal) + 1e-300
    require(
        solution.dual <= solution.primal + ROUNDING * size,
        f"{what}: the dual value {solution.dual:.12g} is above the primal {solution.primal:.12g}.",
    )
    require(
        solution.gap <= asked * size + 1e-13 * size,
        f"{what}: the relative gap is {solution.gap / size:.3g}.",
    )
    off = task.infeasibility(dual_coef)
    require(off <= 1e-12, f"{what}: coefficients leave their set, relatively by {off:.3g}.")
    fitted = task.bank.combine(weights) @ dual_coef
    scale = float(np.abs(fitted).max(initial=0.0))
    close(solution.fitted, fitted, 1e-7 * scale, f"{what}: fitted against K @ coef")
    quadratic = float(weights @ task.quadratic_forms(dual_coef))
    loss_value, intercept = loss.value(fitted, task.Y, task.cost)
    close(solution.primal, 0.5 * quadratic + loss_value, 1e-8 * size, f"{what}: the primal value")
    ridge = loss.ridge_term(dual_coef, task.Y, task.cost)
    dual = loss.linear(dual_coef, task.Y, task.cost) - 0.5 * (quadratic + ridge)
    close(solution.dual, dual, 1e-8 * size, f"{what}: the dual value")
    at_intercept = task.loss_at(fitted + solution.intercept)
    close(at_intercept, loss_value, 1e-8 * size, f"{what}: the loss at the intercept returned")
    if not loss.fit_intercept:
        require(not intercept.any(), f"{what}: an intercept without fit_intercept.")
    for lower, upper, kind in (
        (solution.dual, best.primal, "below its dual value"),
        (best.dual, solution.primal, "above its primal value"),
    ):
        require(
            lower <= upper + ROUNDING * size, f"{what}: a tighter solve ends {kind}, {upper:.12g}."
        )


def _check_floor(task: InnerTask, weights: Floats, best: Solution) -> None:
    floor = 0.05 * abs(best.primal)
    kernel = task.bank.combine(weights)
    solution = task.solver(task.loss, kernel, task.Y, task.cost, tol=0.0, floor=floor)
    require(solution.gap <= floor * (1 + 1e-9), "solve(floor=...): the gap exceeds the floor.")


def _check_warm(task: InnerTask, weights: Floats, best: Solution) -> None:
    cold = task.solve(weights, 1e-6)
    warm = unchanged(
        best.dual_coef, lambda: task.solve(weights, 1e-6, start=best), "solve(start=...)"
    )
    size = abs(best.primal) + 1e-300
    close(warm.primal, best.primal, 1e-6 * size, "solve(start=...): the primal value")
    require(
        warm.work <= max(cold.work, 1),
        f"a start at the solution takes {warm.work} updates, a cold one {cold.work}.",
    )


def _check_loss(task: InnerTask, fitted: Floats, rng: np.random.Generator) -> None:
    for F in (fitted, np.zeros_like(fitted), fitted + rng.normal(size=fitted.shape)):
        loss_value, bias = task.loss.value(F, task.Y, task.cost)
        rounding = ROUNDING * (abs(loss_value) + 1e-300)
        close(task.loss_at(F + bias), loss_value, rounding, "loss: the value at its own bias")
        if not task.loss.fit_intercept:
            require(not bias.any(), "loss: a bias without fit_intercept.")
            continue
        spread = float(np.ptp(task.Y - F)) or 1.0
        for o in range(len(bias)):
            for step in (-1.0, -1e-2, -1e-4, 1e-4, 1e-2, 1.0):
                other = bias.copy()
                other[o] += step * spread
                value = task.loss_at(F + other)
                require(
                    value >= loss_value - rounding,
                    f"loss: the bias {other[o]:.9g} of output {o} gives {value:.12g}, "
                    f"the one returned, {bias[o]:.9g}, gives {loss_value:.12g}.",
                )


def _check_repair(task: InnerTask, best: Solution, rng: np.random.Generator) -> None:
    size = float(np.abs(best.dual_coef).max(initial=0.0)) or 1.0
    tries = [3.0 * size * rng.normal(size=task.Y.shape) for _ in range(3)]
    tries += [
        10.0 * best.dual_coef,
        best.dual_coef + 1e-9 * size,
        np.full(task.Y.shape, 2.0 * size),
    ]
    for wild in tries:
        before = wild.copy()
        repaired = task.loss.repair(wild, task.Y, task.cost)
        require(np.array_equal(wild, before), "repair writes to its input.")
        require(np.isfinite(repaired).all(), "repair: coefficients are not finite.")
        off = task.infeasibility(repaired, wild)
        require(off <= 1e-12, f"repair: the result leaves the set, relatively by {off:.3g}.")
    kept = task.loss.repair(best.dual_coef, task.Y, task.cost)
    close(kept, best.dual_coef, 1e-9 * size, "repair of feasible coefficients")


def _check_slopes(task: InnerTask, weights: Floats, best: Solution) -> None:
    """Compare slopes with difference quotients, which enclose them because the value is convex."""
    slopes = -0.5 * task.quadratic_forms(best.dual_coef)
    for j in range(len(weights)):
        step = np.zeros(len(weights))
        step[j] = 1e-3 * weights[j]
        ahead, behind = (task.solve(weights + s, task.tol) for s in (step, -step))
        h = float(step[j])
        # Values are known to the gaps only, and a slope to the square root of its own gap.
        slack = (best.gap + ahead.gap + behind.gap + 1e-13 * abs(best.primal)) / h
        low = (best.dual - behind.primal) / h - slack
        high = (ahead.primal - best.dual) / h + slack
        require(
            low <= slopes[j] <= high,
            f"kernel {j}: the slope -q/2 is {slopes[j]:.9g}, but differences of the optimal value "
            f"lie between {low:.9g} and {high:.9g}.",
        )


def _free_set(task: InnerTask, dual_coef: Floats) -> Any:
    box = task.box
    with np.errstate(invalid="ignore"):
        margin = np.nan_to_num(1e-7 * (box.upper - box.lower), posinf=0.0)
    inside = (dual_coef > box.lower + margin) & (dual_coef < box.upper - margin)
    return inside & (dual_coef != 0) if box.dead_zone > 0 else inside


def _check_curvature(task: InnerTask, weights: Floats) -> None:
    tol = 1e-3 * task.tol  # coefficients are known to the square root of a gap
    best = task.solve(weights, tol)
    kernel = task.bank.combine(weights)
    everything = np.arange(task.bank.n_kernels)

    def products(rows: Indices) -> Floats:
        return task.bank.products(best.dual_coef, everything, rows)

    found = task.curvature(task.loss, kernel, products, best.dual_coef, task.Y, task.cost)
    H = found.hessian
    quadratic_forms = task.quadratic_forms(best.dual_coef)
    top = float((quadratic_forms / weights).max(initial=0.0))
    close(H, H.T, ROUNDING * top, "curvature: the Hessian against its transpose")
    require(np.linalg.eigvalsh(H)[0] >= -1e-7 * top, "curvature: the Hessian is not semi-definite.")
    majoriser = np.diag(quadratic_forms / weights)
    require(
        np.linalg.eigvalsh(majoriser - H)[0] >= -1e-4 * top,
        "curvature: the Hessian exceeds that of the majoriser, diag(q / weights).",
    )
    free, compared = _free_set(task, best.dual_coef), 0
    for j in range(len(weights)):
        step = np.zeros(len(weights))
        step[j] = 1e-3 * weights[j]
        ahead, behind = (task.solve(weights + s, tol) for s in (step, -step))
        if any((_free_set(task, s.dual_coef) != free).any() for s in (ahead, behind)):
            continue
        compared += 1
        column = (
            -0.5
            * (task.quadratic_forms(ahead.dual_coef) - task.quadratic_forms(behind.dual_coef))
            / (2.0 * step[j])
        )
        close(H[:, j], column, 1e-2 * top, f"curvature: column {j} of the Hessian")
        predicted = found.predict(best.dual_coef, step)
        moved = float(np.abs(ahead.dual_coef - best.dual_coef).max())
        close(
            predicted, ahead.dual_coef, 0.1 * moved + 1e-5 * np.abs(best.dual_coef).max(), "predict"
        )
    require(
        compared > 0,
        "curvature: the set of free coefficients changes along every kernel, so nothing could be "
        "compared; choose other data.",
    )
