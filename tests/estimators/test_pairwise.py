"""Kernel weights from pairs, through the estimator."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.pipeline import Pipeline

from kernelweave import (
    RBF,
    KernelSpectralClustering,
    Linear,
    PairwiseKernelLearner,
    Precomputed,
    constraints_from_graph,
)
from kernelweave.errors import InputError


def make_documents(seed=0, n=90, m=30, classes=3, wrong=0.15):
    """Return rows of zeros and ones, classes, pairs, their labels, and the true ones."""
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    rate = np.where(np.arange(m)[None] % (2 * classes) == y[:, None], 0.5, 0.12)
    X = (random.random((n, m)) < rate).astype(float)
    X[:, -1] = 0.0
    pairs = random.integers(n, size=(1500, 2))
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    _, first = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True)
    pairs = pairs[np.sort(first)]
    true = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    labels = np.where(random.random(len(pairs)) < wrong, -true, true)
    return X, y, pairs, labels, true


X, Y, PAIRS, LABELS, TRUE = make_documents()
RATES = (np.mean(TRUE[LABELS > 0] > 0), np.mean(TRUE[LABELS < 0] < 0))
LINKS = PAIRS[TRUE > 0][::2]
SHRINK = {"method": "shrink", "gamma": 0.5, "alpha": 0.5, "rho": 1.0, "steps": 1, "n_resample": 2}


def fit(rows=X, pairs=PAIRS, labels=LABELS, kernels=None, **options):
    model = PairwiseKernelLearner(kernels, **{"lam": 1e-3, "tol": 1e-10, **options})
    return model.fit(rows, pairs=pairs, labels=labels)


def shrunk(rows=X, pairs=LINKS, labels=None, **options):
    model = PairwiseKernelLearner(**{**SHRINK, "random_state": 0, **options})
    return model.fit(rows, pairs=pairs, labels=labels)


def check_same(one, other, factor=1.0):
    scale = np.abs(one.weights_).max()
    np.testing.assert_allclose(other.weights_ * factor, one.weights_, rtol=0, atol=1e-7 * scale)


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


class TestCorrection:
    def test_known_rates_bring_the_statistic_near_that_of_the_true_labels(self):
        true = fit(labels=TRUE).statistic_.contrast
        errors = {"noise": [], "naive": []}
        random = np.random.default_rng(1)
        for _ in range(30):
            labels = np.where(random.random(len(TRUE)) < 0.25, -TRUE, TRUE)
            rates = (np.mean(TRUE[labels > 0] > 0), np.mean(TRUE[labels < 0] < 0))
            for correction, found in errors.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    model = fit(labels=labels, reliability=rates, correction=correction)
                found.append(model.statistic_.contrast)
        bias = {name: np.linalg.norm(np.mean(s, axis=0) - true) for name, s in errors.items()}
        assert bias["noise"] < 0.5 * bias["naive"]

    def test_the_bias_knows_the_share_of_truly_same_pairs(self):
        """With columns that tell nothing the bias is that of the corrected share."""
        rows = np.zeros_like(X)
        with pytest.warns(UserWarning, match="all weights are zero"):
            model = fit(rows, reliability=(0.9, 0.8), fit_intercept=True, tol=1e-12)
        p = model.rates_.prior
        assert model.intercept_ == pytest.approx(np.log(p / (1 - p)), rel=1e-6)

    def test_impossible_means_are_reported_with_remedies(self):
        with pytest.warns(UserWarning, match="Hint: try correction='nonneg' or 'naive'") as found:
            model = fit(reliability=(0.6, 0.6))
        assert len(found) == 1
        assert 0.1 < model.diagnostics_["impossible_share"] <= 1
        assert model.diagnostics_["noise_condition"] > 1
        own, published = (model.diagnostics_[k] for k in ("own_error_constant", "error_constant"))
        assert 0 < own <= published
        kept = fit(reliability=(0.6, 0.6), correction="nonneg")
        assert kept.statistic_.different.min() >= -1e-15
        assert kept.diagnostics_["impossible_share"] <= 0.1

    def test_the_published_penalty_is_the_default(self):
        model = PairwiseKernelLearner().fit(X, pairs=PAIRS, labels=LABELS)
        assert model.diagnostics_["lam"] == 0.01 / len(PAIRS)
        check_same(fit(lam=0.01 / len(PAIRS), tol=1e-8), model)

    def test_the_flag_of_convergence_is_honest(self):
        with pytest.warns(ConvergenceWarning, match="stopped after 1 steps at a relative"):
            model = fit(lam=1e-6, max_iter=1)
        assert not model.converged_
        assert model.n_iter_ == 1
        assert fit(lam=1e-6).converged_
        with pytest.warns(ConvergenceWarning, match="stopped short of tol"):
            short = shrunk(max_iter=1, tol=1e-6, rho=0.01)
        assert not short.converged_
        assert shrunk().converged_
        assert shrunk().n_iter_ > 2

    def test_columns_without_a_common_word_get_no_weight(self):
        assert fit().weights_[-1] == 0

    def test_signed_kernels(self):
        rows = np.random.default_rng(3).standard_normal((90, 5))
        rows[:, 0] += 2.0 * (Y - 1)
        model = fit(rows, reliability=RATES, fit_intercept=True)
        assert np.argmax(model.weights_) == 0
        assert model.diagnostics_["impossible_share"] == 0
        with pytest.raises(InputError, match="'nonneg' is for kernels without negative values"):
            fit(rows, reliability=RATES, correction="nonneg")

    def test_nothing_learned_is_said(self):
        common = (X[PAIRS[:, 0]] * X[PAIRS[:, 1]]).any(axis=1)
        with pytest.warns(UserWarning, match="all weights are zero, since no kernel sums to more"):
            model = fit(labels=np.where(common, -1, 1))
        assert not model.weights_.any()
        assert model.converged_
        assert not model.kernel(X).any()
        with pytest.warns(UserWarning, match="all rows are one cluster"):
            clusters = KernelSpectralClustering(3).fit(model.transform(X))
        assert not clusters.labels_.any()


class TestUse:
    @pytest.mark.parametrize("make", [np.asarray, csr_array])
    @pytest.mark.parametrize("shape", [None, "diag", "words", "graph"])
    def test_features_kernel_and_operator_agree(self, shape, make):
        rows = make(X)
        model = fit(rows) if shape is None else shrunk(rows, shape=shape, steps=2)
        Z = model.transform(rows)
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        K = model.kernel(rows)
        np.testing.assert_allclose(K, Z @ Z.T, atol=1e-10 * K.max())
        np.testing.assert_allclose(model.kernel(rows, rows), K, atol=1e-10 * K.max())
        product = model.operator(rows) @ np.eye(len(X))
        np.testing.assert_allclose(product, K, atol=1e-10 * K.max())
        assert np.linalg.eigvalsh((K + K.T) / 2)[0] >= -1e-9 * K.max()
        assert model.get_feature_names_out().shape == (Z.shape[1],)
        if shape != "graph":
            block = model.kernel(rows[:5], rows[3:9])
            np.testing.assert_allclose(block, K[:5, 3:9], atol=1e-10 * K.max())

    def test_operator_of_given_kernels(self):
        given = [RBF(2.0), Linear(), RBF(1.0, columns=[0, 1])]
        model = fit(kernels=given, fit_intercept=True)
        assert model.weights_.any()
        K = model.kernel(X)
        np.testing.assert_allclose(model.operator(X) @ np.ones(90), K.sum(axis=1))
        expected = sum(w * k(X) for w, k in zip(model.weights_, model.kernels_, strict=True))
        np.testing.assert_allclose(K, expected)

    def test_ready_matrices(self):
        gram = X @ X.T
        numbers = np.arange(90.0)[:, None]
        given = [Precomputed(gram), Precomputed(np.eye(90))]
        model = fit(numbers, kernels=given, fit_intercept=True)
        assert model.weights_[0] > 0
        assert model.weights_[1] == 0
        np.testing.assert_allclose(model.kernel(numbers[:4]), model.weights_[0] * gram[:4, :4])

    def test_scores_and_predictions_of_pairs(self):
        model = fit()
        K = model.kernel(X)
        scores = model.score_pairs(X, PAIRS)
        np.testing.assert_allclose(scores, K[PAIRS[:, 0], PAIRS[:, 1]], atol=1e-12)
        said = model.predict_pairs(X, PAIRS)
        assert set(said) == {-1, 1}
        np.testing.assert_array_equal(said > 0, scores >= model.threshold_)
        assert model.score(X, pairs=PAIRS, labels=TRUE) == pytest.approx(
            roc_auc_score(TRUE, scores)
        )
        assert model.score(X, pairs=PAIRS, labels=TRUE) > 0.7
        assert 0.5 < PairwiseKernelLearner(random_state=0).fit(X, Y).score(X, Y) <= 1

    @pytest.mark.parametrize("labels", [LABELS, TRUE])
    def test_the_threshold_is_the_best_one(self, labels):
        model = fit(labels=labels)
        scores = model.score_pairs(X, PAIRS)

        def balanced(threshold):
            said = scores >= threshold
            return said[labels > 0].mean() + (~said)[labels < 0].mean()

        others = [balanced(t) for t in np.unique(scores)]
        assert balanced(model.threshold_) >= max(others) - 1e-12

    def test_pairs_may_join_any_rows_and_nothing_is_said_about_the_first_two(self):
        model = fit()
        assert model.predict_pairs(X, [[0, 1]]).shape == (1,)
        assert shrunk(pairs=np.concatenate([[[0, 1]], LINKS])).weights_.shape == (30,)

    def test_classes_in_place_of_pairs(self):
        model = PairwiseKernelLearner(lam=0.01, n_pairs=400, random_state=0).fit(X, Y)
        again = PairwiseKernelLearner(lam=0.01, n_pairs=400, random_state=0).fit(X, Y)
        words = np.array(["one", "two", "three"])[Y]
        named = PairwiseKernelLearner(lam=0.01, n_pairs=400, random_state=0).fit(X, words)
        np.testing.assert_array_equal(again.weights_, model.weights_)
        assert named.score(X, words) > 0.6
        assert PairwiseKernelLearner(**SHRINK, random_state=0).fit(X, Y).score(X, Y) > 0.6

    @pytest.mark.parametrize("shape", [None, "diag", "words", "graph"])
    def test_pickle_and_clone(self, shape):
        model = fit() if shape is None else shrunk(shape=shape)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.kernel(X), model.kernel(X))
        fresh = clone(model)
        assert not hasattr(fresh, "weights_")
        assert fresh.get_params() == model.get_params()

    @pytest.mark.filterwarnings("ignore:X. .* similar to none:UserWarning")
    def test_pipeline_to_clusters(self):
        random = np.random.default_rng(0)
        loud = np.column_stack([X, random.random((90, 20)) < 0.5]).astype(float)
        learner = PairwiseKernelLearner(lam=1e-2, fit_intercept=True)
        pipe = Pipeline(
            [("learn", learner), ("group", KernelSpectralClustering(3, random_state=0))]
        )
        labels = pipe.fit_predict(loud, learn__pairs=PAIRS, learn__labels=TRUE)
        plain = KernelSpectralClustering(3, random_state=0).fit_predict(loud)
        learned, before = (normalized_mutual_info_score(Y, found) for found in (labels, plain))
        assert learned > before + 0.15

    def test_output_as_a_frame(self):
        model = fit().set_output(transform="pandas")
        out = model.transform(X)
        assert list(out.columns) == list(model.get_feature_names_out())

    def test_a_refused_fit_leaves_the_old_one(self):
        model = fit()
        before = model.weights_
        with pytest.raises(InputError):
            model.fit(X[:, :5], pairs=PAIRS, labels=[0])
        assert model.weights_ is before
        assert model.n_features_in_ == X.shape[1]


class TestShrink:
    def test_a_huge_pull_gives_equal_weights(self):
        for rho in (1e12, np.inf):
            model = shrunk(rho=rho)
            np.testing.assert_allclose(model.weights_, model.scale_, rtol=1e-6)
        equal = KernelSpectralClustering(3, random_state=0).fit_predict(model.transform(X))
        scaled = X * np.log(len(X) / np.maximum(X.astype(bool).sum(axis=0), 1)) ** 0.5
        scaled[:, -1] = 0
        scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
        plain = KernelSpectralClustering(3, random_state=0).fit_predict(scaled)
        assert normalized_mutual_info_score(equal, plain) == pytest.approx(1.0)

    def test_the_same_seed_gives_the_same_weights(self):
        np.testing.assert_array_equal(shrunk().weights_, shrunk().weights_)
        assert (shrunk().weights_ != shrunk(random_state=1).weights_).any()

    def test_repeats_and_directions_of_links_do_not_matter(self):
        check_same(shrunk(), shrunk(pairs=np.concatenate([LINKS, LINKS[:, ::-1]])))

    def test_sparse_rows(self):
        one, other = shrunk(tol=1e-8), shrunk(csr_array(X), tol=1e-8)
        np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-5, atol=1e-7)

    def test_given_negatives(self):
        model = shrunk(pairs=PAIRS, labels=LABELS, alpha=1.0)
        assert model.score(X, pairs=PAIRS, labels=TRUE) > 0.7

    def test_options_are_chosen_by_held_out_pairs(self):
        options = {"gamma": 0.5, "rho": "select", "alpha": 1.0, "n_clusters": 3, "n_splits": 2}
        model = shrunk(**options)
        assert model.setting_ == model.selection_[0].setting
        assert [one.setting.rho for one in model.selection_].count(np.inf) == 1
        assert len(model.selection_) == 8
        auto = shrunk(shape="auto", rho=1.0, alpha="select", n_clusters=3, n_splits=1)
        assert {one.setting.shape for one in auto.selection_} == {"diag", "words"}
        assert shrunk().selection_ == []

    def test_new_rows(self):
        model = shrunk(shape="words", steps=2)
        np.testing.assert_allclose(model.transform(X[4:6]), model.transform(X)[4:6], rtol=1e-10)
        graph = shrunk(shape="graph")
        with pytest.raises(InputError, match="X: with shape='graph' links are part of the kernel"):
            graph.transform(X[:5])
        with pytest.raises(InputError, match="Hint: use shape='words'"):
            graph.operator(X[::-1])

    def test_few_links(self):
        model = shrunk(pairs=[[0, 1]])
        assert np.isfinite(model.weights_).all()
        with pytest.raises(InputError, match="pairs: to compare options a part is held out"):
            shrunk(pairs=[[0, 1]], rho="select", n_clusters=3)

    def test_a_graph_in_place_of_pairs(self):
        found = constraints_from_graph(LINKS, n_samples=90, random_state=0)
        assert shrunk(pairs=found.pairs, labels=found.labels).converged_
        assert fit(pairs=found.pairs, labels=found.labels).converged_


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
