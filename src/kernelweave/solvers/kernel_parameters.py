"""Gaussian kernels whose widths are learned by a smooth criterion.

Parameters are logarithms of rates, ``rate = 1 / (2 width^2)``. Towards small rates every Gaussian
turns into the linear kernel, towards large ones into the identity, where the criterion is flat; so
rates keep to a range around the data's own, steps are short at first, and several starts are tried.
The criterion is not convex here: a local minimum is what is found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import CombinedKernel, KernelBank, Views
from kernelweave.banks.storage import Ladder, support
from kernelweave.errors import InputError
from kernelweave.kernels import ARD, RBF, Kernel
from kernelweave.kernels.distances import squared_distances

from .bounds import Bounds, Callback
from .radius.criteria import Assessment, RadiusMargin
from .radius.descent import RadiusResult

_LOWEST, _HIGHEST = 1e-4, 1e3  # range of the rates, in units of 1 / median squared distance
_FIRST_STEP, _STEP = 0.5, 1.5  # how far the logarithms may move before the model is begun anew
_STARTS = (0.03, 0.1, 0.3, 1.0, 3.0)  # rates that are looked at first, in the same units
_ROUNDS = 30


class Family(ABC):
    """Gaussian kernels with free parameters.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Training rows.
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    @abstractmethod
    def start(self, share: float) -> Floats:
        """Return parameters for rates of this size relative to the data's own."""

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
    def gradient(self, parameters: Floats, assessed: Assessment) -> Floats:
        """Return the derivative of the criterion in the parameters."""

    def combine(self, parameters: Floats) -> CombinedKernel:
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
    """One Gaussian: one parameter.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Training rows.
    """

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows)
        # Finite, so that a product with a kernel value of zero is zero.
        self.distances = np.minimum(squared_distances(rows, rows), 1e300)
        self.unit = 1.0 / _typical(rows, self.distances)

    def start(self, share: float) -> Floats:
        return np.log([share * self.unit])

    def bounds(self) -> tuple[Floats, Floats]:
        return np.log([_LOWEST * self.unit]), np.log([_HIGHEST * self.unit])

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        return [RBF(_width(parameters[0]))], np.ones(1)

    def ladder(self, parameters: Floats) -> Ladder:
        return Ladder(self.distances, np.exp(parameters))

    def gradient(self, parameters: Floats, assessed: Assessment) -> Floats:
        rows, pull = _pull(assessed)
        block = assessed.kernel.block(rows, rows)
        slope = 0.5 * float((pull * block * self.distances[np.ix_(rows, rows)]).sum())
        return np.exp(parameters) * slope


class ARDFamily(Family):
    """A Gaussian with one width per column.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Training rows.
    """

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
        return np.log(_LOWEST * self.units / len(self.units)), np.log(_HIGHEST * self.units)

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        widths = np.full(self.rows.shape[1], np.inf)  # a column that is the same everywhere
        widths[self.varying] = [_width(p) for p in parameters]
        return [ARD(tuple(widths.tolist()))], np.ones(1)

    def ladder(self, parameters: Floats) -> Ladder:
        rows = self.rows[:, self.varying]
        return Ladder(squared_distances(rows, rows, scales=np.exp(0.5 * parameters)), np.ones(1))

    def gradient(self, parameters: Floats, assessed: Assessment) -> Floats:
        rows, pull = _pull(assessed)
        pull *= assessed.kernel.block(rows, rows)
        # sum_ik P_ik (x_i - x_k)^2 of every column, without an n x n array for each.
        X = self.rows[np.ix_(rows, self.varying)]
        X = X - X.mean(axis=0)  # an offset would take the digits of the differences
        squares = pull.sum(axis=1) @ X**2 - np.einsum("il,il->l", X, pull @ X)
        return np.asarray(np.exp(parameters) * squares)


class MixtureFamily(Family):
    """A weighted sum of Gaussians: logarithms of the rates, then of the weights.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Training rows.
    n_widths : int
        How many Gaussians.
    """

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
        low, high = np.log(_LOWEST * self.unit), np.log(_HIGHEST * self.unit)
        return np.repeat([low, -12.0], self.n_widths), np.repeat([high, 12.0], self.n_widths)

    def kernels(self, parameters: Floats) -> tuple[list[Kernel], Floats]:
        rates, logs = np.split(parameters, 2)
        return [RBF(_width(rate)) for rate in rates], np.exp(logs)

    def ladder(self, parameters: Floats) -> Ladder:
        return Ladder(self.distances, np.exp(parameters[: self.n_widths]))

    def gradient(self, parameters: Floats, assessed: Assessment) -> Floats:
        rows, pull = _pull(assessed)
        distances = self.distances[np.ix_(rows, rows)]
        weights = assessed.kernel.weights
        pull *= distances
        slopes = [
            0.5 * rate * weight * float((pull * np.exp(-rate * distances)).sum())
            for rate, weight in zip(np.exp(parameters[: self.n_widths]), weights, strict=True)
        ]
        return np.concatenate([slopes, weights * assessed.gradient])


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


