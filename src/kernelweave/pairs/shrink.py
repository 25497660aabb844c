"""Kernel weights learned from links as deviations from equal weights (method ``shrink``).

Columns are scaled by powers of their idf, positives are enlarged by random walks, and logistic
regression with a bias shrinks the weights towards the best common weight. Settings are compared by
how much more often held-out same pairs share a cluster than other pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.utils import check_random_state

from kernelweave._types import Floats, Indices
from kernelweave.banks import check_memory
from kernelweave.kernels.base import is_sparse

from .cluster import embed, group_points
from .graphs import adjacency, sample_unlinked, walk_pairs
from .shapes import ShapedKernel, smoother
from .solver import PairProblem, solve_pairs
from .values import pair_features


@dataclass(frozen=True)
class Grid:
    """Values of the options in `Setting` that are compared for one shape of the kernel."""

    gamma: tuple[float, ...]
    alpha: tuple[float, ...]
    rho: tuple[float, ...]  # infinity: equal weights are always compared
    steps: tuple[int, ...]


# Chosen on Cora and Citeseer; the ends of rho were widened where the best setting was at an end.
GRIDS = {
    "diag": Grid(
        gamma=(0.0, 0.5, 1.0, 1.5, 2.0, 2.5),
        alpha=(1.0, 0.1),
        rho=(0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf),
        steps=(1,),
    ),
    "words": Grid((0.0, 0.5, 1.0), (0.1,), (0.3, 1.0, 3.0, np.inf), (1, 2, 4, 8)),
    "graph": Grid((1.0, 1.5, 2.0), (0.1,), (0.3, 1.0, 3.0, np.inf), (1, 2, 4, 8)),
}


@dataclass(frozen=True)
class ShrinkOptions:
    """Constants of the method."""

    drawn_per_link: int = 4  # walks and negatives; used in the runs on Cora and Citeseer
    n_init: int = 5  # starts of k-means while settings are compared; used in the same runs
    # For the estimate of memory:
    dense_copies: int = 3  # of the products of columns while weights are learned
    sparse_copies: int = 5
    vectors: int = 30  # with an entry per pair
    counted: int = 2000  # pairs by which the products of sparse rows are counted


OPTIONS = ShrinkOptions()


@dataclass(frozen=True)
class Setting:
    """Options of the learner."""

    shape: str  # of the kernel, see `ShapedKernel`
    gamma: float  # columns are multiplied by their idf to this power
    alpha: float  # probability that a walk stops after a step; at 1 the links are the positives
    rho: float  # strength of the shrinkage towards equal weights; infinity gives equal weights
    steps: int  # along the links in ``words`` and ``graph``


@dataclass(frozen=True)
class Assessment:
    """A setting and its contrast on the held-out pairs of every split."""

    setting: Setting
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Mean over the splits."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Links:
    """Pairs to learn from."""

    same: Indices  # distinct unordered pairs
    different: Indices | None  # None: drawn from the unlinked pairs
    n_samples: int

    def split(self, holdout: float, random: Any) -> tuple[Links, Links]:
        """Hold out a share of both kinds."""

        def part(pairs: Indices) -> tuple[Indices, Indices]:
            order = random.permutation(len(pairs))
            count = min(max(1, round(holdout * len(pairs))), len(pairs) - 1)
            return pairs[np.sort(order[count:])], pairs[np.sort(order[:count])]

        same, same_out = part(self.same)
        other, other_out = (None, None) if self.different is None else part(self.different)
        return replace(self, same=same, different=other), Links(same_out, other_out, self.n_samples)


@dataclass(frozen=True)
class Learned:
    """Weights of one setting."""

    weights: Floats  # of the scaled columns
    bias: float
    scale: float  # the common weight they are shrunk to
    converged: bool
    n_iter: int = 0  # Newton steps


def idf(X: Any) -> Floats:
    """Return ``ln(n_samples / rows in which a column is not zero)``."""
    n = X.shape[0]
    if hasattr(X, "tocsc"):
        counts = np.diff(X.tocsc().indptr)
    else:
        counts = np.count_nonzero(X, axis=0)
    return np.where(counts > 0, np.log(n / np.maximum(counts, 1)), 0.0)


def scale_rows(X: Any, factors: Floats) -> Any:
    """Multiply columns, and scale rows to unit length; rows of zeros stay."""
    if hasattr(X, "tocsr"):
        scaled = csr_array(X @ diags_array(factors))
        largest = scaled.max(axis=1).toarray().ravel()  # no value is negative
        scaled = csr_array(diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ scaled)
        lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        return csr_array(diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ scaled)
    scaled = X * factors
    # Divided by the largest entry first: squares of huge or tiny values overflow or underflow.
    largest = np.abs(scaled).max(axis=1, keepdims=True, initial=0.0)
    scaled /= np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1.0)


def column_factors(X: Any, gamma: float) -> Floats:
    """Return the idf of every column to the power ``gamma``; all ones at zero."""
    return np.ones(X.shape[1]) if gamma == 0 else idf(X) ** gamma


def learn(
    X: Any,
    links: Links,
    alpha: float,
    rhos: Sequence[float],
    random_state: Any,
    *,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> dict[float, Learned]:
    """Learn weights of the columns of scaled rows for several strengths, on one draw of pairs.

    Strengths are solved in descending order, each from the weights of the one before, to a relative
    projected gradient of ``tol``, of which 1e-4 suffices for clustering, in at most ``max_iter``
    Newton steps each.
    """
    random = check_random_state(random_state)
    count = OPTIONS.drawn_per_link * len(links.same)
    same = (
        links.same if alpha >= 1 else walk_pairs(links.same, links.n_samples, count, alpha, random)
    )
    other = links.different
    if other is None:
        free = links.n_samples * (links.n_samples - 1) // 2 - len(links.same)
        other = sample_unlinked(links.same, links.n_samples, min(count, free), random)
    F = pair_features(X, np.concatenate([same, other]))
    s = np.repeat([1.0, -1.0], [len(same), len(other)])
    c = np.repeat([0.5 / len(same), 0.5 / len(other)], [len(same), len(other)])
    scale, bias, curvature = _equal_weights(F, s, c)
    problem = PairProblem(F, c, F.T @ (c * s), 1.0, prior=scale, balance=float(c @ s))
    out: dict[float, Learned] = {}
    start = (np.full(X.shape[1], scale), bias)
    for rho in sorted(rhos, reverse=True):
        if not np.isfinite(rho) or curvature <= 0:
            equal = scale if scale > 0 else 1.0  # without a preferred scale any equal weights do
            out[rho] = Learned(np.full(X.shape[1], equal), bias, scale, True)
            continue
        result = solve_pairs(
            replace(problem, lam=rho * curvature), start=start, tol=tol, max_iter=max_iter
        )
        start = (result.weights, result.bias)
        out[rho] = Learned(result.weights, result.bias, scale, result.converged, result.n_iter)
    return out


def refuse_if_too_large(
    X: Any, links: Links, alphas: Sequence[float], memory_limit: float | str | None
) -> None:
    """Refuse pairs whose products of columns exceed the memory limit, before drawing any.

    ``alphas`` are all probabilities that `learn` will be called with.
    """
    drawn = OPTIONS.drawn_per_link * len(links.same)
    n_pairs = len(links.same) if min(alphas) >= 1 else drawn
    n_pairs += drawn if links.different is None else len(links.different)
    if is_sparse(X):
        # Linked rows share more columns than drawn pairs: an upper bound.
        some = links.same[:: -(-len(links.same) // OPTIONS.counted)]
        bytes_a_pair = 12.0 * pair_features(X, some).nnz / len(some)
        rows, copies = 12.0 * X.nnz, OPTIONS.sparse_copies
    else:
        bytes_a_pair, rows, copies = 8.0 * X.shape[1], 8.0 * X.size, OPTIONS.dense_copies
    check_memory(
        f"{X.shape[1]} columns at {n_pairs} pairs need",
        {
            "products of columns": copies * bytes_a_pair * n_pairs,
            "vectors": 8.0 * OPTIONS.vectors * n_pairs,
            "scaled rows": 3.0 * rows,
        },
        memory_limit,
        "use fewer pairs",
    )


def _equal_weights(F: Any, s: Floats, c: Floats) -> tuple[float, float, float]:
    """Return the best common weight and bias, and the mean curvature of a column there."""
    v = np.asarray(F.sum(axis=1)).ravel()
    size = float(c @ v**2)
    if size <= 0:
        return 0.0, 0.0, 0.0
    one = PairProblem(
        v[:, None], c, np.array([float((c * s) @ v)]), 1e-9 * size, balance=float(c @ s)
    )
    result = solve_pairs(one, tol=1e-10)
    u = result.weights[0] * v + result.bias
    h = c * 0.25 / np.cosh(0.5 * np.clip(u, -500, 500)) ** 2
    squares = (F.multiply(F) if hasattr(F, "multiply") else F**2).T @ h
    present = np.asarray(abs(F).sum(axis=0)).ravel() > 0
    curvature = float(np.asarray(squares).ravel()[present].mean()) if present.any() else 0.0
    return float(result.weights[0]), result.bias, curvature


def settings(shape: str, **fixed: Any) -> Iterator[Setting]:
    """Yield the settings to compare; a fixed option is not varied."""
    names = ("gamma", "alpha", "rho", "steps")
    values = (
        getattr(GRIDS[shape], name) if fixed.get(name) is None else (fixed[name],) for name in names
    )
    for gamma, alpha, rho, steps in product(*values):
        yield Setting(shape, gamma, alpha, rho, steps)


def select(
    X: Any,
    links: Links,
    candidates: Sequence[Setting],
    n_clusters: int,
    *,
    n_splits: int,
    holdout: float,
    random_state: Any,
) -> list[Assessment]:
    """Compare settings by pairs held out of learning; the best comes first."""
    random = check_random_state(random_state)
    seeds = random.randint(2**31 - 1, size=(n_splits, 2))
    scores: dict[Setting, list[float]] = {setting: [] for setting in candidates}
    for split_seed, learn_seed in seeds.tolist():
        rest, held = links.split(holdout, np.random.RandomState(split_seed))
        S = smoother(adjacency(rest.same, rest.n_samples))
        for gamma in sorted({s.gamma for s in candidates}):
            scaled = scale_rows(X, column_factors(X, gamma))
            for alpha in sorted({s.alpha for s in candidates if s.gamma == gamma}):
                group = [s for s in candidates if (s.gamma, s.alpha) == (gamma, alpha)]
                learned = learn(scaled, rest, alpha, [s.rho for s in group], learn_seed)
                for setting in group:
                    kernel = ShapedKernel(
                        setting.shape, scaled, learned[setting.rho].weights, S, setting.steps
                    )
                    found = embed(kernel.operator(), n_clusters)
                    labels = group_points(found, n_clusters, OPTIONS.n_init, learn_seed)
                    scores[setting].append(contrast(labels, held))
    assessed = [Assessment(setting, tuple(values)) for setting, values in scores.items()]
    return sorted(assessed, key=lambda item: -item.score)


def contrast(labels: Indices, held: Links) -> float:
    """Return the share of held-out same pairs within a cluster, minus that of different pairs.

    Without different pairs, that of all pairs of rows takes their place.
    """
    together = float((labels[held.same[:, 0]] == labels[held.same[:, 1]]).mean())
    if held.different is not None:
        apart = float((labels[held.different[:, 0]] == labels[held.different[:, 1]]).mean())
    else:
        shares = np.bincount(labels) / len(labels)
        apart = float(shares @ shares)
    return together - apart
