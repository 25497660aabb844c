"""Cluster the rows of a table, with or without pairwise constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kernelweave._types import Floats, Indices
from kernelweave.errors import DataError, InputError
from kernelweave.estimators import KernelSpectralClustering, PairwiseKernelLearner
from kernelweave.kernels import RBF, Kernel, Overlap, Words

from .columns import describe_columns, note_columns
from .kernels import offer_kernels
from .methods import make_preparer
from .predicting import last_step
from .problem import Problem, check_column, read_sources

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 4000  # rows whose similarities are held at once
_SMALL = 0.01  # share of the rows below which a cluster is doubted
_MOST = 10  # maximum number of clusters that is chosen by eigenvalues

Similarity: TypeAlias = Callable[[Any, Any], Floats]


@dataclass(frozen=True)
class TableClusters:
    """Clusters of the rows of a table.

    Attributes
    ----------
    labels : ndarray of int
        Cluster of every row, the largest cluster first.
    sizes : list of int
        Number of rows in each cluster.
    kernels : pandas.DataFrame or None
        Weights that were learned from a target or from pairs.
    agreement : float or None
        Adjusted Rand index with the given labels, on the rows that have one.
    notes : tuple of str
        A sentence for every step that changed the data.
    """

    labels: Indices
    sizes: list[int]
    kernels: pd.DataFrame | None
    agreement: float | None
    notes: tuple[str, ...]


def cluster_table(
    frame: pd.DataFrame,
    n_clusters: int | None = None,
    *,
    ignore: Sequence[str] = (),
    target: str | None = None,
    pairs: tuple[Indices, Indices] | None = None,
    model: Any = None,
    sources: Mapping[str, Sequence[str]] | None = None,
    missing: str = "fill",
    max_rows: int = MAX_ROWS,
    seed: int = 0,
) -> TableClusters:
    """Group the rows of a table by spectral clustering.

    Without hints, all columns count the same: numbers by a Gaussian, categories by equality, text
    by words. With a target of which some values are known, with pairs, or with a model, the kernel
    is the one learned from them.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    n_clusters : int, optional
        None: as many as the target has classes, or by the largest gap between eigenvalues.
    ignore : sequence of str
        Columns to leave out.
    target : str, optional
        A column with the classes of some rows, missing in others.
    pairs : tuple of two arrays, optional
        Row numbers of shape (n_pairs, 2), and +1 (same) or -1 (different).
    model : Pipeline, optional
        A fitted model with a kernel.
    sources : dict of str to sequence of str, optional
        Columns of each source, where kernels are learned; see `make_problem`.
    missing : {"fill", "refuse", "off", "complete"}
        What is done with missing values; the last two where kernels are learned.
    max_rows : int
        Rows that are clustered; others join the cluster they are most similar to on average.
    seed : int
        Seed of all random draws.

    Returns
    -------
    clusters : TableClusters
        The clusters.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> x = np.concatenate([np.linspace(0, 1, 20), np.linspace(9, 10, 30)])
    >>> cluster_table(pd.DataFrame({"x": x}), 2).sizes
    [30, 20]
    """
    if sum(hint is not None for hint in (target, pairs, model)) > 1:
        raise InputError("Only one of target, pairs and model can be given.")
    if (sources or missing in ("off", "complete")) and target is None and pairs is None:
        raise InputError(
            "missing: sources, and the rules 'off' and 'complete', are for kernels that are "
            "learned; give a target or pairs, or leave them out."
        )
    left_out = [*ignore, *([target] if target else [])]
    for column in left_out:
        check_column(frame, column)
    y = None if target is None else frame[target]
    learned = None
    notes: list[str] = []
    if model is not None:
        estimator = last_step(model)
        if not hasattr(estimator, "kernel"):
            raise InputError(f"A {type(estimator).__name__} has no kernel to cluster by.")
        rows = frame if model is estimator else model[0].transform(frame)
        similarity = estimator.kernel
    else:
        problem = _unlabelled(frame.drop(columns=left_out), sources or {}, missing)
        notes += note_columns(problem.kinds)
        table = make_preparer(problem, "columns" if y is None and pairs is None else "frame")
        rows = table.fit_transform(problem.X.reset_index(drop=True))
        if y is None and pairs is None:
            similarity = _equal_weights(problem)
        else:
            learned = _learn(rows, problem, y, pairs, seed)
            similarity = learned.kernel
            if y is not None:
                notes.append(f"kernels were learned from {y.notna().sum()} rows with {y.name!r}")
    if n_clusters is None and y is not None:
        n_clusters = int(y.nunique())
    labels = _cluster(rows, similarity, n_clusters, max_rows, seed, notes)
    agreement = None
    if y is not None:
        known = y.notna().to_numpy()
        agreement = float(adjusted_rand_score(y[known].map(str), labels[known]))
    kernels = None if learned is None else learned.to_frame()
    sizes = np.bincount(labels).tolist()
    notes += _doubts(sizes)
    return TableClusters(labels, sizes, kernels, agreement, tuple(notes))


def _doubts(sizes: list[int]) -> list[str]:
    """Return a warning where clusters are single rows, which are outliers rather than groups."""
    least = max(2, int(_SMALL * sum(sizes)))
    small = [size for size in sizes if size < least]
    if not small or len(sizes) < 2:
        return []
    which = "1 cluster has" if len(small) == 1 else f"{len(small)} clusters have"
    return [
        f"{which} fewer than {least} of {sum(sizes)} rows: these are outliers rather than groups, "
        "so the rows may have no clusters; try fewer (--clusters), leave columns out (--ignore), "
        "or give examples (--target, --pairs)"
    ]


def _unlabelled(X: pd.DataFrame, sources: Mapping[str, Sequence[str]], missing: str) -> Problem:
    kinds = describe_columns(X)
    lost = [c.name for c in kinds if c.kind == "none"]
    if len(lost) == len(kinds):
        raise DataError("No column is left to compare rows by.")
    X = X.drop(columns=lost)
    found, _ = read_sources(X, sources, missing, lost)
    rows = X.index.to_series()
    return Problem(X, rows, False, tuple(kinds), sources=found, missing=missing)


def _equal_weights(problem: Problem) -> Kernel:
    """Return a kernel in which every column counts the same."""
    numbers, categories = problem.columns("number", "date"), problem.columns("category")
    parts: list[Kernel] = [Words(columns=name) for name in problem.columns("text")]
    if numbers:  # half the root mean squared distance of two standardised rows
        parts.append(len(numbers) * RBF(0.5 * (2.0 * len(numbers)) ** 0.5, columns=numbers))
    if categories:
        parts.append(len(categories) * Overlap(columns=categories))
    return reduce(add, parts)


def _learn(rows: Any, problem: Problem, y: Any, pairs: Any, seed: int) -> Any:
    learner = PairwiseKernelLearner(offer_kernels(problem), fit_intercept=True, random_state=seed)
    if y is None:
        return learner.fit(rows, pairs=pairs[0], labels=pairs[1])
    known = y.notna().to_numpy()
    if y[known].nunique() < 2:
        raise InputError(f"The column {y.name!r} must have two classes or more to learn from.")
    return learner.fit(rows[known], y[known].map(str).to_numpy())


def _cluster(
    rows: Any,
    similarity: Similarity,
    n_clusters: int | None,
    max_rows: int,
    seed: int,
    notes: list[str],
) -> Indices:
    n = len(rows)
    chosen = np.arange(n)
    if n > max_rows:
        chosen = np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False))
        notes.append(
            f"{max_rows} of {n} rows were clustered; each of the others joined the cluster it is "
            "most similar to on average"
        )
    part = rows.iloc[chosen]
    K = similarity(part, part)
    if n_clusters is None:
        n_clusters = _count_clusters(K, seed)
        notes.append(
            f"{n_clusters} clusters, by the largest gap between eigenvalues (--clusters sets it)"
        )
    if n_clusters > len(chosen):
        raise InputError(f"clusters: must be at most the {len(chosen)} rows, got {n_clusters}.")
    spectral = KernelSpectralClustering(n_clusters, affinity="precomputed", random_state=seed)
    found = spectral.fit((K + K.T) / 2).labels_
    labels = np.empty(n, dtype=np.intp)
    labels[chosen] = found
    rest = np.setdiff1d(np.arange(n), chosen)
    members = np.eye(n_clusters)[found]
    members /= np.maximum(members.sum(axis=0), 1.0)
    for start in range(0, len(rest), max_rows):
        some = rest[start : start + max_rows]
        labels[some] = (similarity(rows.iloc[some], part) @ members).argmax(axis=1)
    order = np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable")
    return np.argsort(order)[labels]


def _count_clusters(K: Floats, seed: int) -> int:
    """Return after how many eigenvalues, two or more, the largest gap comes."""
    most = min(_MOST + 1, len(K) - 1)
    if most < 3:
        return min(2, len(K))
    spectral = KernelSpectralClustering(most, affinity="precomputed", n_init=1, random_state=seed)
    values = spectral.fit((K + K.T) / 2).eigenvalues_
    return int(np.argmax(-np.diff(values)[1:])) + 2
