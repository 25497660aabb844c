"""Rules under the norm of exponent one: a weighted l1 norm over all conjunctions.

As rho tends to one, the norm of hierarchical kernel learning on the lattice of conjunctions becomes

    Omega(f) = sum_w |f_w| sum over subsets v of w of base^|v| = sum_w (1 + base)^|w| |f_w|,

so that most conjunctions have the weight zero. ``1/2 Omega(f)^2 + loss`` is minimised by column
generation: proximal Newton steps on the active conjunctions, coordinate descent in each, and a
search of the whole lattice for conjunctions whose price exceeds what the certificate allows.
Conjunctions that hold on the same rows, or on the rows where another does not, are one column.
Columns of numbers beside the conjunctions cost as much as a proposition, are always active, and so
are priced exactly.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, equation (4).
J. Lee, Y. Sun, M. Saunders, "Proximal Newton-type methods for minimizing composite functions",
SIAM J. Optim. 24, 2014.
A. Demiriz, K. Bennett, J. Shawe-Taylor, "Linear programming boosting via column generation",
Machine Learning 46, 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks.rules import Bits, Conjunction, NodeFeatures, RuleBank
from kernelweave.losses import Loss
from kernelweave.losses.base import Tangent

from .bounds import Bounds, Result
from .dag_problem import lower_bound
from .problem import Limits

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class SparseOptions:
    """Constants of `sparse_lattice`; chosen by hand on tables of rules with 100 to 1000 rows."""

    growth: float = 0.5  # columns added per round, relative to the active ones
    min_growth: int = 20  # columns added per round, at least
    surplus: int = 4  # conjunctions asked for per column, since many are the same column
    inner_gap: float = 0.3  # gap on the active columns, relative to the tolerance
    search_gap: float = 0.2  # the same while columns are still found, relative to the gap so far
    max_steps: int = 30  # Newton steps in a row
    halvings: int = 30  # of a step that raises the objective
    quadratic_gap: float = 1e-3  # decrease at which coordinate descent stops, relative to the gap
    max_sweeps: int = 2000  # of coordinate descent
    max_visited: int = 50_000_000  # conjunctions visited in a search
    quick_effort: float = 1 / 16  # of a search that only has to find columns, not to prove
    margin: float = 0.99  # share of the tolerance aimed at, so that rounding cannot exceed it
    unused_rounds: int = 3  # rounds after which a column of weight zero is dropped


OPTIONS = SparseOptions()


@dataclass(frozen=True)
class SparseProblem:
    """``min 1/2 (sum_w (1 + base)^|w| |f_w|)^2 + sum_i cost_i loss(y_i, f(x_i))``.

    Parameters
    ----------
    bank : RuleBank
        Which row satisfies which proposition, and columns of numbers.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        A smooth loss, with a `tangent`.
    base : float
        As in `ConjunctionLattice`.
    max_length : int
        Longest conjunction.
    signs : ndarray of int8 of shape (n_propositions + n_linear,) or None
        1 and -1 for propositions whose conjunctions may only have weights of this sign; those of
        both signs are excluded. The same for columns of numbers. One output only.
    """

    bank: RuleBank
    Y: Floats
    cost: Floats
    loss: Loss
    base: float
    max_length: int
    signs: Signs | None = None

    def sign_of(self, node: Conjunction) -> int:
        """Return the sign that the weight of a conjunction must have; zero for any."""
        return 0 if self.signs is None else int(np.sign(self.signs[list(node)].sum()))


@dataclass(frozen=True)
class SparseResult(Result):
    """A result whose weights belong to conjunctions.

    Parameters
    ----------
    nodes : tuple of Conjunction
        Conjunctions with a weight.
    values : ndarray of shape (n_nodes, n_outputs)
        Their weights.
    """

    nodes: tuple[Conjunction, ...] = field(kw_only=True)
    values: Floats = field(kw_only=True)


@dataclass(frozen=True)
class SparseStart:
    """Where to begin: conjunctions and their weights."""

    nodes: tuple[Conjunction, ...]
    values: Floats


@dataclass(frozen=True)
class _Columns:
    """Active conjunctions, distinct over the rows that have a cost."""

    nodes: list[Conjunction]
    bits: Bits
    costs: Floats  # of the norm
    signs: Signs
    ages: NDArray[np.intp]  # rounds without a weight

    def kept(self, which: NDArray[np.bool_]) -> _Columns:
        nodes = [node for node, keep in zip(self.nodes, which, strict=True) if keep]
        return _Columns(
            nodes, self.bits[which], self.costs[which], self.signs[which], self.ages[which]
        )


class ColumnKeys:
    """Keys of conjunctions that are equal for columns that are the same up to the intercept."""

    def __init__(self, bank: RuleBank, rows: NDArray[np.bool_], *, mirrored: bool) -> None:
        self._bank = bank
        self._rows = _core.pack_bits(np.ascontiguousarray(rows[:, None]))[0]
        self._mirrored = mirrored
        used = np.flatnonzero(self._rows)
        word = int(used[0]) if len(used) else 0
        self._first = word, self._rows[word] & (~self._rows[word] + np.uint64(1))

    def columns(self, nodes: Sequence[Conjunction]) -> Bits:
        """Return the rows of conjunctions as bits."""
        return self._bank.columns_of(nodes)

    def keys(self, bits: Bits, nodes: Sequence[Conjunction] = ()) -> list[bytes]:
        """Return the key of every column: its rows, or the others where the first is one.

        A column of numbers, which the nodes tell, has a key of its own.
        """
        bits = bits & self._rows
        if self._mirrored:
            word, bit = self._first
            flipped = (bits[:, word] & bit) != 0
            bits[flipped] ^= self._rows
        found = [row.tobytes() for row in bits]
        for k, node in enumerate(nodes):
            if self._bank.is_linear(node):
                found[k] = f"column {node[0]}".encode()
        return found


class _Generation:
    """State of column generation: active columns, their weights and the loss at them."""

    def __init__(self, problem: SparseProblem, bounds: Bounds) -> None:
        self.problem, self.bounds = problem, bounds
        rows = np.asarray((problem.cost > 0).any(axis=1))
        # Where no intercept is fitted, a column and its mirror image are not the same.
        self.keys = ColumnKeys(problem.bank, rows, mirrored=problem.loss.fit_intercept)
        words = problem.bank.propositions.shape[1]
        self.columns = _Columns(
            [],
            np.empty((0, words), dtype=np.uint64),
            np.empty(0),
            np.empty(0, dtype=np.int8),
            np.empty(0, dtype=np.intp),
        )
        self.values = np.empty((0, problem.Y.shape[1]))
        self.known: set[bytes] = set(self.keys.keys(np.zeros((1, words), dtype=np.uint64)))
        if problem.loss.fit_intercept:  # the column of all rows is no more than the intercept
            self.known.update(self.keys.keys(self.keys.columns([()])))
        self.fitted = np.zeros_like(problem.Y)
        self.here = self._tangent(self.fitted, None)
        first, n_linear = problem.bank.n_propositions, problem.bank.linear.shape[1]
        self.add([(first + c,) for c in range(n_linear)])

    def begin(self, start: SparseStart) -> None:
        """Activate the conjunctions of a start, with its values."""
        place = {node: k for k, node in enumerate(self.columns.nodes)}  # columns of numbers
        for node, value in zip(start.nodes, start.values, strict=True):
            if node in place:
                self.values[place[node]] = value
        new = [k for k, node in enumerate(start.nodes) if node not in place]
        self.add([start.nodes[k] for k in new], start.values[new])
        if place:
            self._move_to(self.values)

    def _features(self) -> NodeFeatures:
        return self.problem.bank.features(self.columns.nodes, self.columns.bits)

    def _tangent(self, fitted: Floats, near: Floats | None) -> Tangent:
        problem = self.problem
        return problem.loss.tangent(fitted, problem.Y, problem.cost, near)

    def add(
        self, nodes: Sequence[Conjunction], values: Floats | None = None, most: int = -1
    ) -> int:
        """Activate conjunctions with new columns, up to a limit; return their number."""
        if not nodes:
            return 0
        bits = self.keys.columns(nodes)
        chosen: list[int] = []
        for k, key in enumerate(self.keys.keys(bits, nodes)):
            if len(chosen) == most:
                break
            if key not in self.known:
                self.known.add(key)
                chosen.append(k)
        old = self.columns
        new = [nodes[k] for k in chosen]
        lengths = np.array([len(node) for node in new], dtype=np.float64)
        signs = np.array([self.problem.sign_of(node) for node in new], dtype=np.int8)
        self.columns = _Columns(
            old.nodes + new,
            np.concatenate([old.bits, bits[chosen]]),
            np.append(old.costs, (1.0 + self.problem.base) ** lengths),
            np.append(old.signs, signs),
            np.append(old.ages, np.zeros(len(new), dtype=np.intp)),
        )
        start = np.zeros((len(new), self.values.shape[1])) if values is None else values[chosen]
        self.values = np.concatenate([self.values, start])
        if start.any():
            self._move_to(self.values)
        return len(new)

    def drop_unused(self) -> None:
        """Drop columns that have had no weight for some rounds."""
        used = self.values.any(axis=1)
        self.columns.ages[:] = np.where(used, 0, self.columns.ages + 1)
        kept = self.columns.ages <= OPTIONS.unused_rounds
        # Columns of numbers come first; the search would not find them again.
        kept[: self.problem.bank.linear.shape[1]] = True
        if not kept.all():
            self.known.difference_update(self.keys.keys(self.columns.bits[~kept]))
            self.columns, self.values = self.columns.kept(kept), self.values[kept]

    def _move_to(self, values: Floats) -> None:
        self.values = values
        self.fitted = self._fitted(values)
        self.here = self._tangent(self.fitted, self.here.bias)

    def _fitted(self, values: Floats) -> Floats:
        return self._features().times(values)

    def norm(self, values: Floats) -> float:
        """Return ``Omega``."""
        return float(self.columns.costs @ np.sqrt((values**2).sum(axis=1)))

    @property
    def objective(self) -> float:
        return 0.5 * self.norm(self.values) ** 2 + self.here.value

    def prices(self) -> Floats:
        """Return the prices of the active columns."""
        sums = self._features().sums(self.here.dual_coef)
        sums = np.where(self.columns.signs[:, None] * sums < 0.0, 0.0, sums)
        return np.asarray((sums**2).sum(axis=1) / self.columns.costs**2)

    def bound(self, price: float) -> float:
        """Return the lower bound that the present dual coefficients prove, given the top price."""
        problem, dual_coef = self.problem, self.here.dual_coef
        data = dual_coef, problem.Y, problem.cost
        linear, ridge = problem.loss.linear(*data), problem.loss.ridge_term(*data)
        return lower_bound(problem.loss, linear, price, ridge)

    def level(self, tol: float) -> float:
        """Return the largest price with which the bound would still meet the tolerance."""
        problem, dual_coef = self.problem, self.here.dual_coef
        data = dual_coef, problem.Y, problem.cost
        linear, ridge = problem.loss.linear(*data), problem.loss.ridge_term(*data)
        wanted = self.bounds.upper - OPTIONS.margin * tol * self.bounds.size
        return max(float(self.prices().max(initial=0.0)), 2.0 * (linear - wanted) - ridge)

    def offer(self) -> None:
        """Offer the present model to the bounds."""
        empty = np.empty(0)
        self.bounds.offer_upper(self.objective, empty, self.here.dual_coef, self.here.bias, empty)

    def improve(self, aim: float, max_iter: int) -> None:
        """Take Newton steps until the relative gap on the active columns is at most ``aim``."""
        for _ in range(OPTIONS.max_steps):
            upper = self.objective
            gap = upper - self.bound(float(self.prices().max(initial=0.0)))
            if gap <= aim * abs(upper) or self.bounds.solves >= max_iter or not self._step(gap):
                return

    def _step(self, gap: float) -> bool:
        """Minimise a quadratic model, and move towards its minimiser; return whether it helped."""
        features = self._features()
        grams, linear = [], features.sums(self.here.dual_coef)
        for t, q in enumerate(self.here.weights.T):
            gram, edge = features.gram(q)
            if self.problem.loss.fit_intercept and q.sum() > 0.0:
                gram -= np.outer(edge, edge) / q.sum()  # the intercept follows the model
            grams.append(gram)
            linear[:, t] += gram @ self.values[:, t]
        aim, sweeps = _core.squared_lasso(
            np.array(grams),
            np.ascontiguousarray(linear),
            self.columns.costs,
            self.columns.signs,
            self.values,
            OPTIONS.quadratic_gap * gap,
            OPTIONS.max_sweeps,
        )
        self.bounds.solves += 1
        self.bounds.work += sweeps * len(self.columns.nodes)
        before, values, step = self.objective, self.values, 1.0
        for _ in range(OPTIONS.halvings):
            self._move_to(values + step * (aim - values))
            if self.objective < before:
                return True
            step *= 0.5
        self._move_to(values)
        return False

    def search(self, level: float, effort: float) -> tuple[list[Conjunction], float, bool]:
        """Return inactive conjunctions above the level, the top price, and whether it is proved."""
        problem = self.problem
        limit = OPTIONS.surplus * max(OPTIONS.min_growth, len(self.columns.nodes))
        found, prices, _, complete = _core.search_conjunctions(
            problem.bank.propositions,
            np.ascontiguousarray(self.here.dual_coef),
            1.0 + problem.base,
            level,
            problem.max_length,
            limit,
            max(1, int(effort * OPTIONS.max_visited)),
            self.columns.nodes,
            problem.signs,
        )
        self.bounds.n_passes += 1
        return [tuple(f) for f in found], max(level, max(prices, default=0.0)), complete


def sparse_lattice(
    problem: SparseProblem, limits: Limits, *, max_nodes: int, start: SparseStart | None = None
) -> SparseResult:
    """Minimise ``1/2 Omega(f)^2 + loss`` over all conjunctions, for the exponent one.

    Parameters
    ----------
    problem, limits
        The problem; the tolerance is the relative duality gap over the whole lattice.
    max_nodes : int
        Maximum number of active columns.
    start : SparseStart, optional
        Where to begin.

    Returns
    -------
    result : SparseResult
        Conjunctions with a weight, columns of numbers among them. The lower bound holds for the
        whole lattice and these columns.
    """
    tol, max_iter = limits.tol, limits.max_iter
    bounds = limits.bounds()
    bounds.scale = problem.loss.zero_loss(problem.Y, problem.cost)
    state = _Generation(problem, bounds)
    if start is not None:
        state.begin(start)
    state.offer()
    gap = np.inf
    while True:
        aim = max(OPTIONS.inner_gap * tol, min(0.1, OPTIONS.search_gap * gap))
        state.improve(aim, max_iter)
        state.offer()
        level = state.level(tol)
        nodes, price, complete = state.search(level, OPTIONS.quick_effort)
        growth = max(OPTIONS.min_growth, int(OPTIONS.growth * len(state.columns.nodes)))
        room = min(growth, max_nodes - len(state.columns.nodes))
        if not complete and len(nodes) < room:
            nodes, price, complete = state.search(level, 1.0)
        if complete:
            bounds.offer_lower(state.bound(price))
        bounds.note()
        last, gap = gap, bounds.gap if bounds.lower > -np.inf else np.inf
        if bounds.converged or bounds.solves >= max_iter:
            break
        state.drop_unused()
        added = state.add(nodes, most=room) if room > 0 else 0
        if not added and gap >= last:
            if aim <= OPTIONS.inner_gap * tol:
                break
            gap = 0.0  # only the active columns are left to improve
    return _result(state)


def _result(state: _Generation) -> SparseResult:
    found = state.bounds.result()
    used = np.flatnonzero(state.values.any(axis=1))
    norms = np.sqrt((state.values[used] ** 2).sum(axis=1))
    forms = state.prices()[used] * state.columns.costs[used] ** 2
    return SparseResult(
        np.divide(norms, np.sqrt(forms), out=np.zeros_like(norms), where=forms > 0),
        state.here.dual_coef,
        state.here.bias,
        forms,
        found.objective,
        found.lower_bound,
        found.size,
        found.history,
        found.converged,
        at_rounding=found.at_rounding,
        nodes=tuple(state.columns.nodes[k] for k in used),
        values=state.values[used],
    )
