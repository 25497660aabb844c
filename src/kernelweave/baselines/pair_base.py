"""Bases of the baselines that learn from labelled pairs, and the steps they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
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


@dataclass(eq=False, repr=False)
class PairMethod(BaseEstimator):
    """An estimator that learns from pairs of rows; subclasses implement `_learn`.

    Parameters
    ----------
    n_pairs : int or None, default=None
        Pairs to draw from the classes ``y`` where no pairs are given; None: ten a row.
    random_state : int, RandomState or None, default=None
        For drawing pairs.

    Attributes
    ----------
    objective_ : float
        Value reached.
    n_iter_ : int
        Steps.
    converged_ : bool
        Whether the tolerance was met.
    """

    _: KW_ONLY
    n_pairs: int | None = None
    random_state: Any = None

    n_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
    }

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
        raise NotImplementedError

    def _report(self, n_iter: int, residual: float, tol: float, what: str) -> None:
        """Store ``n_iter_`` and ``converged_``, and warn where the tolerance was not reached."""
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
    """A kernel between training rows, kept as points whose inner products it consists of.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Points whose inner products are the kernel.
    """

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
    """A metric ``(x - x')' M M' (x - x')``, kept as ``M`` or, if diagonal, as a vector."""

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
            Their inner products are the kernel of the metric.
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
        """Return the names of the features of `transform`.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        names : ndarray of str
            One for each feature.
        """
        check_is_fitted(self)
        return np.array([f"metric{j}" for j in range(self._n_features_out)], dtype=object)


def scale_columns(X: Any, factors: Floats) -> Any:
    """Multiply the columns of an array or sparse matrix."""
    return csr_array(X @ diags_array(factors)) if is_sparse(X) else X * factors


def dense(X: Any) -> Floats:
    """Return a sparse matrix or an array as an array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def square(X: Any) -> Any:
    """Return squared entries; sparse where ``X`` is."""
    return csr_array(X.multiply(X)) if is_sparse(X) else X**2


def minimize_to_gap(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    gap: Callable[[Floats], float],
    tol: float,
    *,
    bounds: Any = None,
    **options: Any,
) -> tuple[Floats, int]:
    """Minimise a function with gradient by L-BFGS-B; return the point and the number of steps.

    It stops where ``gap`` at the iterate is at most ``tol``, never by the decrease or gradient.
    """
    steps = 0

    def stop(intermediate_result: Any) -> None:
        nonlocal steps
        steps += 1
        if gap(intermediate_result.x) <= tol:
            raise StopIteration

    limits: Any = {"ftol": 0.0, "gtol": 0.0, **options}
    result = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop, options=limits
    )
    return np.asarray(result.x), steps


def differences(X: Any, pairs: Indices) -> Any:
    """Return the differences of both rows of every pair; sparse where ``X`` is."""
    left, right = pairs.T
    if is_sparse(X):
        return csr_array(csr_array(X)[left] - csr_array(X)[right])
    return X[left] - X[right]


def leading_directions(X: Any, n_components: int | None) -> Floats | None:
    """Return leading right singular vectors as columns; None where all columns are kept.

    Rows are not centred, so that inner products are approximated as well as distances.
    """
    if n_components is None or X.shape[1] <= n_components:
        return None
    if min(X.shape) <= max(n_components, 100):
        return np.linalg.svd(dense(X), full_matrices=False)[2][:n_components].T
    start = np.linspace(1.0, 2.0, min(X.shape))  # a fixed start vector: deterministic
    return np.asarray(svds(X, k=n_components, v0=start)[2][::-1].T)


def neighbour_laplacian(X: Any, n_neighbors: int, ridge: float) -> csr_array[Any]:
    """Return ``(1 + ridge) I - D^(-1/2) W D^(-1/2)`` of the symmetric nearest-neighbour graph."""
    n = X.shape[0]
    W = kneighbors_graph(X, min(n_neighbors, n - 1), mode="connectivity")
    W = csr_array(W.maximum(W.T))
    roots = diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    return csr_array((1.0 + ridge) * eye_array(n, format="csr") - roots @ W @ roots)
