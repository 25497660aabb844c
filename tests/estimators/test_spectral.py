"""Clusters of kernels."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kernelweave import RBF, KernelSpectralClustering
from kernelweave.errors import InputError


def make_blocks(seed=0, n=90, m=30, noise=0.05):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    rate = np.where(np.arange(m)[None] % 3 == y[:, None], 0.5, noise)
    X = (random.random((n, m)) < rate).astype(float)
    X[~X.any(axis=1), 0] = 1.0
    return X, y


X, Y = make_blocks()


def cluster(rows=X, n_clusters=3, **options):
    return KernelSpectralClustering(n_clusters, **{"random_state": 0, **options}).fit(rows)


def test_finds_blocks():
    assert adjusted_rand_score(Y, cluster().labels_) > 0.85


def test_the_top_eigenvalue_is_one():
    for seed, n in ((0, 90), (1, 700)):
        found = cluster(make_blocks(seed, n)[0])
        assert found.normalized_
        assert found.eigenvalues_[0] == pytest.approx(1.0)
        assert (np.diff(found.eigenvalues_) <= 0).all()


@pytest.mark.parametrize("n", [90, 700])
def test_embedding_is_that_of_the_dense_formula(n):
    rows, _ = make_blocks(2, n)
    K = rows @ rows.T
    D = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K / np.sqrt(np.outer(D, D)))
    found = cluster(rows)
    np.testing.assert_allclose(found.eigenvalues_, values[::-1][:3], atol=1e-9)
    top = vectors[:, -3:]
    top /= np.linalg.norm(top, axis=1, keepdims=True)
    np.testing.assert_allclose(found.embedding_ @ found.embedding_.T, top @ top.T, atol=1e-6)


def test_sparse_dense_frame_matrix_and_operator_agree():
    K = X @ X.T
    given = [
        cluster(csr_array(X)),
        cluster(pd.DataFrame(X, columns=[f"c{j}" for j in range(30)])),
        cluster(K, affinity="precomputed"),
        cluster(csr_array(K), affinity="precomputed"),
        cluster(aslinearoperator(K), affinity="precomputed"),
    ]
    for found in given:
        assert adjusted_rand_score(cluster().labels_, found.labels_) == 1.0
        np.testing.assert_allclose(found.eigenvalues_, cluster().eigenvalues_)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e5])
def test_the_scale_of_a_kernel_does_not_matter(scale):
    found = cluster(X * scale)
    assert adjusted_rand_score(cluster().labels_, found.labels_) == 1.0
    np.testing.assert_allclose(found.eigenvalues_, cluster().eigenvalues_, rtol=1e-9)


def test_the_same_seed_gives_the_same_clusters():
    rows = np.random.default_rng(0).random((500, 20))
    one, other = (cluster(rows, 6, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(90)
    assert adjusted_rand_score(cluster().labels_[order], cluster(X[order]).labels_) == 1.0


def test_agreement_does_not_depend_on_names_of_clusters():
    labels = cluster().labels_
    turned = np.array([2, 0, 1])[labels]
    assert normalized_mutual_info_score(Y, turned) == normalized_mutual_info_score(Y, labels)


def test_empty_rows_are_reported_and_embedded_at_zero():
    rows = X.copy()
    rows[[3, 8]] = 0.0
    with pytest.warns(UserWarning, match=r"X: 2 row\(s\) are similar to none"):
        found = cluster(rows)
    assert found.n_empty_ == 2
    assert not found.embedding_[[3, 8]].any()
    assert np.isfinite(found.embedding_).all()
    kept = np.delete(np.arange(90), [3, 8])
    assert adjusted_rand_score(Y[kept], found.labels_[kept]) > 0.8


def test_a_kernel_of_zeros_is_one_cluster():
    with pytest.warns(UserWarning, match="the kernel is zero everywhere"):
        found = cluster(np.zeros((12, 3)))
    assert not found.labels_.any()
    assert found.n_empty_ == 12
    assert np.isfinite(found.embedding_).all()


def test_signed_kernels_are_used_as_they_are():
    random = np.random.default_rng(0)
    centres = np.array([[3.0, 0], [-1.5, 2.6], [-1.5, -2.6]])
    rows = centres[Y] + 0.3 * random.standard_normal((90, 2))
    found = cluster(rows)
    assert not found.normalized_
    assert found.n_empty_ == 0
    assert adjusted_rand_score(Y, found.labels_) == 1.0
    K = rows @ rows.T
    np.testing.assert_allclose(found.embedding_ @ found.embedding_.T, K, atol=1e-9)


def test_gaussian_kernel():
    random = np.random.default_rng(1)
    rows = 4.0 * np.eye(3)[Y] + 0.5 * random.standard_normal((90, 3))
    found = cluster(RBF(1.0)(rows), affinity="precomputed")
    assert adjusted_rand_score(Y, found.labels_) == 1.0


def test_fewer_distinct_rows_than_clusters():
    rows = np.repeat(np.eye(2), 5, axis=0)
    found = cluster(rows, 4)
    assert adjusted_rand_score(np.repeat([0, 1], 5), found.labels_) == 1.0
    assert len(np.unique(cluster(rows, 1).labels_)) == 1
    assert len(np.unique(cluster(np.eye(3), 3).labels_)) == 3


def test_pickle_and_clone():
    found = cluster()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).labels_, found.labels_)
    assert clone(found).get_params() == found.get_params()
    np.testing.assert_array_equal(clone(found).fit_predict(X), found.labels_)


@pytest.mark.parametrize(
    ("rows", "options", "sentence"),
    [
        (X[:2], {}, "n_clusters: must be at most the 2 rows of X, got 3"),
        (X, {"affinity": "precomputed"}, "X: a kernel must be square"),
        (np.triu(np.ones((9, 9))), {"affinity": "precomputed"}, "X: a kernel must be symmetric"),
        (aslinearoperator(X), {"affinity": "precomputed"}, "X: a kernel must be square"),
        (1e153 * X, {}, "X: its values are so large that the kernel overflows"),
        (1e307 * np.ones((9, 9)), {"affinity": "precomputed"}, "the kernel overflows"),
        (np.full((9, 2), np.nan), {}, "X: contains NaN or infinity, first in row 0"),
        (X, {"affinity": "cosine"}, "'affinity' parameter"),
        (X, {"n_init": 0}, "'n_init' parameter"),
    ],
)
def test_bad_input(rows, options, sentence):
    kind = ValueError if "parameter" in sentence else InputError
    with pytest.raises(kind, match=sentence):
        cluster(rows, **options)
