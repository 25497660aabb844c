"""Bounds of the optimum during a fit, the iterates that prove them, and the result of a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import WeightedSum
from kernelweave.inner import Solution

_UNSEEN = 1e-24  # share of the loss of the zero function below which an objective may count as zero


@dataclass(frozen=True)
class Step:
    """Bounds and work after one step of a solver.

    Parameters
    ----------
    upper, lower : float
        Best bounds so far.
    solves : int
        One-kernel problems solved so far.
    work : int
        Coefficient updates so far.
    n_passes : float
        Passes over all kernels so far.
    """

    upper: float
    lower: float
    solves: int
    work: int
    n_passes: float

    @property
    def relative_gap(self) -> float:
        """Certified gap relative to the upper bound."""
        return (self.upper - self.lower) / max(abs(self.upper), 1e-300)


@dataclass(frozen=True)
class Iterate:
    """Weights and coefficients, with the quadratic forms of the kernels of interest."""

    kernel: WeightedSum  # the weighted kernel
    solution: Solution  # of the inner problem
    which: Indices  # the kernels of interest, in increasing order; all with a weight are among them
    quadratic_forms: Floats  # (len(which),): ``tr(dual_coef' K_j dual_coef)``
    # linear, ridge, loss_value: parts of the dual and the primal value
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

    def start_at(self, kernel: WeightedSum) -> Solution:
        """Return the start of an inner solve with other weights of the same kernels."""
        fitted = kernel.moved_values(
            self.dual_coef, self.solution.fitted, self.weights, self.products
        )
        return replace(self.solution, fitted=fitted, primal=np.inf, dual=-np.inf)


@dataclass(frozen=True)
class DualPoint:
    """Dual coefficients with the parts of their value that need no kernel."""

    dual_coef: Floats
    linear: float
    ridge: float


@dataclass(frozen=True)
class Result:
    """A learned combination of kernels."""

    weights: Floats  # (n_kernels,): weights of the best upper bound
    dual_coef: Floats  # (n_samples, n_outputs): dual coefficients of the best upper bound
    intercept: Floats  # (n_outputs,): biases
    # (n_kernels,): ``tr(dual_coef' K_j dual_coef)`` of the kernels with a weight, zero for others.
    quadratic_forms: Floats
    # objective, lower_bound: both hold for the exact kernels
    objective: float
    lower_bound: float
    size: float  # scale of the relative gap: the objective without its constant part
    history: tuple[Step, ...]  # bounds as they were found, their rounding error apart
    converged: bool  # whether the gap met the tolerance
    # Whether rounding error is most of the gap, or kept the solver from a better model.
    at_rounding: bool = field(default=False, kw_only=True)
    # (n_columns, n_outputs): weights of the Nystroem features that give the model.
    function: Floats | None = field(default=None, kw_only=True)
    # Duality gap of the Nystroem problem; NaN when kernels are exact.
    landmark_gap: float = field(default=np.nan, kw_only=True)
    # (n_samples, n_outputs): dual coefficients that prove the lower bound, where a solver keeps
    # them.
    proof: Floats | None = field(default=None, kw_only=True)

    @property
    def gap(self) -> float:
        """The absolute duality gap."""
        return self.objective - self.lower_bound

    def widened(self, error: float, tol: float, scale: float, **changes: Any) -> Self:
        """Return a copy with changes that move the objective by an error at most.

        The scale is the loss of the zero function.
        """
        lower = max(self.lower_bound - error, min(self.lower_bound, 0.0))
        unseen = self.objective <= min(error, _UNSEEN * scale)
        # Where landmarks leave out too much, it converged by their gap.
        gap = self.gap if self.gap <= tol * self.size else self.landmark_gap
        within = gap + error <= tol * self.size or unseen
        changes |= {"lower_bound": lower, "converged": self.converged and within}
        return replace(self, **changes)


Callback = Callable[[Step], None]


@dataclass
class Bounds:
    """Best bounds found so far; the upper one with the point that attains it."""

    tol: float
    callback: Callback | None = None
    provisional: bool = False  # of kernels as stored
    scale: float = 0.0  # loss of the function that is zero
    rounding: float = 0.0  # bound of the rounding error of both bounds, once measured
    at_rounding: bool = False  # whether a model was rejected because of it
    upper: float = np.inf
    constant: float = 0.0  # part of the upper bound that the gap is not relative to
    least: float = 1e-3  # share of the upper bound that it is relative to in any case
    lower: float = -np.inf
    landmark_lower: float | None = None  # of Nystroem features, once the exact one is known
    complete: bool = True  # whether landmarks determine the exact bound
    function: Floats | None = None
    weights: Floats = field(default_factory=lambda: np.empty(0))
    dual_coef: Floats = field(default_factory=lambda: np.empty((0, 0)))
    intercept: Floats = field(default_factory=lambda: np.empty(0))
    quadratic_forms: Floats = field(default_factory=lambda: np.empty(0))
    proof: Floats | None = None  # coefficients of the lower bound
    mean: Floats | None = None  # of the coefficients so far, where a solver needs it
    solves: int = 0
    work: int = 0
    n_passes: float = 0.0
    history: list[Step] = field(default_factory=list)

    def offer_upper(
        self,
        value: float,
        weights: Floats,
        dual_coef: Floats,
        intercept: Floats,
        quadratic_forms: Floats,
        constant: float = 0.0,
    ) -> bool:
        """Keep a point if it is the best so far; return whether it is."""
        if not value < self.upper:
            return False
        self.upper, self.constant = value, constant
        self.weights, self.dual_coef, self.intercept = weights.copy(), dual_coef, intercept
        self.quadratic_forms = quadratic_forms
        return True

    def offer_lower(self, value: float, dual_coef: Floats | None = None) -> None:
        """Keep a lower bound, with coefficients that prove it, if it is the best so far."""
        if value > self.lower:
            self.lower, self.proof = value, dual_coef

    def note(self) -> None:
        """Add a line to the history."""
        step = Step(self.upper, self.lower, self.solves, self.work, self.n_passes)
        self.history.append(step)
        if self.callback is not None:
            self.callback(step)

    @property
    def size(self) -> float:
        """Scale of the relative gap: the upper bound without its constant part."""
        value = abs(self.upper)
        return max(value - self.constant, self.least * value, 1e-300)

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.upper - self.lower) / self.size

    @property
    def _open(self) -> float:
        """The absolute gap, of the Nystroem problem where landmarks leave out too much."""
        if not self.complete and self.landmark_lower is not None:
            return self.upper - self.landmark_lower
        return self.upper - self.lower

    @property
    def converged(self) -> bool:
        """Whether the gap meets the tolerance, rounding included, or cannot: it is all rounding."""
        return self._meets or self._open <= self.rounding

    @property
    def _meets(self) -> bool:
        """Whether the gap meets the tolerance, or the objective is zero up to rounding.

        The second needs an objective below its rounding error and below `_UNSEEN` of the loss of
        the zero function: no relative gap means anything then.
        """
        if self._open + self.rounding <= self.tol * self.size:
            return True
        return self.upper <= min(self.rounding, _UNSEEN * self.scale)

    def result(self) -> Result:
        """Return the best bounds as a result."""
        lower = min(self.lower, self.upper)  # the order of two equal sums is rounding
        return Result(
            weights=self.weights,
            dual_coef=self.dual_coef,
            intercept=self.intercept,
            quadratic_forms=self.quadratic_forms,
            objective=self.upper,
            # No loss and no norm is negative.
            lower_bound=max(lower - self.rounding, min(lower, 0.0)),
            size=self.size,
            history=tuple(self.history),
            converged=self._meets,
            at_rounding=self.at_rounding or self._open <= self.rounding,
            function=self.function,
            proof=self.proof,
            landmark_gap=np.nan
            if self.landmark_lower is None
            else max(0.0, self.upper - self.landmark_lower),
        )
