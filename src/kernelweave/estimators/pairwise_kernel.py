"""The kernel that `PairwiseKernelLearner` has learned: features, blocks and scores of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import by_parts, fetch
from kernelweave._types import Floats, Indices
from kernelweave._validation import check_table
from kernelweave.errors import InputError, numbering
from kernelweave.kernels import Kernel
from kernelweave.pairs import check_rows, pair_values, paired_rows
from kernelweave.pairs.shapes import ShapedKernel
from kernelweave.pairs.shrink import scale_rows

from .pairwise_methods import as_numbers


class PairKernel(TransformerMixin):
    """Mixin for estimators with fitted weights of kernels, or of columns."""

    kernels_: list[Kernel] | None
    weights_: Floats
    threshold_: float
    memory_limit: float | str | None
    _kernel: ShapedKernel | None  # of the method shrink
    _factors: Floats | None  # that multiply the columns

    def _prepared(self, X: Any) -> Any:
        """Return rows in the form that the learned kernel takes."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        return X if self.kernels_ is not None else self._numbers(X)

    def _numbers(self, X: Any) -> Any:
        """Return columns as numbers, scaled as in the fit."""
        X = as_numbers(X)
        return X if self._factors is None else scale_rows(X, self._factors)

    def _values(self, rows: Any, pairs: Indices) -> Any:
        """Return kernel values at pairs of rows."""
        rows = rows if self.kernels_ is not None else self._numbers(rows)
        return pair_values(rows, pairs, self.kernels_, self.memory_limit)

    @by_parts
    def transform(self, X: Any) -> Any:
        """Return features whose inner products are the learned kernel.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; for ``shape="graph"`` those of `fit`. The features of a Dask table are a lazy
            Dask array.

        Returns
        -------
        Z : array or sparse matrix of shape (n_samples, n_components)
            Columns times the square roots of their weights, transformed as the shape says.
        """
        rows = self._prepared(X)
        if self.kernels_ is not None:
            raise InputError("transform: only for kernels=None; use kernel(X, Y) otherwise.")
        if self._kernel is None:
            return ShapedKernel("diag", rows, self.weights_).features(rows)
        self._refuse_new(rows)
        return self._kernel.features(rows)

    def _refuse_new(self, rows: Any) -> None:
        if self._kernel is not None and self._kernel.shape == "graph":
            known = self._kernel.X
            same = rows.shape == known.shape and abs(rows - known).max() <= 1e-12
            if not same:
                raise InputError(
                    "X: with shape='graph' links are part of the kernel, so only the rows of fit "
                    "are known. Hint: use shape='words'."
                )

    def kernel(self, X: Any, Y: Any = None) -> Floats:
        """Return the learned kernel between the rows of ``X`` and of ``Y``.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows like those of the training data; a Dask table is fetched.
        Y : array, sparse matrix or data frame, optional
            Rows of the other side; ``X`` by default.

        Returns
        -------
        block : ndarray of shape (n_rows of X, n_rows of Y)
            ``sum_j weights_j k_j``.
        """
        X, Y = fetch(X), fetch(Y)
        if self.__sklearn_is_fitted__() and self.kernels_ is not None:
            A = self._prepared(X)
            B = A if Y is None else self._prepared(Y)
            used = np.flatnonzero(self.weights_)
            out = np.zeros((A.shape[0], B.shape[0]))
            for j in used:
                out += self.weights_[j] * self.kernels_[j](A, B)
            return out
        A = self.transform(X)
        B = A if Y is None else self.transform(Y)
        product = A @ B.T
        return np.asarray(product.toarray() if hasattr(product, "toarray") else product)

    def operator(self, X: Any) -> LinearOperator:
        """Return the learned kernel between the rows of ``X`` as a linear operator.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows; for shapes other than ``diag`` those of `fit`. A Dask table is fetched.

        Returns
        -------
        operator : LinearOperator of shape (n_samples, n_samples)
            What `KernelSpectralClustering` takes with ``affinity="precomputed"``.
        """
        X = fetch(X)
        rows = self._prepared(X)
        if self.kernels_ is not None:
            return aslinearoperator(self.kernel(X))
        if self._kernel is None or self._kernel.shape == "diag":
            return ShapedKernel("diag", rows, self.weights_).operator()
        if self._kernel.shape == "graph":
            self._refuse_new(rows)
            return self._kernel.operator()
        Z = self._kernel.features(rows)
        n = rows.shape[0]
        return LinearOperator((n, n), matvec=lambda v: Z @ (Z.T @ np.ravel(v)), dtype=np.float64)

    def score_pairs(self, X: Any, pairs: Any) -> Floats:
        """Return how similar the rows of every pair are by the learned weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; of a Dask table those that occur in pairs are taken.
        pairs : array of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            ``sum_j weights_j k_j``; same pairs have larger ones.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False, parts=True, finite=False)
        return self._scores(X, check_rows(pairs, X.shape[0]))

    def _scores(self, X: Any, pairs: Indices) -> Floats:
        rows, pairs, index = paired_rows(X, pairs, self.memory_limit)
        with numbering(index):
            return np.asarray(self._values(rows, pairs) @ self.weights_).ravel()

    def predict_pairs(self, X: Any, pairs: Any) -> Indices:
        """Return for new pairs whether they belong together.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; of a Dask table those that occur in pairs are taken.
        pairs : array of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        labels : ndarray of shape (n_pairs,)
            +1 for same and -1 for different.
        """
        return np.where(self.score_pairs(X, pairs) >= self.threshold_, 1, -1)

    @property
    def _n_features_out(self) -> int:
        kernel = self._kernel
        if kernel is not None and kernel.shape == "words":
            return int(kernel.X.shape[0])
        return len(self.weights_)

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
        return np.array([f"weighted{j}" for j in range(self._n_features_out)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")
