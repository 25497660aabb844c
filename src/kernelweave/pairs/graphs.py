"""Pairwise constraints from a graph: links, unlinked pairs and random walks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from kernelweave._types import Indices
from kernelweave.errors import InputError
from kernelweave.kernels.base import is_sparse

from .constraints import Constraints


def read_links(graph: Any, n_samples: int | None = None) -> tuple[Indices, int]:
    """Return the links of a graph as distinct unordered pairs of row numbers, and the row count.

    ``graph`` is an array of shape (n_edges, 2), a scipy sparse matrix or a networkx graph, whose
    nodes are numbered in its own order. Directions, weights and self-loops are ignored. An array of
    edges needs ``n_samples`` where its largest number is not the last row.
    """
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = np.array([(number[a], number[b]) for a, b in graph.edges()], dtype=np.intp)
        edges, size = edges.reshape(-1, 2), len(number)
    elif is_sparse(graph):
        if graph.shape[0] != graph.shape[1]:
            raise InputError(f"graph: a matrix must be square, got the shape {graph.shape}.")
        table = graph.tocoo()
        there = table.data != 0
        edges = np.column_stack([table.coords[0][there], table.coords[1][there]]).astype(np.intp)
        size = graph.shape[0]
    else:
        edges = np.asarray(graph)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise InputError(
                "graph: must be an array of row numbers of shape (n_edges, 2), a sparse matrix or "
                f"a networkx graph, got {type(graph).__name__} of shape {np.shape(graph)}."
            )
        edges = edges.astype(np.intp)
        size = int(edges.max(initial=-1)) + 1
    size = size if n_samples is None else int(n_samples)
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        far = int(edges.max()) if edges.min() >= 0 else int(edges.min())
        raise InputError(f"graph: links must join rows 0 to {size - 1}, found {far}.")
    ordered = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
    return np.unique(ordered, axis=0), size


def constraints_from_graph(
    graph: Any,
    *,
    n_samples: int | None = None,
    n_negatives: int | None = None,
    random_state: Any = None,
) -> Constraints:
    """Label linked pairs as same, and as many pairs without a link as different.

    Parameters
    ----------
    graph : array of shape (n_edges, 2), scipy sparse matrix or networkx graph
        Directions, weights, repeats and self-loops are ignored.
    n_samples : int, optional
        Rows of the data, where they do not follow from the graph.
    n_negatives : int, optional
        Pairs without a link to draw; as many as there are links by default.
    random_state : int, RandomState or None
        For the draw.

    Returns
    -------
    constraints : Constraints
        ``pairs``, ``labels`` and ``n_samples``.

    Examples
    --------
    >>> from kernelweave import constraints_from_graph
    >>> found = constraints_from_graph([[0, 1], [1, 2], [2, 1]], n_samples=6, random_state=0)
    >>> found.pairs[:2].tolist(), found.labels.tolist()
    ([[0, 1], [1, 2]], [1.0, 1.0, -1.0, -1.0])
    """
    links, size = read_links(graph, n_samples)
    if not len(links):
        raise InputError("graph: it has no link between two different rows.")
    count = len(links) if n_negatives is None else int(n_negatives)
    others = sample_unlinked(links, size, count, random_state)
    labels = np.repeat([1.0, -1.0], [len(links), len(others)])
    return Constraints(np.concatenate([links, others]), labels, size)


def sample_unlinked(links: Indices, n_samples: int, count: int, random_state: Any) -> Indices:
    """Draw ``count`` distinct pairs of different rows that are not linked."""
    random = check_random_state(random_state)
    free = n_samples * (n_samples - 1) // 2 - len(links)
    if count > free:
        raise InputError(
            f"n_negatives: {count} pairs without a link are wanted, but there are only {free}."
        )
    taken = np.unique(links[:, 0] * n_samples + links[:, 1])
    if 2 * count > free:  # draws would mostly repeat, so all pairs are enumerated
        upper = np.triu_indices(n_samples, 1)
        keys = np.setdiff1d(upper[0] * n_samples + upper[1], taken)
        keys = random.permutation(keys)[:count]
    else:
        keys = np.empty(0, dtype=np.intp)
        while len(keys) < count:
            drawn = random.randint(0, n_samples, size=(2 * (count - len(keys)) + 10, 2))
            drawn = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
            fresh = drawn[:, 0] * n_samples + drawn[:, 1]
            fresh = fresh[~np.isin(fresh, taken)]
            both = np.concatenate([keys, fresh])
            _, first = np.unique(both, return_index=True)
            keys = both[np.sort(first)][:count]  # in the order drawn: no bias to small numbers
    return np.column_stack([keys // n_samples, keys % n_samples])


def walk_pairs(
    links: Indices, n_samples: int, count: int, stop: float, random_state: Any
) -> Indices:
    """Return the ends of ``count`` random walks along links; repeats are kept.

    A walk stops after each step with probability ``stop``, in (0, 1]; walks that end where they
    began are drawn again.
    """
    random = check_random_state(random_state)
    A = adjacency(links, n_samples)
    starts, ends, degree = A.indptr[:-1], A.indices, np.diff(A.indptr)
    linked = np.flatnonzero(degree)
    found: list[Indices] = []
    left = count
    while left > 0:
        origin = random.choice(linked, size=left)
        here = origin.copy()
        walking = np.ones(left, dtype=bool)
        while walking.any():
            at = here[walking]
            pick = (random.random_sample(len(at)) * degree[at]).astype(np.intp)
            here[walking] = ends[starts[at] + pick]
            going = random.random_sample(len(at)) >= stop
            walking[np.flatnonzero(walking)[~going]] = False
        away = here != origin
        found.append(np.column_stack([origin[away], here[away]]))
        left -= int(away.sum())
    return np.sort(np.concatenate(found), axis=1)


def adjacency(links: Indices, n_samples: int) -> csr_array[np.float64]:
    """Return the adjacency matrix of distinct unordered links."""
    rows = np.concatenate([links[:, 0], links[:, 1]])
    columns = np.concatenate([links[:, 1], links[:, 0]])
    ones = np.ones(len(rows))
    return csr_array((ones, (rows, columns)), shape=(n_samples, n_samples))
