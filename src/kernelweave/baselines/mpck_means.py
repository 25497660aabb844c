"""MPCK-means: k-means with pairwise constraints and a diagonal metric for every cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.errors import InputError
from kernelweave.estimators.shared_docs import shared_attributes

from .mpck_search import Search, distances
from .pair_base import PairMethod, dense


@shared_attributes()
@dataclass(eq=False, repr=False)
class MPCKMeans(ClusterMixin, PairMethod):
    """MPCK-means: clusters with a diagonal metric each, and a penalty for every violated pair.

    Minimises, over clusters ``l_i``, means ``mu`` and metrics ``A`` of columns, ::

        sum_i |x_i - mu_l|_A^2 - ln det A
        + w sum over same pairs in two clusters of the mean of their squared distances in both
        + w sum over different pairs in one cluster of the largest squared distance less their own,

    where the largest is over all different pairs given. Rows are assigned one after the other in
    random order, then means and metrics are updated; no step raises the objective. The initial
    means are those of components connected by same pairs, chosen by weighted farthest-first
    traversal. Components larger than an average cluster are left out, since a few wrong pairs join
    all rows; k-means++ adds the missing means. Without pairs this is k-means with metrics.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    weight : float, default=1.0
        ``w``.
    floor : float, default=0.01
        Smallest variance of a column in a cluster, in units of that in all rows.
    tol : float, default=1e-6
        Decrease of the objective to stop at, relative to its size.
    max_iter : int, default=100
        Maximum number of rounds.
    random_state : int, RandomState or None, default=None
        For the initial means, the order of rows and drawing pairs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means.
    metrics_ : ndarray of shape (n_clusters, n_features)
        Weights of columns in each cluster.
    history_ : ndarray of shape (``n_iter_ + 1``,)
        Objective at the start and after every round.
    n_iter_ : int
        Rounds.

    References
    ----------
    Bilenko, Basu and Mooney (2004), Integrating constraints and metric learning in semi-supervised
    clustering, ICML 21.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import MPCKMeans
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 6 * y[:, None] * [1, 0, 0]
    >>> labels = MPCKMeans(2, random_state=0).fit(X, y).labels_
    >>> len(set(labels[::2])), len(set(labels[1::2]))
    (1, 1)
    """

    n_clusters: int = 8
    _: KW_ONLY
    weight: float = 1.0
    floor: float = 0.01
    tol: float = 1e-6
    max_iter: int = 100

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMethod._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "weight": [Interval(Real, 0, None, closed="left")],
        "floor": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def _read(self, n: int, y: Any, pairs: Any, labels: Any) -> tuple[Indices, Floats]:
        if y is None and pairs is None and labels is None:
            return np.empty((0, 2), dtype=np.intp), np.empty(0)
        return super()._read(n, y, pairs, labels)

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        n = X.shape[0]
        if self.n_clusters > n:
            raise InputError(
                f"n_clusters: must be at most the {n} rows of X, n_samples={n}, got "
                f"{self.n_clusters}."
            )
        random = check_random_state(self.random_state)
        centers = start_centers(X, pairs[labels > 0], self.n_clusters, random)
        search = Search(X, pairs, labels, centers, float(self.weight), float(self.floor))
        history, drop = [search.objective()], np.inf
        while drop > self.tol and len(history) <= self.max_iter:
            search.round(random)
            history.append(search.objective())
            drop = (history[-2] - history[-1]) / max(1.0, abs(history[-1]))
        self.labels_: Indices = search.labels
        self.cluster_centers_: Floats = search.centers
        self.metrics_: Floats = search.metrics
        self.history_: Floats = np.array(history)
        self.objective_ = history[-1]
        self._report(len(history) - 1, drop, self.tol, "relative decrease of the objective")

    def fit_predict(
        self, X: Any, y: Any = None, *, pairs: Any = None, labels: Any = None
    ) -> Indices:
        """Find the clusters, and return the cluster of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows that the pairs join.
        y : array of shape (n_samples,), optional
            Classes, from which pairs are drawn where none are given.
        pairs, labels : arrays, optional
            Row numbers of shape (n_pairs, 2), and +1 for same or -1 for different.

        Returns
        -------
        clusters : ndarray of shape (n_samples,)
            Numbers of the clusters.
        """
        self.fit(X, y, pairs=pairs, labels=labels)
        return self.labels_

    def predict(self, X: Any) -> Indices:
        """Return the cluster of new rows, without pairs.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        clusters : ndarray of shape (n_samples,)
            Numbers of the clusters.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        costs = distances(X, self.cluster_centers_, self.metrics_)
        return np.asarray(np.argmin(costs, axis=1), dtype=np.intp)


def start_centers(X: Any, same: Indices, n_clusters: int, random: Any) -> Floats:
    """Return means of distant connected components, filled up by k-means++."""
    n = X.shape[0]
    graph = csr_array((np.ones(len(same)), (same[:, 0], same[:, 1])), shape=(n, n))
    _, part = connected_components(graph, directed=False)
    sizes = np.bincount(part)
    fit = np.flatnonzero((sizes > 1) & (sizes <= n / n_clusters))
    sums = csr_array((np.ones(n), (part, np.arange(n))), shape=(len(sizes), n))[fit] @ X
    means = dense(sums) / sizes[fit][:, None]
    chosen: list[int] = []
    far = np.full(len(fit), np.inf)
    while len(chosen) < min(n_clusters, len(fit)):
        score = sizes[fit] * np.where(np.isfinite(far), far, 1.0)
        best = int(np.argmax(score))
        if score[best] <= 0:
            break
        chosen.append(best)
        far = np.minimum(far, np.sum((means - means[best]) ** 2, axis=1))
    centers = means[chosen]
    if len(centers) < n_clusters:
        more, _ = kmeans_plusplus(X, n_clusters - len(centers), random_state=random)
        centers = np.concatenate([centers.reshape(-1, X.shape[1]), dense(more)])
    return centers
