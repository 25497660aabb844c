"""Smooth losses on Nystroem features: Newton steps by preconditioned conjugate gradients.

``min 1/2 |w|^2 + sum_i loss_i(z_i'w + b)``, the bias always at its best, has the gradient
``g = w - Z'beta`` with ``beta`` minus the derivatives of the loss, and the Hessian
``I + Z'P Z`` where P are the second derivatives W, projected by the bias. ``beta`` is feasible in
the dual, and the duality gap is ``|g|^2 / 2``: what conjugate gradients leave of g is what the next
gap will be. The Hessian of some of the rows, outputs apart, is the preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._types import Floats
from kernelweave.banks import Features
from kernelweave.losses.base import Loss, Tangent

from .solution import Solution
from .systems import factor_positive, sample_rows


@dataclass(frozen=True)
class SmoothOptions:
    """Tunable numbers of `solve_smooth_on_features`, chosen by hand."""

    max_steps: int = 100
    max_halvings: int = 20
    cg_steps: int = 50
    sample: int = 3  # rows of the preconditioner for every feature, at least
    share: float = 0.05  # of the rows, at least
    forcing: float = 1e-3  # share of the gap at which conjugate gradients stop


_OPTIONS = SmoothOptions()


def solve_smooth_on_features(
    loss: Loss,
    Z: Features,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
) -> Solution:
    """Solve on the kernel ``Z Z'`` of few features; see `solve_inner`."""
    n_outputs = Y.shape[1]
    together = [slice(None)] if loss.is_coupled else [slice(o, o + 1) for o in range(n_outputs)]
    parts = []
    for outputs in together:
        target, own = (np.ascontiguousarray(part[:, outputs]) for part in (Y, cost))
        solver = _Newton(loss, Z, target, own)
        if start is not None:
            solver.begin(start, outputs)
        parts.append(solver.run(max(tol, 1e-14), floor / len(together)))
    return Solution(
        dual_coef=np.hstack([part.dual_coef for part in parts]),
        intercept=np.concatenate([part.bias for part in parts]),
        fitted=np.hstack([part.fitted for part in parts]),
        primal=sum(part.primal for part in parts),
        dual=sum(part.dual for part in parts),
        work=sum(part.work for part in parts),
        function=Z.to_bank(np.hstack([part.best for part in parts])),
        scores=np.hstack([part.scores for part in parts]),
    )


