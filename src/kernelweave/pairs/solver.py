"""Non-negative kernel weights from labelled pairs, by a projected Newton method.

The problem is penalised logistic regression with non-negative weights. Each Newton system over the
weights that are not held at zero is solved by preconditioned conjugate gradients, at the cost of a
pass over the kernel values per step; backtracking along the projection arc follows Bertsekas.

References
----------
Yang, Jin and Jain (2012), Learning kernel combination from noisy pairwise constraints, IEEE SSP:
problem (7).
Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints, SIAM
Journal on Control and Optimization 20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Bools, Floats
from kernelweave.banks.pairs import PairBlocks
from kernelweave.errors import InputError
from kernelweave.kernels.base import is_sparse

_LARGEST = 1e100  # largest kernel value at a pair; curvatures are products of two


@dataclass(frozen=True)
class NewtonOptions:
    """Constants of the projected Newton method."""

    cg_steps: int = 200  # of a Newton system; chosen by hand
    cg_tol: float = 0.01  # largest relative decrease of r'M^-1 r to stop at; chosen by hand
    halvings: int = 60  # of a step: to below rounding
    decrease: float = 1e-4  # share of the linear decrease that a step must reach (Armijo)
    # Increase of an objective of size one that is rounding. Without it the line search stalls at
    # the optimum; a prototype took 199 steps without progress.
    rounding: float = 4e-16
    held: float = 1e-8  # weights below it, times the root of their curvature, may be held at zero


OPTIONS = NewtonOptions()


@dataclass(frozen=True)
class PairProblem:
    """Minimise ``sum_i c_i ln(2 cosh(u_i/2)) - w.g/2 - b h/2 + lam/2 |w - prior|^2`` over w >= 0.

    Here ``u = F w + b``.
    With ``g = sum_i c_i s_i F_i`` and ``h = sum_i c_i s_i`` this is logistic regression on the
    labels ``s``. Labels enter through ``g`` and ``h`` only, so estimates may replace them.
    """

    F: Any  # kernel values, (n_pairs, n_kernels): csr_array, ndarray or PairBlocks
    weight: Floats  # c, non-negative
    statistic: Floats  # g
    lam: float  # positive
    prior: float = 0.0  # the weight that is not penalised
    balance: float | None = None  # h; None for a model without the bias b

    @property
    def has_bias(self) -> bool:
        """Whether there is a bias."""
        return self.balance is not None

    def screened(self) -> Bools:
        """Return which weights are zero at the optimum, by the sign of the statistic.

        Where no kernel value is negative the losses grow with every weight, so that a weight with
        ``g_j <= 0`` only costs. With a bias or a prior that is not valid.
        """
        if self.has_bias or self.prior != 0.0:
            return np.zeros(len(self.statistic), dtype=bool)
        values = self.F.data if is_sparse(self.F) else self.F
        if values.size and values.min() < 0:
            return np.zeros(len(self.statistic), dtype=bool)
        return np.asarray(self.statistic <= 0)


@dataclass(frozen=True)
class PairResult:
    """Weights learned from pairs."""

    weights: Floats  # non-negative
    bias: float  # zero without one
    objective: float
    residual: float  # largest projected gradient, relative to half the largest statistic
    n_iter: int  # Newton steps
    converged: bool  # whether the residual met the tolerance

    def gap(self, lam: float, scale: float, n: int) -> float:
        """Bound the distance of the objective from its minimum, by strong convexity."""
        return n * (self.residual * scale) ** 2 / (2.0 * lam)


def solve_pairs(
    problem: PairProblem,
    *,
    start: tuple[Floats, float] | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    screen: bool = True,
) -> PairResult:
    """Solve to a projected gradient of ``tol``, relative to half the largest statistic.

    Begins at the weights and the bias of ``start``, and takes at most ``max_iter`` Newton steps.
    ``screen`` leaves out weights that are zero by `PairProblem.screened`.
    """
    out = problem.screened() if screen else np.zeros(len(problem.statistic), dtype=bool)
    kept = np.flatnonzero(~out)
    weights = np.zeros(len(problem.statistic))
    first = np.full(len(kept), problem.prior) if start is None else start[0][kept]
    search = _Search(problem, kept, first, 0.0 if start is None else start[1])
    scale = 0.5 * float(np.abs(problem.statistic).max(initial=0.0))
    if problem.balance is not None:
        scale = max(scale, 0.5 * abs(problem.balance))
    scale = scale or 1.0
    # Rounding error of the penalty's gradient, which dominates where lam is huge.
    rounding = 4 * np.finfo(np.float64).eps * problem.lam * abs(problem.prior)
    target = max(tol * scale, rounding)
    left = search.run(target, max_iter)
    weights[kept] = search.w
    converged = bool(left <= target)
    return PairResult(weights, search.b, search.value, left / scale, search.steps, converged)


class _Search:
    """The current weights of the kept kernels, with losses, gradient and curvature."""

    def __init__(self, problem: PairProblem, kept: Any, w: Floats, b: float) -> None:
        self.problem = problem
        F: Any = problem.F
        whole = len(kept) == F.shape[1]
        blocks = isinstance(F, PairBlocks)
        if not whole:
            F = F.select(kept) if blocks else F[:, kept]
        self.F: Any = csr_array(F) if is_sparse(F) else F
        self.transposed: Any = self.F.T
        if blocks:
            self.squared = F.squared_transposed
        elif is_sparse(F):
            self.transposed = csr_array(self.F.T)
            self.squared = self.transposed.copy()
            self.squared.data = _squares(self.squared.data)
        else:
            self.squared = _squares(self.F.T)
        self.g = problem.statistic[kept]
        self.w, self.b, self.steps = w.copy(), float(b), 0
        self._evaluate()

    def _value(self) -> float:
        p = self.problem
        value = float(p.weight @ self.losses) - 0.5 * float(self.w @ self.g)
        if p.balance is not None:
            value -= 0.5 * self.b * p.balance
        shift = self.w - p.prior
        return value + 0.5 * p.lam * float(shift @ shift)

    def _change(self, w: Floats, b: float) -> float:
        """Return the change of the value, summed pair by pair to avoid cancellation."""
        p, step = self.problem, w - self.w
        losses = _losses(self.F @ w + b)
        change = float(p.weight @ (losses - self.losses)) - 0.5 * float(step @ self.g)
        if p.balance is not None:
            change -= 0.5 * (b - self.b) * p.balance
        return change + 0.5 * p.lam * float(step @ (w + self.w - 2.0 * p.prior))

    def _evaluate(self) -> None:
        """Evaluate value, gradient and curvature at the current weights."""
        p = self.problem
        self.u = self.F @ self.w + self.b
        self.losses = _losses(self.u)
        self.value = self._value()
        half = np.tanh(0.5 * self.u)
        pull = 0.5 * p.weight * half
        self.grad = self.transposed @ pull - 0.5 * self.g + p.lam * (self.w - p.prior)
        self.grad_b = 0.0 if p.balance is None else float(pull.sum()) - 0.5 * p.balance
        self.curve = 0.25 * p.weight * (1.0 - half**2)

    def _residual(self) -> float:
        projected = np.where(self.w > 0, self.grad, np.minimum(self.grad, 0.0))
        return max(float(np.abs(projected).max(initial=0.0)), abs(self.grad_b))

    def run(self, target: float, max_iter: int) -> float:
        """Step until the projected gradient is small; return it."""
        residual = self._residual()
        while residual > target and self.steps < max_iter:
            if not self._step():
                break
            self.steps += 1
            residual = self._residual()
        return residual

    def _step(self) -> bool:
        # Weights times the roots of their curvature are invariant to the scale of the kernels.
        diagonal = self.squared @ self.curve + self.problem.lam
        roots = np.sqrt(diagonal)
        plain = self.w * roots
        moved = float(np.abs(plain - np.maximum(plain - self.grad / roots, 0.0)).max(initial=0.0))
        # Bertsekas (1982): hold weights that are nearly zero and would decrease.
        free = ~((plain <= min(OPTIONS.held, moved)) & (self.grad > 0))
        d, db = self._direction(free, diagonal)
        rounding = OPTIONS.rounding * max(1.0, abs(self.value))
        length = 1.0
        for _ in range(OPTIONS.halvings):
            w = np.where(free, np.maximum(self.w + length * d, 0.0), 0.0)
            b = self.b + length * db
            slope = float(self.grad @ (w - self.w)) + self.grad_b * (b - self.b)
            if slope < 0 and self._change(w, b) <= OPTIONS.decrease * slope + rounding:
                self.w, self.b = w, b
                self._evaluate()
                return True
            length *= 0.5
        return False

    def _direction(self, free: Bools, diagonal: Floats) -> tuple[Floats, float]:
        """Solve the Newton system of the free weights by conjugate gradients."""
        p, curve = self.problem, self.curve
        has_bias = p.has_bias
        # Fixed weights are masked, not cut out: that would copy the pairs in every step.
        total = float(curve.sum())
        diagonal_b = total if total > 0 else 1.0
        rhs, rhs_b = np.where(free, -self.grad, 0.0), -self.grad_b
        x, xb = np.zeros_like(rhs), 0.0
        r, rb = rhs.copy(), rhs_b if has_bias else 0.0
        z, zb = r / diagonal, rb / diagonal_b
        q, qb = z.copy(), zb
        rz = float(r @ z) + rb * zb
        stop = rz * min(OPTIONS.cg_tol, np.sqrt(rz))
        # Where all losses are linear to rounding, the bias has no curvature and steps no bound.
        largest = _LARGEST / max(1.0, float(np.abs(p.statistic).max(initial=0.0)))
        for _ in range(OPTIONS.cg_steps):
            along = curve * (self.F @ q + qb)
            Hq = np.where(free, self.transposed @ along + p.lam * q, 0.0)
            Hqb = float(along.sum()) if has_bias else 0.0
            bend = float(q @ Hq) + qb * Hqb
            if bend <= 0.0:
                break
            step = rz / bend
            if not step * max(float(np.abs(q).max(initial=0.0)), abs(qb)) < largest:
                break
            x, xb = x + step * q, xb + step * qb
            r, rb = r - step * Hq, rb - step * Hqb
            z, zb = r / diagonal, rb / diagonal_b
            before, rz = rz, float(r @ z) + rb * zb
            if rz <= stop:
                break
            q, qb = z + (rz / before) * q, zb + (rz / before) * qb
        return x, xb


def _losses(u: Floats) -> Floats:
    """Return ``ln(2 cosh(u/2))``."""
    half = 0.5 * np.abs(u)
    return np.asarray(half + np.log1p(np.exp(-2.0 * half)))


def _squares(values: Any) -> Floats:
    """Return squares; values are refused whose products with curvatures would overflow."""
    if np.abs(values).max(initial=0.0) > _LARGEST:
        raise InputError(
            "Values of kernels or columns at these pairs are too large to learn weights from; "
            "rescale the columns first, for example with scikit-learn's StandardScaler."
        )
    return np.asarray(values**2)
