"""Kernels as features of landmarks: what they leave out, what they sum to, where they are kept."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import RBF, Linear
from kernelweave.banks import make_bank
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank
from many_rows import count_as_many


@pytest.fixture
def few(monkeypatch):
    count_as_many(monkeypatch, 2000)  # many blocks


def table(n=90, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


KERNELS = [RBF(width=1.0, columns=[0]), RBF(width=2.0, columns=[1]), Linear()]


@pytest.mark.parametrize("normalize", [None, "trace", "diagonal", "cosine"])
@pytest.mark.parametrize("centred", [True, False])
def test_forms_and_products_are_those_of_a_bank(few, normalize, centred):
    X, V = table(), np.random.default_rng(1).normal(size=(90, 2))
    options = {"normalize": normalize, "centred": centred, "tol": 1e-7}
    bank, reference = make_feature_bank(KERNELS, X, **options), make_bank(KERNELS, X, **options)
    assert len(bank.blocks.blocks) > 3
    np.testing.assert_allclose(bank.scales, reference.scales, rtol=1e-8)
    np.testing.assert_allclose(bank.quadratic_forms(V), reference.quadratic_forms(V), rtol=1e-8)
    some, rows = np.array([2, 0]), np.array([5, 80, 33])
    expected = reference.products(V, some, rows)
    np.testing.assert_allclose(bank.products(V, some, rows), expected, rtol=1e-7, atol=1e-9)
    weights = np.array([0.5, 0.0, 1.5])
    product = bank.combine(weights) @ V
    np.testing.assert_allclose(product, reference.combine(weights) @ V, rtol=1e-7, atol=1e-9)
    centred_traces = reference.traces(centred=True)
    np.testing.assert_allclose(bank.trace_bounds(centred=True), centred_traces, rtol=1e-7)


def test_weighted_rows_are_normalised_as_in_a_bank(few):
    X, share = table(), np.random.default_rng(2).uniform(0.1, 3, 90)
    bank = make_feature_bank(KERNELS, X, sample_weight=share, tol=1e-7)
    reference = make_bank(KERNELS, X, sample_weight=share, tol=1e-7)
    np.testing.assert_allclose(bank.scales, reference.scales, rtol=1e-8)


def test_bounds_hold_for_exact_kernels(few):
    X, V = table(), np.random.default_rng(3).normal(size=(90, 1))
    bank = make_feature_bank(KERNELS[:2], X, normalize=None, tol=1.0)  # few landmarks are kept
    exact = np.array(
        [
            (V.T @ kernel.block(r, r) @ V).item()
            for kernel, r in zip(KERNELS, (X[:, [0]], X[:, [1]]), strict=False)
        ]
    )
    assert (bank.quadratic_forms(V) < exact * (1 - 1e-9)).all()
    assert (bank.quadratic_forms(V) + bank.form_errors(V, bank.quadratic_forms(V)) >= exact).all()
    fine = bank.exact_forms(V)
    assert (fine >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(fine, exact, rtol=1e-9)


def test_bounds_allow_for_storage_in_single_precision(few):
    """Coefficients that add up every rounding error of one feature are the worst case."""
    X = table()
    bank = make_feature_bank(KERNELS[:1], X, normalize=None, tol=1e-4)
    exact = make_feature_bank(KERNELS[:1], X, normalize=None, tol=1e-6)
    assert (bank.unit, exact.unit) == (2.0**-24, 2.0**-53)
    item = exact.landmarks[0]
    error = item.features(exact.source.views[0])[:, 0] - bank.blocks.rows(np.arange(90))[:, 0]
    V = np.sign(error)[:, None]
    above = float(exact.quadratic_forms(V)[0] - bank.quadratic_forms(V)[0])
    assert 0 < above <= bank.form_errors(V, bank.quadratic_forms(V))[0]
    W = np.zeros((bank.blocks.n_columns, 1))
    W[0] = 1.0
    assert 0 < np.abs(error).sum() <= bank.value_rounding(W, np.ones((90, 1)))


def test_a_function_has_the_values_and_the_norm_that_are_claimed(few):
    X = table()
    bank = make_feature_bank(KERNELS[:2], X, tol=1e-2)
    W = np.random.default_rng(4).normal(size=(bank.blocks.n_columns, 1))
    function = bank.function(W)
    kernels = [KERNELS[j] for j in function.which]
    values = function.values(kernels, bank.source.views)
    np.testing.assert_allclose(values, bank.blocks.times(W), atol=1e-6)
    for j, norm in enumerate(bank.norms(W)):
        c, P = function.coefs[j], function.rows[j]
        squared = (c.T @ kernels[j].block(P, P) @ c).item() / bank.scales[j]
        assert norm**2 == pytest.approx(squared, rel=1e-7)


def test_features_beyond_the_memory_allowed_are_kept_in_a_file(few):
    X, V = table(), np.random.default_rng(6).normal(size=(90, 1))
    inside = make_feature_bank(KERNELS, X, tol=1e-3)
    outside = make_feature_bank(KERNELS, X, tol=1e-3, memory_limit=9.6e4)
    assert isinstance(outside.blocks.blocks[0], np.memmap)
    np.testing.assert_array_equal(inside.quadratic_forms(V), outside.quadratic_forms(V))
    few_columns = outside.blocks.select(np.array([2, 0]))
    assert isinstance(few_columns.blocks[0], np.memmap)
    expected = inside.blocks.rows(np.arange(90), np.array([2, 0]))
    np.testing.assert_array_equal(few_columns.rows(np.arange(90)), expected)


def test_a_sample_of_the_rows(few):
    X, rows = table(), np.arange(0, 90, 3)
    bank = make_feature_bank(KERNELS, X, tol=1e-3).take(rows)
    V = np.random.default_rng(7).normal(size=(30, 1))
    spread = np.zeros((90, 1))
    spread[rows] = V
    whole = make_feature_bank(KERNELS, X, tol=1e-3).quadratic_forms(spread)
    np.testing.assert_allclose(bank.quadratic_forms(V), whole, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_multiply_as_the_matrix_they_hold(dtype):
    rng = np.random.default_rng(8)
    F = rng.normal(size=(70, 9)).astype(dtype)
    blocks = LocalBlocks([F[:1], F[1:30], F[30:]])
    W, V = rng.normal(size=(9, 2)), rng.normal(size=(70, 3))
    V[::2] = 0.0
    q = np.where(rng.random(70) < 0.5, rng.uniform(0, 2, 70), 0.0)
    exact = F.astype(np.float64)
    np.testing.assert_allclose(blocks.times(W), exact @ W, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(blocks.sums(V), exact.T @ V, rtol=1e-12, atol=1e-13)
    inner, edge = blocks.gram(q, np.arange(9))
    np.testing.assert_allclose(inner, (exact.T * q) @ exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(edge, exact.T @ q, rtol=1e-12, atol=1e-13)
    index = np.array([69, 0, 29, 30])
    np.testing.assert_array_equal(blocks.rows(index), exact[index])
    np.testing.assert_allclose(
        blocks.select(np.array([1, 4])).times(W[:2]), exact[:, [1, 4]] @ W[:2]
    )
