"""Spectral clustering on a learned or given kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.base import BaseEstimator, ClusterMixin

from kernelweave._declaration import Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import one_thread
from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, StrOptions, check_table, fit_context, is_frame
from kernelweave.errors import InputError, warn
from kernelweave.kernels import Linear
from kernelweave.pairs.cluster import embed, group_points

from .shared_docs import shared_attributes

_ASYMMETRY = 1e-8


@shared_attributes()
@dataclass(eq=False, repr=False)
class KernelSpectralClustering(NotebookSummary, ClusterMixin, BaseEstimator):
    """Cluster rows by a kernel, without forming it.

    The kernel is divided by the roots of its row sums, its leading eigenvectors are found by
    Lanczos steps, their rows brought to unit length and grouped by k-means. A kernel with rows that
    sum to less than zero is used as it is, with eigenvectors times the roots of their eigenvalues.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    affinity : {"features", "precomputed"}, default="features"
        Whether ``X`` holds features, so that the kernel is ``X X'``, or the kernel itself: an
        array, a sparse matrix or a scipy ``LinearOperator``.
    n_init : int, default=20
        Restarts of k-means.
    random_state : int, RandomState or None, default=None
        For k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Points that k-means groups.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Of the kernel that was decomposed, largest first.
    normalized_ : bool
        Whether it was divided by the roots of its row sums.
    n_empty_ : int
        Rows similar to none, whose cluster is arbitrary.

    References
    ----------
    .. [1] A. Ng, M. Jordan, Y. Weiss, "On spectral clustering: analysis and an algorithm",
           NIPS 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelSpectralClustering
    >>> X = np.array([[1, 0.1], [1, 0], [0.9, 0], [0, 1], [0.1, 1], [0, 0.8]])
    >>> labels = KernelSpectralClustering(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] == labels[2] != labels[3] == labels[4] == labels[5])
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    affinity: str = "features"
    n_init: int = 20
    random_state: Any = None

    _declaration: ClassVar[Declaration] = Declaration(
        "clusters",
        saved={
            "labels_": "int[rows]",
            "embedding_": "float[rows, clusters]",
            "eigenvalues_": "float[clusters]",
            "normalized_": "flag",
            "n_empty_": "integer",
            "n_features_in_": "integer",
        },
        optional={"feature_names_in_": "names"},
        aspects=("clusters",),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions({"features", "precomputed"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array, sparse matrix, data frame or LinearOperator
            Features of shape (n_samples, n_features), or a kernel of shape (n_samples, n_samples).
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self : KernelSpectralClustering
            The fitted estimator.
        """
        kernel = self._operator(X)
        n = kernel.shape[0]
        if self.n_clusters > n:
            raise InputError(
                f"n_clusters: must be at most the {n} rows of X, got {self.n_clusters}."
            )
        with one_thread():
            found = embed(kernel, self.n_clusters)
        self.embedding_: Floats = found.points
        self.eigenvalues_: Floats = found.values
        self.normalized_, self.n_empty_ = found.normalised, found.empty
        self.labels_: Indices = group_points(found, self.n_clusters, self.n_init, self.random_state)
        if self.n_empty_ == n:
            warn("X: the kernel is zero everywhere, so all rows are one cluster.")
        elif self.n_empty_:
            warn(f"X: {self.n_empty_} row(s) are similar to none; their cluster means nothing.")
        return self

    def _operator(self, X: Any) -> LinearOperator:
        if self.affinity == "features":
            X = check_table(self, X, reset=True)
            if is_frame(X):
                X = Linear().prepare(X)
            largest = float(abs(X).max())
            _check_size(largest * largest * X.shape[0] * X.shape[1])

            def times(v: Any) -> Floats:
                return np.asarray(X @ (X.T @ np.asarray(v).ravel()))

            n = X.shape[0]
            return LinearOperator((n, n), matvec=times, dtype=np.float64)
        if isinstance(X, LinearOperator):
            kernel = X
            self.n_features_in_ = X.shape[1]
        else:
            X = check_table(self, X, reset=True)
            X = Linear().prepare(X) if is_frame(X) else X
            if X.shape[0] != X.shape[1]:
                raise InputError(f"X: a kernel must be square, got the shape {X.shape}.")
            if abs(X - X.T).max() > _ASYMMETRY * max(abs(X).max(), 1e-300):
                raise InputError("X: a kernel must be symmetric.")
            _check_size(float(abs(X).max()) * X.shape[0])
            kernel = aslinearoperator(X)
        if kernel.shape[0] != kernel.shape[1]:
            raise InputError(f"X: a kernel must be square, got the shape {kernel.shape}.")
        return kernel

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity == "precomputed"
        return tags


def _check_size(row_sums: float) -> None:
    """Refuse a kernel whose row sums overflow; they are at most `row_sums`."""
    if row_sums > np.finfo(np.float64).max / 4.0:  # sums of two are formed
        raise InputError(
            "X: its values are so large that the kernel overflows. Hint: divide X by a constant; "
            "the clusters stay the same."
        )
