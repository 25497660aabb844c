"""Shapes of kernels on linked rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from document_cases import make_documents
from kernelweave.pairs.graphs import adjacency
from kernelweave.pairs.shapes import ShapedKernel, smoother

X, Y, LINKS = make_documents()


class TestShapes:
    random = np.random.default_rng(1)
    weights = np.where(random.random(25) < 0.7, random.random(25), 0.0)
    S = smoother(adjacency(LINKS, 60))

    def dense(self, shape, steps):
        S = np.linalg.matrix_power(self.S.toarray(), steps)
        if shape == "words":
            q = self.weights**0.25 / np.sqrt(X.sum(axis=0))
            Q = X @ np.diag(q) @ X.T
            return Q @ S @ S @ Q
        K = X @ np.diag(self.weights) @ X.T
        return K if shape == "diag" else S @ K @ S

    @pytest.mark.parametrize("shape", ["diag", "words", "graph"])
    @pytest.mark.parametrize("steps", [0, 1, 3])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_products_and_features_equal_the_dense_formula(self, shape, steps, sparse):
        rows = csr_array(X) if sparse else X
        kernel = ShapedKernel(shape, rows, self.weights, self.S, steps)
        K = self.dense(shape, steps)
        v = np.random.default_rng(2).standard_normal(60)
        np.testing.assert_allclose(kernel.operator() @ v, K @ v, rtol=1e-10, atol=1e-10)
        Z = kernel.features(rows)
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10)
        assert K.min() >= 0
        assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * np.abs(K).max()

    def test_no_step_in_the_graph_is_the_plain_kernel(self):
        one, other = (
            ShapedKernel(shape, X, self.weights, self.S, 0).operator() @ np.eye(60)[0]
            for shape in ("diag", "graph")
        )
        np.testing.assert_allclose(one, other)

    def test_a_row_is_alike_in_sample_and_out_of_it(self):
        kernel = ShapedKernel("words", X, self.weights, self.S, 2)
        Z = kernel.features(X)
        np.testing.assert_allclose(kernel.features(X[7:8])[0], Z[7], rtol=1e-12)

    def test_columns_of_zeros_are_left_out(self):
        empty = X.copy()
        empty[:, 3] = 0
        kernel = ShapedKernel("words", empty, np.ones(25), self.S, 1)
        assert kernel.column_weights[3] == 0
        assert np.isfinite(kernel.operator() @ np.ones(60)).all()

    def test_the_smoother_has_top_eigenvalue_one(self):
        values = np.linalg.eigvalsh(self.S.toarray())
        assert values[-1] == pytest.approx(1.0)
        alone = smoother(adjacency(np.empty((0, 2), int), 4))
        np.testing.assert_array_equal(alone.toarray(), np.eye(4))
