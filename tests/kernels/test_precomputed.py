"""Ready Gram matrices."""

import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from kernelweave.errors import InputError
from kernelweave.kernels import Linear, Precomputed

GRAM = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
ALL = np.arange(3)[:, None]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 12), data=st.data())
def test_blocks_are_parts_of_the_matrix(seed, n, data):
    F = np.random.default_rng(seed).normal(size=(n, 4))
    G = F @ F.T
    G = (G + G.T) / 2
    index = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8))
    kernel = Precomputed(G)
    X = np.array(index)[:, None]
    np.testing.assert_array_equal(kernel(X), G[np.ix_(index, index)])
    np.testing.assert_array_equal(kernel(X, np.arange(n)[:, None]), G[index])
    np.testing.assert_array_equal(kernel.diag(X), G.diagonal()[index])


@pytest.mark.parametrize(
    ("X", "columns"),
    [
        (np.array([[2], [0]]), 0),
        (np.array([[2.0], [0.0]]), 0),
        (np.array([[2.0, 7.5], [0.0, np.nan]]), 0),
        (np.array([[9, 2], [9, 0]]), -1),
        ([[2], [0]], None),
        (sp.csr_array(np.array([[2.0], [0.0]])), 0),
        (pd.DataFrame({"anything": [2, 0]}), 0),
        (pl.DataFrame({"text": ["a", "b"], "id": [2, 0]}), "id"),
        (np.array([["x", 2], ["y", 0]], dtype=object), [1]),
    ],
)
def test_row_numbers_from_any_table(X, columns):
    kernel = Precomputed(GRAM, columns=columns)
    rows = kernel.prepare(X)
    assert rows.dtype == np.intp
    np.testing.assert_array_equal(rows, [2, 0])
    np.testing.assert_array_equal(kernel(X), [[1.0, 0.5], [0.5, 2.0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[3]], r"column 0 must hold row numbers from 0 to 2, but row 0 has 3; pass np.arange"),
        ([[0], [-2]], r"but row 1 has -2"),
        ([[0.5]], r"but row 0 has 0.5"),
        ([["a"]], r"not real numbers"),
        (pd.DataFrame({"id": [5]}), r"column 'id' must hold row numbers"),
    ],
)
def test_wrong_row_numbers(X, message):
    with pytest.raises(InputError, match=r"precomputed\(3 rows\): .*" + message):
        Precomputed(GRAM).prepare(X)


def test_exactly_one_column():
    with pytest.raises(InputError, match="one column of row numbers is needed, got 2"):
        Precomputed(GRAM, columns=None).prepare([[0, 1]])


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (GRAM[:2], r"gram must be square with at least one row, got shape \(2, 3\); for test rows"),
        (GRAM[0], r"gram must be square .*, got shape \(3,\)"),
        (np.empty((0, 0)), r"gram must be square .*, got shape \(0, 0\)"),
        (sp.csr_array(GRAM), r"gram must be dense; pass gram.toarray\(\)"),
        ([["a"]], r"gram must hold real numbers"),
        ([[1.0], [1.0, 2.0]], r"gram must hold real numbers in rows of equal length"),
        (GRAM + 1j, r"gram must hold real numbers"),
        ([[object()]], r"gram must hold real numbers"),
        ([[1.0, np.nan], [np.nan, 1.0]], r"gram\[0, 1\] is nan, but every entry must be finite"),
        ([[1.0, 0.0], [np.inf, 1.0]], r"gram\[1, 0\] is inf"),
        ([[1.0, 0.0], [0.0, np.nan]], r"gram\[1, 1\] is nan, but the diagonal must not be"),
        ([[1.0, 0.0], [0.0, -2.0]], r"gram\[1, 1\] is -2, but the diagonal must not be"),
        (
            [[1.0, 0.5], [0.2, 1.0]],
            r"gram is not symmetric, gram\[0, 1\] and gram\[1, 0\] differ by 0.3",
        ),
        (
            [[1.0, 2.0], [2.0, 1.0]],
            r"gram is not positive semi-definite, its lowest eigenvalue is -1",
        ),
    ],
)
def test_wrong_matrices(gram, message):
    with pytest.raises(InputError, match="^Precomputed: " + message):
        Precomputed(gram)


def test_the_largest_asymmetry_is_found_in_any_band():
    gram = np.eye(1100)
    gram[3, 40], gram[1050, 7] = 1e-3, -2e-3
    expected = r"gram\[(7, 1050|1050, 7)\] and gram\[(7, 1050|1050, 7)\] differ by 0.002"
    with pytest.raises(InputError, match=expected):
        Precomputed(gram)


