"""A kernel applied through its features is the matrix of their inner products."""

import numpy as np
import pytest

from kernelweave import _core
from kernelweave.banks.feature_operator import FeatureOperator
from kernelweave.banks.rules import RuleFeatures, RuleKernel


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    P, scales = rng.random((70, 9)) < 0.4, rng.uniform(0.5, 2.0, 9)
    Z = P * scales
    return RuleKernel(RuleFeatures(_core.pack_bits(P), scales, 70)), Z @ Z.T


def test_every_way_to_the_entries(pair):
    operator, K = pair
    assert isinstance(operator, FeatureOperator)
    rows, columns = np.array([3, 60, 7]), np.array([0, 69])
    np.testing.assert_allclose(operator.rows(rows), K[rows], atol=1e-12)
    np.testing.assert_allclose(operator.block(rows, columns), K[np.ix_(rows, columns)], atol=1e-12)
    np.testing.assert_allclose(operator.diag(), K.diagonal(), atol=1e-12)
    np.testing.assert_allclose(operator.dense(), K, atol=1e-12)
    V = np.random.default_rng(1).normal(size=(70, 2))
    np.testing.assert_allclose(operator @ V, K @ V, atol=1e-11)


def test_rows_are_fetched_once(pair):
    operator, K = pair
    operator.fetch(np.array([5, 2]))
    operator.fetch(np.array([2, 9]))
    operator.fetch(np.array([5, 9]))
    assert [index.tolist() for index, _ in operator.blocks] == [[2, 5], [9]]
    np.testing.assert_allclose(operator.blocks[1][1], K[[9]], atol=1e-12)
