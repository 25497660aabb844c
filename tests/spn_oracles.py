"""Reference solutions of small kernel learning problems over sum-product networks.

Nothing here is shared with the library. A network is made of plain tuples, ``("sum", [...])``,
``("product", [...])`` or ``("product", [...], {"p": 2, "name": "T"})`` and ``("leaf", k)`` with k
the number of a kernel; a shared node is the same object in several lists. As in the other oracles
an optimum is held between two bounds that NumPy evaluates: the objective at a point, with the
weights at their best for it, and the bound of section 3.4 of the specification.
"""

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property

import cvxpy as cp
import numpy as np

from oracles import ACCEPT, LOSSES, TARGET, OracleError, _factor, _solve, solve_fixed

EMPTY = 1e-8  # share of the largest |w_m|^2 under which a component may be nothing but rounding


# Structures


@dataclass(frozen=True)
class Path:
    """One induced tree, or several with the same exponents and leaves."""

    exponents: dict[str, Fraction]  # a_mv by the name of the product node
    leaves: tuple[int, ...]  # sorted, with repetition
    layers: tuple[tuple[str, ...], ...]  # names of the product nodes, sorted, with repetition
    multiplicity: int = 1


@dataclass(frozen=True)
class Paths:
    """The paths of a network in its canonical form."""

    names: list[str]  # of the product nodes, in the order of a walk from the root
    p: list[float | None]  # own exponents of the product nodes
    every: list[Path]  # one entry an induced tree
    merged: list[Path]

    @cached_property
    def A(self):
        """Array (merged paths, nodes) of the exponents."""
        return np.array([[float(m.exponents.get(v, 0)) for v in self.names] for m in self.merged])

    @cached_property
    def mu(self):
        return np.array([float(m.multiplicity) for m in self.merged])

    @property
    def c(self):
        return self.mu @ self.A

    def exponents(self, p):
        """Array of one p a node: its own, otherwise that of ``p``, a number or a dict by name."""
        given = p if isinstance(p, dict) else dict.fromkeys(self.names, p)
        pairs = zip(self.names, self.p, strict=True)
        return np.array([float(given[v] if own is None else own) for v, own in pairs])

    def kernels(self, grams):
        """Hadamard products of the leaves of the merged paths, without multiplicities."""
        grams = np.asarray(grams, dtype=float)
        return np.stack([np.prod(grams[list(m.leaves)], axis=0) for m in self.merged])

    def homogeneous(self):
        """Whether every node has the same exponent on all paths through it."""
        return all(
            len({m.exponents[v] for m in self.every if v in m.exponents}) == 1 for v in self.names
        )


def brute_paths(structure, insert_first=False) -> Paths:
    """Return the induced trees of ``structure`` after the rewriting of section 1.1.

    A leaf has no weight to share, so each edge from a sum to a leaf has a product node of its
    own, named ``k<leaf>`` and numbered from the second on. A sum merged into two parents counts
    as written out in both of them, as by the order of the rules, unless ``insert_first``: then
    the parents share what it has put over its leaves.
    """
    canonical = _Canonical(structure, insert_first)
    every = []
    tape = []  # number of the child taken at each sum node met in the walk
    while tape is not None:
        tape, path = canonical.walk(tape)
        every.append(path)
    groups = {}
    for path in every:
        key = (tuple(sorted(path.exponents.items())), path.leaves)
        groups.setdefault(key, []).append(path)
    merged = [
        Path(same[0].exponents, same[0].leaves, same[0].layers, len(same))
        for same in groups.values()
    ]
    return Paths(list(canonical.names.values()), canonical.p, every, merged)


class _Node:
    def __init__(self, kind, children=(), p=None, name=None, leaf=None):
        self.kind, self.children, self.p, self.name, self.leaf = kind, children, p, name, leaf


