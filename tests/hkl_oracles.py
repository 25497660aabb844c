"""Reference solutions of small hierarchical kernel learning problems, by conic programming.

Nothing here is shared with the library. A node w of the graph has a feature matrix ``Phi_w``, its
kernel being ``Phi_w Phi_w'``, and ``ancestors[v, w]`` tells whether v is w or above it. As in the
other oracles an optimum is held between two bounds that NumPy evaluates: the objective at a point,
and the dual objective at a feasible point with a dual norm that is bounded from above on its own.
For rho < 2 norms are power cones, which Clarabel solves to nine digits or so on these sizes.
Numbers in round brackets are those of Jawanpuria, Nath and Ramakrishnan (2015).
"""

from dataclasses import dataclass, field
from itertools import combinations

import cvxpy as cp
import numpy as np

from oracles import LOSSES, OracleError, _norm, _solve
from oracles import _Instance as _Rows

TARGET = 1e-9  # relative gap at which no further formulation is tried
ACCEPT = 1e-5  # relative gap above which an instance counts as unsolved


# Graphs


def closure(parents):
    """Return the boolean matrix ``ancestors`` of a graph given by the parents of each node."""
    n = len(parents)
    ancestors = np.eye(n, dtype=bool)
    for w, above in enumerate(parents):
        ancestors[list(above), w] = True
    for middle in range(n):
        ancestors |= np.outer(ancestors[:, middle], ancestors[middle])
    if np.any(ancestors & ancestors.T & ~np.eye(n, dtype=bool)):
        raise ValueError("The graph has a cycle.")
    return ancestors


def _check_graph(ancestors, d, rho):
    ancestors, d = np.asarray(ancestors, dtype=bool), np.asarray(d, dtype=float)
    reached = (ancestors.astype(int) @ ancestors.astype(int)) > 0
    if not (np.diagonal(ancestors).all() and np.array_equal(reached, ancestors)):
        raise ValueError("ancestors must be reflexive and transitive.")
    if not (d.shape == ancestors.shape[:1] and np.all(d > 0) and 1 < rho <= 2):
        raise ValueError(f"d must be positive, one a node, and rho in (1, 2]: {d}, {rho}.")
    return ancestors, d


def omega(Q, ancestors, d, rho):
    """``sum_v d_v (sum_{w below v} Q_w^rho)^(1/rho)``, (4) and (6)."""
    Q = np.asarray(Q, dtype=float)
    return sum(d_v * _norm(Q[below], rho) for d_v, below in zip(d, ancestors, strict=True))


@dataclass(frozen=True)
class DualNorm:
    """The dual norm of sigma, the point that attains ``lower`` and the split of ``upper``."""

    lower: float  # sigma'Q / Omega(Q)
    upper: float  # max_v |kappa_v sigma|_{rho*} / d_v
    Q: np.ndarray  # (n_nodes,), Omega(Q) = 1
    kappa: np.ndarray  # (n_nodes, n_nodes), columns over the ancestors of a node sum to one

    @property
    def value(self) -> float:
        return 0.5 * (self.lower + self.upper)


def dual_norm(sigma, ancestors, d, rho) -> DualNorm:
    """Return ``max sigma'Q`` over ``Omega(Q) <= 1`` for ``sigma >= 0``.

    As ``min tau`` over ``u >= 0`` with ``sum_{v above w} u_vw >= sigma_w`` for every w and
    ``|u_v|_{rho*} <= tau d_v`` for every v.
    """
    ancestors, d = _check_graph(ancestors, d, rho)
    sigma = np.asarray(sigma, dtype=float)
    top = sigma.max(initial=0.0)
    if top == 0:
        split = ancestors / ancestors.sum(axis=0)
        return DualNorm(0.0, 0.0, np.zeros(len(d)), split)
    tau = cp.Variable()
    u, shares = _split(tau, ancestors, d, rho)
    cover = shares >= sigma / top
    _solve(cp.Problem(cp.Minimize(tau), [cover, *u.constraints]))
    if tau.value is None:
        raise OracleError("The dual norm was not solved.")
    Q = np.maximum(cover.dual_value, 0.0)
    Q[sigma == 0] = 0.0
    Q /= omega(Q, ancestors, d, rho)
    kappa = u.kappa()
    lower, upper = sigma @ Q, split_bound(sigma, kappa, d, rho)
    if not (upper - lower) <= ACCEPT * upper:
        raise OracleError(f"The dual norm is between {lower:.15g} and {upper:.15g}.")
    return DualNorm(float(lower), float(upper), Q, kappa)


