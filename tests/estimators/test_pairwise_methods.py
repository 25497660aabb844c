"""The two methods of learning from pairs."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, normalized_mutual_info_score

from kernelweave import (
    RBF,
    KernelSpectralClustering,
    Linear,
    PairwiseKernelLearner,
    constraints_from_graph,
)
from kernelweave.errors import InputError
from kernelweave.estimators.pairwise_methods import best_threshold, even_threshold
from pairwise_cases import LABELS, LINKS, PAIRS, RATES, TRUE, X, Y, check_same, fit, shrunk


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


def make_unbalanced(seed=0, n=400, same=0.1):
    """Return rows, pairs of which few are same, and their labels."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 5, n)
    X = np.eye(5)[classes] + 0.15 * rng.normal(size=(n, 5))
    X = np.column_stack([X, rng.normal(size=(n, 3))])
    drawn = rng.integers(0, n, (6000, 2))
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    alike = classes[drawn[:, 0]] == classes[drawn[:, 1]]
    few = np.flatnonzero(alike)[: int(same * 1500)]
    pairs = np.concatenate([drawn[few], drawn[~alike][: 1500 - len(few)]])
    return X, pairs, np.where(np.arange(1500) < len(few), 1, -1)


def test_few_pairs_of_one_kind_get_an_intercept_and_its_threshold():
    X, pairs, labels = make_unbalanced()
    kernels = [RBF(1.0, columns=[0, 1, 2, 3, 4]), Linear(columns=[5, 6, 7])]
    model = PairwiseKernelLearner(kernels).fit(X, pairs=pairs, labels=labels)
    assert model.intercept_ != 0.0
    assert model.threshold_ == even_threshold(model.score_pairs(X, pairs), labels)
    assert f1_score(labels, model.predict_pairs(X, pairs)) > 0.8
    explicit = PairwiseKernelLearner(kernels, fit_intercept=True)
    explicit.fit(X, pairs=pairs, labels=labels)
    assert np.array_equal(explicit.weights_, model.weights_)
    rest = np.flatnonzero(labels < 0)[: int((labels > 0).sum())]
    half = np.concatenate([np.flatnonzero(labels > 0), rest])
    balanced = PairwiseKernelLearner(kernels).fit(X, pairs=pairs[half], labels=labels[half])
    assert balanced.intercept_ == 0.0


def test_wrong_labels_hardly_move_the_threshold():
    """At the threshold of true labels, with a share of either kind called the other."""
    random = np.random.default_rng(0)
    scores = np.concatenate([random.normal(1.0, 1.0, 20_000), random.normal(4.0, 1.0, 3000)])
    true = np.arange(len(scores)) >= 20_000
    # Densities are equal where log(20/3) = (4 - 1) (s - 2.5).
    expected = 2.5 + np.log(20 / 3) / 3
    for same, different in [(0.0, 0.0), (0.4, 0.0), (0.0, 0.2), (0.4, 0.15)]:
        wrong = random.random(len(scores)) < np.where(true, same, different)
        labels = np.where(true != wrong, 1, -1)
        found = even_threshold(scores, labels)
        assert found == pytest.approx(expected, abs=0.15)
        moved = even_threshold(-3.0 + 7.0 * scores, labels)
        assert moved == pytest.approx(-3.0 + 7.0 * found, abs=1e-3)


def test_a_threshold_without_anything_to_tell():
    scores = np.array([0.0, 1.0, 2.0])
    assert even_threshold(scores, np.ones(3)) == best_threshold(scores, np.ones(3))
    assert even_threshold(np.ones(3), scores - 1.0) == best_threshold(np.ones(3), scores - 1.0)
    assert np.isfinite(even_threshold(scores, np.array([-1, -1, 1])))


def test_weights_no_better_than_equal_ones_are_named():
    X, pairs, labels = make_unbalanced()
    one = RBF(1.0, columns=[0, 1, 2, 3, 4])
    with pytest.warns(UserWarning, match="rank no better than equal ones"):
        PairwiseKernelLearner([one, one * 1.0]).fit(X, pairs=pairs, labels=labels)
