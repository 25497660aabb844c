"""Leading eigenvectors of a kernel known by its products, and the clusters of their rows."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from kernelweave.pairs import cluster
from kernelweave.pairs.cluster import Embedding, embed, group_points, leading_vectors


def gram(n=60, seed=0):
    Z = np.abs(np.random.default_rng(seed).normal(size=(n, 5)))
    return Z @ Z.T


@pytest.mark.parametrize("dense", [1000, 0], ids=["dense", "lanczos"])
def test_vectors_are_those_of_the_normalised_kernel(dense, monkeypatch):
    monkeypatch.setattr(cluster, "_DENSE", dense)
    K = gram()
    values, vectors, normalised = leading_vectors(aslinearoperator(K), 3)
    assert normalised
    roots = np.sqrt(K.sum(axis=0))
    scaled = K / np.outer(roots, roots)
    assert values == pytest.approx(np.linalg.eigvalsh(scaled)[::-1][:3], abs=1e-10)
    np.testing.assert_allclose(scaled @ vectors, vectors * values, atol=1e-9)


def test_a_negative_row_sum_leaves_the_kernel_as_it_is():
    K = gram()
    K[0] *= -1.0
    K[:, 0] *= -1.0
    embedding = embed(aslinearoperator(K), 2)
    assert not embedding.normalised
    values = np.linalg.eigvalsh(K)[::-1][:2]
    assert embedding.values == pytest.approx(values)
    assert (embedding.points**2).sum(axis=0) == pytest.approx(values)


def test_rows_of_zeros_are_counted_and_have_no_direction():
    K = gram()
    K[7], K[:, 7] = 0.0, 0.0
    embedding = embed(aslinearoperator(K), 2)
    assert embedding.empty == 1
    lengths = np.linalg.norm(embedding.points, axis=1)
    assert lengths == pytest.approx(1.0 * (np.arange(60) != 7))


def test_points_that_coincide_share_a_cluster():
    points = np.repeat(np.eye(2), 3, axis=0) * (1 + 1e-13 * np.arange(6)[:, None])
    found = group_points(Embedding(points, np.ones(2), True, 0), 4, 1, 0)
    assert found.tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
