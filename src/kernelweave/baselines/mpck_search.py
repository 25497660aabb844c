"""Rounds of MPCK-means: assignment of rows, means and metrics.

References
----------
Bilenko, Basu and Mooney (2004), Integrating constraints and metric learning in semi-supervised
clustering, ICML 21.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats, Indices

from .pair_base import dense, differences, square

_HALVINGS = 30  # of the step to a new metric, until the objective does not rise


def distances(X: Any, centers: Floats, metrics: Floats) -> Floats:
    """Return ``|x - mu|_A^2 - ln det A`` for every row and cluster."""
    constant = np.sum(metrics * centers**2, axis=1) - np.log(metrics).sum(axis=1)
    return np.asarray(square(X) @ metrics.T - 2.0 * (X @ (metrics * centers).T) + constant)


class Search:
    """Clusters, means and metrics, with the cost of the pairs.

    ``signs`` are +1 for same and -1 for different pairs, ``weight`` is the penalty of a pair, and
    ``floor`` the smallest variance in a cluster, in units of that in all rows.
    """

    def __init__(
        self, X: Any, pairs: Indices, signs: Floats, centers: Floats, weight: float, floor: float
    ) -> None:
        self.X, self.squares, self.pairs, self.signs = X, square(X), pairs, signs
        self.weight, self.centers = weight, centers
        self.G = square(differences(X, pairs))
        self.different = self.G[np.flatnonzero(signs < 0)]
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.maximum(np.asarray(self.squares.mean(axis=0)).ravel() - mean**2, 0.0)
        varies = variance > 1e-14 * np.maximum(mean**2, variance.max(initial=0.0))
        self.cap = 1.0 / np.where(varies, floor * variance, 1.0)
        usual = float(variance.mean()) or 1.0
        self.metrics = np.tile(np.minimum(self.cap, 1.0 / usual), (len(centers), 1))
        both = np.concatenate([pairs[:, 0], pairs[:, 1]])
        order = np.argsort(both, kind="stable")
        self.first = np.searchsorted(both[order], np.arange(X.shape[0] + 1))
        self.edges = order % max(1, len(pairs))
        self.ends = np.concatenate([pairs[:, 1], pairs[:, 0]])[order]
        self._measure()
        self.labels: Indices = np.argmin(distances(X, self.centers, self.metrics), axis=1)

    def _measure(self) -> None:
        """Compute the squared distances of all pairs in every cluster, and the largest."""
        self.P = np.asarray(self.G @ self.metrics.T)
        self.top = self.P[self.signs < 0].max(axis=0, initial=0.0)

    def objective(self) -> float:
        """Return the objective, which no round raises."""
        own = distances(self.X, self.centers, self.metrics)
        a, b = self.labels[self.pairs].T
        e = np.arange(len(a))
        split = 0.5 * (self.P[e, a] + self.P[e, b])[(a != b) & (self.signs > 0)]
        joined = (self.top[a] - self.P[e, a])[(a == b) & (self.signs < 0)]
        total = float(own[np.arange(len(own)), self.labels].sum())
        return total + self.weight * float(split.sum() + joined.sum())

    def round(self, random: Any) -> None:
        """Assign every row, then update means and metrics."""
        self._assign(random.permutation(self.X.shape[0]))
        n_clusters = len(self.centers)
        member = csr_array(
            (np.ones(len(self.labels)), (self.labels, np.arange(len(self.labels)))),
            shape=(n_clusters, len(self.labels)),
        )
        counts = np.bincount(self.labels, minlength=n_clusters)
        there = counts > 0  # an empty cluster keeps its mean
        divisor = np.maximum(counts, 1)[:, None]
        self.centers = np.where(there[:, None], dense(member @ self.X) / divisor, self.centers)
        scatter = dense(member @ self.squares) - counts[:, None] * self.centers**2
        for k in np.flatnonzero(there):
            self._update_metric(int(k), int(counts[k]), np.maximum(scatter[k], 0.0))
        self._measure()

    def _assign(self, order: Indices) -> None:
        own = distances(self.X, self.centers, self.metrics)
        first, labels, half = self.first, self.labels, 0.5 * self.weight
        alone = first[1:] == first[:-1]
        labels[alone] = np.argmin(own[alone], axis=1)
        for i in order[~alone[order]]:
            e = self.edges[first[i] : first[i + 1]]
            there = labels[self.ends[first[i] : first[i + 1]]]
            same, cost = self.signs[e] > 0, own[i].copy()
            up, at = e[same], there[same]
            price = half * (self.P[up] + self.P[up, at][:, None])
            price[np.arange(len(up)), at] = 0.0
            cost += price.sum(axis=0)
            down, at = e[~same], there[~same]
            np.add.at(cost, at, self.weight * (self.top[at] - self.P[down, at]))
            best = int(np.argmin(cost))
            if cost[best] < cost[labels[i]]:
                labels[i] = best

    def _update_metric(self, k: int, count: int, scatter: Floats) -> None:
        """Update the metric of a cluster, with the farthest pair of the metric before."""
        a, b = (self.labels[self.pairs] == k).T
        split = np.flatnonzero((a != b) & (self.signs > 0))
        joined = np.flatnonzero(a & b & (self.signs < 0))
        q = scatter + self.weight * (
            0.5 * np.asarray(self.G[split].sum(axis=0)).ravel()
            - np.asarray(self.G[joined].sum(axis=0)).ravel()
        )
        price = self.weight * len(joined)

        def value(metric: Floats) -> float:
            top = float(np.asarray(self.different @ metric).max()) if price else 0.0
            return float(q @ metric) - count * float(np.log(metric).sum()) + price * top

        old = self.metrics[k]
        slope = q
        if price:
            farthest = int(np.argmax(np.asarray(self.different @ old)))
            slope = q + price * dense(self.different[[farthest]]).ravel()
        new = count / np.maximum(slope, count / self.cap)
        before, length = value(old), 1.0
        for _ in range(_HALVINGS):
            trial = old + length * (new - old)
            if value(trial) <= before:
                self.metrics[k] = trial
                return
            length *= 0.5