def split_bound(sigma, kappa, d, rho):
    """Bound of the dual norm by any split kappa of every node among its ancestors."""
    conjugate = rho / (rho - 1)
    return max(_norm(k * sigma, conjugate) / d_v for k, d_v in zip(kappa, d, strict=True))


class _Split:
    """The variables u_vw of the dual norm."""

    def __init__(self, tau, ancestors, d, rho):
        self.ancestors = ancestors
        self.v, self.w = np.nonzero(ancestors)
        self.u = cp.Variable(len(self.v), nonneg=True)
        self.constraints = _norms(self.u, self.v, cp.multiply(d, tau), rho / (rho - 1))

    def kappa(self):
        u = np.zeros(self.ancestors.shape)
        u[self.v, self.w] = np.maximum(self.u.value, 0.0)
        total = u.sum(axis=0)
        even = self.ancestors / self.ancestors.sum(axis=0)
        return np.where(total > 0, u / np.where(total > 0, total, 1.0), even)


def _split(tau, ancestors, d, rho):
    """Return the variables u and ``sum_{v above w} u_vw`` of every node."""
    split = _Split(tau, ancestors, d, rho)
    return split, _gather(split.w, len(d)) @ split.u


def _gather(index, n):
    matrix = np.zeros((n, len(index)))
    matrix[index, np.arange(len(index))] = 1.0
    return matrix


def _norms(x, group, limits, p):
    """Constraints ``|x_group g|_p <= limits_g`` for every group, x an affine expression."""
    n_groups = limits.shape[0]
    constraints, wide = [], []
    for g in range(n_groups):
        members = np.flatnonzero(group == g)
        if len(members) == 1:
            constraints.append(cp.abs(x[members[0]]) <= limits[g])
        elif p == 2 and len(members):
            constraints.append(cp.SOC(limits[g], x[members]))
        else:
            wide += list(members)
    if wide:
        # share^(1/p) limit^(1 - 1/p) >= |x|, the shares of a group summing to its limit
        share = cp.Variable(len(wide))
        groups = group[wide]
        used = np.unique(groups)
        total = _gather(np.searchsorted(used, groups), len(used)) @ share
        constraints += [
            cp.constraints.PowCone3D(share, limits[groups], x[np.array(wide)], 1 / p),
            total == limits[used],
        ]
    return constraints


# The problem


@dataclass(frozen=True)
class DagSolution:
    """A minimiser of the problem and the interval that holds its value.

    ``f``, ``intercept``, ``Q`` and ``decision`` have the objective ``upper``, and ``S`` the dual
    objective ``lower``. The intercept is added; the b of the specification is ``bias``.
    """

    lower: float
    upper: float
    f: list  # of arrays (k_w, n_tasks)
    intercept: np.ndarray  # (n_tasks,), the middle where an interval of values is optimal
    Q: np.ndarray  # (n_nodes,), block norms
    omega: float
    decision: np.ndarray  # (n_samples, n_tasks)
    S: np.ndarray  # (n_samples, n_tasks), signed dual variables whose columns sum to zero
    M: np.ndarray  # (n_nodes,), tr S' K_w S B
    dual_norm: float  # of sqrt(M), from above
    log: list = field(default_factory=list, repr=False)

    @property
    def value(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def bias(self):
        return -self.intercept

    @property
    def gap(self) -> float:
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)


