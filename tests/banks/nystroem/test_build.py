"""The search of landmarks, and when Nystroem features are used."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import RBF, Linear, Polynomial, Precomputed
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import make_feature_bank
from many_rows import count_as_many


@pytest.fixture
def few(monkeypatch):
    count_as_many(monkeypatch, 2000)  # many blocks


def table(n=90, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


KERNELS = [RBF(width=1.0, columns=[0]), RBF(width=2.0, columns=[1]), Linear()]


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
    monkeypatch.setattr(large, "TOO_MANY_ROWS", 100)  # features, whatever their rank
    X = np.random.default_rng(9).standard_cauchy(size=(600, 1)) * 20
    bank = make_feature_bank([RBF(width=1.0)], X, normalize=None, tol=1e-3)
    W = np.random.default_rng(10).normal(size=(bank.blocks.n_columns, 1))
    values = bank.function(W).values([RBF(width=1.0)], bank.source.views)
    np.testing.assert_allclose(values, bank.blocks.times(W), atol=1e-4)
    missed = bank.left[0] > 1e-9 * bank.diagonals[0]
    assert bank.complete.all() == (not missed)


@pytest.mark.parametrize(
    "kernels",
    [
        [RBF(width=1.0)],
        [RBF(width=1.0) * Linear(columns=[0]), RBF(width=2.0)],
        [Linear() + (RBF(width=1.0) + Linear()) * Polynomial(2)],
    ],
    ids=["one", "product", "nested"],
)
def test_kernels_of_high_rank_are_told_without_a_search_of_landmarks(few, monkeypatch, kernels):
    monkeypatch.setattr(large, "begin", lambda *args: pytest.fail("landmarks were searched"))
    X = np.random.default_rng(5).normal(size=(300, 10))
    assert make_feature_bank(kernels, X) is None


def test_the_narrowest_of_several_widths_decides_on_their_rank(few, monkeypatch):
    tried, trial = [], large.trial_rank

    def count(kernel, *args):
        tried.append(str(kernel))
        return trial(kernel, *args)

    monkeypatch.setattr(large, "trial_rank", count)
    widths = [RBF(2.0, columns=[0]), RBF(1.0, columns=[0]), RBF(4.0, columns=[0])]
    assert make_feature_bank([*widths, *KERNELS[1:]], table()) is not None
    assert len(tried) == 3
    assert {name.split(" on ")[0] for name in tried} == {"rbf(width=1)", "rbf(width=2)", "linear"}
    tried.clear()
    assert make_feature_bank([RBF(8.0), RBF(0.01)], table()) is None
    assert tried == ["rbf(width=0.01)"]


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


@pytest.mark.parametrize("scale", [1e-40, 1e40])
@pytest.mark.parametrize("outlier", [False, True])
def test_features_of_any_scale(few, monkeypatch, scale, outlier):
    """Single precision ends at 1e38; rows outside the first sample count too."""
    monkeypatch.setattr(large, "_SAMPLE", 40)
    X = table()
    Z = X * (1.0 if outlier else scale)
    if outlier:
        Z[1] *= 1e25
    bank = make_feature_bank([Linear()], Z, tol=1e-3)
    assert bank.blocks.rows(np.arange(3)).dtype == np.float64
    assert bank.dtype == np.float64
    V = np.random.default_rng(1).normal(size=(len(X), 1))
    exact = bank.scales[0] * np.sum((Z.T @ V) ** 2)
    np.testing.assert_allclose(bank.quadratic_forms(V), [exact], rtol=1e-9)
    part = bank.take(np.arange(20))
    assert np.isfinite(part.quadratic_forms(V[:20])).all()


def test_few_rows_are_left_alone():
    assert make_feature_bank(KERNELS, table()) is None


@pytest.mark.parametrize(
    ("kernels", "n", "expected"),
    [
        ([RBF(width=1.0)], 2999, False),
        ([RBF(width=1.0)], 3000, True),
        ([RBF(width=1.0), Linear()], 6000, True),  # a kernel of low rank is a factor
        ([RBF(width=1.0), Polynomial(degree=5)], 6000, False),
        ([RBF(width=1.0), Polynomial(degree=5)], 20_000, True),
        ([RBF(width=1.0)], 50_001, True),
        ([RBF(width=1.0)], 200_001, False),
    ],
)
def test_rows_from_which_kernels_are_computed_on_demand(kernels, n, expected):
    X = np.random.default_rng(0).normal(size=(n, 10))
    assert large.may_compute(kernels, X, "trace", "2GB") is expected
    assert not large.may_compute(kernels, X, "trace", "200MB")
    assert large.may_compute(kernels, X, "trace", "300MB", whole=True) is (expected and n <= 50_000)


def test_without_features_kernels_of_low_rank_are_not_computed_on_demand():
    X = np.random.default_rng(0).normal(size=(6000, 10))
    low, high = [RBF(width=1.0, columns=[0])], [RBF(width=1.0, columns=[0]), RBF(width=1.0)]
    for normalize in ("trace", "radius"):
        assert large.may_compute(low, X, normalize, "2GB")
        assert not large.may_compute(low, X, normalize, "2GB", features=False)
        assert large.may_compute(high, X, normalize, "2GB", features=False)
