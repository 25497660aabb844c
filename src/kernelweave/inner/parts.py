"""Support vector problems with large n: sequential minimal optimisation on parts of the rows.

Only the rows that violate the optimality conditions, those inside their boxes and those near the
margin can change soon. A part of these is solved with the other rows held, on a block of the kernel
that fits in memory; then the fitted values of all rows follow in one pass over the rows that
changed. No row of the whole matrix is kept.

References
----------
T. Joachims (1999), Making large-scale SVM learning practical, in Advances in Kernel Methods:
decomposition and shrinking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Bools, Floats, Indices, Stored
from kernelweave.banks import KernelOperator
from kernelweave.losses.base import DualBox, Loss, balance, column

from .smo import BoxProblem, run_solvers
from .solution import Solution, unsolved


@dataclass(frozen=True)
class PartOptions:
    """Tunable numbers of `solve_by_parts`, chosen by hand on 25 000 rows."""

    first: int = 4  # a cold start begins with every fourth row
    least: int = 2000  # rows of a part
    most: int = 5500  # the same
    inside: float = 1.25  # or rows of a part, relative to those inside their boxes, if more
    spare: float = 1.5  # rows of a part, relative to those that violate or are inside their boxes
    rough: float = 0.05  # gap of a part after it was solved, relative to that before
    fine: float = 0.3  # the same, relative to the tolerance
    kept: float = 0.7  # share of the rows of a block that must be needed for it to grow
    growth: float = 1.1  # room of a block, relative to its first rows
    tiny: float = 0.1  # share of the tolerance that rows outside a part may leave to the gap
    max_rounds: int = 200
    visible: float = 1e-3  # gain of a round in the dual value, relative to the gap
    max_fruitless: int = 3  # rounds in a row without such a gain, each with more rows


_OPTIONS = PartOptions()


def solve_by_parts(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
    enough: float = np.inf,
) -> Solution:
    """Solve for one kernel of which only parts are held; see `solve_inner`."""
    assert K.workspace is not None
    with K.workspace.borrow() as memory:
        whole = _Whole(loss, K, Y, cost, memory)
        beta = np.zeros_like(Y) if start is None else start.dual_coef.copy()
        fitted = np.zeros_like(Y) if start is None else start.fitted.copy()
        return whole.run(beta, fitted, tol, floor, enough, cold=start is None)


@dataclass(frozen=True)
class _Point:
    """Bounds at some coefficients.

    Parameters
    ----------
    bias : ndarray of shape (n_outputs,)
        The best bias.
    primal, dual : float
        Bounds of the optimal value.
    shares : ndarray of shape (n_samples,)
        What each row contributes to the gap; never negative but for rounding.
    up, down : ndarray of shape (n_samples,)
        Derivatives of the dual value when a coefficient of the row is raised, and when it is
        lowered; minus infinity where it cannot be. Positive ones violate optimality.
    """

    bias: Floats
    primal: float
    dual: float
    shares: Floats
    up: Floats
    down: Floats

    @property
    def gap(self) -> float:
        return self.primal - self.dual


class _Whole:
    """The problem over all rows."""

    def __init__(
        self, loss: Loss, K: KernelOperator, Y: Floats, cost: Floats, memory: Stored
    ) -> None:
        self.loss, self.K, self.Y, self.cost = loss, K, Y, cost
        self.box: DualBox = loss.box(Y, cost)
        self.present: Bools = np.asarray((self.box.upper > self.box.lower).any(axis=1))
        self.block = _Block(K, memory)
        self.most = min(self.block.room, len(Y))  # rows of a part

    def run(
        self,
        beta: Floats,
        fitted: Floats,
        tol: float,
        floor: float,
        enough: float,
        *,
        cold: bool,
    ) -> Solution:
        """Solve part after part, in place."""
        options = _OPTIONS
        work, fruitless, spare = 0, 0, options.spare
        point = self.evaluate(beta, fitted)
        for round_ in range(options.max_rounds):
            allowed = max(tol * abs(point.primal), floor)
            if point.gap <= allowed or point.dual >= enough:
                break
            if cold and round_ == 0:
                rows = self.first_rows()
            else:
                rows = self.choose(point, beta, allowed, spare)
            rows = self.block.hold(rows)
            aim = max(options.fine * allowed, options.rough * float(point.shares[rows].sum()))
            work += self.solve(rows, beta, fitted, aim)
            before, point = point, self.evaluate(beta, fitted)
            # The dual value rises in every round; the gap may grow while rows outside violate.
            gain = point.dual - before.dual > options.visible * before.gap
            if gain or point.gap < 0.5 * before.gap:
                fruitless = 0
                continue
            fruitless, spare = fruitless + 1, 2.0 * spare
            if fruitless >= options.max_fruitless:
                break
        return Solution(
            dual_coef=beta,
            intercept=point.bias,
            fitted=fitted,
            primal=point.primal,
            dual=point.dual,
            work=work,
        )

    def evaluate(self, beta: Floats, fitted: Floats) -> _Point:
        """Return bounds, and what each row contributes to the gap.

        With residuals r at the best bias, the gap is the sum over the rows of
        ``loss(r) - beta r + e |beta| + d beta^2 / 2``.
        """
        box, Y = self.box, self.Y
        _, bias = self.loss.value(fitted, Y, self.cost)
        residual = Y - fitted - bias
        losses = box.losses(residual)
        conjugate = box.dead_zone * np.abs(beta) + 0.5 * box.ridge * beta**2
        shares = losses - beta * residual + conjugate
        quadratic = max(float(np.vdot(beta, fitted)), 0.0)
        slope = residual - box.ridge * beta
        up = slope - np.where(beta >= 0, box.dead_zone, -box.dead_zone)
        down = -slope + np.where(beta > 0, box.dead_zone, -box.dead_zone)
        up = np.where(beta < box.upper, up, -np.inf)
        down = np.where(beta > box.lower, down, -np.inf)
        return _Point(
            bias=bias,
            primal=0.5 * quadratic + float(losses.sum()),
            dual=float(np.vdot(Y, beta) - conjugate.sum()) - 0.5 * quadratic,
            shares=shares.sum(axis=1),
            up=up.max(axis=1),
            down=down.max(axis=1),
        )

    def first_rows(self) -> Indices:
        """Return rows spread evenly over those of similar targets, for a cold start."""
        there = np.flatnonzero(self.present)
        n_rows = max(_OPTIONS.least, len(there) // _OPTIONS.first)
        n_rows = min(n_rows, _OPTIONS.most, self.most, len(there))
        order = there[np.lexsort(self.Y[there].T)]
        places = np.unique(np.linspace(0, len(order) - 1, n_rows).astype(np.intp))
        return np.sort(order[places])

    def choose(self, point: _Point, beta: Floats, allowed: float, spare: float) -> Indices:
        """Return the rows of the next part: the most violating ones, then those near the margin.

        Where too many violate, rows inside their boxes and a fair share of the others are taken:
        the most violating ones alone would move the function too far, and back in the next round.
        """
        violating = point.shares > _OPTIONS.tiny * allowed / len(beta)
        inside = ((beta > self.box.lower) & (beta < self.box.upper) & (beta != 0.0)).any(axis=1)
        active = (violating | inside) & self.present
        n_active, n_inside = (int(np.count_nonzero(rows)) for rows in (active, inside))
        most = min(self.most, max(_OPTIONS.most, int(_OPTIONS.inside * n_inside)))
        urgency = np.where(self.present, -np.maximum(point.up, point.down), np.inf)
        # Coefficients are raised and lowered in pairs, so that rows for both are needed.
        few = max(1, most // (8 if n_active > most else 50))
        room = min(most, self.most - 2 * few) if most > 2 * few else most
        if n_active > room:
            order = np.flatnonzero(active)[np.argsort(urgency[active], kind="stable")]
            chosen = order[np.linspace(0, n_active - 1, room).astype(np.intp)]
        else:
            n_rows = min(max(int(spare * n_active), _OPTIONS.least), room, int(self.present.sum()))
            chosen = np.argpartition(urgency, n_rows - 1)[:n_rows]
        pairs = [np.argpartition(-side, few - 1)[:few] for side in (point.up, point.down)]
        return np.unique(np.concatenate([chosen, *pairs]))[: self.most]

    def solve(self, rows: Indices, beta: Floats, fitted: Floats, floor: float) -> int:
        """Solve for some rows, in place, with the others held; return the number of updates."""
        part = _Part(self, rows, beta)
        solvers = part.make_solvers(unsolved(beta[rows], fitted[rows]))
        for solver, held in zip(solvers, part.held, strict=True):
            solver.hold(held)
        run_solvers(part, solvers, tol=0.0, floor=floor)
        change = np.zeros_like(beta)
        change[rows] = np.column_stack([s.beta for s in solvers]) - beta[rows]
        beta[rows] = np.column_stack([s.beta for s in solvers])
        fitted[rows] = np.column_stack([s.fitted for s in solvers])
        outside = np.full(len(beta), True)
        outside[rows] = False
        rest = np.flatnonzero(outside)
        fitted[rest] += self.K.product_at(rest, change)
        return sum(s.updates for s in solvers)


class _Part(BoxProblem):
    """Some rows of the problem, with the others held."""

    def __init__(self, whole: _Whole, rows: Indices, beta: Floats) -> None:
        super().__init__(whole.loss, whole.block, whole.Y[rows], whole.cost[rows])
        self.held = beta.sum(axis=0) - beta[rows].sum(axis=0)

    def solve_interior(self, solver: object, o: int) -> bool:
        return False  # it would need the held rows

    def _feasible(self, target: Floats, o: int) -> Floats:
        lower, upper = self.box.lower[:, o], self.box.upper[:, o]
        target = target.copy()
        target[:, o] = np.clip(target[:, o], lower, upper)
        if self.loss.fit_intercept:
            beta = column(target, o)
            balance(beta, lower, upper, -float(self.held[o]))
            target[:, o] = beta
        return target

    def _gain(self, beta: Floats, fitted: Floats, target: Floats, moved: Floats, o: int) -> float:
        # Fitted values depend on held rows too: along the step t the dual value changes by
        # linear - t'(f + f')/2, f and f' the fitted values at its ends.
        step = target - beta
        linear = self.Y[:, o] @ step - self.box.dead_zone * (
            np.abs(target).sum() - np.abs(beta).sum()
        )
        ridge = self.box.ridge[:, o] @ (target**2 - beta**2)
        return float(linear - 0.5 * (step @ (fitted + moved)) - 0.5 * ridge)


class _Block(KernelOperator):
    """The block of some rows of a kernel, which grows with the parts of one solve.

    Parameters
    ----------
    kernel : KernelOperator
        The kernel.
    memory : ndarray
        Memory for all entries.
    """

    def __init__(self, kernel: KernelOperator, memory: Stored) -> None:
        self.kernel, self.dtype = kernel, kernel.dtype
        self.memory, self.room = memory, int(np.sqrt(len(memory)))
        self._stride = 0  # entries from one row to the next
        self._diag = kernel.diag()
        self.index: Indices = np.arange(0)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return len(self.index)

    def hold(self, rows: Indices) -> Indices:
        """Compute the block of some rows, and of those held already if most of these are needed.

        Returns the rows of the block.
        """
        fresh = np.setdiff1d(rows, self.index, assume_unique=True)
        needed = len(rows) - len(fresh)
        n_rows = len(self.index) + len(fresh)
        if needed >= _OPTIONS.kept * len(self.index) and n_rows <= self._stride:
            known, self.index = len(self.index), np.concatenate([self.index, fresh])
        else:
            # The first use of memory costs more than the values, so that little is left free.
            self._stride = min(self.room, int(_OPTIONS.growth * len(rows)))
            known, self.index = 0, rows
        if known < len(self.index):
            self.kernel.fill_square(self.index, known, self._held)
        return self.index

    @property
    def _held(self) -> Stored:
        n, stride = len(self.index), self._stride
        return self.memory[: n * stride].reshape(n, stride)[:, :n]

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return [(np.arange(len(self.index)), self._held)]

    def fetch(self, index: Indices) -> None:
        pass  # all rows are there

    def dense(self) -> Stored:
        return self._held

    def rows(self, index: Indices) -> Stored:
        return np.asarray(self._held[index])

    def block(self, rows: Indices, columns: Indices) -> Floats:
        places = self.index[rows]
        return self.kernel.block(places, places if rows is columns else self.index[columns])

    def diag(self) -> Floats:
        return self._diag[self.index]

    def scaled(self, factor: float) -> KernelOperator:
        raise NotImplementedError

    def __matmul__(self, V: Floats) -> Floats:
        spread = np.zeros((self.kernel.n_samples, V.shape[1]))
        spread[self.index] = V
        return self.kernel.product_at(self.index, spread)
