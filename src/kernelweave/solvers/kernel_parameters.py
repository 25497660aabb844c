"""Gaussian kernels whose widths are learned by the radius-margin criterion.

Parameters are logarithms of rates, ``rate = 1 / (2 width^2)``. Towards small rates every Gaussian
approaches the linear kernel, towards large ones the identity, where the criterion is flat; so rates
keep to a range around a typical one of the data, steps are short at first, and several starts are
tried. The criterion is not convex here: the result is a local minimum.

References
----------
K. Gai, G. Chen, C. Zhang, "Learning kernels with radiuses of minimum enclosing balls", NIPS 23,
2010, equations (13), (21) and (22).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy

from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import KernelBank, KernelSum, Views
from kernelweave.banks.storage import Ladder, support
from kernelweave.errors import InputError
from kernelweave.kernels import ARD, RBF, Kernel
from kernelweave.kernels.distances import squared_distances

from .problem import Limits
from .radius.criteria import Assessment, RadiusMargin
from .radius.search import RadiusResult


@dataclass(frozen=True)
class FamilyOptions:
    """Constants of `learn_family`, by hand; rates in units of 1 / median squared distance."""

    lowest: float = 1e-4  # rate
    highest: float = 1e3  # rate
    starts: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)  # rates that are evaluated first
    first_reach: float = 0.5  # largest change of a logarithm in the first round
    reach: float = 1.5  # the same in later rounds
    max_rounds: int = 30  # each with a new model of L-BFGS
    inner_gap: float = 1e-3  # gap of SVM and ball, relative to the tolerance


OPTIONS = FamilyOptions()


class Family(ABC):
    """Gaussian kernels with free parameters, over training rows."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    @abstractmethod
    def start(self, share: float) -> Floats:
        """Return parameters for rates of this size relative to the typical one."""

    @abstractmethod
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the range of the parameters."""

    @abstractmethod
    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        """Return the kernels, and the weights they are added with."""

    @abstractmethod
    def ladder(self, parameters: Floats) -> Ladder:
        """Return the same kernels over the training rows."""

    @abstractmethod
    def gradient(self, parameters: Floats, point: Assessment) -> Floats:
        """Return the derivative of the criterion in the parameters."""

    def combine(self, parameters: Floats) -> KernelSum:
        """Return the weighted kernel over the training rows."""
        kernels, weights = self.kernels(parameters)
        m = len(kernels)
        bank = KernelBank(
            kernels=tuple(kernels),
            parts=((self.ladder(parameters), np.arange(m)),),
            scales=np.ones(m),
            views=Views.of(kernels, self.rows),
            measured=np.full(m, float(len(self.rows))),
        )
        return bank.combine(weights)


class WidthFamily(Family):
    """One Gaussian: one parameter."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows)
        # Finite, so that a product with a kernel value of zero is zero.
        self.distances = np.minimum(squared_distances(rows, rows), 1e300)
        self.unit = 1.0 / _typical(rows, self.distances)

    def start(self, share: float) -> Floats:
        return np.log([share * self.unit])

    def bounds(self) -> tuple[Floats, Floats]:
        return np.log([OPTIONS.lowest * self.unit]), np.log([OPTIONS.highest * self.unit])

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        return [RBF(_width(parameters[0]))], np.ones(1)

    def ladder(self, parameters: Floats) -> Ladder:
        return Ladder(self.distances, np.exp(parameters))

    def gradient(self, parameters: Floats, point: Assessment) -> Floats:
        rows, pull = _pull(point)
        block = point.kernel.block(rows, rows)
        slope = 0.5 * float((pull * block * self.distances[np.ix_(rows, rows)]).sum())
        return np.exp(parameters) * slope


