"""Upper triangles: packing, diagonals, quadratic forms, and evaluation from a bank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelweave.banks import make_bank
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.paths import PathBank
from kernelweave.banks.products import ProductBank
from kernelweave.banks.rules import PackedRows, RuleBank
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import RBF, Linear, Polynomial
from kernelweave.kernels.network import Network

KERNELS = [RBF(1.0), RBF(2.0), Linear(), Polynomial(2)]
X = np.random.default_rng(0).normal(size=(15, 3))


@pytest.fixture
def bank():
    return make_bank(KERNELS, X, normalize="diagonal", tol=1e-9)


def grams_of(bank):
    return [bank.scales[j] * kernel(X) for j, kernel in enumerate(KERNELS)]


def test_matrices_come_back_as_they_went_in(bank):
    triangles = Triangles.of(bank, [3, 0], n_ones=1)
    grams = grams_of(bank)
    for row, gram in zip(triangles.entries, (np.ones((15, 15)), grams[3], grams[0]), strict=True):
        square = triangles.square(row)
        assert_array_equal(square, square.T)
        assert_allclose(square, gram, rtol=1e-12, atol=1e-14)
    rows, columns = np.triu_indices(15)
    assert_allclose(triangles.entries[2], grams[0][rows, columns], rtol=1e-12)
    assert_array_equal(triangles.diagonals()[0], np.ones(15))


@pytest.mark.parametrize("used", [15, 10, 3, 0])
def test_weights_of_entries_give_quadratic_forms(bank, used):
    triangles = Triangles.of(bank, range(4))
    rng = np.random.default_rng(used)
    V = rng.normal(size=(15, 2)) * (np.arange(15) < used)[:, None]
    added = rng.random(15) * (np.arange(15) < used)
    entries, weights = triangles.weigh(V, added)
    expected = [np.vdot(V, K @ V) + added @ K.diagonal() for K in grams_of(bank)]
    assert_allclose(entries @ weights, expected, rtol=1e-10, atol=1e-12)
    assert (entries is triangles.entries) == (used == 15)


def operators():
    """Weighted sums of products, of a network and of rules, with their matrices."""
    bank = make_bank(KERNELS, X, normalize=None, tol=1e-9)
    products = ProductBank(bank)
    products.add([(), (0,), (1, 2)])
    K = [kernel(X) for kernel in KERNELS]
    yield products.combine(np.array([0.5, 2.0, 3.0])), 0.5 + 2.0 * K[0] + 3.0 * K[1] * K[2]
    network = Network.of(RBF(1.0) * Linear())
    leaves = Triangles.of(make_bank([RBF(1.0), Linear()], X, normalize=None, tol=1e-9), [0, 1])
    gram = PathBank(leaves, network, network.paths(10)).gram(np.zeros(1))
    yield GramKernel(gram), K[0] * K[2]
    truth = np.random.default_rng(1).random((15, 4)) < 0.5
    rules = RuleBank(PackedRows.of(truth))
    rules.add([(), (0,), (1, 2)])
    phi = np.column_stack([np.ones(15), truth[:, 0], truth[:, 1] & truth[:, 2]]).astype(float)
    weights = np.array([1.0, 0.5, 2.0])
    for n_related in (1, 2):
        yield rules.combine(weights, n_related), (phi * weights) @ phi.T


@pytest.mark.parametrize("number", range(4), ids=["products", "network", "rules", "related rules"])
def test_weighted_sums_act_like_their_matrix(number):
    operator, K = list(operators())[number]
    V = np.random.default_rng(2).normal(size=(15, 2))
    assert_allclose(operator @ V, K @ V, rtol=1e-9, atol=1e-9)
    assert_allclose(operator.diag(), K.diagonal(), rtol=1e-9)
    assert_allclose(operator.exact_product(V), K @ V, rtol=1e-9, atol=1e-9)
    assert_allclose(operator.scaled(3.0) @ V, 3.0 * K @ V, rtol=1e-9, atol=1e-9)
    assert operator.n_samples == 15
