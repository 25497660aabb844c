"""Inner problems on Nystroem features: Newton steps on the augmented Lagrangian.

``min 1/2 |w|^2 + sum_i loss_i(z_i'w + b)`` with multipliers ``a`` and a penalty ``1/s`` becomes

    1/2 |w|^2 + sum_i max over t in [lo, hi] of t (y - f) - e|t| - d t^2/2 - s (t - a)^2/2,

smooth, with the maximisers ``t`` as its dual coefficients: gradient ``w - Z't, -sum t``, Hessian
``I + Z_J' diag(1/(s + d)) Z_J`` over the rows ``J`` inside their box. Only these cost more than a
pass over the features, and they are few near the solution.

References
----------
R. T. Rockafellar (1976), Augmented Lagrangians and applications of the proximal point algorithm in
convex programming, Mathematics of Operations Research 1.
X. Li, D. Sun, K.-C. Toh (2018), A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems, SIAM J. Optim. 28.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._linalg import solve_positive
from kernelweave._types import Floats
from kernelweave.banks import Features
from kernelweave.losses.base import DualBox, InnerSolver, Loss

from .solution import Solution


@dataclass(frozen=True)
class NewtonOptions:
    """Tunable numbers of the augmented Lagrangian, chosen by hand."""

    max_steps: int = 400
    sharper: float = 5.0  # growth of the penalty 1/s once phi is minimised well enough
    sharpest: float = 1e-9  # least s, relative to the first
    blunter: float = 25.0  # penalty of a warm start, below that at which the last solve ended
    refresh: int = 15  # steps between two computations of all values, against drift
    shrinkage: float = 1e3  # of values since they were computed, above which they are so again
    smoother: float = 3.0  # first s from another loss, relative to the least curvature
    epochs: int = 10  # of coordinate descent to begin with, which is quick at first


_OPTIONS = NewtonOptions()


def solve_on_features(
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
    tol = tol if loss.inner_solver is InnerSolver.SMO else max(tol, 1e-12)
    parts = []
    for o in range(n_outputs):
        own = (np.ascontiguousarray(Y[:, [o]]), cost[:, [o]])
        solver = _Newton(loss.of_output(o), Z, *own, np.ones((1, 1)))
        begin = None if start is None else _begin(Z, start, o)
        parts.append(solver.run(tol, floor / n_outputs, begin))
    return Solution(
        dual_coef=np.hstack([part.dual_coef for part in parts]),
        intercept=np.concatenate([part.bias for part in parts]),
        fitted=np.hstack([part.fitted for part in parts]),
        primal=sum(part.primal for part in parts),
        dual=sum(part.dual for part in parts),
        work=sum(part.work for part in parts),
        function=Z.to_bank(np.hstack([part.w for part in parts])),
        sharpness=max(part.sharpness for part in parts),
        scores=np.hstack([part.scores for part in parts]),
    )


@dataclass(frozen=True)
class _Begin:
    """Where a solve begins: coefficients, and the function of a neighbouring one if known."""

    dual_coef: Floats
    w: Floats | None = None
    fitted: Floats | None = None
    sharpness: float = 0.0


def _begin(Z: Features, start: Solution, o: int) -> _Begin:
    dual_coef = start.dual_coef[:, [o]]
    if start.function is None:
        return _Begin(dual_coef, sharpness=start.sharpness)
    # With other weights of the kernels the same function is nearer to the solution than that of the
    # same coefficients: most rows stay on their side of the margin.
    function = start.function[:, [o]]
    w, is_whole = Z.from_bank(function)
    return _Begin(dual_coef, w, start.fitted[:, [o]] if is_whole else None, start.sharpness)


def solve_related(
    loss: Loss,
    Z: Features,
    Y: Floats,
    cost: Floats,
    relation: Floats,
    *,
    tol: float,
    start: Floats | None = None,
) -> Solution:
    """Solve on the kernel ``B(t, t') k(x, x')`` of few features, all outputs at once.

    With ``B = L L'`` the functions are ``Z W L'`` and the penalty is ``1/2 |W|^2``.
    """
    values, vectors = scipy.linalg.eigh(relation)
    keep = values > 1e-14 * values[-1]
    root = np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
    begin = None if start is None else _Begin(start)
    part = _Newton(loss, Z, Y, cost, root).run(tol, 0.0, begin)
    return Solution(part.dual_coef, part.bias, part.fitted, part.primal, part.dual, part.work)


class _Newton:
    """Outputs being solved, whose functions are ``Z W root'``."""

    def __init__(self, loss: Loss, Z: Features, Y: Floats, cost: Floats, root: Floats) -> None:
        self.loss, self.Z, self.Y, self.cost, self.root = loss, Z, Y, cost, root
        self.box: DualBox = loss.box(Y, cost)
        self.primal, self.dual = np.inf, -np.inf
        self.bias = np.zeros(Y.shape[1])
        self.dual_coef = np.zeros_like(Y)
        self.fitted = np.zeros_like(Y)
        self.w = np.zeros((Z.n_features, root.shape[1]))
        self.work = 0
        self.sharpness = 0.0
        self.scores = np.zeros((0, Y.shape[1]))  # of the best coefficients

    def _times(self, w: Floats) -> Floats:
        """Return the values of functions."""
        return np.asarray(self.Z.times(w) @ self.root.T)

    def run(self, tol: float, floor: float, begin: _Begin | None) -> _Newton:
        box, Z, Y = self.box, self.Z, self.Y
        present = box.upper > box.lower
        widest = float(np.max((box.upper - box.lower)[present], initial=0.0))
        flattest = float(np.min(box.ridge[present], initial=np.inf))
        smooth = flattest > 0.0
        cold = begin is None
        if begin is None and np.isfinite(widest):
            begin = self._descend()
        anchor = np.zeros_like(Y) if begin is None else begin.dual_coef.copy()
        w = np.zeros((Z.n_features, self.root.shape[1]))
        f = np.zeros_like(Y)
        if begin is not None and begin.w is not None:
            w = begin.w
            f = self._times(w) if begin.fitted is None else begin.fitted
        elif begin is not None:
            w = Z.sums(anchor) @ self.root
            f = self._times(w)
            self._offer(anchor, w, f)
        b, peak = self._value(w, f)[1], 0.0
        # Twice the box in units of the residual; a warm start needs less smoothing. Where every row
        # has a curvature of its own, none is needed in the end.
        blunt = 0.2 / max(widest, 1e-300)
        s = 10.0 * blunt if begin is None else 0.0 if smooth else blunt
        if smooth and not cold and begin is not None and begin.w is None:
            s = min(_OPTIONS.smoother * flattest, blunt)
        sharpest = 0.0 if smooth else _OPTIONS.sharpest * blunt
        if begin is not None and begin.sharpness > 0.0 and s > 0.0:
            s = min(s, _OPTIONS.blunter / begin.sharpness)
        for _ in range(_OPTIONS.max_steps):
            t, q = box.respond(Y - f - b, anchor, s)
            z = self._offer(t, w, f)
            gap = self.primal - self.dual
            if gap <= max(tol * abs(self.primal), floor) or not np.isfinite(gap):
                break
            gradient, pull = w - z, -t.sum(axis=0) if self.loss.fit_intercept else np.zeros(len(b))
            steep = 0.5 * float(np.vdot(gradient, gradient))
            small = steep <= 0.05 * gap and float(np.abs(pull).sum()) <= 0.05 * gap
            if small and s > sharpest:
                anchor, s = t, s / _OPTIONS.sharper
                if smooth and s < 0.05 * flattest:
                    s = 0.0
                continue
            if small or not q.any():
                if s == 0.0 < blunt and not small:  # every row is at an end of its box
                    s = blunt
                    continue
                if s <= sharpest:
                    break
                s = s / _OPTIONS.sharper if small else s * _OPTIONS.sharper
                continue
            stuck = (pull != 0.0) & ~q.any(axis=0)
            if stuck.any():  # no row of these outputs says how far their bias should go
                b = np.where(stuck, self._middle(f, anchor, s), b)
                continue
            dw, db = self._direction(gradient, pull, q)
            df = self._times(dw)
            length = self._search(w, f + b, dw, df + db, anchor, s)
            if length <= 0.0:
                if s <= sharpest:
                    break
                anchor, s = t, s / _OPTIONS.sharper
                continue
            w, b = w + length * dw, b + length * db
            self.work += 1
            # Values of the direction serve; sometimes all are summed again, against rounding, and
            # where they have become so small that the rounding of the larger ones counts.
            f, peak = f + length * df, max(peak, float(np.abs(f).max(initial=0.0)))
            shrunk = float(np.abs(f).max(initial=0.0)) < peak / _OPTIONS.shrinkage
            if shrunk or self.work % _OPTIONS.refresh == 0:
                f, peak = self._times(w), 0.0
        self.sharpness = 1.0 / s if s > 0.0 else 0.0
        return self

    def _descend(self) -> _Begin | None:
        """Return rough coefficients from a few passes of coordinate descent, if the kernel can."""
        box = self.box
        if self.Y.shape[1] > 1:
            return None
        t = self.Z.descend(
            *box.columns(self.Y, 0),
            dead_zone=box.dead_zone,
            intercept=self.loss.fit_intercept,
            epochs=_OPTIONS.epochs,
        )
        return None if t is None else _Begin(t[:, None])

    def _middle(self, f: Floats, anchor: Floats, s: float) -> Floats:
        """Return the biases at which the coefficients of every output sum to nearly zero."""
        box = self.box
        residual = self.Y - f
        reach = np.abs(residual + s * anchor) + box.dead_zone
        reach = reach + (s + box.ridge) * np.maximum(box.upper, -box.lower)
        high = reach.max(axis=0, where=box.upper > box.lower, initial=0.0)
        low = -high
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = box.respond(residual - middle, anchor, s)[0].sum(axis=0) > 0.0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.asarray(0.5 * (low + high))

    def _value(self, w: Floats, f: Floats) -> tuple[float, Floats]:
        """Return the objective at the best bias, and that bias."""
        loss_value, bias = self.loss.value(f, self.Y, self.cost)
        return 0.5 * float(np.vdot(w, w)) + loss_value, bias

    def _offer(self, t: Floats, w: Floats, f: Floats) -> Floats:
        """Keep the bounds that follow from a point, and return ``Z't root``."""
        n_outputs = t.shape[1]
        up, down = np.maximum(t, 0.0), np.minimum(t, 0.0)
        scores = self.Z.scores(np.column_stack([up, down]))
        sums = self.Z.pick(scores)
        raised, lowered = sums[:, :n_outputs], sums[:, n_outputs:]
        rise, fall = np.ones(n_outputs), np.ones(n_outputs)
        if (
            self.loss.fit_intercept
        ):  # the heavier side is scaled down, so that the coefficients sum to zero
            above, below = up.sum(axis=0), -down.sum(axis=0)
            least = np.minimum(above, below)
            rise = np.divide(least, above, out=np.zeros(n_outputs), where=above > 0)
            fall = np.divide(least, below, out=np.zeros(n_outputs), where=below > 0)
        balanced = rise * up + fall * down
        z = (rise * raised + fall * lowered) @ self.root
        dual = self.box.dual_value(balanced, self.Y, float(np.vdot(z, z)))
        if dual > self.dual:
            self.dual, self.dual_coef = dual, balanced
            self.scores = rise * scores[:, :n_outputs] + fall * scores[:, n_outputs:]
        primal, bias = self._value(w, f)
        if primal < self.primal:
            self.primal, self.bias, self.fitted, self.w = primal, bias, f, w
        return np.asarray((raised + lowered) @ self.root)

    def _direction(self, gradient: Floats, pull: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Solve the Newton system, bordered by the biases."""
        root, shape = self.root, gradient.shape
        task, J = map(np.ascontiguousarray, np.nonzero(q.T))  # by output
        weight = q[J, task]
        n_outputs, rank, R = len(pull), shape[1], shape[0]
        sides = gradient.T.reshape(-1, 1)  # one function of the root after the other
        if len(J) >= R and root.shape == (1, 1):
            H, e = self.Z.gram(np.ascontiguousarray(q[:, 0]))
            H *= root[0, 0] ** 2
            H[np.diag_indices_from(H)] += 1.0
            edge = root[0, 0] * e[:, None]
            solved = solve_positive(H, np.hstack([sides, edge]))
        elif len(J) >= R * rank:
            H, edge = np.eye(R * rank), np.zeros((R * rank, n_outputs))
            blocks = H.reshape(rank, R, rank, R)
            for t in range(n_outputs):
                G, e = self.Z.gram(np.ascontiguousarray(q[:, t]))
                edge[:, t] = np.outer(root[t], e).ravel()
                for k in range(rank):
                    for m in range(rank):
                        blocks[k, :, m, :] += root[t, k] * root[t, m] * G
            solved = solve_positive(H, np.hstack([sides, edge]))
        else:
            rows = (root[task][:, :, None] * self.Z.rows(J)[:, None, :]).reshape(len(J), -1)
            edge = rows.T @ (weight[:, None] * (task[:, None] == np.arange(n_outputs)))
            sides = np.hstack([sides, edge])
            small = rows @ rows.T
            small[np.diag_indices_from(small)] += 1.0 / weight
            solved = sides - rows.T @ solve_positive(small, rows @ sides)
        db = np.zeros(n_outputs)
        if self.loss.fit_intercept:
            total = np.bincount(task, weight, n_outputs)
            corner = np.diag(total) - edge.T @ solved[:, 1:]
            free = np.flatnonzero(corner.diagonal() > 1e-12 * total)
            if len(free):
                target = (pull - edge.T @ solved[:, 0])[free]
                db[free] = -np.linalg.lstsq(corner[np.ix_(free, free)], target)[0]
        dw = -solved[:, 0] - solved[:, 1:] @ db
        return np.ascontiguousarray(dw.reshape(rank, R).T), db

    def _search(
        self, w: Floats, f: Floats, dw: Floats, df: Floats, anchor: Floats, s: float
    ) -> float:
        """Return a step at which the derivative of phi along the direction is nearly zero."""
        along, squared = float(np.vdot(w, dw)), float(np.vdot(dw, dw))

        def slope(step: float) -> float:
            t, _ = self.box.respond(self.Y - f - step * df, anchor, s)
            return along + step * squared - float(np.vdot(t, df))

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