class _Canonical:
    """A network by the rules 1 to 3, whose product nodes have names."""

    def __init__(self, structure, insert_first=False):
        self.made, self.insert_first = {}, insert_first
        root = self.node(structure)
        self.root = root if root.kind == "sum" else self.under_sum([root])
        self.names, self.p = {}, []
        self.name(self.root)

    def node(self, entry):
        """Return the node of one tuple, the same for the same object."""
        if id(entry) not in self.made:
            kind, content = entry[:2]
            if kind == "leaf":
                made = _Node("leaf", leaf=content)
            else:
                if not content:
                    raise ValueError(f"A {kind} without children.")
                children = [self.node(child) for child in content]
                options = entry[2] if len(entry) > 2 else {}
                if kind == "sum":
                    made = self.under_sum(children)
                else:
                    made = _Node("product", children, options.get("p"), options.get("name"))
            self.made[id(entry)] = made, entry  # the entry is kept so that its id stays its own
        return self.made[id(entry)][0]

    def under_sum(self, children):
        flat = []
        for child in children:
            # A sum below is canonical already. What it put over its leaves is not shared with
            # the parent it is merged into.
            for part in child.children if child.kind == "sum" else [child]:
                bare = part
                if hasattr(part, "inserted") and not self.insert_first:
                    bare = part.inserted
                if bare.kind == "leaf":
                    part = _Node("product", [bare], name=f"k{bare.leaf}")
                    part.inserted = bare
                flat.append(part)
        return _Node("sum", flat)

    def name(self, node):
        if node.kind == "product" and node not in self.names:
            wanted, count = node.name or "product", 2
            name = wanted
            while name in self.names.values():
                if node.name and not hasattr(node, "inserted"):
                    raise ValueError(f"Two nodes are called {name}.")
                name, count = f"{wanted}_{count}", count + 1
            self.names[node] = name
            self.p.append(node.p)
        for child in node.children:
            self.name(child)

    def walk(self, tape):
        """Follow one tape, zeros behind its end; return the next tape, or None, and the path."""
        taken, widths, layers, leaves = [], [], {}, []
        pending = [(self.root, 0)]
        while pending:
            node, sums = pending.pop()
            if node.kind == "leaf":
                leaves.append(node.leaf)
            elif node.kind == "product":
                layers.setdefault(sums, []).append(self.names[node])
                pending += [(child, sums) for child in reversed(node.children)]
            else:
                turn = tape[len(taken)] if len(taken) < len(tape) else 0
                taken.append(turn)
                widths.append(len(node.children))
                pending.append((node.children[turn], sums + 1))
        exponents = Counter()
        for nodes in layers.values():
            for name in nodes:
                exponents[name] += Fraction(1, len(layers) * len(nodes))
        in_order = tuple(tuple(sorted(layers[depth])) for depth in sorted(layers))
        path = Path(dict(exponents), tuple(sorted(leaves)), in_order)
        while taken and taken[-1] + 1 == widths[len(taken) - 1]:
            taken.pop()
        if not taken:
            return None, path
        return [*taken[:-1], taken[-1] + 1], path


def path_weights(A, beta):
    """``g_m = prod_v beta_v ^ a_mv``."""
    A, beta = np.asarray(A, dtype=float), np.asarray(beta, dtype=float)
    return np.prod(np.where(A > 0, beta, 1.0) ** A, axis=1)


# The joint problem


@dataclass(frozen=True)
class SPNSolution:
    """A minimiser of problem (2) and the interval that holds its value.

    ``decision``, ``beta`` and ``norms`` have the objective ``upper`` and ``alpha`` the bound
    ``lower``. ``K @ (alpha * Y) + intercept`` agrees with ``decision`` to a few digits less.
    """

    lower: float
    upper: float
    paths: Paths
    beta: np.ndarray  # (n_nodes,), in the order of paths.names
    g: np.ndarray  # (n_merged,), without multiplicities
    K: np.ndarray  # (n_samples, n_samples), sum_m mu_m g_m K_m
    norms: np.ndarray  # (n_merged,), |w_m| over all outputs: R1 is sum_m norms_m^2 / (2 mu_m g_m)
    q: np.ndarray  # (n_merged,), sum over outputs of s' K_m s with s = alpha * Y
    intercept: np.ndarray  # (n_outputs,), the middle where an interval of values is optimal
    decision: np.ndarray  # (n_samples, n_outputs)
    alpha: np.ndarray  # (n_samples, n_outputs)
    log: list = field(default_factory=list, repr=False)

    @property
    def value(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def gap(self) -> float:
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)

    @property
    def weights(self):
        """``beta`` by the name of the node."""
        return dict(zip(self.paths.names, self.beta, strict=True))


def joint_oracle(grams, structure, Y, C, lam, p=1.0, intercept=True) -> SPNSolution:
    """Solve problem (2) as a conic program in w and ``theta = beta^p``, and by its dual.

    Parameters
    ----------
    grams : array (n_kernels, n_samples, n_samples)
    structure : a network, or its ``Paths``
    Y : array (n_samples,) or (n_samples, n_outputs) of -1 / +1; the outputs share the weights
    p : float or dict by name; a node with a ``p`` of its own keeps it
    """
    paths = structure if isinstance(structure, Paths) else brute_paths(structure)
    return _Search(
        _Instance(grams, paths, _columns(Y), C, lam, paths.exponents(p), intercept)
    ).run()


def objective(A, mu, beta, norms, c, lam, p):
    """``R1 + R2`` of one beta with the limits at zero of section 2."""
    g, norms = mu * path_weights(A, beta), np.asarray(norms, dtype=float)
    if np.any((g == 0) & (norms > 0)):
        return np.inf
    terms = np.divide(norms**2, 2 * g, where=g > 0, out=np.zeros_like(g))
    return terms.sum() + lam * np.sum(c * beta**p)


