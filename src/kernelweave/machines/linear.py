"""Many rows, few features: Newton steps on the augmented Lagrangian.

``min 1/2 |w|^2 + sum_i loss_i(z_i'w + b)`` with multipliers ``a`` and a penalty ``1/s`` becomes

    1/2 |w|^2 + sum_i max over t in [lo, hi] of t (y - f) - e|t| - d t^2/2 - s (t - a)^2/2,

smooth, with the maximisers ``t`` as its dual coefficients: gradient ``w - Z't, -sum t``, Hessian
``I + Z_J' diag(1/(s + d)) Z_J`` over the rows ``J`` inside their box. Only these cost more than a
pass over the features, and they are few near the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.linalg

from kernelweave._types import Floats, Indices

from .base import DualShape, Machine, Solution

_STEPS = 400
_SHARPER = 5.0  # penalty growth once phi is minimised well enough
_SHARPEST = 1e-9  # least s, relative to the first
_CHUNK = 4096  # rows multiplied at a time


@runtime_checkable
class FeatureKernel(Protocol):
    """A kernel given by features ``Z``."""

    n_samples: int

    @property
    def n_features(self) -> int: ...

    def times(self, w: Floats) -> Floats: ...

    def sums(self, V: Floats) -> Floats: ...

    def rows(self, index: Indices) -> Floats: ...


@dataclass(frozen=True)
class _Box:
    """Target, bounds and curvature of one output."""

    y: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    dead_zone: float
    intercept: bool

    def respond(self, r: Floats, anchor: Floats, s: float) -> tuple[Floats, Floats]:
        """Return the maximising coefficients for the residuals, and their derivative."""
        moved = r + s * anchor
        if self.dead_zone > 0.0:
            moved = np.sign(moved) * np.maximum(np.abs(moved) - self.dead_zone, 0.0)
        stiff = s + self.ridge
        slope = np.divide(1.0, stiff, out=np.zeros_like(stiff), where=self.upper > self.lower)
        raw = slope * moved
        t = np.clip(raw, self.lower, self.upper)
        inside = (raw > self.lower) & (raw < self.upper)
        if self.dead_zone > 0.0:
            inside &= moved != 0.0
        return t, np.where(inside, slope, 0.0)

    def dual(self, t: Floats, squared: float) -> float:
        """Return the dual value of coefficients whose function has this squared norm."""
        curved = squared + float((self.ridge * t) @ t)
        return float(self.y @ t - self.dead_zone * np.abs(t).sum()) - 0.5 * curved


def solve_linear(
    machine: Machine,
    K: FeatureKernel,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
) -> Solution:
    """Solve a machine on a kernel of few features; see `Machine.solve`."""
    shape = machine.shape(Y, cost)
    n_outputs = Y.shape[1]
    parts = []
    for o in range(n_outputs):
        begin = None if start is None else start.coef[:, o]
        column = slice(o, o + 1)
        solver = _Newton(machine, shape, K, Y[:, column], cost[:, column], o)
        parts.append(solver.run(tol, floor / n_outputs, begin))
    return Solution(
        coef=np.column_stack([part.coef for part in parts]),
        intercept=np.array([part.bias for part in parts]),
        fitted=np.column_stack([part.fitted for part in parts]),
        primal=sum(part.primal for part in parts),
        dual=sum(part.dual for part in parts),
        work=sum(part.work for part in parts),
    )


class _Newton:
    """One output being solved."""

    def __init__(
        self, machine: Machine, shape: DualShape, K: Any, Y: Floats, cost: Floats, o: int
    ) -> None:
        _, lower, upper, ridge = shape.columns(shape.lower, o)
        y = np.ascontiguousarray(Y[:, 0])
        self.box = _Box(y, lower, upper, ridge, shape.dead_zone, machine.fit_intercept)
        self.machine, self.K, self.Y, self.cost = machine, K, Y, cost
        self.primal, self.dual, self.bias = np.inf, -np.inf, 0.0
        self.coef = np.zeros(len(y))
        self.fitted = np.zeros(len(y))
        self.work = 0

    def run(self, tol: float, floor: float, begin: Floats | None) -> _Newton:
        box, K = self.box, self.K
        present = box.upper > box.lower
        anchor = np.zeros(len(box.y)) if begin is None else begin.copy()
        w = np.zeros(K.n_features) if begin is None else K.sums(anchor[:, None])[:, 0]
        f = np.zeros(len(box.y)) if begin is None else K.times(w)
        b = self._value(w, f)[1]
        widest = float(np.max((box.upper - box.lower)[present], initial=0.0))
        # Twice the box in units of the residual; a warm start needs less smoothing. Where every row
        # has a curvature of its own, none is needed at all.
        s = 0.0
        if not (box.ridge[present] > 0).all():
            s = (2.0 if begin is None else 0.2) / max(widest, 1e-300)
        sharpest = _SHARPEST * s
        for _ in range(_STEPS):
            t, q = box.respond(box.y - f - b, anchor, s)
            z = self._offer(t, w, f)
            gap = self.primal - self.dual
            if gap <= max(tol * abs(self.primal), floor) or not np.isfinite(gap):
                break
            gradient, pull = w - z, -float(t.sum()) if box.intercept else 0.0
            small = 0.5 * float(gradient @ gradient) <= 0.05 * gap and abs(pull) <= 0.05 * gap
            if small and s > sharpest:
                anchor, s = t, s / _SHARPER
                continue
            if small or not q.any():
                if s <= sharpest:
                    break
                s = s / _SHARPER if small else s * _SHARPER
                continue
            dw, db = self._direction(gradient, pull, q)
            df = K.times(dw)
            length = self._search(w, f + b, dw, df + db, anchor, s)
            if length <= 0.0:
                if s <= sharpest:
                    break
                anchor, s = t, s / _SHARPER
                continue
            w, b = w + length * dw, b + length * db
            f = K.times(w)
            self.work += 1
        return self

    def _value(self, w: Floats, f: Floats) -> tuple[float, float]:
        """Return the objective at the best bias, and that bias."""
        loss, bias = self.machine.loss(f[:, None], self.Y, self.cost)
        return 0.5 * float(w @ w) + loss, float(bias[0])

    def _offer(self, t: Floats, w: Floats, f: Floats) -> Floats:
        """Keep the bounds that follow from a point, and return ``Z't``."""
        box = self.box
        up, down = np.maximum(t, 0.0), np.minimum(t, 0.0)
        sums = self.K.sums(np.column_stack([up, down]))
        most = (1.0, 1.0)
        if box.intercept:  # the heavier side is scaled down, so that the coefficients sum to zero
            above, below = float(up.sum()), -float(down.sum())
            least = min(above, below)
            most = (least / above if above > 0 else 0.0, least / below if below > 0 else 0.0)
        balanced = most[0] * up + most[1] * down
        z = sums @ np.array(most)
        dual = box.dual(balanced, float(z @ z))
        if dual > self.dual:
            self.dual, self.coef = dual, balanced
        primal, bias = self._value(w, f)
        if primal < self.primal:
            self.primal, self.bias, self.fitted = primal, bias, f
        return np.asarray(sums.sum(axis=1))

    def _direction(self, gradient: Floats, pull: float, q: Floats) -> tuple[Floats, float]:
        """Solve the Newton system, bordered by the bias."""
        J = np.flatnonzero(q)
        R = self.K.n_features
        if len(J) >= R:
            H, edge = np.eye(R), np.zeros(R)
            for k in range(0, len(J), _CHUNK):
                rows = J[k : k + _CHUNK]
                root = np.sqrt(q[rows])
                Z = self.K.rows(rows) * root[:, None]
                H += Z.T @ Z  # a symmetric product: half the work
                edge += root @ Z
            factor = scipy.linalg.cho_factor(H, lower=True, check_finite=False)
            solved = scipy.linalg.cho_solve(factor, np.column_stack([gradient, edge]))
        else:
            Z = self.K.rows(J)
            edge = q[J] @ Z
            sides = np.column_stack([gradient, edge])
            small = Z @ Z.T
            small[np.diag_indices_from(small)] += 1.0 / q[J]
            factor = scipy.linalg.cho_factor(small, lower=True, check_finite=False)
            solved = sides - Z.T @ scipy.linalg.cho_solve(factor, Z @ sides)
        if not self.box.intercept:
            return -solved[:, 0], 0.0
        corner = float(q[J].sum()) - float(edge @ solved[:, 1])
        if corner <= 1e-12 * float(q[J].sum()):
            return -solved[:, 0], 0.0
        db = -(pull - float(edge @ solved[:, 0])) / corner
        return -solved[:, 0] - db * solved[:, 1], db

    def _search(
        self, w: Floats, f: Floats, dw: Floats, df: Floats, anchor: Floats, s: float
    ) -> float:
        """Return a step at which the derivative of phi along the direction is nearly zero."""
        box = self.box
        along, squared = float(w @ dw), float(dw @ dw)

        def slope(step: float) -> float:
            t, _ = box.respond(box.y - f - step * df, anchor, s)
            return along + step * squared - float(t @ df)

        first = slope(0.0)
        if first >= 0.0:
            return 0.0
        low, high, step = 0.0, np.inf, 1.0
        for _ in range(60):
            here = slope(step)
            if abs(here) <= 0.3 * abs(first):
                return step
            low, high = (step, high) if here < 0.0 else (low, step)
            step = 2.0 * step if high == np.inf else 0.5 * (low + high)
        return step
