"""Criteria that compare the margin with the radius of the ball around the data.

The product of squared radius and squared norm does not change when a kernel is multiplied by a
number, which the margin alone does; minimising it over kernels therefore needs no norm on their
weights. Each criterion needs one SVM and one enclosing ball for every choice of weights; both are
differentiable in the weights by Danskin's theorem.

References
----------
K. Gai, G. Chen, C. Zhang, "Learning kernels with radiuses of minimum enclosing balls", NIPS 23,
2010, equations (10) to (22).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import Ball, KernelBank, KernelSum, ball_with_centre, solve_ball
from kernelweave.inner import Solution, solve_inner
from kernelweave.losses import Hinge, Loss, SquaredHinge


@dataclass(frozen=True)
class Assessment:
    """A criterion at one choice of weights."""

    kernel: KernelSum  # the weighted kernel
    solution: Solution  # of the SVM on it as it is, not divided by the squared radius
    quadratic_forms: Floats  # tr(dual_coef' K_j dual_coef)
    ball: Ball  # around the points of the weighted kernel
    spreads: Floats  # squared radius of the ball around its centre, in every kernel alone
    value: float = np.inf  # of the criterion; never below its exact value there
    gradient: Floats = field(default_factory=lambda: np.empty(0))  # in the weights
    lower: float = -np.inf  # no weights have a smaller value

    @property
    def squared_norm(self) -> float:
        """``tr(V' K V)`` of the dual coefficients V in the weighted kernel."""
        return float(np.vdot(self.solution.dual_coef, self.solution.fitted))


class Criterion(ABC):
    """A function of the kernel weights that needs one SVM and one ball for each choice."""

    scale_free = False  # whether multiplying all weights changes nothing
    has_cuts = False  # whether points prove a bound together, by `joint_bound`

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The loss."""

    @abstractmethod
    def inner_cost(self, kernel: KernelSum, ball: Ball, cost: Floats) -> Floats:
        """Return the costs that give the criterion's function on the kernel as it is."""

    def ball_ridge(self, cost: Floats) -> Floats:
        """Return what is added to the diagonal of the kernel before the ball is taken."""
        return np.zeros(len(cost))

    def ball(
        self, kernel: KernelSum, cost: Floats, *, tol: float, start: Floats | None = None
    ) -> Ball:
        """Return the ball that is needed while weights are learned: the smallest."""
        return solve_ball(kernel, tol=tol, start=start, ridge=self.ball_ridge(cost))

    def finished(self, point: Assessment, cost: Floats, *, tol: float) -> Assessment:
        """Return the same point with the smallest ball."""
        return point

    @abstractmethod
    def value(self, objective: float, ball: Ball) -> float:
        """Return the criterion from the objective of the SVM and the ball."""

    @abstractmethod
    def gradient(self, point: Assessment, cost: Floats) -> Floats:
        """Return the derivative in the weights."""

    def lower_bound(self, point: Assessment, Y: Floats, cost: Floats) -> float:
        """Return a lower bound over all weights; none is known unless a subclass has one."""
        return -np.inf

    def joint_bound(
        self, bank: KernelBank, dual_coef: Floats, centre: Floats, Y: Floats, cost: Floats
    ) -> float:
        """Return the bound over all weights that any coefficients and any centre prove together.

        The coefficients are feasible for a kernel of unit radius; the centre sums to one.
        """
        raise NotImplementedError

    def evaluate(
        self,
        kernel: KernelSum,
        Y: Floats,
        cost: Floats,
        *,
        tol: float,
        start: Assessment | None = None,
    ) -> Assessment:
        """Solve ball and SVM at one choice of weights, both to the relative gap ``tol``.

        ``start`` is a neighbouring choice; the kernel must not be constant.
        """
        if kernel.workspace is None:
            kernel.dense()  # ball and SVM visit most rows
        centre = None if start is None else start.ball.centre
        ball = self.ball(kernel, cost, tol=tol, start=centre)
        inner = self.inner_cost(kernel, ball, cost)
        begin = None
        if start is not None:
            # Coefficients at a bound stay there when the costs change.
            before = self.inner_cost(start.kernel, start.ball, cost)
            ratio = np.divide(inner, before, out=np.ones_like(inner), where=before > 0)
            dual_coef = self.loss.repair(start.solution.dual_coef * ratio, Y, inner)
            fitted = kernel @ dual_coef
            begin = Solution(dual_coef, start.solution.intercept, fitted, np.inf, -np.inf)
        solution = solve_inner(self.loss, kernel, Y, inner, tol=tol, start=begin)
        quadratic_forms = kernel.bank.quadratic_forms(solution.dual_coef)
        return self._assess(kernel, solution, quadratic_forms, ball, Y, cost)

    def verified(self, point: Assessment, Y: Floats, cost: Floats) -> Assessment:
        """Return the same point evaluated afresh with the exact kernels.

        Running sums of ball and SVM drift, and the storage of the bank may leave something out.
        """
        kernel, old, centre = point.kernel, point.solution, point.ball.centre
        fitted = kernel.exact_product(np.column_stack([old.dual_coef, centre]))
        diagonal = kernel.bank.exact_diagonal(kernel.weights)
        ball = ball_with_centre(centre, fitted[:, -1].copy(), diagonal, self.ball_ridge(cost))
        solution = replace(old, fitted=np.ascontiguousarray(fitted[:, :-1]))
        return self._assess(kernel, solution, point.quadratic_forms, ball, Y, cost)

    def _assess(
        self,
        kernel: KernelSum,
        solution: Solution,
        quadratic_forms: Floats,
        ball: Ball,
        Y: Floats,
        cost: Floats,
    ) -> Assessment:
        loss, intercept = self.loss.value(solution.fitted, Y, self.inner_cost(kernel, ball, cost))
        squared_norm = float(np.vdot(solution.dual_coef, solution.fitted))
        solution = replace(solution, intercept=intercept, primal=0.5 * squared_norm + loss)
        point = Assessment(
            kernel, solution, quadratic_forms, ball, kernel.bank.spreads(ball.centre)
        )
        return replace(
            point,
            value=self.value(solution.primal, ball),
            gradient=self.gradient(point, cost),
            lower=self.lower_bound(point, Y, cost),
        )


@dataclass(frozen=True)
class RadiusMargin(Criterion):
    """``1/2 R^2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` at its best function f.

    Quasi-convex in the weights: every stationary point is a minimum, and any feasible pair of
    coefficients and centre gives a lower bound. Equations (13), (16), (21) and (22) of Gai et al.
    """

    fit_intercept: bool = True  # whether the SVM has an intercept
    fixed: bool = False  # whether the lower bound is that of the weights in hand, not of all
    scale_free = True
    has_cuts = True

    @property
    def loss(self) -> Loss:
        return Hinge(self.fit_intercept)

    def inner_cost(self, kernel: KernelSum, ball: Ball, cost: Floats) -> Floats:
        return np.asarray(cost / ball.squared_radius)

    def value(self, objective: float, ball: Ball) -> float:
        return ball.squared_radius * objective

    def gradient(self, point: Assessment, cost: Floats) -> Floats:
        radius, norm = point.ball.squared_radius, point.squared_norm
        return np.asarray(0.5 * (norm * point.spreads - radius * point.quadratic_forms))

    def lower_bound(self, point: Assessment, Y: Floats, cost: Floats) -> float:
        bank, weights, size = point.kernel.bank, point.kernel.weights, point.ball.squared_radius
        dual_coef, centre = point.solution.dual_coef, point.ball.centre
        largest = size**2 * (point.quadratic_forms + bank.residual_forms(dual_coef))
        smallest = point.spreads - bank.residual_forms(centre[:, None])
        if self.fixed:
            largest, smallest = (np.atleast_1d(weights @ v) for v in (largest, smallest))
        return self._bound(size * dual_coef, largest, smallest, Y, cost)

    def joint_bound(
        self, bank: KernelBank, dual_coef: Floats, centre: Floats, Y: Floats, cost: Floats
    ) -> float:
        largest = bank.quadratic_forms(dual_coef) + bank.residual_forms(dual_coef)
        smallest = bank.spreads(centre) - bank.residual_forms(centre[:, None])
        return self._bound(dual_coef, largest, smallest, Y, cost)

    def _bound(
        self, dual_coef: Floats, quadratic_forms: Floats, spreads: Floats, Y: Floats, cost: Floats
    ) -> float:
        total = self.loss.linear(dual_coef, Y, cost)
        if total <= 0 or (spreads <= 0).any():
            return -np.inf
        # Coefficients may be scaled as long as they stay in their boxes.
        used = dual_coef != 0
        room = float((cost[used] / np.abs(dual_coef[used])).min())
        # At unit radius sum_j w_j spreads_j <= 1, so w . quadratic_forms <= the largest ratio.
        steepest = float((quadratic_forms / spreads).max())
        scale = room if steepest == 0 else min(total / steepest, room)
        return scale * total - 0.5 * scale**2 * steepest


@dataclass(frozen=True)
class Chapelle(Criterion):
    """``R^2 |w|^2`` of a hard margin, errors allowed by a ridge on the kernel (KL-C).

    References
    ----------
    O. Chapelle, V. Vapnik, O. Bousquet, S. Mukherjee, "Choosing multiple parameters for support
    vector machines", Machine Learning 46, 2002; equation (10) of Gai et al.
    """

    fit_intercept: bool = True  # whether the SVM has an intercept
    # False: the ridge ``1/C`` counts for margin and ball alike, as in Chapelle's practice. True:
    # ``1/2 R^2 |w|^2 + C R^2 sum_i xi_i^2`` with the ball of the kernel alone, which falls to zero
    # with the scale of the kernel.
    literal: bool = False

    @property
    def loss(self) -> Loss:
        return SquaredHinge(self.fit_intercept)

    def inner_cost(self, kernel: KernelSum, ball: Ball, cost: Floats) -> Floats:
        return 2.0 * cost if self.literal else cost

    def ball_ridge(self, cost: Floats) -> Floats:
        if self.literal:
            return np.zeros(len(cost))
        top = cost.max(axis=1)
        return np.asarray(np.divide(1.0, top, out=np.zeros(len(cost)), where=top > 0))

    def value(self, objective: float, ball: Ball) -> float:
        return ball.squared_radius * objective

    def gradient(self, point: Assessment, cost: Floats) -> Floats:
        radius = point.ball.squared_radius
        return np.asarray(
            point.solution.primal * point.spreads - 0.5 * radius * point.quadratic_forms
        )


@dataclass(frozen=True)
class Do(Criterion):
    """``1/2 sum_j |w_j|^2 / theta_j + C / (sum_j theta_j R_j^2) sum_i xi_i^2``.

    Convex, but unbounded below as the weights grow, so that their set matters.

    References
    ----------
    H. Do, A. Kalousis, A. Woznica, M. Hilario, "Margin and radius based multiple kernel learning",
    ECML 2009; equation (11) of Gai et al.
    """

    squared_radii: Floats  # (n_kernels,): ``R_j^2``, the squared radius of the ball of each kernel
    # ``bound(linear, quadratic_forms)`` returns the lower bound over the weight set that a feasible
    # point proves.
    bound: Callable[[float, Floats], float]
    fit_intercept: bool = True  # whether the SVM has an intercept

    @property
    def loss(self) -> Loss:
        return SquaredHinge(self.fit_intercept)

    def inner_cost(self, kernel: KernelSum, ball: Ball, cost: Floats) -> Floats:
        return np.asarray(2.0 * cost / float(kernel.weights @ self.squared_radii))

    def ball(
        self, kernel: KernelSum, cost: Floats, *, tol: float, start: Floats | None = None
    ) -> Ball:
        """Return the ball around the first point: the criterion needs only the `squared_radii`."""
        first = np.zeros(kernel.n_samples)
        first[0] = 1.0
        row = kernel.rows(np.array([0]))[0].astype(np.float64)
        return ball_with_centre(first, row, kernel.diag(), self.ball_ridge(cost))

    def finished(self, point: Assessment, cost: Floats, *, tol: float) -> Assessment:
        return replace(point, ball=super().ball(point.kernel, cost, tol=tol))

    def value(self, objective: float, ball: Ball) -> float:
        return objective

    def _forms(self, dual_coef: Floats, quadratic_forms: Floats, cost: Floats) -> Floats:
        """Return the quadratic forms of the kernels with their share of the ridge."""
        squares = np.divide(dual_coef**2, 2.0 * cost, out=np.zeros_like(cost), where=cost > 0)
        return quadratic_forms + self.squared_radii * float(squares.sum())

    def gradient(self, point: Assessment, cost: Floats) -> Floats:
        return -0.5 * self._forms(point.solution.dual_coef, point.quadratic_forms, cost)

    def lower_bound(self, point: Assessment, Y: Floats, cost: Floats) -> float:
        dual_coef = point.solution.dual_coef
        quadratic_forms = point.quadratic_forms + point.kernel.bank.residual_forms(dual_coef)
        linear = self.loss.linear(dual_coef, Y, cost)
        return self.bound(linear, self._forms(dual_coef, quadratic_forms, cost))