def lower_bound(A, mu, c, lam, p, beta, alpha_sum, q):
    """Return the bound of section 3.4; ``q`` without multiplicities, ``beta > 0``."""
    A, q = np.asarray(A, dtype=float), mu * np.asarray(q, dtype=float)
    b, g = A / p, path_weights(A, beta)
    kappa = (b.T @ (g * q)) / beta**p
    tight = np.min(np.sqrt(2 * lam * c / np.maximum(kappa, np.finfo(float).tiny)), initial=1.0)
    G = 0.5 * np.sum(g * q * np.clip(1 - b.sum(axis=1), 0.0, None))
    s = min(tight, alpha_sum / (2 * G)) if G > 1e-14 * alpha_sum else tight
    bound = s * alpha_sum - s**2 * G
    if np.all(p > 1):
        k = (A.T @ (g * q)) / beta
        h = (k / (2 * lam * c * p)) ** (1 / (p - 1))
        bound = max(bound, alpha_sum - lam * np.sum((p - 1) * c * h**p))
    return bound


class _Instance:
    """One problem with its bounds. Multiplicities are part of the path kernels here."""

    def __init__(self, grams, paths, Y, C, lam, p, intercept):
        if not (C > 0 and lam > 0 and np.all(p > 0)):
            raise ValueError(f"C = {C}, lam = {lam}, p = {p}.")
        self.paths, self.Y, self.C, self.lam, self.p = paths, Y, float(C), float(lam), p
        self.fit_intercept = intercept
        self.A, self.c = paths.A, paths.c
        self.b = self.A / p
        if np.any(self.b.sum(axis=1) > 1 + 1e-12):
            raise ValueError("The problem is not convex: sum_v a_mv / p_v > 1 on a path.")
        self.grams = paths.mu[:, None, None] * paths.kernels(grams)
        self.factors = [_factor(gram) for gram in self.grams]

    def quadratic_forms(self, alpha):
        return np.array([np.sum((L.T @ (alpha * self.Y)) ** 2) for L in self.factors])

    def feasible(self, alpha):
        """Move ``alpha`` into the box and, with an intercept, shrink the heavier class."""
        alpha = np.clip(alpha, 0.0, self.C)
        if self.fit_intercept:
            for a, y in zip(alpha.T, self.Y.T, strict=True):
                positive, negative = a[y > 0].sum(), a[y < 0].sum()
                least = min(positive, negative)
                a[y > 0] *= least / positive if least > 0 else 0.0
                a[y < 0] *= least / negative if least > 0 else 0.0
        return alpha

    def intercept(self, F):
        if not self.fit_intercept:
            return np.zeros(F.shape[1])
        hinge, cost = LOSSES["hinge"](0.0), np.full(len(F), self.C)
        pairs = zip(self.Y.T, F.T, strict=True)
        return np.array([hinge.best_intercept(y - f, y, cost) for y, f in pairs])

    def primal(self, beta, norms, F):
        loss = np.maximum(0.0, 1 - self.Y * (F + self.intercept(F)))
        one = np.ones(len(norms))
        penalty = objective(self.A, one, beta, norms, self.c, self.lam, self.p)
        return penalty + self.C * loss.sum()

    def dual(self, alpha, q, beta):
        one = np.ones(len(q))
        return lower_bound(self.A, one, self.c, self.lam, self.p, beta, alpha.sum(), q)

    def balanced(self, q, beta, steps=2000):
        """Return the weights that make the bound best for ``q``.

        They balance the nodes, ``lam c_v theta_v = 1/2 sum_m b_mv q_m g_m``. The map that this
        iterates contracts the logarithms of theta, or does not expand them where it is
        homogeneous, and its scale, which then may drift, does not matter there.
        """
        u = self.p * np.log(beta)
        live = q > 0
        b, half = self.b[live], 0.5 * q[live]
        on = b.sum(axis=0) > 0
        for _ in range(steps):
            new = b.T @ (half * np.exp(b @ u)) / (self.lam * self.c)
            new = np.where(on, np.log(np.maximum(new, 1e-250)), u)
            done = np.max(np.abs(new - u)) < 1e-15
            u = new
            if done or u.min() < -500:
                break
        return np.exp(u / self.p)