def test_rounding_is_allowed_and_made_symmetric():
    gram = GRAM.copy()
    gram[0, 1] += 1e-9
    K = Precomputed(gram)(ALL)
    np.testing.assert_array_equal(K, K.T)
    gram[0, 1] += 1e-6
    with pytest.raises(InputError, match="not symmetric"):
        Precomputed(gram)
    single = GRAM.astype(np.float32) * np.float32(1 / 3)
    single[0, 1] = np.nextafter(single[0, 1], np.float32(1))
    assert Precomputed(single)(ALL).dtype == np.float64
    Precomputed([[1.0, 1.0], [1.0, 1.0 - 1e-9]])  # singular up to rounding


@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e300])
def test_extreme_scales(scale):
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(Precomputed(GRAM * scale)(ALL), GRAM * scale)
        with pytest.raises(InputError, match="not positive semi-definite"):
            Precomputed(np.array([[1.0, 2.0], [2.0, 1.0]]) * scale)


def test_costly_checks_can_be_skipped():
    wild = np.array([[1.0, 2.0], [2.0, 1.0]])
    np.testing.assert_array_equal(Precomputed(wild, check=False)([[0], [1]]), wild)
    np.testing.assert_array_equal(Precomputed(wild, check=False).on(1)([[9, 1]]), [[1.0]])
    with pytest.raises(InputError, match="must be square"):
        Precomputed(wild[:1], check=False)
    large = np.ones((2001, 2001)) * 2  # too large for the spectrum test
    np.fill_diagonal(large, 1.0)
    assert Precomputed(large).diag([[0]])[0] == 1.0


def test_the_matrix_is_kept_and_never_written():
    for dtype in (np.float64, np.float32):
        gram = GRAM.astype(dtype)
        kernel = Precomputed(gram)
        for other in (kernel, clone(kernel), kernel.renamed("x"), kernel.on("id"), 2 * kernel):
            inner = getattr(other, "kernel", other)
            assert np.shares_memory(inner.gram, gram)
        with pytest.raises(ValueError, match="read-only"):
            kernel.gram[0, 0] = 5
        assert gram.flags.writeable
        kernel(ALL)[:] = 0
        kernel.diag(ALL)[:] = 0
        np.testing.assert_array_equal(gram, GRAM)
    assert Precomputed(GRAM.astype(int)).gram.dtype == np.float64
    assert Precomputed(pd.DataFrame(GRAM)).gram.dtype == np.float64


def test_identity_and_rendering():
    kernel, twin = Precomputed(GRAM), Precomputed(GRAM)
    assert kernel != twin
    assert len({kernel, twin, kernel}) == 2
    assert clone(kernel) is kernel
    assert repr(kernel) == "Precomputed(<3 x 3 float64>)"
    named = Precomputed(GRAM, columns="id", name="kin")
    assert repr(named) == "Precomputed(<3 x 3 float64>, columns='id', name='kin')"
    assert str(kernel) == "precomputed(3 rows)"
    assert str(kernel.on("id")) == "precomputed(3 rows) on id"
    assert str(named) == "kin"


def test_view_is_shared_by_matrices_of_one_size():
    assert Precomputed(GRAM).view == Precomputed(GRAM * 2).view
    assert Precomputed(GRAM).view != Precomputed(np.eye(4)).view
    assert Precomputed(GRAM).view != Precomputed(GRAM, columns=1).view


def test_pickle():
    kernel = pickle.loads(pickle.dumps(Precomputed(GRAM, columns=1, name="x")))
    np.testing.assert_array_equal(kernel([[7, 0], [7, 2]]), GRAM[np.ix_([0, 2], [0, 2])])
    assert str(kernel) == "x"


def test_in_expressions():
    X = np.column_stack([np.arange(3), [1.0, 2.0, 3.0]])
    kernel = Precomputed(GRAM) * Linear(columns=1) + 0.5 * Precomputed(GRAM)
    expected = GRAM * np.outer(X[:, 1], X[:, 1]) + 0.5 * GRAM
    np.testing.assert_allclose(kernel(X), expected)


class KernelMachine(ClassifierMixin, BaseEstimator):
    """The least an estimator on kernels can be."""

    def __init__(self, kernels=None, C=1.0):
        self.kernels, self.C = kernels, C

    def fit(self, X, y):
        self.X_, (kernel,) = X, self.kernels
        self.svc_ = SVC(C=self.C, kernel="precomputed").fit(kernel(X), y)
        self.classes_ = self.svc_.classes_
        return self

    def predict(self, X):
        return self.svc_.predict(self.kernels[0](X, self.X_))


def test_cross_validation_on_row_numbers():
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    rows = np.arange(60)[:, None]
    model = KernelMachine([Precomputed(rbf_kernel(X, gamma=0.1))])
    scores = cross_val_score(model, rows, y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(SVC(gamma=0.1), X, y, cv=3))
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(rows, y)
    assert search.best_estimator_.kernels[0] is model.kernels[0]


@pytest.mark.parametrize("gram", [[["a", "b"], ["c", "d"]], [[1.0], [1.0, 2.0]], [[{}]]])
def test_matrices_that_hold_no_numbers(gram):
    with pytest.raises(InputError, match="gram must hold real numbers in rows of equal length"):
        Precomputed(gram)