class _Newton:
    """Outputs being solved: the function ``f = Z w``, and the best bounds."""

    def __init__(self, loss: Loss, Z: Features, Y: Floats, cost: Floats) -> None:
        self.loss, self.Z, self.Y, self.cost = loss, Z, Y, cost
        self.w, self.f = np.zeros((Z.n_features, Y.shape[1])), np.zeros_like(Y)
        self.primal, self.dual = np.inf, -np.inf
        self.best, self.fitted, self.bias = self.w, self.f, np.zeros(Y.shape[1])
        self.dual_coef = np.zeros_like(Y)
        self.scores = np.zeros((0, Y.shape[1]))
        self.work = 0

    def begin(self, start: Solution, outputs: slice) -> None:
        """Begin from the function of another solution, or from that of its coefficients."""
        if start.function is None:
            self.w, whole = self.Z.sums(start.dual_coef[:, outputs]), False
        else:
            self.w, whole = self.Z.from_bank(start.function[:, outputs])
        self.f = start.fitted[:, outputs] if whole else self.Z.times(self.w)

    def run(self, tol: float, floor: float) -> _Newton:
        factors = None
        here = self.loss.tangent(self.f, self.Y, self.cost)
        for _ in range(_OPTIONS.max_steps):
            gradient = self.w - self._offer(here)
            gap = self.primal - self.dual
            goal = max(tol * abs(self.primal), floor)
            if gap <= goal or not np.isfinite(gap):
                break
            if factors is None:
                factors = self._preconditioner(here.weights)
            size = float(np.vdot(gradient, gradient))
            left = max(0.5 * goal, _OPTIONS.forcing * size)
            dw, df = self._direction(gradient, here.weights, factors, left)
            value = 0.5 * float(np.vdot(self.w, self.w)) + here.value
            for _ in range(_OPTIONS.max_halvings):
                w, f = self.w + dw, self.f + df
                there = self.loss.tangent(f, self.Y, self.cost, here.bias)
                if 0.5 * float(np.vdot(w, w)) + there.value < value:
                    break
                dw, df = 0.5 * dw, 0.5 * df
            else:
                break  # the rest is rounding
            self.w, self.f, here, self.work = w, f, there, self.work + 1
        return self

    def _offer(self, here: Tangent) -> Floats:
        """Keep the bounds that follow from a point, and return ``Z'beta``."""
        scores = self.Z.scores(here.dual_coef)
        z = self.Z.pick(scores)
        linear = self.loss.linear(here.dual_coef, self.Y, self.cost)
        dual = linear - 0.5 * float(np.vdot(z, z))
        if dual > self.dual:
            self.dual, self.dual_coef, self.scores = dual, here.dual_coef, scores
        primal = 0.5 * float(np.vdot(self.w, self.w)) + here.value
        if primal < self.primal:
            self.primal, self.bias, self.fitted, self.best = primal, here.bias, self.f, self.w
        return z

    def _preconditioner(self, weights: Floats) -> list[tuple[Floats, bool]]:
        """Factor the Hessian of every output alone, from evenly spaced rows."""
        n_outputs = weights.shape[1]
        factors = []
        for o in range(n_outputs):
            alone = weights[:, o]
            if self.loss.is_coupled:  # exact where all classes are equally likely
                sums = np.maximum(weights.sum(axis=1), 1e-300)
                alone = n_outputs / (n_outputs - 1.0) * alone * (1.0 - alone / sums)
            q = sample_rows(alone, _OPTIONS.sample * self.Z.n_features, _OPTIONS.share)
            H, edge = self.Z.gram(np.ascontiguousarray(q))
            if self.loss.fit_intercept and q.any():
                H -= np.outer(edge, edge / q.sum())
            H[np.diag_indices_from(H)] += 1.0
            factors.append(factor_positive(H))
        return factors

    def _direction(
        self, gradient: Floats, weights: Floats, factors: list[tuple[Floats, bool]], left: float
    ) -> tuple[Floats, Floats]:
        """Return a Newton step and its values; it leaves a squared gradient of about ``left``."""
        curved = _Curved(weights, self.loss)
        x, fx = np.zeros_like(gradient), np.zeros_like(self.f)
        r = -gradient
        z = _solve_each(factors, r)
        p, rho = z, float(np.vdot(r, z))
        for _ in range(_OPTIONS.cg_steps):
            fp = self.Z.times(p)
            Hp = p + self.Z.sums(curved.apply(fp))
            curvature = float(np.vdot(p, Hp))
            if not curvature > 0.0:
                break  # the gradient is zero but for rounding
            alpha = rho / curvature
            x, fx, r = x + alpha * p, fx + alpha * fp, r - alpha * Hp
            if float(np.vdot(r, r)) <= left:
                break
            z = _solve_each(factors, r)
            new = float(np.vdot(r, z))
            p, rho = z + (new / rho) * p, new
        return x, fx


class _Curved:
    """Second derivatives of a loss at the best bias."""

    def __init__(self, weights: Floats, loss: Loss) -> None:
        self.weights, self.coupled, self.intercept = weights, loss.is_coupled, loss.fit_intercept
        if self.coupled:
            self.shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        across = np.diag(weights.sum(axis=0))
        if self.coupled:
            across = across - weights.T @ self.shares
        self.inverse = np.linalg.pinv(across, rcond=1e-12, hermitian=True)

    def _times(self, F: Floats) -> Floats:
        out = self.weights * F
        if self.coupled:
            out -= self.shares * out.sum(axis=1, keepdims=True)
        return out

    def apply(self, F: Floats) -> Floats:
        """Return the change of minus the derivatives with the fitted values."""
        out = self._times(F)
        if self.intercept:
            moved = self.inverse @ out.sum(axis=0)
            out -= self._times(np.broadcast_to(moved, F.shape))
        return out


def _solve_each(factors: list[tuple[Floats, bool]], V: Floats) -> Floats:
    """Solve for every column with its factor."""
    columns = zip(factors, V.T, strict=True)
    return np.column_stack(
        [scipy.linalg.cho_solve(factor, v, check_finite=False) for factor, v in columns]
    )