class _Search:
    """Offers the answers of several formulations to the two bounds and keeps the best."""

    def __init__(self, instance):
        self.instance = instance
        n_paths, n_nodes = instance.A.shape
        self.beta, self.norms = np.zeros(n_nodes), np.zeros(n_paths)
        self.parts = np.zeros((n_paths, *instance.Y.shape))  # of the decision values
        self.alpha = np.zeros_like(instance.Y)
        self.upper, self.lower = instance.primal(self.beta, self.norms, self.parts.sum(axis=0)), 0.0
        self.log = []

    @property
    def gap(self):
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)

    def run(self) -> SPNSolution:
        for form in (_DualForm, _PrimalForm):
            if self.gap > TARGET:
                status = self.attempt(form)
                self.log.append(f"{form.__name__} {status}, gap {self.gap:.1e}")
        for _ in range(5):
            if self.gap > TARGET and self.beta.any():
                self.polish()
                self.log.append(f"polish, gap {self.gap:.1e}")
        self.empty()
        # Bounds may cross by rounding; by more, one of the two objectives is wrong.
        if not abs(self.gap) <= ACCEPT:
            raise OracleError(
                f"Lower bound {self.lower:.15g}, upper bound {self.upper:.15g}: "
                f"{'; '.join(self.log)}."
            )
        i = self.instance
        lower, upper = sorted((float(self.lower), float(self.upper)))
        g, mu, F = path_weights(i.A, self.beta), i.paths.mu, self.parts.sum(axis=0)
        b = i.intercept(F)
        return SPNSolution(
            lower=lower,
            upper=upper,
            paths=i.paths,
            beta=self.beta,
            g=g,
            K=np.tensordot(g, i.grams, axes=1),
            norms=np.sqrt(mu) * self.norms,
            q=i.quadratic_forms(self.alpha) / mu,
            intercept=b,
            decision=F + b,
            alpha=self.alpha,
            log=self.log,
        )

    def attempt(self, form):
        stated = form(self.instance)
        status = _solve(stated.problem)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            W, theta, alpha = stated.answer()
            self.offer(W, np.maximum(theta, 0.0) ** (1 / self.instance.p), alpha)
        return status

    def offer(self, W, beta, alpha):
        """Evaluate both bounds at the point and at the w which alpha and the weights give."""
        i = self.instance
        alpha = i.feasible(alpha)
        q, g = i.quadratic_forms(alpha), path_weights(i.A, beta)
        candidates = [(g * np.sqrt(q), g[:, None, None] * (i.grams @ (alpha * i.Y)))]
        if W is not None:
            parts = np.stack([L @ w for L, w in zip(i.factors, W, strict=True)])
            candidates.append((np.array([np.linalg.norm(w) for w in W]), parts))
        trials = [np.maximum(beta, 1e-12)]
        for norms, parts in candidates:
            trials.append(np.maximum(self.descend(norms, parts, 0.0), 1e-12))
        trials.append(i.balanced(q, trials[0]))
        for trial in trials:
            lower = i.dual(alpha, q, trial)
            if lower > self.lower:
                self.lower, self.alpha = lower, alpha

    def descend(self, norms, parts, margin):
        """Keep a point if it is no worse, apart from the margin; return its best weights."""
        i = self.instance
        beta = beta_step_oracle(i.A, i.c, norms**2, i.lam, i.p)
        upper = i.primal(beta, norms, parts.sum(axis=0))
        if upper <= self.upper + margin:
            self.upper, self.beta, self.norms, self.parts = upper, beta, norms, parts
        return beta

    def empty(self):
        """Set components to zero that are only there by rounding."""
        for nodes in _components(self.instance.A):
            rows = self.instance.A[:, nodes].any(axis=1)
            if 0 < self.norms[rows].max() ** 2 < EMPTY * self.norms.max() ** 2:
                norms, parts = self.norms.copy(), self.parts.copy()
                norms[rows], parts[rows] = 0.0, 0.0
                self.descend(norms, parts, 10 * TARGET * self.upper)

    def polish(self):
        """One machine at the weights found."""
        i = self.instance
        K = np.tensordot(path_weights(i.A, self.beta), i.grams, axes=1)
        cost = np.full(i.Y.shape, i.C)
        found = solve_fixed(K, i.Y, cost, loss="hinge", fit_intercept=i.fit_intercept)
        self.offer(None, self.beta, i.Y * found.dual_coef)


class _PrimalForm:
    """Minimise over w and theta; ``|w_m| <= s_m^(1/2) prod_v theta_v^(b_mv / 2)``."""

    def __init__(self, i):
        n, n_outputs = i.Y.shape
        self.Y = i.Y
        self.W = [cp.Variable((L.shape[1], n_outputs)) for L in i.factors]
        self.theta = cp.Variable(len(i.c))
        s, size = cp.Variable(len(i.A)), cp.Variable(len(i.A))
        F = cp.Variable(i.Y.shape)
        fit = sum(L @ w for L, w in zip(i.factors, self.W, strict=True))
        if i.fit_intercept:
            fit = fit + np.ones((n, 1)) @ cp.Variable((1, n_outputs))
        self.link = F == fit
        constraints = [self.link, self.theta >= 0]
        for m, b in enumerate(i.b):
            constraints.append(cp.SOC(size[m], cp.vec(self.W[m], order="C")))
            on = np.flatnonzero(b)
            sides = [s[m], *(self.theta[v] for v in on)]
            constraints += _power_cones(sides, [0.5, *(0.5 * b[on])], size[m])
        loss = i.C * cp.sum(cp.pos(1 - cp.multiply(i.Y, F)))
        penalty = 0.5 * cp.sum(s) + i.lam * (i.c @ self.theta)
        self.problem = cp.Problem(cp.Minimize(penalty + loss), constraints)

    def answer(self):
        return [w.value for w in self.W], self.theta.value, self.Y * self.link.dual_value


