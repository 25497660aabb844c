"""Weights learned as deviations from equal ones, with options chosen by held-out pairs."""

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
from kernelweave.pairs.solver import PairProblem, solve_pairs

from .cluster import embed, group_points
from .features import pair_features
from .graphs import adjacency, sample_unlinked, walk_pairs
from .shapes import ShapedKernel, smoother

GAMMAS = {
    "diag": (0.0, 0.5, 1.0, 1.5, 2.0, 2.5),
    "words": (0.0, 0.5, 1.0),
    "graph": (1.0, 1.5, 2.0),
}
ALPHAS = {"diag": (1.0, 0.1), "words": (0.1,), "graph": (0.1,)}
RHOS = {
    "diag": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf),
    "words": (0.3, 1.0, 3.0, np.inf),
    "graph": (0.3, 1.0, 3.0, np.inf),
}
STEPS = {"diag": (1,), "words": (1, 2, 4, 8), "graph": (1, 2, 4, 8)}
_LARGER = 4  # walks and negatives drawn, relative to the links
_DENSE_COPIES, _SPARSE_COPIES = 3, 5  # of the products of columns while weights are learned
_VECTORS = 30  # with an entry per pair, of the search for weights and for drawing pairs
_COUNTED = 2000  # pairs by which the products of sparse rows are counted
_RESTARTS = 5  # of k-means while options are compared


@dataclass(frozen=True)
class Setting:
    """Options of the learner.

    Parameters
    ----------
    shape : {"diag", "words", "graph"}
        The kernel that the weights stand for.
    gamma : float
        Columns are multiplied by their idf to this power.
    alpha : float
        Probability that a walk stops after a step; at 1 the links themselves are the positives.
    rho : float
        Strength of the pull towards equal weights; infinity gives equal weights.
    steps : int
        Steps along the links in ``words`` and ``graph``.
    """

    shape: str
    gamma: float
    alpha: float
    rho: float
    steps: int


@dataclass(frozen=True)
class Judged:
    """A setting and how well its clusters agree with held-out pairs.

    Parameters
    ----------
    setting : Setting
        The options.
    scores : tuple of float
        On each split, the share of held-out same pairs within one cluster less that of others.
    """

    setting: Setting
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """Mean over the splits."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Links:
    """Pairs to learn from.

    Parameters
    ----------
    same : ndarray of shape (n_same, 2)
        Distinct unordered pairs that belong together.
    different : ndarray of shape (n_different, 2) or None
        Pairs that do not; None to draw them.
    n_samples : int
        Rows.
    """

    same: Indices
    different: Indices | None
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
    """Weights of one setting.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        Of the scaled columns.
    bias, scale : float
        Bias, and the equal weight they are pulled to.
    converged : bool
        Whether the search for weights ended.
    n_iter : int
        Newton steps.
    """

    weights: Floats
    bias: float
    scale: float
    converged: bool
    n_iter: int = 0


def idf(X: Any) -> Floats:
    """Return the logarithm of rows by rows in which a column is not zero."""
    n = X.shape[0]
    if hasattr(X, "tocsc"):
        counts = np.diff(X.tocsc().indptr)
    else:
        counts = np.count_nonzero(X, axis=0)
    return np.where(counts > 0, np.log(n / np.maximum(counts, 1)), 0.0)


def scale_rows(X: Any, factors: Floats) -> Any:
    """Multiply columns, and bring rows to unit length; rows of zeros stay."""
    if hasattr(X, "tocsr"):
        scaled = csr_array(X @ diags_array(factors))
        largest = scaled.max(axis=1).toarray().ravel()  # no value is negative
        scaled = csr_array(diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ scaled)
        lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
        return csr_array(diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ scaled)
    scaled = X * factors
    # Squares of huge or tiny values would not be numbers, or zero.
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

    Parameters
    ----------
    X : csr_array or ndarray
        Scaled rows.
    links : Links
        Pairs.
    alpha : float
        Probability that a walk stops after a step.
    rhos : sequence of float
        Strengths; they share the pairs, and each starts from the last.
    random_state : int, RandomState or None
        For walks and negatives.
    tol : float
        Relative projected gradient to stop at.
    max_iter : int
        Newton steps at most, for each strength.
    """
    random = check_random_state(random_state)
    count = _LARGER * len(links.same)
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
            equal = scale if scale > 0 else 1.0  # no pull at all: any equal weights do
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
    """Refuse pairs whose products of columns would not fit in the memory, before drawing any.

    Parameters
    ----------
    X : csr_array or ndarray
        Rows.
    links : Links
        Pairs.
    alphas : sequence of float
        All probabilities that `learn` will be called with.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of what is free.
    """
    drawn = _LARGER * len(links.same)
    n_pairs = len(links.same) if min(alphas) >= 1 else drawn
    n_pairs += drawn if links.different is None else len(links.different)
    if is_sparse(X):
        # Links share more columns than pairs that are drawn.
        some = links.same[:: -(-len(links.same) // _COUNTED)]
        bytes_a_pair = 12.0 * pair_features(X, some).nnz / len(some)
        rows, copies = 12.0 * X.nnz, _SPARSE_COPIES
    else:
        bytes_a_pair, rows, copies = 8.0 * X.shape[1], 8.0 * X.size, _DENSE_COPIES
    check_memory(
        f"{X.shape[1]} columns at {n_pairs} pairs need",
        {
            "products of columns": copies * bytes_a_pair * n_pairs,
            "vectors": 8.0 * _VECTORS * n_pairs,
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
    """Yield the settings to compare; an option that is given is not varied."""

    def values(name: str, usual: dict[str, tuple[Any, ...]]) -> tuple[Any, ...]:
        given = fixed.get(name)
        return usual[shape] if given is None else (given,)

    for gamma, alpha, rho, steps in product(
        values("gamma", GAMMAS),
        values("alpha", ALPHAS),
        values("rho", RHOS),
        values("steps", STEPS),
    ):
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
) -> list[Judged]:
    """Judge settings by pairs that took no part in learning, best first.

    Parameters
    ----------
    X : csr_array or ndarray
        Rows as given.
    links : Links
        Pairs.
    candidates : sequence of Setting
        What to compare.
    n_clusters : int
        Clusters to find.
    n_splits : int
        How often to hold out.
    holdout : float
        Share of the pairs held out.
    random_state : int, RandomState or None
        For splits, walks and k-means.
    """
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
                    labels = group_points(found, n_clusters, _RESTARTS, learn_seed)
                    scores[setting].append(contrast(labels, held))
    judged = [Judged(setting, tuple(values)) for setting, values in scores.items()]
    return sorted(judged, key=lambda item: -item.score)


def contrast(labels: Indices, held: Links) -> float:
    """Return how much more often held-out same pairs share a cluster than others do."""
    together = float((labels[held.same[:, 0]] == labels[held.same[:, 1]]).mean())
    if held.different is not None:
        apart = float((labels[held.different[:, 0]] == labels[held.different[:, 1]]).mean())
    else:
        shares = np.bincount(labels) / len(labels)
        apart = float(shares @ shares)
    return together - apart