def solve_dag(
    features, Y, cost, ancestors, d, rho, B=None, loss="hinge", epsilon=0.1
) -> DagSolution:
    """Minimise ``1/2 Omega(f)^2 + sum_it cost_it loss(Y_it, F_t(x_i))``, (5) and (6).

    Parameters
    ----------
    features : list of arrays (n_samples, k_w), one a node
    Y, cost : array (n_samples,) or (n_samples, n_tasks); a cost of zero removes the entry
    ancestors : array (n_nodes, n_nodes), see `closure`
    d : array (n_nodes,)
    rho : float in (1, 2]
    B : array (n_tasks, n_tasks), positive semidefinite; None: the identity
    loss : "hinge", "epsilon_insensitive", "square" (half of it) or "huber"
    epsilon : half-width of the insensitive tube, or the threshold of Huber's loss
    """
    problem = _Problem(features, Y, cost, ancestors, d, rho, B, LOSSES[loss](epsilon))
    return _Search(problem).run()


class _Problem:
    """One problem with its two objectives, both evaluated without the solver."""

    def __init__(self, features, Y, cost, ancestors, d, rho, B, loss):
        self.ancestors, self.d = _check_graph(ancestors, d, rho)
        self.rho, self.loss = float(rho), loss
        self.Y, self.cost = (_columns(a) for a in (Y, cost))
        n, n_tasks = self.Y.shape
        # The rows of a problem without kernels know boxes, feasibility and intercepts.
        self.rows = _Rows(np.zeros((0, n, n)), self.Y, self.cost, 1, loss, True)
        features = [np.asarray(phi, dtype=float).reshape(n, -1) for phi in features]
        if len(features) != len(self.d):
            raise ValueError(f"{len(features)} feature matrices for {len(self.d)} nodes.")
        self.Phi = np.hstack(features)
        ends = np.cumsum([phi.shape[1] for phi in features])
        self.blocks = [slice(e - phi.shape[1], e) for e, phi in zip(ends, features, strict=True)]
        self.L = _task_factor(np.eye(n_tasks) if B is None else np.asarray(B, dtype=float))

    def norms(self, G):
        """Block norms of ``f = G L'``."""
        return np.array([np.linalg.norm(G[block]) for block in self.blocks])

    def omega(self, Q):
        return omega(Q, self.ancestors, self.d, self.rho)

    def primal(self, G):
        """Objective at ``G`` with the intercepts at their best."""
        F = self.Phi @ G @ self.L.T
        losses = self.loss.value(self.Y, F + self.rows.intercept(F))
        return 0.5 * self.omega(self.norms(G)) ** 2 + np.sum(self.cost * losses)

    def quadratic_forms(self, S):
        return self.norms(self.Phi.T @ S @ self.L) ** 2

    def dual(self, S, norm):
        """Best dual objective between zero and feasible ``S``, and the factor of ``S``."""
        linear = np.sum(self.Y * S) - self.loss.tube * np.abs(S).sum()
        quadratic = norm**2 + np.sum(self.rows.inverse_cost * S**2)
        step = np.clip(linear / quadratic, 0.0, 1.0) if quadratic > 0 else 1.0
        return step * linear - 0.5 * step**2 * quadratic, step


def _columns(a):
    a = np.asarray(a, dtype=float)
    return a[:, None] if a.ndim == 1 else a


def _task_factor(B):
    """Return L of full column rank with ``L L' = B``, so that ``f = g L'`` has norm ``|g|``."""
    values, vectors = np.linalg.eigh(B)
    largest = values.max()
    if not np.allclose(B, B.T) or values.min() < -1e-10 * max(largest, 1e-300):
        raise ValueError("B must be symmetric and positive semidefinite.")
    keep = values > 1e-12 * largest
    return vectors[:, keep] * np.sqrt(values[keep])


