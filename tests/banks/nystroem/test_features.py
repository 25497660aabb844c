"""Nystroem features of a weighted sum."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import RBF, Linear
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank
from many_rows import count_as_many


@pytest.fixture
def few(monkeypatch):
    count_as_many(monkeypatch, 2000)  # many blocks


def table(n=90, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


KERNELS = [RBF(width=1.0, columns=[0]), RBF(width=2.0, columns=[1]), Linear()]


def test_scores_are_read_once(few, monkeypatch):
    X = table()
    bank = make_feature_bank(KERNELS, X, tol=1e-3)
    V = np.random.default_rng(7).normal(size=(90, 1))
    reads = []
    original = LocalBlocks.sums
    monkeypatch.setattr(LocalBlocks, "sums", lambda self, V: reads.append(1) or original(self, V))
    quadratic_forms = bank.quadratic_forms(V)
    products = bank.products(V, np.arange(3), np.arange(90))
    assert len(reads) == 1
    np.testing.assert_allclose(np.einsum("jno,no->j", products, V), quadratic_forms, rtol=1e-6)
    other = bank.quadratic_forms(2.0 * V)  # another vector takes another pass
    assert len(reads) == 2
    np.testing.assert_allclose(other, 4.0 * quadratic_forms)


def test_a_function_is_taken_to_other_weights(few):
    bank = make_feature_bank(KERNELS, table(), tol=1e-3)
    old, new, less = (
        bank.combine(np.array(weights)).features()
        for weights in ([0.5, 0.5, 0.0], [0.2, 0.5, 0.3], [1.0, 0.0, 0.0])
    )
    w = np.random.default_rng(8).normal(size=(old.n_features, 1))
    function = old.to_bank(w)
    own, whole = new.from_bank(function)
    assert whole
    np.testing.assert_allclose(new.times(own), old.times(w), atol=1e-10)
    assert not less.from_bank(function)[1]
