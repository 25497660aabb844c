"""What the methods that learn from labelled pairs share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import svds
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.validation import check_is_fitted

from kernelweave._threads import one_thread
from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, check_table, fit_context, is_frame
from kernelweave.errors import warn
from kernelweave.kernels import Linear
from kernelweave.kernels.base import is_sparse
from kernelweave.pairs import read_pairs


class PairMethod(BaseEstimator):
    """Learn from pairs of rows; a method says how in `_learn`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    n_pairs: int | None
    random_state: Any
    n_iter_: int
    converged_: bool

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, labels: Any = None) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows that the pairs join.
        y : array of shape (n_samples,), optional
            Classes, from which pairs are drawn where none are given.
        pairs : array of shape (n_pairs, 2), optional
            Row numbers.
        labels : array of shape (n_pairs,), optional
            +1 for same and -1 for different.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._rows(X, reset=True)
        pairs, labels = self._read(X.shape[0], y, pairs, labels)
        with one_thread():
            self._learn(X, pairs, labels)
        return self

    def _read(self, n: int, y: Any, pairs: Any, labels: Any) -> tuple[Indices, Floats]:
        return read_pairs(pairs, labels, y, n, n_pairs=self.n_pairs, random_state=self.random_state)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        X = check_table(self, X, reset=reset)
        return Linear().prepare(X) if is_frame(X) else X

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        raise AssertionError("a subclass says how it learns")

    def _report(self, n_iter: int, residual: float, tol: float, what: str) -> None:
        """Set what is known of convergence, and warn where the tolerance was missed."""
        self.n_iter_, self.converged_ = n_iter, bool(residual <= tol)
        if not self.converged_:
            warn(
                f"{type(self).__name__} stopped after {n_iter} steps at a {what} of {residual:.1e} "
                f"(tol={tol:g}). Hint: raise max_iter, or accept this by raising tol.",
                ConvergenceWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = False
        return tags


class PairEmbedding(PairMethod):
    """A kernel between training rows only, kept as the points whose inner products it holds."""

    embedding_: Floats

    def fit_transform(
        self, X: Any, y: Any = None, *, pairs: Any = None, labels: Any = None
    ) -> Floats:
        """Learn from pairs, and return the rows as points.

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
        points : ndarray of shape (n_samples, n_components)
            Their inner products are the learned kernel.
        """
        self.fit(X, y, pairs=pairs, labels=labels)
        return self.embedding_


class PairMetric(TransformerMixin, PairMethod):
    """A metric ``(x - x')' M M' (x - x')`` of the columns, kept as its factor ``M``."""

    components_: Floats

    def transform(self, X: Any) -> Any:
        """Return features whose squared distances are the learned ones.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Z : array or sparse matrix of shape (n_samples, n_components)
            Their inner products are the kernel that belongs to the metric.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        if self.components_.ndim == 2:
            return np.asarray(X @ self.components_)
        return scale_columns(X, self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[-1])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return names of what `transform` returns.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        names : ndarray of str
            As many as there are columns.
        """
        check_is_fitted(self)
        return np.array([f"metric{j}" for j in range(self._n_features_out)], dtype=object)


def scale_columns(X: Any, factors: Floats) -> Any:
    """Multiply the columns of an array or sparse matrix."""
    return csr_array(X @ diags_array(factors)) if is_sparse(X) else X * factors


def differences(X: Any, pairs: Indices) -> Any:
    """Return the differences of both rows of every pair; sparse where ``X`` is."""
    left, right = pairs.T
    if is_sparse(X):
        return csr_array(csr_array(X)[left] - csr_array(X)[right])
    return X[left] - X[right]


def leading_directions(X: Any, n_components: int | None) -> Floats | None:
    """Return orthonormal columns that keep most of the rows; None where all are kept as they are.

    Rows are not centred, so that inner products are kept as well as distances.
    """
    if n_components is None or X.shape[1] <= n_components:
        return None
    if min(X.shape) <= max(n_components, 100):
        dense = X.toarray() if is_sparse(X) else X
        return np.linalg.svd(dense, full_matrices=False)[2][:n_components].T
    start = np.linspace(1.0, 2.0, min(X.shape))  # the same every time
    return np.asarray(svds(X, k=n_components, v0=start)[2][::-1].T)


def neighbour_laplacian(X: Any, n_neighbors: int, ridge: float) -> csr_array[Any]:
    """Return ``(1 + ridge) I - D^(-1/2) W D^(-1/2)`` of the graph that joins near rows.

    Two rows are joined where one is among the nearest neighbours of the other.
    """
    n = X.shape[0]
    W = kneighbors_graph(X, min(n_neighbors, n - 1), mode="connectivity")
    W = csr_array(W.maximum(W.T))
    roots = diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    return csr_array((1.0 + ridge) * eye_array(n, format="csr") - roots @ W @ roots)
