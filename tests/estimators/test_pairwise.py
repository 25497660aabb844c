"""Kernel weights from pairs, through the estimator."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.exceptions import NotFittedError

from kernelweave import (
    Linear,
    PairwiseKernelLearner,
)
from kernelweave.errors import InputError
from pairwise_cases import LABELS, PAIRS, RATES, SHRINK, X, Y, check_same, fit, shrunk


class TestInvariants:
    @pytest.mark.parametrize("options", [{}, {"reliability": RATES, "correction": "nonneg"}])
    def test_order_of_pairs_and_within_pairs(self, options):
        order = np.random.default_rng(0).permutation(len(PAIRS))
        model = fit(**options)
        check_same(model, fit(pairs=PAIRS[order], labels=LABELS[order], **options))
        check_same(model, fit(pairs=PAIRS[:, ::-1], **options))

    def test_order_of_columns_and_rows(self):
        columns = np.random.default_rng(1).permutation(X.shape[1])
        rows = np.random.default_rng(2).permutation(len(X))
        model = fit()
        moved = fit(X[:, columns])
        np.testing.assert_allclose(moved.weights_, model.weights_[columns], atol=1e-8)
        check_same(model, fit(X[rows], pairs=np.argsort(rows)[PAIRS]))

    def test_every_pair_twice(self):
        once = fit()
        twice = fit(pairs=np.concatenate([PAIRS, PAIRS[:, ::-1]]), labels=np.tile(LABELS, 2))
        check_same(once, twice)
        assert once.diagnostics_["repeated_pairs"] == 0
        assert twice.diagnostics_["repeated_pairs"] == len(PAIRS)

    @pytest.mark.parametrize("alpha", [1e-3, 100.0])
    def test_size_of_the_kernels(self, alpha):
        model = fit()
        check_same(model, fit(X * np.sqrt(alpha), lam=1e-3 * alpha**2), factor=alpha)

    @pytest.mark.parametrize("make", [csr_array, csr_matrix])
    def test_sparse_rows(self, make):
        options = {"reliability": RATES, "correction": "nonneg", "fit_intercept": True}
        one, other = fit(**options), fit(make(X), **options)
        check_same(one, other)
        assert other.intercept_ == pytest.approx(one.intercept_)
        assert other.threshold_ == pytest.approx(one.threshold_)
        np.testing.assert_allclose(other.kernel(make(X)), one.kernel(X), atol=1e-9)

    def test_frames(self):
        names = [f"word{j}" for j in range(X.shape[1])]
        for make in (pd.DataFrame, pl.DataFrame):
            frame = make({name: X[:, j] for j, name in enumerate(names)})
            model = fit(frame)
            check_same(fit(), model)
            assert model.feature_names_in_.tolist() == names
            np.testing.assert_allclose(np.asarray(model.transform(frame)), fit().transform(X))
            assert model.to_frame()["kernel"][0] == names[int(np.argmax(model.weights_))]
            check_same(shrunk(), shrunk(frame))

    def test_kernels_of_single_columns_are_the_columns(self):
        given = [Linear(columns=[j]) for j in range(X.shape[1])]
        for options in ({}, {"reliability": RATES, "fit_intercept": True}):
            one, other = fit(**options), fit(kernels=given, **options)
            check_same(one, other)
            np.testing.assert_allclose(other.kernel(X), one.kernel(X), atol=1e-9)
            assert other.threshold_ == pytest.approx(one.threshold_)
            np.testing.assert_array_equal(
                other.predict_pairs(X, PAIRS), one.predict_pairs(X, PAIRS)
            )

    def test_naive_takes_labels_as_true(self):
        check_same(fit(), fit(correction="naive", reliability=(0.8, 0.9), prior=0.3))
        check_same(fit(), fit(reliability=(1.0, 1.0)))
        balanced = np.concatenate(
            [np.flatnonzero(LABELS > 0)[:200], np.flatnonzero(LABELS < 0)[:200]]
        )
        some = {"pairs": PAIRS[balanced], "labels": LABELS[balanced]}
        d = 0.85
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            corrected = fit(**some, reliability=(d, d))
        naive = fit(**some).statistic_.contrast
        np.testing.assert_allclose(corrected.statistic_.contrast, naive / (2 * d - 1), atol=1e-12)

    def test_input_is_left_alone(self):
        before = X.copy(), PAIRS.copy(), LABELS.copy()
        fit(fit_intercept=True)
        shrunk()
        for now, then in zip((X, PAIRS, LABELS), before, strict=True):
            np.testing.assert_array_equal(now, then)


REFUSED = [
    ({"reliability": (0.5, 0.505)}, {}, "reliability: labels with 0.5 . 0.505 right"),
    ({"reliability": (0.3, 0.5)}, {}, "reliability: with 0.3 . 0.5 < 1 the labels are wrong"),
    ({"reliability": (1.3, 0.5)}, {}, "reliability: both shares must lie in"),
    ({"reliability": 0.9}, {}, "reliability: must be two numbers"),
    ({"reliability": (0.8, 0.8), "prior": 1.4}, {}, "prior: the share of same pairs must lie in"),
    ({"reliability": (0.8, 0.8), "prior": 1.0, "correction": "nonneg"}, {}, "prior: .* strictly"),
    ({"prior": 0.4}, {}, "prior: 0.4 says nothing without reliability"),
    ({}, {"labels": np.ones(len(PAIRS))}, "labels: no pair is labelled different, -1"),
    ({}, {"labels": -np.ones(len(PAIRS))}, r"labels: no pair is labelled same, \+1"),
    ({}, {"labels": np.zeros(len(PAIRS))}, r"labels: must be \+1"),
    ({}, {"labels": np.full(len(PAIRS), np.nan)}, r"labels: must be \+1"),
    ({}, {"labels": LABELS[:-1]}, r"labels: must be \+1"),
    ({}, {"labels": None}, r"labels: must be \+1 or -1 for every pair, got None"),
    ({}, {"pairs": None}, "labels: belong to pairs, but pairs is None|pairs: give pairs"),
    ({}, {"pairs": None, "labels": None}, "pairs: give pairs with labels, or classes y"),
    ({}, {"pairs": PAIRS + 1}, "pairs: row numbers must lie between 0 and 89"),
    ({}, {"pairs": np.repeat(PAIRS[:, :1], 2, axis=1)}, "pairs: a pair needs two rows"),
    ({}, {"pairs": PAIRS * 1.5}, "pairs: must be row numbers"),
    ({}, {"pairs": PAIRS.ravel()}, "pairs: must be row numbers"),
    ({}, {"rows": np.where(X == X[0, 0], np.nan, X)}, "X: contains NaN or infinity"),
    ({"kernels": []}, {}, "kernels"),
    ({"kernels": ["rbf"]}, {}, "kernels"),
    ({**SHRINK, "kernels": [Linear()]}, {}, "kernels: method='shrink' learns one weight for each"),
    (SHRINK, {"rows": X - 0.5}, "X: method='shrink' needs columns without negative values"),
    ({**SHRINK, "rho": "select"}, {}, "n_clusters: needed to compare options by clusters"),
]


@pytest.mark.parametrize(("options", "changes", "sentence"), REFUSED)
def test_bad_input_gets_a_sentence(options, changes, sentence):
    given = {"rows": X, "pairs": PAIRS, "labels": LABELS, **changes}
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        PairwiseKernelLearner(**options).fit(
            given["rows"], pairs=given["pairs"], labels=given["labels"]
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"lam": 0.0},
        {"lam": -1.0},
        {"tol": 0},
        {"max_iter": 0},
        {"method": "other"},
        {"correction": "some"},
        {"shape": "round"},
        {"alpha": 0.0},
        {"alpha": 1.5},
        {"rho": 0.0},
        {"gamma": -1.0},
        {"steps": -1},
        {"n_clusters": 0},
        {"holdout": 1.0},
        {"n_pairs": 1},
        {"n_resample": 0},
    ],
    ids=str,
)
def test_bad_options_are_named(options):
    (name,) = options
    with pytest.raises(ValueError, match=re.escape(f"'{name}' parameter")):
        PairwiseKernelLearner(**options).fit(X, pairs=PAIRS, labels=LABELS)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.zeros(90), "y: two classes or more"),
        (np.arange(90), "y: two classes or more"),
        (np.where(np.arange(90) < 3, np.nan, 1.0), "y: contains NaN or infinity"),
        (Y[:5], "inconsistent numbers of samples"),
    ],
)
def test_bad_classes(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        PairwiseKernelLearner().fit(X, y)


def test_both_labels_for_one_pair_are_kept_and_said():
    pairs, labels = np.concatenate([PAIRS, PAIRS[:2]]), np.append(LABELS, -LABELS[:2])
    with pytest.warns(UserWarning, match=r"labels: 2 pair\(s\) are labelled both"):
        model = fit(pairs=pairs, labels=labels)
    assert model.converged_


def test_bad_pairs_to_predict():
    model = fit()
    for pairs, sentence in (([[0, 90]], "between 0 and 89"), ([0, 1], "must be row numbers")):
        with pytest.raises(InputError, match=sentence):
            model.predict_pairs(X, pairs)
    with pytest.raises(NotFittedError):
        PairwiseKernelLearner().predict_pairs(X, PAIRS)
    with pytest.raises(InputError, match="transform: only for kernels=None"):
        fit(kernels=[Linear()], fit_intercept=True).transform(X)