class _Search:
    """Offers the answers of two formulations to the two objectives and keeps the best."""

    def __init__(self, problem):
        self.problem = problem
        self.G = np.zeros((problem.Phi.shape[1], problem.L.shape[1]))
        self.S = np.zeros_like(problem.Y)
        self.norm, self.lower = 0.0, 0.0
        self.upper = problem.primal(self.G)
        self.log = []

    @property
    def gap(self):
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)

    def run(self) -> DagSolution:
        for form in (_DualForm, _PrimalForm):
            if self.gap > TARGET:
                status = self.attempt(form)
                self.log.append(f"{form.__name__} {status}, gap {self.gap:.1e}")
        if not abs(self.gap) <= ACCEPT:
            raise OracleError(
                f"Lower bound {self.lower:.15g}, upper bound {self.upper:.15g}: "
                f"{'; '.join(self.log)}."
            )
        problem, G = self.problem, self.G
        F = problem.Phi @ G @ problem.L.T
        intercept = problem.rows.intercept(F)
        lower, upper = sorted((float(self.lower), float(self.upper)))
        Q = problem.norms(G)
        return DagSolution(
            lower,
            upper,
            [G[block] @ problem.L.T for block in problem.blocks],
            intercept,
            Q,
            float(problem.omega(Q)),
            F + intercept,
            self.S,
            problem.quadratic_forms(self.S),
            float(self.norm),
            self.log,
        )

    def attempt(self, form):
        """Solve one formulation and take what it gives; return the solver's status."""
        problem = self.problem
        # For f / sqrt(size) the problem is the same, with an optimum of at most one.
        size = self.upper
        stated = form(problem, np.sqrt(size) * problem.Phi, problem.cost / size)
        status = _solve(stated.problem)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            G, S, kappa = stated.answer()
            self.offer(np.sqrt(size) * G, size * S, kappa)
        return status

    def offer(self, G, S, kappa):
        """Evaluate both bounds."""
        problem = self.problem
        for candidate in (G, self.shrunk(G)):
            upper = problem.primal(candidate)
            if upper < self.upper:
                self.upper, self.G = upper, candidate
        S = problem.rows.feasible(S)
        sigma = np.sqrt(problem.quadratic_forms(S))
        norm = np.inf
        if kappa is not None:
            norm = split_bound(sigma, kappa, problem.d, problem.rho)
        try:
            alone = dual_norm(sigma, problem.ancestors, problem.d, problem.rho)
            norm = min(norm, alone.upper)
        except OracleError as error:
            self.log.append(str(error))
        if np.isfinite(norm):
            lower, step = problem.dual(S, norm)
            if lower > self.lower:
                self.lower, self.S, self.norm = lower, step * S, step * norm

    def shrunk(self, G):
        """Put blocks to zero that may be nothing but the solver's rounding."""
        norms = self.problem.norms(G)
        G = G.copy()
        for block, norm in zip(self.problem.blocks, norms, strict=True):
            if norm <= 1e-7 * norms.max(initial=0.0):
                G[block] = 0.0
        return G


class _PrimalForm:
    """Minimise over f and its norms; the multiplier of ``F = sum_w Phi_w f_w + b`` is S."""

    def __init__(self, problem, Phi, cost):
        n, n_tasks = problem.Y.shape
        n_nodes = len(problem.d)
        self.G = cp.Variable((Phi.shape[1], problem.L.shape[1]))
        F, b = cp.Variable((n, n_tasks)), cp.Variable((1, n_tasks))
        Q, r, total = cp.Variable(n_nodes), cp.Variable(n_nodes), cp.Variable()
        self.link = F == Phi @ self.G @ problem.L.T + np.ones((n, 1)) @ b
        cones = [
            cp.SOC(Q[w], cp.vec(self.G[block], order="C")) for w, block in enumerate(problem.blocks)
        ]
        v, w = np.nonzero(problem.ancestors)
        norms = _norms(Q[w], v, r, problem.rho)
        loss = problem.loss.expression(problem.Y, F, cost)
        self.problem = cp.Problem(
            cp.Minimize(0.5 * cp.square(total) + loss),
            [self.link, problem.d @ r <= total, *cones, *norms],
        )

    def answer(self):
        return self.G.value, self.link.dual_value, None


