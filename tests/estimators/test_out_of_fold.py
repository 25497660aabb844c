"""Values of rows from models without them."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

import kernelweave as kw
from kernelweave import RBF
from kernelweave.estimators import calibration
from kernelweave.estimators.calibrators import fit_calibrator
from kernelweave.estimators.folds import FoldPlan
from kernelweave.estimators.out_of_fold import HeldProblem
from kernelweave.solvers.evaluator import ExactEvaluator
from probability_cases import CLASSIFIERS, KERNELS, MANY, TWO, N, X, fit_pair, quiet


@pytest.fixture(scope="module", params=list(CLASSIFIERS))
def pair(request):
    return fit_pair(request.param)


def test_out_of_fold_values_are_those_of_models_without_the_row(pair):
    for _, model, _ in pair:
        own = model._fold_outputs(X)[np.arange(N), model._fold]
        assert model.out_of_fold_.shape == own.shape
        np.testing.assert_allclose(own, model.out_of_fold_, atol=2e-6)


def test_cost_zero_is_a_fit_of_the_other_rows():
    model = kw.MKLClassifier(
        KERNELS, norm="uniform", normalize=None, calibration="auto", tol=1e-8
    ).fit(X, TWO)
    for k in range(5):
        kept, test = model._fold != k, model._fold == k
        other = kw.MKLClassifier(KERNELS, norm="uniform", normalize=None, tol=1e-8)
        other.fit(X[kept], TWO[kept])
        np.testing.assert_allclose(
            other.decision_function(X[test]), model.out_of_fold_[test, 0], atol=1e-5
        )


def test_weights_are_held_where_kernels_are_few():
    few = kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO)
    many = quiet(kw.MKLClassifier(MANY, calibration="auto"), X, TWO)
    assert (len(few._folds), few._n_folds) == (1, 5)
    assert np.array_equal(few._folds[0].weights_, few.weights_)
    assert (len(many._folds), many._n_folds) == (3, 3)
    assert not np.array_equal(many._folds[0].weights_, many.weights_)


def test_the_map_of_two_classes_is_fitted_to_the_mean_of_two_divisions(monkeypatch):
    dealt = []
    deal = FoldPlan.deal
    monkeypatch.setattr(
        FoldPlan, "deal", lambda *args: [dealt.append(deal(*args)), dealt[-1]][1], raising=True
    )
    model = kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO)
    first, second = dealt
    assert (first != second).any()
    again = kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=second).fit(X, TWO)
    given = kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=first).fit(X, TWO)
    np.testing.assert_array_equal(model.out_of_fold_, given.out_of_fold_)  # sets need one division
    assert (model.out_of_fold_ != again.out_of_fold_).any()
    codes = (TWO == "yes")[:, None] * 1.0

    def fitted(decision):
        found = fit_calibrator("auto", decision, codes, np.ones(N), labels=False)
        return [found.slopes[0], found.biases[0]]

    own = [model.calibrator_.slopes[0], model.calibrator_.biases[0]]
    mean = 0.5 * (model.out_of_fold_ + again.out_of_fold_)
    np.testing.assert_allclose(own, fitted(mean), rtol=1e-9)
    assert not np.allclose(own, fitted(model.out_of_fold_), rtol=1e-6)
    # Folds that are given are the only ones: rows may depend on each other.
    only = [given.calibrator_.slopes[0], given.calibrator_.biases[0]]
    np.testing.assert_allclose(only, fitted(given.out_of_fold_), rtol=1e-9)


def test_many_rows_and_several_classes_are_divided_once(monkeypatch):
    dealt = []
    deal = FoldPlan.deal
    monkeypatch.setattr(FoldPlan, "deal", lambda *args: [dealt.append(1), deal(*args)][1])
    kw.MKLClassifier(KERNELS, calibration="auto").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert len(dealt) == 1
    monkeypatch.setattr(calibration, "_NOISY", N - 1)
    kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO)
    assert len(dealt) == 2


def test_a_fold_takes_a_quarter_of_the_solves_of_the_fit():
    limits = []
    for tol in (1e-1, 1e-6):
        model = quiet(kw.MKLClassifier(MANY, calibration="auto", tol=tol), X, TWO)
        limits.append((model.n_iter_, [fold.n_iter_ for fold in model._folds]))
    (few, short), (many, long) = limits
    assert few < 12
    assert many > 16
    assert max(short) <= max(2, few // 4) + 1  # a solve may end a step under way
    assert max(short) < max(long) <= 5


def test_no_worse_than_five_fits():
    random = np.random.default_rng(11)
    rows = random.normal(size=(600, 6))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] + random.normal(size=600) > 0
    kernels = [RBF(w, columns=[j]) for w in (1.0, 3.0) for j in range(6)] + [RBF(2.0)]
    model = kw.MKLClassifier(kernels, calibration="auto").fit(rows[:200], y[:200])
    peer = CalibratedClassifierCV(kw.MKLClassifier(kernels), ensemble=False)
    theirs = log_loss(y[200:], peer.fit(rows[:200], y[:200]).predict_proba(rows[200:]))
    assert log_loss(y[200:], model.predict_proba(rows[200:])) < theirs + 0.01


@pytest.mark.parametrize("y", [TWO, np.digitize(X[:, 0], [-0.5, 0.5])], ids=["two", "three"])
def test_folds_may_be_solved_together(y, monkeypatch):
    fits = []
    for together in (True, False):
        monkeypatch.setattr(HeldProblem, "_is_separable", together)
        fits.append(kw.MKLClassifier(KERNELS, calibration="auto", tol=1e-8).fit(X, y))
    one, two = fits
    np.testing.assert_allclose(one.out_of_fold_, two.out_of_fold_, atol=2e-4)
    np.testing.assert_allclose(one._folds[0].intercept_, two._folds[0].intercept_, atol=2e-4)
    assert np.array_equal(one.weights_, two.weights_)


def test_several_quantiles_are_left_out_fold_by_fold():
    options = {"loss": "quantile", "quantile": (0.1, 0.9), "intervals": "auto"}
    model = kw.MKLRegressor(KERNELS, tol=1e-6, **options).fit(X, X[:, 0])
    own = model._fold_outputs(X)[np.arange(N), model._fold]
    np.testing.assert_allclose(own, model.out_of_fold_, atol=2e-6)


def test_fits_without_a_fold_need_no_certificate(monkeypatch):
    seen = []
    settle = ExactEvaluator.settle
    monkeypatch.setattr(
        ExactEvaluator, "settle", lambda self: [seen.append(self.exact), settle(self)]
    )
    quiet(kw.MKLClassifier(MANY, calibration="auto"), X, TWO)
    assert seen.count(None) >= 3
    assert {True, False} & set(seen)  # the fit itself
    seen.clear()
    model = quiet(kw.MKLRegressor(MANY, intervals="auto"), X, X[:, 0])
    assert None not in seen  # to the end, as the theorem needs it
    assert not any("_is_provisional" in vars(fold) for fold in model._folds)
