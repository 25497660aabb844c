"""The learning problem that solvers share, with limits and warm starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelweave._types import Floats
from kernelweave.banks import Bank
from kernelweave.losses import Loss
from kernelweave.weights import WeightSet

from .bounds import Bounds, Callback, Result


@dataclass(frozen=True)
class Problem:
    """``min over theta in a set, f:  1/2 sum_j |f_j|^2 / theta_j + sum_i cost_i loss(y_i, f_i)``.

    Parameters
    ----------
    bank : Bank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets (+-1 for classification), and the cost of each error; zero where a row is absent.
    loss : Loss
        The loss.
    weight_set : WeightSet
        The set of kernel weights theta.
    """

    bank: Bank
    Y: Floats
    cost: Floats
    loss: Loss
    weight_set: WeightSet


@dataclass(frozen=True)
class Limits:
    """When a solver stops."""

    tol: float  # relative duality gap
    max_iter: int = 200  # maximum number of inner solves; may be exceeded by one step
    callback: Callback | None = None  # called with every `Step`
    provisional: bool = False  # bounds of kernels as stored, where nothing has to be certified

    def bounds(self) -> Bounds:
        """Return bounds of which nothing is known yet."""
        return Bounds(self.tol, self.callback, self.provisional)

    def after(self, solves: int) -> Limits:
        """Return the limits once some solves are spent; one more is always allowed."""
        return replace(self, max_iter=max(1, self.max_iter - solves))


@dataclass(frozen=True)
class WarmStart:
    """Where to begin: the solution of a neighbouring problem."""

    weights: Floats  # (n_kernels,): kernel weights
    dual_coef: Floats  # (n_samples, n_outputs): dual coefficients; made feasible where they are not

    @classmethod
    def at(cls, result: Result) -> WarmStart:
        """Begin where another solver ended."""
        return cls(result.weights, result.dual_coef)