class _DualForm:
    """Maximise over S, with the dual norm by its split; the multipliers of the cones are f."""

    def __init__(self, problem, Phi, cost):
        self.S = S = cp.Variable(problem.Y.shape)
        self.blocks, self.shape = problem.blocks, (Phi.shape[1], problem.L.shape[1])
        tau = cp.Variable()
        self.split, shares = _split(tau, problem.ancestors, problem.d, problem.rho)
        z = Phi.T @ S @ problem.L
        self.cones = [
            cp.SOC(shares[w], cp.vec(z[block], order="C")) for w, block in enumerate(problem.blocks)
        ]
        constraints = [*self.cones, *self.split.constraints, cp.sum(S, axis=0) == 0]
        rows = problem.rows
        low, high = problem.loss.box(problem.Y, cost)
        if rows.bounded.any():
            inside = S[rows.bounded]
            constraints += [inside >= low[rows.bounded], inside <= high[rows.bounded]]
        present = cost > 0
        if not present.all():
            constraints.append(S[~present] == 0)
        gain = cp.sum(cp.multiply(problem.Y, S)) - problem.loss.tube * cp.sum(cp.abs(S))
        if problem.loss.curvature and present.any():
            gain -= 0.5 * cp.sum_squares(cp.multiply(S[present], cost[present] ** -0.5))
        self.problem = cp.Problem(cp.Minimize(0.5 * cp.square(tau) - gain), constraints)

    def answer(self):
        G = np.zeros(self.shape)
        for block, cone in zip(self.blocks, self.cones, strict=True):
            G[block] = -np.reshape(cone.dual_value[1], G[block].shape)
        return G, self.S.value, self.split.kappa()


# Conjunctions


@dataclass(frozen=True)
class Lattice:
    """All conjunctions of some propositions, shorter ones first."""

    rules: list  # tuples of columns, the empty one first
    support: np.ndarray  # (n_samples, n_rules), boolean
    parents: list  # of lists of numbers in ``rules``

    @property
    def lengths(self):
        return np.array([len(rule) for rule in self.rules])


def conjunctions(P, max_length=None) -> Lattice:
    """Enumerate the conjunctions of at most ``max_length`` of the boolean columns of ``P``."""
    P = np.asarray(P, dtype=bool)
    p = P.shape[1]
    if p > 8:
        raise ValueError(f"Enumeration is for 8 propositions at most, got {p}.")
    longest = p if max_length is None else max_length
    rules = [rule for k in range(longest + 1) for rule in combinations(range(p), k)]
    number = {rule: i for i, rule in enumerate(rules)}
    support = np.stack([P[:, list(rule)].all(axis=1) for rule in rules], axis=1)
    parents = [[number[tuple(c for c in rule if c != drop)] for drop in rule] for rule in rules]
    return Lattice(rules, support, parents)


def brute_price(P, S, B, level, base):
    """Return ``M_w = z_w' B z_w`` of all rules with ``M_w > level * base^(2|w|)``, as a dict.

    ``z_w`` is the sum of the rows of ``S`` (n_samples, n_tasks) that the rule covers. The empty
    rule is one of them.
    """
    lattice = conjunctions(P)
    z = lattice.support.astype(float).T @ _columns(S)
    M = np.einsum("wt,tu,wu->w", z, np.atleast_2d(B), z)
    limits = level * float(base) ** (2 * lattice.lengths)
    return {rule: M[w] for w, rule in enumerate(lattice.rules) if M[w] > limits[w]}


def sufficient_sum(values, ancestors, d, u):
    """``sum_{w below u} values_w / (sum_{v between u and w} d_v)^2``, as in (15)."""
    total = 0.0
    for w in np.flatnonzero(ancestors[u]):
        between = ancestors[:, w] & ancestors[u]
        total = total + values[w] / np.sum(np.asarray(d)[between]) ** 2
    return total


