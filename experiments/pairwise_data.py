"""Linked documents, and the pairs of every trial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave import constraints_from_graph
from kernelweave.datasets import load_dataset
from kernelweave.pairs import Constraints
from kernelweave.pairs.shrink import column_factors, scale_rows

DATA = {"cora": "Cora", "citeseer": "Citeseer"}
N_TRIALS = 5
FIRST_SEED = 9201  # no method was developed or inspected on these
FEWEST_KNOWN = 10
PER_CLASS = 20
DRAWS = 3  # of labelled documents in a trial


@dataclass(frozen=True)
class Trial:
    """Documents, and the pairs of one trial.

    Parameters
    ----------
    X : csr_array of shape (n_samples, n_features)
        Documents as given, zeros and ones.
    y : ndarray of shape (n_samples,)
        Classes; no method sees them but through the sample of known pairs.
    constraints : Constraints
        Links, and as many pairs without one.
    truth : ndarray of shape (n_pairs,)
        Whether a pair really is of one class, +1 or -1.
    known : ndarray of shape (n_known,)
        A hundredth of the pairs, whose truth is known.
    seed : int
        Of the trial.
    """

    X: Any
    y: Any
    constraints: Constraints
    truth: Any
    known: Any
    seed: int

    @property
    def n_clusters(self) -> int:
        """How many classes there are."""
        return len(np.unique(self.y))

    @property
    def pairs(self) -> Any:
        """Row numbers of all pairs."""
        return self.constraints.pairs

    @property
    def links(self) -> Any:
        """Row numbers of the linked pairs."""
        return self.pairs[self.constraints.labels > 0]

    @property
    def corrected(self) -> Any:
        """Labels of the pairs, the known ones corrected."""
        labels = self.constraints.labels.copy()
        labels[self.known] = self.truth[self.known]
        return labels

    def labelled(self, draw: int) -> Any:
        """Draw labelled documents, the same number of every class."""
        random = np.random.default_rng([self.seed, draw])
        rows = [np.flatnonzero(self.y == label) for label in np.unique(self.y)]
        return np.concatenate([random.choice(r, PER_CLASS, replace=False) for r in rows])


@lru_cache(maxsize=2 * N_TRIALS)
def open_trial(data: str, trial: int, first_seed: int = FIRST_SEED) -> Trial:
    """Read the documents and draw the pairs of a trial."""
    dataset = load_dataset(data)
    seed = first_seed + trial
    found = constraints_from_graph(dataset.edges, n_samples=dataset.X.shape[0], random_state=seed)
    y = np.asarray(dataset.y)
    left, right = found.pairs.T
    truth = np.where(y[left] == y[right], 1.0, -1.0)
    count = max(FEWEST_KNOWN, len(truth) // 100)
    known = np.random.default_rng(seed).choice(len(truth), count, replace=False)
    return Trial(csr_array(dataset.X), y, found, truth, known, seed)


def unit(X: Any) -> Any:
    """Bring documents to unit length."""
    return scale_rows(X, column_factors(X, 0.0))


def tfidf(X: Any) -> Any:
    """Weigh words by their rarity, and bring documents to unit length."""
    return scale_rows(X, column_factors(X, 1.0))
