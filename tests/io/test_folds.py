"""A file whose folds or calibrator do not belong to its model is refused."""

import copy
import dataclasses

import numpy as np
import pytest

from kernelweave import RBF, Linear, MKLClassifier, MKLRegressor
from kernelweave.io.folds import check

X = np.random.default_rng(0).normal(size=(80, 2))
KERNELS = [RBF(1.0), Linear()]


@pytest.fixture(scope="module")
def model():
    labels = np.where(X[:, 0] > 0, "a", "b")
    return MKLClassifier(KERNELS, calibration="isotonic", calibration_cv=4).fit(X, labels)


def test_models_as_they_are_fitted(model):
    check(model)
    check(MKLClassifier(KERNELS).fit(X, X[:, 0] > 0))
    check(MKLClassifier(KERNELS, calibration="auto").fit(X, np.digitize(X[:, 0], [-0.5, 0.5])))
    check(MKLRegressor(KERNELS, intervals="auto").fit(X, X[:, 0]))
    check(object())


def calibrator(**changes):
    return lambda model: {"calibrator_": dataclasses.replace(model.calibrator_, **changes)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"calibration": None}, "do not belong together"),
        (lambda m: {"_row_weight": -m._row_weight}, "finite and not negative"),
        (lambda m: {"_row_weight": 0.0 * m._row_weight}, "must be finite for rows"),
        (lambda m: {"out_of_fold_": np.full_like(m.out_of_fold_, np.nan)}, "must be finite for"),
        (lambda m: {"_fold": m._fold + 1}, "no more than 4 folds"),
        (lambda m: {"_folds": [m]}, "of the same kind, without folds"),
        (lambda m: {"_folds": list(m._folds)[:-1]}, "do not have 1 outputs each"),
        (lambda m: {"n_features_in_": 3}, "has other columns"),
        (lambda m: {"_codes": m._codes + 5}, "positions in classes_"),
        (calibrator(method="other"), "does not belong to the model"),
        (calibrator(method="matrix"), "does not belong to the model"),
        (calibrator(mixing=np.eye(1)), "does not belong to the model"),
        (calibrator(method="matrix", mixing=np.eye(2)), "mixing of calibrator_"),
        (calibrator(slopes=np.array([np.inf])), "slopes of calibrator_ must be finite"),
        (calibrator(steps=(np.ones((2, 1)),) * 3), "a step function for each output"),
        (calibrator(steps=(np.array([[1.0, 0.0], [0.2, 0.8]]),)), "of increasing values"),
        (lambda m: {"_n_functions": 0}, "one function or more"),
    ],
)
def test_parts_that_do_not_belong_together(model, change, message):
    damaged = copy.copy(model)
    vars(damaged).update(change(model))
    with pytest.raises(ValueError, match=message):
        check(damaged)


def test_missing_parts(model):
    damaged = copy.copy(model)
    del damaged._fold
    with pytest.raises(ValueError, match="_fold is missing"):
        check(damaged)