def sufficient_kernel(P, u, a):
    """Return K_u of (15) for ``d_v = a^|v|`` by enumeration of all that lies below the rule u.

    ``P`` holds boolean columns (n_samples, p), or Gram matrices (p, n_samples, n_samples) whose
    Hadamard products are the kernels.
    """
    P = np.asarray(P)
    grams = P if P.ndim == 3 else np.einsum("ic,jc->cij", P.astype(float), P.astype(float))
    n = grams.shape[1]
    lattice = conjunctions(np.ones((1, len(grams)), dtype=bool))
    kernels = [np.prod([np.ones((n, n)), *grams[list(rule)]], axis=0) for rule in lattice.rules]
    number = lattice.rules.index(tuple(sorted(u)))
    return sufficient_sum(kernels, closure(lattice.parents), float(a) ** lattice.lengths, number)


# Instances


def arguments(instance):
    """Return the arguments of `solve_dag` for one instance."""
    names = ("features", "Y", "cost", "ancestors", "d", "rho", "B", "loss", "epsilon")
    return {name: instance[name] for name in names}


def hkl_instances():
    """Return all instances; the same ones every time."""
    return lattice_instances() + dag_instances()


# tasks, task matrix, propositions, loss, cost of errors, other options
_LATTICES = [
    (1, "one", 3, "hinge", 3.0, {}),
    (1, "one", 4, "hinge", 100.0, {}),
    (1, "one", 4, "hinge", 1000.0, {"parity": True}),
    (1, "one", 4, "square", 100.0, {}),
    (1, "one", 4, "hinge", 30.0, {"base": 1.0, "max_length": 3}),
    (2, "identity", 3, "hinge", 100.0, {}),
    (2, "shared", 4, "hinge", 100.0, {"mu": 1.0, "own_rows": True}),
    (2, "random", 4, "hinge", 30.0, {"base": 1.5}),
    (2, "singular", 3, "hinge", 100.0, {}),
    (3, "identity", 4, "hinge", 300.0, {}),
    (3, "shared", 3, "hinge", 30.0, {"mu": 0.2, "base": 0.8}),
    (3, "singular", 4, "hinge", 100.0, {}),
    (3, "random", 3, "huber", 100.0, {"absent": True}),
    (2, "shared", 4, "epsilon_insensitive", 30.0, {"mu": 2.0, "absent": True}),
]


def lattice_instances():
    """Conjunctions of three or four propositions, one to three tasks, rho = 2, 1.5 and 1.1."""
    made = []
    for number, (n_tasks, matrix, p, loss, C, options) in enumerate(_LATTICES):
        rng = np.random.default_rng([7, number])
        n, base = 18, options.get("base", 2.0)
        P = rng.random((n, p)) < 0.7
        lattice = conjunctions(P, options.get("max_length"))
        signal = _signal(lattice.support.astype(float), lattice.lengths > 0, n_tasks, rng)
        if options.get("parity"):
            signal = 1.0 * (P[:, [0]] ^ P[:, [1]] ^ P[:, [2]])
        cost = np.full((n, n_tasks), C)
        if options.get("own_rows"):
            cost *= np.arange(n)[:, None] * n_tasks // n == np.arange(n_tasks)
        if options.get("absent"):
            cost *= rng.choice([0.0, 0.5, 1.0], size=cost.shape, p=[0.2, 0.4, 0.4])
        shared = {
            "kind": "lattice",
            "P": P,
            "rules": lattice.rules,
            "base": base,
            "features": [column[:, None] for column in lattice.support.T.astype(float)],
            "parents": lattice.parents,
            "ancestors": closure(lattice.parents),
            "d": base**lattice.lengths,
            "Y": _labels(signal) if loss == "hinge" else signal,
            "cost": cost,
            "B": _task_matrix(matrix, n_tasks, rng, options.get("mu")),
            "loss": loss,
            "epsilon": 0.2,
        }
        for rho in (2.0, 1.5, 1.1):
            made.append(
                {"id": f"lattice{number:02}_t{n_tasks}_{matrix}_{rho}", "rho": rho} | shared
            )
    return made