class ARDFamily(Family):
    """A Gaussian with one width per column."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows)
        with np.errstate(over="ignore"):
            spreads = [_typical(c, squared_distances(c, c), none=0.0) for c in rows.T[:, :, None]]
        self.varying = np.flatnonzero(np.array(spreads) > 0)
        if not len(self.varying):
            raise InputError("X: every column is constant, so there is no width to learn.")
        self.units = 1.0 / np.array(spreads)[self.varying]

    def start(self, share: float) -> Floats:
        return np.log(share * self.units / len(self.units))

    def bounds(self) -> tuple[Floats, Floats]:
        return np.log(OPTIONS.lowest * self.units / len(self.units)), np.log(
            OPTIONS.highest * self.units
        )

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        widths = np.full(self.rows.shape[1], np.inf)  # of constant columns
        widths[self.varying] = [_width(p) for p in parameters]
        return [ARD(tuple(widths.tolist()))], np.ones(1)

    def ladder(self, parameters: Floats) -> Ladder:
        rows = self.rows[:, self.varying]
        return Ladder(squared_distances(rows, rows, scales=np.exp(0.5 * parameters)), np.ones(1))

    def gradient(self, parameters: Floats, point: Assessment) -> Floats:
        rows, pull = _pull(point)
        pull *= point.kernel.block(rows, rows)
        # sum_ik P_ik (x_i - x_k)^2 of every column, without an n x n array for each.
        X = self.rows[np.ix_(rows, self.varying)]
        X = X - X.mean(axis=0)  # an offset would take the digits of the differences
        squares = pull.sum(axis=1) @ X**2 - np.einsum("il,il->l", X, pull @ X)
        return np.asarray(np.exp(parameters) * squares)


class MixtureFamily(Family):
    """A weighted sum of ``n_widths`` Gaussians: logarithms of the rates, then of the weights."""

    def __init__(self, rows: Floats, n_widths: int) -> None:
        super().__init__(rows)
        # Finite, so that a product with a kernel value of zero is zero.
        self.distances = np.minimum(squared_distances(rows, rows), 1e300)
        self.unit = 1.0 / _typical(rows, self.distances)
        self.n_widths = n_widths

    def start(self, share: float) -> Floats:
        ladder = 4.0 ** (np.arange(self.n_widths) - 0.5 * (self.n_widths - 1))
        lowest, highest = self.bounds()
        parameters = np.concatenate([np.log(share * self.unit * ladder), np.zeros(self.n_widths)])
        return np.asarray(np.clip(parameters, lowest, highest))

    def bounds(self) -> tuple[Floats, Floats]:
        low, high = np.log(OPTIONS.lowest * self.unit), np.log(OPTIONS.highest * self.unit)
        return np.repeat([low, -12.0], self.n_widths), np.repeat([high, 12.0], self.n_widths)

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        rates, logs = np.split(parameters, 2)
        return [RBF(_width(rate)) for rate in rates], np.exp(logs)

    def ladder(self, parameters: Floats) -> Ladder:
        return Ladder(self.distances, np.exp(parameters[: self.n_widths]))

    def gradient(self, parameters: Floats, point: Assessment) -> Floats:
        rows, pull = _pull(point)
        distances = self.distances[np.ix_(rows, rows)]
        weights = point.kernel.weights
        pull *= distances
        slopes = [
            0.5 * rate * weight * float((pull * np.exp(-rate * distances)).sum())
            for rate, weight in zip(np.exp(parameters[: self.n_widths]), weights, strict=True)
        ]
        return np.concatenate([slopes, weights * point.gradient])


def _typical(rows: Floats, distances: Stored, none: float | None = None) -> float:
    """Return the median of the distances between rows that are not zero."""
    some = distances[distances > 0]
    middle = float(np.median(some)) if len(some) else 0.0
    if not len(some) and (rows == rows[:1]).all():
        if none is None:
            raise InputError("X: all rows are equal, so there is no width to learn.")
        return none
    if not 1e-200 < middle < 1e200:
        raise InputError(
            "X: its distances are too large or too small for a Gaussian; rescale the columns "
            "first, for example with scikit-learn's StandardScaler."
        )
    return middle


def _width(log_rate: float) -> float:
    return float(np.exp(-0.5 * (log_rate + np.log(2.0))))


def _pull(point: Assessment) -> tuple[Indices, Floats]:
    """Return rows, and P with ``dg = -1/2 sum_ik P_ik dK_ik`` for kernels of constant diagonal."""
    dual_coef, centre = point.solution.dual_coef, point.ball.centre
    rows = np.union1d(support(dual_coef), np.flatnonzero(centre))
    a, b = dual_coef[rows], centre[rows]
    return rows, point.ball.squared_radius * (a @ a.T) + point.squared_norm * np.outer(b, b)


class _Descent:
    """Evaluates parameters, keeps the best, and counts inner solves."""

    def __init__(
        self, family: Family, Y: Floats, cost: Floats, criterion: RadiusMargin, limits: Limits
    ) -> None:
        self.family, self.Y, self.cost, self.criterion = family, Y, cost, criterion
        self.tol, self.max_iter = limits.tol, limits.max_iter
        self.inner = max(OPTIONS.inner_gap * limits.tol, 1e-12)
        self.bounds = limits.bounds()
        self.best: Assessment | None = None
        self.last: Assessment | None = None

    def evaluate(self, parameters: Floats) -> Assessment:
        bounds = self.bounds
        if bounds.solves >= self.max_iter:
            raise _OutOfBudget
        kernel = self.family.combine(parameters)
        self.last = point = self.criterion.evaluate(
            kernel, self.Y, self.cost, tol=self.inner, start=self.last
        )
        solution = point.solution
        bounds.solves += 1
        bounds.work += solution.work
        bounds.n_passes += 2.0
        if bounds.offer_upper(
            point.value,
            kernel.weights,
            solution.dual_coef,
            solution.intercept,
            point.quadratic_forms,
        ):
            self.best = point
        bounds.note()
        return point

    def descend(self, start: Floats) -> tuple[float, bool]:
        """Go downhill; return the final value, and whether it is stationary there."""
        lowest, highest = self.family.bounds()
        point = self.evaluate(start)
        value, slope = point.value, self.family.gradient(start, point)
        reach = OPTIONS.first_reach
        for _ in range(OPTIONS.max_rounds):
            # The projected gradient, relative to the value.
            ahead = np.clip(start - slope / value, lowest, highest)
            if np.abs(ahead - start).max() <= self.tol:
                return value, True
            size = value  # values are of order one within a round

            def scaled(parameters: Floats, size: float = size) -> tuple[float, Floats]:
                point = self.evaluate(parameters)
                return point.value / size, self.family.gradient(parameters, point) / size

            low, high = np.maximum(lowest, start - reach), np.minimum(highest, start + reach)
            found = scipy.optimize.minimize(
                scaled,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                options={"gtol": 0.5 * self.tol, "ftol": 1e-2 * self.inner},
            )
            if not found.fun < 1.0:  # no decrease beyond rounding error
                return value, False
            start, value, slope = found.x, size * found.fun, size * found.jac
            reach = OPTIONS.reach
        return value, False


class _OutOfBudget(Exception):
    """The limit of inner solves is reached."""


def learn_family(
    family: Family,
    Y: Floats,
    cost: Floats,
    criterion: RadiusMargin,
    limits: Limits,
    *,
    n_starts: int,
) -> tuple[RadiusResult, KernelSum]:
    """Minimise the radius-margin criterion over the parameters of a family of kernels.

    Targets are +-1, costs those of each error, both of shape (n_samples, n_outputs). The tolerance
    is the largest relative change of the criterion per relative change of a parameter at the end.
    ``n_starts`` descents begin at the best of the points evaluated first. Returned are the best
    function found, whose lower bound is minus infinity, and the learned kernel over the training
    rows.
    """
    descent = _Descent(family, Y, cost, criterion, limits)
    converged = False
    with suppress(_OutOfBudget):
        starts = [family.start(share) for share in OPTIONS.starts]
        values = [descent.evaluate(start).value for start in starts]
        order = np.argsort(values, kind="stable")[:n_starts].tolist()
        ends = [descent.descend(starts[k]) for k in order]
        converged = min(ends)[1]
    assert descent.best is not None
    result = RadiusResult(
        **(vars(descent.bounds.result()) | {"converged": converged, "lower_bound": -np.inf}),
        squared_radius=descent.best.ball.squared_radius,
    )
    return result, descent.best.kernel