def _pull(assessed: Assessment) -> tuple[Indices, Floats]:
    """Return rows, and P with ``dg = -1/2 sum_ik P_ik dK_ik`` for kernels of constant diagonal."""
    dual_coef, centre = assessed.solution.dual_coef, assessed.ball.centre
    rows = np.union1d(support(dual_coef), np.flatnonzero(centre))
    quadratic = float(np.vdot(dual_coef, assessed.solution.fitted))
    a, b = dual_coef[rows], centre[rows]
    return rows, assessed.ball.squared_radius * (a @ a.T) + quadratic * np.outer(b, b)


@dataclass
class _Descent:
    family: Family
    Y: Floats
    cost: Floats
    criterion: RadiusMargin
    inner: float
    max_iter: int
    bounds: Bounds
    best: Assessment | None = None
    parameters: Floats = field(default_factory=lambda: np.empty(0))
    last: Assessment | None = None

    def judge(self, parameters: Floats) -> Assessment:
        if self.bounds.solves >= self.max_iter:
            raise _OutOfBudget
        self.last = assessed = self.criterion.judge(
            self.family.combine(parameters), self.Y, self.cost, tol=self.inner, start=self.last
        )
        self.bounds.solves += 1
        self.bounds.work += assessed.solution.work
        self.bounds.n_passes += 2.0
        solution = assessed.solution
        if self.bounds.offer_upper(
            assessed.value,
            assessed.kernel.weights,
            solution.dual_coef,
            solution.intercept,
            assessed.quadratic_forms,
        ):
            self.best, self.parameters = assessed, parameters.copy()
        self.bounds.note()
        return assessed

    def descend(self, start: Floats, tol: float) -> tuple[float, bool]:
        """Go downhill; return where that ends, and whether it is stationary there."""
        lowest, highest = self.family.bounds()
        assessed = self.judge(start)
        value, slope = assessed.value, self.family.gradient(start, assessed)
        reach = _FIRST_STEP
        for _ in range(_ROUNDS):
            ahead = np.clip(start - slope / value, lowest, highest)
            if np.abs(ahead - start).max() <= tol:
                return value, True
            size = value  # values are of order one within a round

            def scaled(parameters: Floats, size: float = size) -> tuple[float, Floats]:
                assessed = self.judge(parameters)
                return assessed.value / size, self.family.gradient(parameters, assessed) / size

            low, high = np.maximum(lowest, start - reach), np.minimum(highest, start + reach)
            found = minimize(
                scaled,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                options={"gtol": 0.5 * tol, "ftol": 1e-2 * self.inner},
            )
            if not found.fun < 1.0:  # as far as numbers go
                return value, False
            start, value, slope, reach = found.x, size * found.fun, size * found.jac, _STEP
        return value, False


class _OutOfBudget(Exception):
    """As many machines were solved as were allowed."""


def learn_family(
    family: Family,
    Y: Floats,
    cost: Floats,
    criterion: RadiusMargin,
    *,
    n_starts: int,
    tol: float,
    max_iter: int,
    report: Callback | None = None,
) -> tuple[RadiusResult, CombinedKernel]:
    """Minimise the radius-margin criterion over the parameters of a family of kernels.

    Parameters
    ----------
    family : Family
        Gaussian kernels over the training rows.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets of +-1, and the cost of each error.
    criterion : RadiusMargin
        What to minimise.
    n_starts : int
        From how many starting points to go downhill.
    tol : float
        Stop when a relative change of a parameter changes the criterion by no more than this times
        the change, relatively.
    max_iter : int
        Maximum number of inner solves.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : RadiusResult
        The best function found; its lower bound is minus infinity.
    kernel : CombinedKernel
        The learned kernel over the training rows.
    """
    bounds = Bounds(tol, report)
    inner = max(1e-3 * tol, 1e-12)
    descent = _Descent(family, Y, cost, criterion, inner, max_iter, bounds)
    converged = False
    with suppress(_OutOfBudget):
        starts = [family.start(share) for share in _STARTS]
        values = [descent.judge(start).value for start in starts]
        order = np.argsort(values, kind="stable")[:n_starts].tolist()
        ends = [descent.descend(starts[k], tol) for k in order]
        converged = min(ends)[1]
    assert descent.best is not None
    result = RadiusResult(
        **(vars(bounds.result()) | {"converged": converged, "lower_bound": -np.inf}),
        squared_radius=descent.best.ball.squared_radius,
    )
    return result, descent.best.kernel