_GRAPHS = ["random", "random", "random", "chain", "tree", "apart"]


def dag_instances():
    """Small graphs with blocks of three features: all losses, rho = 2, 1.5 and 1.1."""
    made = []
    matrices = ["one", "shared", "random", "singular", "identity", "one"]
    for number, loss in enumerate(list(LOSSES) * 6):
        rng = np.random.default_rng([8, number])
        graph, matrix = _GRAPHS[number // 4], matrices[(number + number // 4) % 6]
        rho = (2.0, 1.5, 1.1)[number % 3]
        n, n_tasks = 16, 1 if matrix == "one" else 2 + number % 2
        parents = _graph(graph, int(rng.integers(5, 9)), rng)
        features = [rng.normal(size=(n, 3)) for _ in parents]
        signal = _signal(np.hstack(features), slice(None), n_tasks, rng)
        cost = 3.0 * rng.choice([0.0, 0.5, 1.0], size=(n, n_tasks), p=[0.1, 0.4, 0.5])
        made.append(
            {
                "id": f"dag{number:02}_{graph}_{loss}_t{n_tasks}_{matrix}_{rho}",
                "kind": "dag",
                "features": features,
                "parents": parents,
                "ancestors": closure(parents),
                "d": rng.uniform(0.5, 2.0, size=len(parents)),
                "rho": rho,
                "Y": _labels(signal) if loss == "hinge" else signal,
                "cost": cost,
                "B": _task_matrix(matrix, n_tasks, rng, 0.5),
                "loss": loss,
                "epsilon": 0.2,
            }
        )
    return made


def _graph(kind, n, rng):
    """Return the parents of each node, in random order."""
    if kind == "apart":
        return [[] for _ in range(n)]
    if kind == "chain":
        parents = [[w - 1] if w else [] for w in range(n)]
    elif kind == "tree":
        parents = [[(w - 1) // 2] if w else [] for w in range(n)]
    else:
        parents = [[v for v in range(w) if rng.random() < 0.35] for w in range(n)]
    order = rng.permutation(n)  # nothing may rest on parents coming first
    names = np.argsort(order)
    return [sorted(int(names[v]) for v in parents[w]) for w in order]


def _signal(columns, candidates, n_tasks, rng):
    """Targets that a few columns explain, tasks being alike but not the same."""
    chosen = rng.choice(np.arange(columns.shape[1])[candidates], size=3, replace=False)
    weights = rng.normal(size=(3, 1)) + 0.5 * rng.normal(size=(3, n_tasks))
    signal = columns[:, chosen] @ weights + 0.3 * rng.normal(size=(len(columns), n_tasks))
    return (signal - signal.mean(axis=0)) / signal.std(axis=0)


def _labels(signal):
    return np.where(signal > signal.mean(axis=0), 1.0, -1.0)


def _task_matrix(kind, n_tasks, rng, mu=None):
    if kind == "shared":
        return np.eye(n_tasks) + 1 / mu
    if kind in ("one", "identity"):
        return np.eye(n_tasks)
    L = rng.normal(size=(n_tasks, n_tasks - (kind == "singular")))
    return L @ L.T


def same_model(one, two):
    """Compare what two rule ensembles have learned, bit by bit."""
    assert one.rules_ == two.rules_
    assert one.intercept_.tobytes() == two.intercept_.tobytes()
    assert one.norms_.tobytes() == two.norms_.tobytes()
    assert (one.objective_, one.duality_gap_) == (two.objective_, two.duality_gap_)
    assert (one.n_iter_, one.n_nodes_) == (two.n_iter_, two.n_nodes_)
    assert one.propositions_ == two.propositions_
