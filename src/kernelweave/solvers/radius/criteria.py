"""Criteria that weigh the margin against the radius of the ball around the data.

The ratio of the two does not change when a kernel is multiplied by a number, which the margin alone
does; minimising it over kernels therefore needs no norm on their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import Ball, CombinedKernel, KernelBank, judge_ball, solve_ball
from kernelweave.inner import Solution, solve_inner
from kernelweave.losses import Hinge, Loss, SquaredHinge


@dataclass(frozen=True)
class Assessment:
    """A criterion at one choice of weights.

    Parameters
    ----------
    kernel : CombinedKernel
        The weighted kernel.
    value : float
        The criterion; never below its exact value there.
    gradient : ndarray of shape (n_kernels,)
        Its derivative in the weights.
    lower : float
        No weights have a smaller value; minus infinity where no bound is known.
    solution : Solution
        The machine on the weighted kernel as it is, not divided by the squared radius.
    quadratic_forms : ndarray of shape (n_kernels,)
        ``tr(dual_coef' K_j dual_coef)``.
    ball : Ball
        Around the points of the weighted kernel.
    spreads : ndarray of shape (n_kernels,)
        Squared radius of the ball around its centre, in every kernel alone.
    """

    kernel: CombinedKernel
    value: float
    gradient: Floats
    lower: float
    solution: Solution
    quadratic_forms: Floats
    ball: Ball
    spreads: Floats


class Criterion(ABC):
    """A function of the kernel weights that needs one machine and one ball for each choice."""

    scale_free = False  # whether multiplying all weights changes nothing

    @property
    @abstractmethod
    def machine(self) -> Loss:
        """The loss."""

    @abstractmethod
    def machine_cost(self, kernel: CombinedKernel, ball: Ball, cost: Floats) -> Floats:
        """Return the costs that give the criterion's function on the kernel as it is."""

    def ball_ridge(self, cost: Floats) -> Floats:
        """Return what is added to the diagonal of the kernel before the ball is taken."""
        return np.zeros(len(cost))

    def ball(
        self, kernel: CombinedKernel, cost: Floats, *, tol: float, start: Floats | None = None
    ) -> Ball:
        """Return the ball that the criterion needs while weights are learned: the smallest."""
        return solve_ball(kernel, tol=tol, start=start, ridge=self.ball_ridge(cost))

    def finished(self, assessed: Assessment, cost: Floats, *, tol: float) -> Assessment:
        """Return the same point with the smallest ball."""
        return assessed

    @abstractmethod
    def value(self, objective: float, ball: Ball) -> float:
        """Return the criterion from the machine's objective and the ball."""

    @abstractmethod
    def gradient(
        self, solution: Solution, quadratic_forms: Floats, spreads: Floats, ball: Ball, cost: Floats
    ) -> Floats:
        """Return the derivative in the weights."""

    def lower_bound(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        quadratic_forms: Floats,
        spreads: Floats,
        ball: Ball,
        Y: Floats,
        cost: Floats,
    ) -> float:
        """Return a lower bound over all weights; none is known unless a subclass says so."""
        return -np.inf

    def judge(
        self,
        kernel: CombinedKernel,
        Y: Floats,
        cost: Floats,
        *,
        tol: float,
        start: Assessment | None = None,
    ) -> Assessment:
        """Solve ball and machine at one choice of weights.

        Parameters
        ----------
        kernel : CombinedKernel
            The weighted kernel; not constant.
        Y, cost : ndarray of shape (n_samples, n_outputs)
            Targets of +-1, and the cost of each error.
        tol : float
            Relative gap of both problems.
        start : Assessment, optional
            A neighbouring choice to begin from.
        """
        kernel.dense()  # ball and machine visit most rows
        centre = None if start is None else start.ball.centre
        ball = self.ball(kernel, cost, tol=tol, start=centre)
        inner = self.machine_cost(kernel, ball, cost)
        begin = None
        if start is not None:
            before = self.machine_cost(start.kernel, start.ball, cost)
            ratio = np.divide(inner, before, out=np.ones_like(inner), where=before > 0)
            dual_coef = self.machine.repair(start.solution.dual_coef * ratio, Y, inner)
            begin = Solution(
                dual_coef, start.solution.intercept, kernel @ dual_coef, np.inf, -np.inf
            )
        solution = solve_inner(self.machine, kernel, Y, inner, tol=tol, start=begin)
        return self._judged(
            kernel, solution, kernel.bank.quadratic_forms(solution.dual_coef), ball, Y, cost
        )

    def verified(self, assessed: Assessment, Y: Floats, cost: Floats) -> Assessment:
        """Return the same point judged afresh by the exact kernels.

        Running sums of ball and machine drift, and the bank may leave something out.
        """
        kernel, old, centre = assessed.kernel, assessed.solution, assessed.ball.centre
        fitted = kernel.exact_product(np.column_stack([old.dual_coef, centre]))
        diagonal = kernel.bank.exact_diagonal(kernel.weights)
        ball = judge_ball(centre, fitted[:, -1].copy(), diagonal, self.ball_ridge(cost))
        solution = replace(old, fitted=np.ascontiguousarray(fitted[:, :-1]))
        return self._judged(kernel, solution, assessed.quadratic_forms, ball, Y, cost)

    def _judged(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        quadratic_forms: Floats,
        ball: Ball,
        Y: Floats,
        cost: Floats,
    ) -> Assessment:
        inner = self.machine_cost(kernel, ball, cost)
        loss, intercept = self.machine.value(solution.fitted, Y, inner)
        quadratic = float(np.vdot(solution.dual_coef, solution.fitted))
        solution = replace(solution, intercept=intercept, primal=0.5 * quadratic + loss)
        spreads = kernel.bank.spreads(ball.centre)
        return Assessment(
            kernel=kernel,
            value=self.value(solution.primal, ball),
            gradient=self.gradient(solution, quadratic_forms, spreads, ball, cost),
            lower=self.lower_bound(kernel, solution, quadratic_forms, spreads, ball, Y, cost),
            solution=solution,
            quadratic_forms=quadratic_forms,
            ball=ball,
            spreads=spreads,
        )


@dataclass(frozen=True)
class RadiusMargin(Criterion):
    """``1/2 R^2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` at its best function f.

    Quasi-convex in the weights: every stationary point is a minimum, and any feasible pair of
    coefficients and centre gives a lower bound.

    Parameters
    ----------
    fit_intercept : bool
        Whether the machine has a bias.
    fixed : bool
        Whether the lower bound is that of the weights in hand, not of all.

    References
    ----------
    Gai, Chen and Zhang (2010), equations (13), (16), (21) and (22).
    """

    fit_intercept: bool = True
    fixed: bool = False
    scale_free = True

    @property
    def machine(self) -> Loss:
        return Hinge(self.fit_intercept)

    def machine_cost(self, kernel: CombinedKernel, ball: Ball, cost: Floats) -> Floats:
        return np.asarray(cost / ball.squared_radius)

    def value(self, objective: float, ball: Ball) -> float:
        return ball.squared_radius * objective

    def gradient(
        self, solution: Solution, quadratic_forms: Floats, spreads: Floats, ball: Ball, cost: Floats
    ) -> Floats:
        quadratic = float(np.vdot(solution.dual_coef, solution.fitted))
        return np.asarray(0.5 * (quadratic * spreads - ball.squared_radius * quadratic_forms))

    def lower_bound(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        quadratic_forms: Floats,
        spreads: Floats,
        ball: Ball,
        Y: Floats,
        cost: Floats,
    ) -> float:
        size = ball.squared_radius
        largest = size**2 * (quadratic_forms + kernel.bank.residual_forms(solution.dual_coef))
        smallest = spreads - kernel.bank.residual_forms(ball.centre[:, None])
        if self.fixed:
            largest, smallest = (np.atleast_1d(kernel.weights @ v) for v in (largest, smallest))
        return self._bound(size * solution.dual_coef, largest, smallest, Y, cost)

    def bound(
        self, bank: KernelBank, dual_coef: Floats, centre: Floats, Y: Floats, cost: Floats
    ) -> float:
        """Return the bound over all weights that any coefficients and any centre prove together.

        Parameters
        ----------
        bank : KernelBank
            The kernels.
        dual_coef : ndarray of shape (n_samples, n_outputs)
            Feasible coefficients for a kernel of unit radius.
        centre : ndarray of shape (n_samples,)
            Not negative, sums to one.
        Y, cost : ndarray of shape (n_samples, n_outputs)
            Targets of +-1, and the cost of each error.
        """
        largest = bank.quadratic_forms(dual_coef) + bank.residual_forms(dual_coef)
        smallest = bank.spreads(centre) - bank.residual_forms(centre[:, None])
        return self._bound(dual_coef, largest, smallest, Y, cost)

    def _bound(
        self, dual_coef: Floats, quadratic_forms: Floats, spreads: Floats, Y: Floats, cost: Floats
    ) -> float:
        total = self.machine.linear(dual_coef, Y, cost)
        if total <= 0 or (spreads <= 0).any():
            return -np.inf
        # Coefficients may be scaled as long as they stay in their boxes.
        used = dual_coef != 0
        room = float((cost[used] / np.abs(dual_coef[used])).min())
        steepest = float((quadratic_forms / spreads).max())
        scale = room if steepest == 0 else min(total / steepest, room)
        return scale * total - 0.5 * scale**2 * steepest


@dataclass(frozen=True)
class Chapelle(Criterion):
    """``R^2 |w|^2`` of a hard margin, errors allowed by a ridge on the kernel (KL-C).

    Parameters
    ----------
    fit_intercept : bool
        Whether the machine has a bias.
    literal : bool
        False: the ridge ``1/C`` counts for margin and ball alike, as in Chapelle's practice. True:
        ``1/2 R^2 |w|^2 + C R^2 sum_i xi_i^2`` with the ball of the kernel alone, which falls to
        zero with the scale of the kernel.

    References
    ----------
    Chapelle, Vapnik, Bousquet and Mukherjee (2002), Choosing multiple parameters for support vector
    machines, Machine Learning 46. Gai, Chen and Zhang (2010), equation (10).
    """

    fit_intercept: bool = True
    literal: bool = False

    @property
    def machine(self) -> Loss:
        return SquaredHinge(self.fit_intercept)

    def machine_cost(self, kernel: CombinedKernel, ball: Ball, cost: Floats) -> Floats:
        return 2.0 * cost if self.literal else cost

    def ball_ridge(self, cost: Floats) -> Floats:
        if self.literal:
            return np.zeros(len(cost))
        top = cost.max(axis=1)
        return np.asarray(np.divide(1.0, top, out=np.zeros(len(cost)), where=top > 0))

    def value(self, objective: float, ball: Ball) -> float:
        return ball.squared_radius * objective

    def gradient(
        self, solution: Solution, quadratic_forms: Floats, spreads: Floats, ball: Ball, cost: Floats
    ) -> Floats:
        return np.asarray(solution.primal * spreads - 0.5 * ball.squared_radius * quadratic_forms)


@dataclass(frozen=True)
class Do(Criterion):
    """``1/2 sum_j |w_j|^2 / theta_j + C / (sum_j theta_j R_j^2) sum_i xi_i^2``.

    Convex, but it falls without end as the weights grow, so that their set matters.

    Parameters
    ----------
    squared_radii : ndarray of shape (n_kernels,)
        ``R_j^2``, the squared radius of the ball of each kernel.
    bound : callable
        ``bound(linear, quadratic_forms)`` returns the lower bound over the weight set that a
        feasible point proves.
    fit_intercept : bool
        Whether the machine has a bias.

    References
    ----------
    Do, Kalousis, Woznica and Hilario (2009), Margin and radius based multiple kernel learning,
    ECML. Gai, Chen and Zhang (2010), equation (11).
    """

    squared_radii: Floats
    bound: Callable[[float, Floats], float]
    fit_intercept: bool = True

    @property
    def machine(self) -> Loss:
        return SquaredHinge(self.fit_intercept)

    def machine_cost(self, kernel: CombinedKernel, ball: Ball, cost: Floats) -> Floats:
        return np.asarray(2.0 * cost / float(kernel.weights @ self.squared_radii))

    def ball(
        self, kernel: CombinedKernel, cost: Floats, *, tol: float, start: Floats | None = None
    ) -> Ball:
        """Return the ball around the first point: the criterion looks at no other."""
        first = np.zeros(kernel.n_samples)
        first[0] = 1.0
        row = kernel.rows(np.array([0]))[0].astype(np.float64)
        return judge_ball(first, row, kernel.diag(), self.ball_ridge(cost))

    def finished(self, assessed: Assessment, cost: Floats, *, tol: float) -> Assessment:
        return replace(assessed, ball=super().ball(assessed.kernel, cost, tol=tol))

    def value(self, objective: float, ball: Ball) -> float:
        return objective

    def _forms(self, solution: Solution, quadratic_forms: Floats, cost: Floats) -> Floats:
        """Return the forms of the kernels with their share of the ridge."""
        squares = np.divide(
            solution.dual_coef**2, 2.0 * cost, out=np.zeros_like(cost), where=cost > 0
        )
        return quadratic_forms + self.squared_radii * float(squares.sum())

    def gradient(
        self, solution: Solution, quadratic_forms: Floats, spreads: Floats, ball: Ball, cost: Floats
    ) -> Floats:
        return -0.5 * self._forms(solution, quadratic_forms, cost)

    def lower_bound(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        quadratic_forms: Floats,
        spreads: Floats,
        ball: Ball,
        Y: Floats,
        cost: Floats,
    ) -> float:
        largest = self._forms(
            solution, quadratic_forms + kernel.bank.residual_forms(solution.dual_coef), cost
        )
        linear = self.machine.linear(solution.dual_coef, Y, cost)
        return self.bound(linear, largest)
