"""Calibrated probabilities beside the decisions of a model."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

import kernelweave as kw
from kernelweave.errors import InputError
from kernelweave.io import load, save
from probability_cases import (
    CLASSIFIERS,
    KERNELS,
    NEW,
    NODES,
    SCORE,
    THREE,
    TWO,
    N,
    X,
    fit_pair,
    quiet,
)


@pytest.fixture(scope="module", params=list(CLASSIFIERS))
def pair(request):
    return fit_pair(request.param)


def test_calibration_does_not_change_the_model(pair):
    for plain, model, _ in pair:
        for name in ("weights_", "dual_coef_", "intercept_", "objective_", "norms_"):
            if hasattr(plain, name):
                assert np.array_equal(getattr(plain, name), getattr(model, name))
        assert np.array_equal(plain.predict(NEW), model.predict(NEW))
        assert np.array_equal(plain.decision_function(NEW), model.decision_function(NEW))


def test_probabilities(pair):
    for plain, model, y in pair:
        p = model.predict_proba(NEW)
        assert p.shape == (len(NEW), len(np.unique(y)))
        assert ((p > 0) & (p < 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), p)
        prior = np.unique(y, return_counts=True)[1] / len(y)
        outputs = model.calibrator_.log_proba(model.out_of_fold_)
        assert log_loss(y, np.exp(outputs)) < log_loss(y, np.tile(prior, (len(y), 1)))
        with pytest.raises(AttributeError, match="set calibration='auto'"):
            plain.predict_proba(NEW)
        with pytest.raises(AttributeError, match="set calibration='auto'"):
            plain.predict_set(NEW)
        assert not hasattr(plain, "predict_log_proba")


def test_class_weights_do_not_enter_the_calibrator():
    rare = np.where(SCORE > 1.0, 1, 0)
    model = kw.MKLClassifier(KERNELS, class_weight="balanced", calibration="auto").fit(X, rare)
    mean = model.predict_proba(X)[:, 1].mean()
    assert abs(mean - rare.mean()) < 0.08  # half of the cost is on the rare class


def test_several_labels_have_a_probability_each():
    labels = np.column_stack([SCORE > 0, X[:, 2] > 0.3]).astype(int)
    for make in (
        lambda: kw.HierarchicalMKLClassifier(NODES, C=10, calibration="auto"),
        lambda: kw.RuleEnsembleClassifier(C=5, calibration="auto"),
    ):
        model = make().fit(X, labels)
        p = model.predict_proba(NEW)
        assert p.shape == (len(NEW), 2)
        assert np.abs(p.sum(axis=1) - 1).max() > 0.1
        with pytest.raises(InputError, match="no set of classes"):
            model.predict_set(NEW)


def test_tasks_have_a_sigmoid_each(tmp_path):
    task = np.where(np.arange(N) % 2, "a", "b")
    model = kw.RuleEnsembleClassifier(C=5, calibration="auto").fit(X, TWO, task=task)
    p = model.predict_proba(X, task)
    assert p.shape == (N, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    both = model.predict_proba(X, "a"), model.predict_proba(X, "b")
    np.testing.assert_allclose(p, np.where((task == "a")[:, None], *both))
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_proba(X, task), p)


def test_a_label_that_is_the_same_in_all_rows():
    labels = np.column_stack([SCORE > 0, np.ones(N)]).astype(int)
    model = quiet(kw.RuleEnsembleClassifier(C=5, calibration="auto"), X, labels)
    p = model.predict_proba(NEW)[:, 1]
    np.testing.assert_allclose(p, (N + 1) / (N + 2))


def test_native_probabilities_may_be_calibrated_too():
    for loss in ("logistic", "squared_hinge"):
        for y in (TWO, THREE):
            native = kw.MKLClassifier(KERNELS, loss=loss).fit(X, y)
            model = kw.MKLClassifier(KERNELS, loss=loss, calibration="auto").fit(X, y)
            assert np.array_equal(native.decision_function(NEW), model.decision_function(NEW))
            for p in (native.predict_proba(NEW), model.predict_proba(NEW)):
                np.testing.assert_allclose(p.sum(axis=1), 1.0)
                assert ((p > 0) & (p < 1)).all()
            assert not np.allclose(native.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize("calibration", ["auto", "vector", "matrix", "sigmoid"])
def test_two_classes_have_a_sigmoid_that_rises_with_the_decision(calibration):
    model = kw.MKLClassifier(KERNELS, calibration=calibration).fit(X, TWO)
    sigmoid = kw.MKLClassifier(KERNELS, calibration="sigmoid").fit(X, TWO)
    assert np.array_equal(model.predict_proba(NEW), sigmoid.predict_proba(NEW))
    order = np.argsort(model.decision_function(NEW))
    assert (np.diff(model.predict_proba(NEW)[order, 1]) > 0).all()
