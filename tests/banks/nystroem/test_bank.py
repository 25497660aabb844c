"""Kernels as features of landmarks: what they leave out, what they sum to, where they are kept."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import RBF, Laplacian, Linear, Precomputed
from kernelweave.banks import make_bank
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank


@pytest.fixture
def few(monkeypatch):
    """Let few rows count as many."""
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    monkeypatch.setattr(source, "_BLOCK_BYTES", 2000)  # many blocks


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


def test_rows_that_the_sample_missed_become_landmarks(few, monkeypatch):
    monkeypatch.setattr(large, "_SAMPLE", 40)
    X = table(400)
    X[[7, 211], 0] = [60.0, -45.0]  # far from everything, and not among the rows looked at first
    bank = make_feature_bank([RBF(width=1.0, columns=[0])], X, normalize=None, tol=1e-3)
    assert {60.0, -45.0} <= set(bank.landmarks[0].rows.ravel())
    assert bank.left[0] <= 1e-9 * bank.diagonals[0]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_features_belong_to_their_landmarks_however_long_the_search(few, monkeypatch, rounds):
    """Heavy tails: more rows are missed by the sample than a few rounds can add."""
    monkeypatch.setattr(large, "_SAMPLE", 40)
    monkeypatch.setattr(large, "_ROUNDS", rounds)
    monkeypatch.setattr(source, "_WORST", 1)
    X = np.random.default_rng(9).standard_cauchy(size=(600, 1)) * 20
    bank = make_feature_bank([RBF(width=1.0)], X, normalize=None, tol=1e-3)
    W = np.random.default_rng(10).normal(size=(bank.blocks.n_columns, 1))
    values = bank.function(W).values([RBF(width=1.0)], bank.source.views)
    np.testing.assert_allclose(values, bank.blocks.times(W), atol=1e-4)
    missed = bank.left[0] > 1e-9 * bank.diagonals[0]
    assert bank.complete.all() == (not missed)


def test_kernels_of_nothing_and_of_one_value(few):
    X = np.column_stack([table(), np.zeros(90), np.full(90, 3.0)])
    kernels = [*KERNELS[:2], Linear(columns=[3]), RBF(width=1.0, columns=[4])]
    bank = make_feature_bank(kernels, X, tol=1e-3)
    assert bank.is_constant.tolist() == [False, False, True, True]
    V = np.random.default_rng(11).normal(size=(90, 1))
    assert bank.quadratic_forms(V)[2] == 0.0
    assert np.isfinite(bank.combine(np.full(4, 0.25)) @ V).all()
    nothing = np.zeros((bank.blocks.n_columns, 1))
    assert not bank.function(nothing).values(kernels[:1], bank.source.views).any()


def test_many_columns_of_high_rank_keep_a_gram_matrix_while_that_is_bearable(few, monkeypatch):
    monkeypatch.setattr(large, "_MOST_FEATURES", 0.25)
    X = np.random.default_rng(5).normal(size=(300, 10))
    assert make_feature_bank([RBF(width=1.0)], X) is None
    monkeypatch.setattr(large, "TOO_MANY_ROWS", 100)
    monkeypatch.setattr(large, "_MOST_LANDMARKS", 50)
    bank = make_feature_bank([RBF(width=1.0)], X)
    assert not bank.complete.all()
    assert bank.landmarks[0].rank == 50


def test_what_has_a_matrix_already_is_left_alone(few):
    gram = np.eye(90)
    assert make_feature_bank([Precomputed(gram)], np.arange(90)[:, None]) is None
    assert make_feature_bank(KERNELS, table(), normalize="radius") is None


def test_few_rows_are_left_alone():
    assert make_feature_bank(KERNELS, table()) is None


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


def test_kernels_other_than_gaussians_have_landmarks(few):
    X = table()
    kernels = [Linear(), Laplacian(width=3.0, columns=[0])]
    bank = make_feature_bank(kernels, X[:, :2], tol=1e-3)
    assert bank is None or bank.landmarks[0].rank == 2