class _DualForm:
    """Maximise ``sum alpha - sum_m rest_m``, where the paths share ``lam c_v`` of each node.

    Path m has ``u_mv`` of it and ``q_m <= prod_v (2 u_mv / b_mv)^b_mv (2 rest_m / r)^r`` with
    ``r = 1 - sum_v b_mv``. The multipliers of the budgets are theta.
    """

    def __init__(self, i):
        alpha = self.alpha = cp.Variable(i.Y.shape)
        constraints = [alpha >= 0, alpha <= i.C]
        if i.fit_intercept:
            constraints.append(cp.sum(cp.multiply(i.Y, alpha), axis=0) == 0)
        Z = cp.multiply(i.Y, alpha)
        root, cones, spent, rest = _shares(i.b)
        constraints += cones
        self.cones = [cp.SOC(root[m], cp.vec(L.T @ Z, order="C")) for m, L in enumerate(i.factors)]
        self.budget = spent <= i.lam * i.c
        self.problem = cp.Problem(
            cp.Minimize(rest - cp.sum(alpha)), [*constraints, *self.cones, self.budget]
        )

    def answer(self):
        n_outputs = self.alpha.shape[1]
        W = [-cone.dual_value[1].reshape(-1, n_outputs) for cone in self.cones]
        return W, self.budget.dual_value, self.alpha.value


def _shares(b):
    """Variables whose square is at most the product of the shares of each path.

    Return them, their cones, what is spent of each node and what is spent beside the nodes.
    """
    rows, columns = np.nonzero(b)
    u, root = cp.Variable(len(rows)), cp.Variable(len(b))
    spread = np.zeros((b.shape[1], len(rows)))
    spread[columns, np.arange(len(rows))] = 1.0
    cones, rest = [u >= 0], cp.Constant(0.0)
    for m, exponents in enumerate(b):
        at = np.flatnonzero(rows == m)
        weights = exponents[columns[at]]
        sides = [2 * u[k] / w for k, w in zip(at, weights, strict=True)]
        free = 1 - weights.sum()
        if free > 1e-9:
            extra = cp.Variable()
            rest = rest + extra
            sides, weights = [*sides, 2 * extra / free], [*weights, free]
        # root^2 <= prod sides^weights
        cones += _power_cones(
            [cp.Constant(1.0), *sides], [0.5, *(0.5 * np.array(weights))], root[m]
        )
    return root, cones, spread @ u, rest


def _power_cones(sides, exponents, z):
    """``|z| <= prod sides^exponents``, times a one for what the exponents miss of one."""
    exponents = [float(e) for e in exponents]
    missing = 1 - sum(exponents)
    if missing > 1e-9:
        sides, exponents = [*sides, cp.Constant(1.0)], [*exponents, missing]
    if len(sides) == 1:
        return [cp.abs(z) <= sides[0]]
    cones = []
    while len(sides) > 2:
        # The rest of the product, to the power of what is left, is one number.
        rest, share = cp.Variable(), exponents[0] / sum(exponents)
        cones.append(cp.PowCone3D(sides[0], rest, z, share))
        sides, exponents, z = sides[1:], exponents[1:], rest
    return [*cones, cp.PowCone3D(*sides, z, exponents[0] / sum(exponents))]


# Parts of the problem


def beta_step_oracle(A, c, r, lam, p):
    """Minimise ``sum_m r_m / (2 g_m) + lam sum_v c_v beta_v^p_v`` over ``beta >= 0``.

    By Newton's method in ``log beta``, where the function is convex for every p, with a bound
    from the dual of this geometric program. Nodes on no path with ``r_m > 0`` get zero.
    """
    A, c, r = (np.asarray(a, dtype=float) for a in (A, c, r))
    p = np.broadcast_to(np.asarray(p, dtype=float), c.shape)
    beta = np.zeros(len(c))
    A, r = A[r > 0], r[r > 0]
    for nodes in _components(A):
        rows = A[:, nodes].any(axis=1)
        if rows.any():
            part = A[rows][:, nodes], lam * c[nodes], 0.5 * r[rows], p[nodes]
            beta[nodes] = np.exp(_smallest_sum(*part))
    return beta


