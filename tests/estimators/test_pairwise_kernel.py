"""The learned kernel in use."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.pipeline import Pipeline

from kernelweave import (
    RBF,
    KernelSpectralClustering,
    Linear,
    PairwiseKernelLearner,
    Precomputed,
)
from kernelweave.errors import InputError
from pairwise_cases import LABELS, LINKS, PAIRS, SHRINK, TRUE, X, Y, fit, shrunk


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

    @pytest.mark.filterwarnings("ignore:.*rank no better than equal ones")
    def test_operator_of_given_kernels(self):
        given = [RBF(2.0), Linear(), RBF(1.0, columns=[0, 1])]
        model = fit(kernels=given, fit_intercept=True)
        assert model.weights_.any()
        K = model.kernel(X)
        np.testing.assert_allclose(model.operator(X) @ np.ones(90), K.sum(axis=1))
        expected = sum(w * k(X) for w, k in zip(model.weights_, model.kernels_, strict=True))
        np.testing.assert_allclose(K, expected)

    @pytest.mark.filterwarnings("ignore:.*rank no better than equal ones")
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