def _smallest_sum(A, c, r, p):
    """Minimise ``sum_m r_m exp(-a_m . u) + sum_v c_v exp(p_v u_v)`` with all coefficients > 0."""

    def terms(u):
        return r * np.exp(-A @ u), c * np.exp(p * u)

    def balance(t, e):
        return np.max(np.abs(p * e - A.T @ t) / np.maximum(A.T @ t, p * e))

    u = np.full(len(c), np.log(r.sum() / (c @ p)) / (1 + p.max()))
    t, e = terms(u)
    for _ in range(500):
        worst = balance(t, e)
        gradient, H = p * e - A.T @ t, (A.T * t) @ A + np.diag(p**2 * e)
        scale = 1 / np.sqrt(np.diag(H))
        d = -scale * np.linalg.solve(H * scale[:, None] * scale, scale * gradient)
        step = min(1.0, 3.0 / max(np.max(np.abs(d)), 1e-300))
        for _ in range(60):
            new = terms(u + step * d)
            change = new[0].sum() + new[1].sum() - t.sum() - e.sum()
            # Below the rounding of the function only the gradient tells.
            if worst < 1e-2 and balance(*new) < 0.9 * worst:
                break
            if worst >= 1e-6 and change <= 1e-4 * step * (gradient @ d):
                break
            step *= 0.5
        else:
            break
        u, (t, e) = u + step * d, new
    # The dual: maximise sum_k x_k (1 - log(x_k / coefficient_k)) over x >= 0 of slope zero.
    x = A.T @ t / p
    bound = np.sum(t * (1 - np.log(t / r))) + np.sum(x * (1 - np.log(x / c)))
    value, worst = t.sum() + e.sum(), balance(t, e)
    if not (abs(value - bound) <= 1e-11 * value and worst <= 1e-10):
        raise OracleError(
            f"beta step: gap {value - bound:.2g} of {value:.6g}, balance {worst:.2g}."
        )
    return u


@dataclass(frozen=True)
class LambdaMax:
    """The smallest lam at which beta = 0 is optimal for p = 1."""

    lower: float
    upper: float
    alpha: np.ndarray  # (n_samples, n_outputs)
    direction: np.ndarray  # (n_nodes,), with c . d = 1 on the components that grow first

    @property
    def value(self) -> float:
        return 0.5 * (self.lower + self.upper)


def phi_oracle(A, mu, c, q, steps=20000):
    """Return bounds of ``max {sum_m mu_m q_m g_m(d) : c . d = 1, d >= 0}`` and the best d."""
    A, c, q = np.asarray(A, dtype=float), np.asarray(c, dtype=float), mu * np.asarray(q, float)
    best = (0.0, 0.0, np.zeros(len(c)))
    for nodes in _components(A):
        rows = A[:, nodes].sum(axis=1) > 0
        part, budget, value = A[rows][:, nodes], c[nodes], q[rows]
        if not value.any():
            continue
        d = np.full(len(nodes), 1 / budget.sum())
        for _ in range(steps):
            pi = value * path_weights(part, d)
            new = part.T @ pi / (budget * pi.sum())
            done = np.max(np.abs(new - d) / np.maximum(new, 1e-300)) < 1e-15
            d = new
            if done:
                break
        pi = value * path_weights(part, d)
        ratios = np.divide(part.T @ pi, budget * d, where=d > 0, out=np.zeros(len(d)))
        if ratios.max() > best[1]:
            full = np.zeros(len(c))
            full[nodes] = d
            best = (float(pi.sum()), float(ratios.max()), full)
    return best


def lambda_max_oracle(grams, structure, Y, C, intercept=True) -> LambdaMax:
    """Minimise ``phi(q(alpha)) / 2`` over the alpha whose sum is as large as it can be.

    Every p is one. With an intercept the smaller class of an output is at C and the larger one
    free with the same sum; otherwise, and for classes of equal size, ``alpha = C`` is alone.
    """
    paths, Y = structure if isinstance(structure, Paths) else brute_paths(structure), _columns(Y)
    i = _Instance(grams, paths, Y, 1.0, 1.0, np.ones(len(paths.names)), intercept)
    members = np.where(Y > 0, np.sum(Y > 0, axis=0), np.sum(Y < 0, axis=0))
    least = members.min(axis=0)
    start = least / members if intercept else np.ones(Y.shape)
    one = np.ones(len(i.A))
    lower, upper, d = phi_oracle(i.A, one, i.c, i.quadratic_forms(start))
    alpha = start
    if (start < 1).any():
        free = start < 1

        def near(alpha):
            """Move the free rows into the box and to their sum."""
            alpha = np.where(free, np.clip(alpha, 0.0, 1.0), 1.0)
            for a, rows, total in zip(alpha.T, free.T, least, strict=True):
                if rows.any():
                    few = min(1.0, total / a[rows].sum())
                    a[rows] *= few
                    room = 1 - a[rows]
                    a[rows] += room * (total - a[rows].sum()) / room.sum()
            return alpha

        def attempt(penalty, constraints, variable):
            constraints = [*constraints, variable >= 0, variable <= 1]
            constraints += [cp.sum(cp.multiply(Y, variable), axis=0) == 0]
            constraints += [variable[~free] == 1]
            _solve(cp.Problem(cp.Minimize(penalty), constraints))
            return near(variable.value)

        x, lam = cp.Variable(Y.shape), cp.Variable()
        unit = np.sqrt(upper)
        root, cones, spent, _ = _shares(i.b)
        Z = cp.multiply(Y, x) / unit
        cones += [cp.SOC(root[m], cp.vec(L.T @ Z, order="C")) for m, L in enumerate(i.factors)]
        budget = spent <= lam * i.c
        alpha = attempt(lam, [*cones, budget], x)
        _, upper, d = phi_oracle(i.A, one, i.c, i.quadratic_forms(alpha))
        # For fixed weights a quadratic function of alpha is left; below it lies its tangent,
        # whose smallest value is that of the free rows with the least slope.
        lower = 0.0
        direction = np.maximum(budget.dual_value, 0.0)
        for trial in (d, direction / (i.c @ direction)):
            K = np.tensordot(path_weights(i.A, trial), i.grams, axes=1)
            x = cp.Variable(Y.shape)
            form = cp.sum_squares(_factor(K / upper).T @ cp.multiply(Y, x))
            for point in (alpha, attempt(form, [], x)):
                slope = Y * (K @ (point * Y))
                reached = sum(
                    s[~rows].sum() + np.sort(s[rows])[: int(k) if rows.any() else 0].sum()
                    for s, rows, k in zip(slope.T, free.T, least, strict=True)
                )
                bound = 2 * reached - np.sum(slope * point)
                if bound > lower:
                    lower, d = bound, trial
    if not abs(upper - lower) <= 1e-6 * upper:
        raise OracleError(f"phi between {lower:.12g} and {upper:.12g}.")
    lower, upper = sorted((float(lower), float(upper)))
    return LambdaMax(C**2 * lower / 2, C**2 * upper / 2, C * alpha, d)


def _components(A):
    """Nodes linked by common paths."""
    linked = (A.T @ A) > 0
    left = set(range(A.shape[1]))
    while left:
        part = {min(left)}
        while (wider := {int(v) for k in part for v in np.flatnonzero(linked[k])}) - part:
            part |= wider
        left -= part
        yield sorted(part)


# Special cases


def flat_constants(lam, p):
    """Return kap and q of ``R = kap sum_m |w_m|^q`` for one product node a kernel."""
    return lam * (1 + p) * (2 * lam * p) ** (-p / (p + 1)), 2 * p / (p + 1)


def lp_cost(C, lam, p, norms):
    """Return C' of the lp-norm problem with the classifier of the flat network of these norms."""
    kap, q = flat_constants(lam, p)
    return C * np.sum(np.asarray(norms) ** q) ** (2 / q - 1) / (kap * q)


def two_level_penalty(norms, groups, lam):
    """``sqrt(2 lam) sum_l n_l^(1/4) (sum_m |w_m|^(4/3))^(3/4)``, groups as lists of paths."""
    norms = np.asarray(norms, dtype=float)
    parts = (len(m) ** 0.25 * np.sum(norms[m] ** (4 / 3)) ** 0.75 for m in groups)
    return np.sqrt(2 * lam) * sum(parts)


# Instances


def leaf(k, name=None, p=None):
    """Return a leaf, under a product node if that has a name."""
    return ("leaf", k) if name is None else ("product", [("leaf", k)], {"name": name, "p": p})


def group(members, name=None, p=None):
    return ("product", [("sum", members)], {"name": name, "p": p})


def product(factors, name=None, p=None):
    return ("product", factors, {"name": name, "p": p})


def named(numbers):
    """Leaves under product nodes called by the number of the kernel and one."""
    return [leaf(k, str(k + 1)) for k in numbers]


def fig1(upper=None, lower=None):
    """First figure of the draft, kernels 0 to 6 under the nodes 1 to 7, exponents by level."""
    nodes = [leaf(k, str(k + 1), lower) for k in range(7)]
    pair = product([("sum", nodes[2:4]), ("sum", nodes[4:])], "9", upper)
    return ("sum", [group(nodes[:2], "8", upper), pair])


def flat(n):
    return ("sum", named(range(n)))


def tree():
    return ("sum", [group(named((0, 1, 2)), "10"), group(named((5, 6)), "11")])


def square(n, p=None, shared_p=None):
    """``T + T * T`` with one T."""
    T = group([leaf(k, str(k + 1), p) for k in range(n)], "T", shared_p)
    return ("sum", [T, product([T, T], "TT")])


def deep():
    """Three layers; the nodes 11 and 12 share theirs with one or with two others."""
    narrow = group(named((2, 3)), "8")
    wide = product([("sum", [*named((4,)), leaf(3, "4b")]), ("sum", named((5, 6)))], "9")
    left = group([leaf(0, "11"), leaf(1, "12")], "10")
    second = group([leaf(0, "1b"), leaf(6, "7b")], "14")
    return ("sum", [product([("sum", [left]), ("sum", [narrow, wide])], "13"), second])


def nested():
    """A product under a product, a factor used twice, a leaf used by two sums and bare leaves."""
    shared = leaf(0)
    inner = product([leaf(1), ("sum", [shared, leaf(2)])], "inner")
    outer = product([inner, leaf(3), leaf(3)], "outer")
    return ("sum", [outer, ("sum", [shared, leaf(4)])])


@dataclass(frozen=True)
class SPNInstance:
    """One problem, ready for ``joint_oracle(*instance.arguments)``."""

    grams: np.ndarray
    structure: tuple
    Y: np.ndarray
    C: float
    lam: float
    p: float | dict
    intercept: bool
    X: np.ndarray
    y: np.ndarray

    @property
    def arguments(self):
        return self.grams, self.structure, self.Y, self.C, self.lam, self.p, self.intercept


def spn_instance(seed, structure, m, *, n=32, C=1.0, lam=1.0, p=1.0, intercept=True, **data):
    """Draw a problem; ``data`` are ``classes``, ``share`` of the second class and ``noise``."""
    X, y = _draw(seed, n, **data)
    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    Y = Y[:, 1:] if len(classes) == 2 else Y
    grams = np.stack([_BASES[k](X) for k in range(m)])
    return SPNInstance(grams, structure, Y, C, lam, p, intercept, X, y)


@cache
def spn_instances():
    """Return the problems by name. Do not change them."""
    mixed = {**dict.fromkeys("1234567", 1.5), "8": 1.0, "9": 3.0}
    return {
        "fig1_p1": spn_instance(1, fig1(), 7),
        "fig1_p2": spn_instance(2, fig1(), 7, p=2.0, n=36),
        "fig1_lam": spn_instance(3, fig1(), 7, C=2.0, lam=0.05, n=40),
        "fig1_mix": spn_instance(4, fig1(), 7, p=mixed, lam=0.3, n=30),
        "fig1_half": spn_instance(5, fig1(0.75, 4.0), 7, n=30),
        "fig1_mc3": spn_instance(6, fig1(), 7, classes=3, C=0.5, n=30),
        "fig1_raw": spn_instance(7, fig1(), 7, p=1.5, intercept=False),
        "flat_p1": spn_instance(8, flat(5), 5, n=40),
        "flat_p15": spn_instance(9, flat(5), 5, n=40, p=1.5, share=0.3),
        "tree_p1": spn_instance(10, tree(), 7, n=40, C=0.2),
        "square_p1": spn_instance(11, square(5), 5, n=30),
        "square_own": spn_instance(12, square(5, 3.0, 1.0), 5, n=30, p=1.25),
        "deep_p1": spn_instance(13, deep(), 7, n=30),
        "deep_p3": spn_instance(14, deep(), 7, n=30, p=3.0),
        "nested_p1": spn_instance(15, nested(), 5, n=34, share=0.35),
        "weak_p1": spn_instance(18, fig1(), 7, C=0.3, noise=3.0, n=36),
        "zero_p1": spn_instance(16, fig1(), 7, C=0.2, noise=3.0, n=36),
    }


def _draw(seed, n, classes=2, share=None, noise=0.4):
    rng = np.random.default_rng([seed, 1402])
    X = rng.normal(size=(n, 5))
    signal = np.sin(1.5 * X[:, 0]) * X[:, 1] + 0.7 * X[:, 2] + noise * rng.normal(size=n)
    rank = np.argsort(np.argsort(signal))
    if share is not None:
        return X, (rank >= n - round(share * n)).astype(int)
    return X, rank * classes // n


def _gauss(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X) ** 2, axis=2))


def _cosine(K):
    d = np.sqrt(np.diag(K))
    return K / d[:, None] / d


_BASES = (
    lambda X: _gauss(X[:, :2], 0.5),
    lambda X: _cosine(X[:, :3] @ X[:, :3].T),
    lambda X: _gauss(X[:, :1], 1.0),
    lambda X: _cosine((1 + X[:, 1:4] @ X[:, 1:4].T) ** 2),
    lambda X: _gauss(X[:, 3:], 2.0),
    lambda X: _gauss(X[:, 1:3], 0.2),
    lambda X: _cosine(1 + X[:, 2:] @ X[:, 2:].T),
)


def _columns(Y):
    Y = np.asarray(Y, dtype=float)
    return Y[:, None] if Y.ndim == 1 else Y


def as_dict(structure, kernels):
    """Write the tuples of the oracles as a dict; one leaf a kernel."""
    nodes, known = {}, {}

    def read(entry):
        kind, content = entry[:2]
        key = ("leaf", content) if kind == "leaf" else id(entry)
        if key not in known:
            name = known[key] = f"n{len(known)}"
            nodes[name] = {"kind": kind}
            if kind == "leaf":
                nodes[name]["kernel"] = kernels[content]
            else:
                nodes[name]["children"] = [read(child) for child in content]
            options = entry[2] if len(entry) > 2 else {}
            nodes[name] |= {k: v for k, v in options.items() if v is not None}
        return known[key]

    return {"version": 1, "root": read(structure), "nodes": nodes}
