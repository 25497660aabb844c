"""Calibrated probabilities and prediction sets of the classifiers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import RBF
from kernelweave.errors import InputError
from kernelweave.io import load, save
from probability_cases import (
    CLASSIFIERS,
    KERNELS,
    NEW,
    RANDOM,
    SCORE,
    TWO,
    N,
    X,
    fit_pair,
    quiet,
)


@pytest.fixture(scope="module", params=list(CLASSIFIERS))
def pair(request):
    return fit_pair(request.param)


def test_sets_are_nested(pair):
    for _, model, y in pair:
        for score in ("margin", "lac", "aps"):
            small = model.predict_set(NEW, 0.6, score=score)
            large = model.predict_set(NEW, 0.9, score=score)
            assert small.shape == (len(NEW), len(model.classes_))
            assert small.dtype == bool
            assert not (small & ~large).any()
        held_out = model.predict_set(X, 0.9)[np.arange(N), np.searchsorted(model.classes_, y)]
        assert held_out.mean() > 0.8


def test_model_files_keep_probabilities(pair, tmp_path):
    for _, model, _ in pair:
        again = load(save(model, tmp_path / "model.kw"))
        assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
        assert np.array_equal(again.predict_set(NEW), model.predict_set(NEW))
        assert np.array_equal(again.out_of_fold_, model.out_of_fold_)
        assert np.isnan(again.coverage_guarantee_) == np.isnan(model.coverage_guarantee_)


def test_guarantee_only_without_learned_weights_and_scales():
    fixed = kw.MKLClassifier(KERNELS[:4], norm="uniform", normalize=None, calibration="auto")
    assert 0.6 < fixed.fit(X, TWO).coverage_guarantee_ < 0.8
    for options in ({"normalize": "trace"}, {"norm": 1.0}, {"kernels": None}):
        other = kw.MKLClassifier(**{**fixed.get_params(deep=False), **options})
        assert np.isnan(quiet(other, X, TWO).coverage_guarantee_)


def test_frames_and_pipelines():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), kw.MKLClassifier(calibration="auto")).fit(frame, TWO)
    assert model.predict_proba(frame).shape == (N, 2)
    mixed = frame.assign(kind=np.array(["u", "v", "w"])[RANDOM.integers(0, 3, N)])
    table = kw.MKLClassifier(calibration="auto").fit(mixed, TWO)
    assert table.predict_proba(mixed).shape == (N, 2)


def test_paths_calibrate_every_model():
    path = kw.MKLClassifier(KERNELS, calibration="auto").fit_path(X, TWO, [0.1, 1.0])
    alone = kw.MKLClassifier(KERNELS, calibration="auto", C=0.1).fit(X, TWO)
    assert np.array_equal(path[0].predict_proba(NEW), alone.predict_proba(NEW))
    rules = kw.RuleEnsembleClassifier(calibration="auto").fit_path(X, TWO, [0.5, 5.0])
    plain = kw.RuleEnsembleClassifier().fit_path(X, TWO, [0.5, 5.0])
    for a, b in zip(rules, plain, strict=True):
        assert np.array_equal(a.decision_function(NEW), b.decision_function(NEW))
        assert a.objective_ == b.objective_


def test_landmarks_and_dask():
    da = pytest.importorskip("dask.array")
    random = np.random.default_rng(5)
    rows = random.normal(size=(3600, 2))
    y = rows[:, 0] ** 2 + rows[:, 1] + 0.5 * random.normal(size=3600) > 1
    kernels = [RBF(1.0), RBF(3.0)]
    model = kw.MKLClassifier(kernels, calibration="auto", tol=1e-2).fit(rows, y)
    own = model._fold_outputs(rows[:500])[np.arange(500), model._fold[:500], 0]
    np.testing.assert_allclose(own, model.out_of_fold_[:500, 0], atol=1e-4)
    plain = kw.MKLClassifier(kernels, tol=1e-2).fit(rows, y)
    assert np.array_equal(plain.decision_function(rows), model.decision_function(rows))
    parts = da.from_array(rows, chunks=(1000, 2))
    lazy = kw.MKLClassifier(kernels, calibration="auto", tol=1e-2).fit(parts, y)
    assert np.array_equal(lazy._fold, model._fold)
    np.testing.assert_allclose(
        lazy.predict_proba(parts).compute(), model.predict_proba(rows), atol=1e-3
    )
    assert lazy.predict_set(parts).compute().shape == (3600, 2)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"calibration_cv": np.zeros(5)}, TWO, "needs the fold of each of the 90 rows, got 5"),
        ({"calibration_cv": np.zeros(N)}, TWO, "needs two folds or more"),
        ({"calibration_cv": (SCORE > 0) * 3}, TWO, "fold 0 holds all rows of class 'no'"),
        ({"calibration_cv": TimeSeriesSplit(3)}, TWO, "every row must be in the test part"),
        ({"calibration_cv": 80}, TWO, "80 folds need as many rows of the smallest class"),
        ({}, np.where(np.arange(N) == 7, "x", TWO), "class 'x' has one"),
        ({"calibration": "platt"}, TWO, "calibration"),
    ],
)
def test_bad_input(options, y, message):
    model = kw.MKLClassifier(KERNELS, **{"calibration": "auto", **options})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "weights_")


def test_bad_coverage_and_score():
    model = kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO)
    for coverage in (0, 1, -0.1, "0.9", np.nan, True):
        with pytest.raises(InputError, match="coverage: must be a number between 0 and 1"):
            model.predict_set(NEW, coverage)
    with pytest.raises(InputError, match="score: must be one of"):
        model.predict_set(NEW, score="raps")
    with pytest.warns(UserWarning, match="so every set holds all classes; use 199 rows"):
        assert model.predict_set(NEW, 0.995).all()


def test_light_weights_are_no_counts():
    with pytest.warns(UserWarning, match="weights of mean one"):
        kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO, sample_weight=np.full(N, 1 / N))


def test_a_class_without_weight():
    with pytest.raises(InputError, match="one class only"):
        kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO, sample_weight=(SCORE > 0) * 1.0)


@pytest.mark.parametrize("kind", [kw.MKLClassifierCV, kw.RuleEnsembleClassifierCV])
def test_estimators_that_choose_their_c(kind, tmp_path):
    model = kind(Cs=[0.1, 1.0], cv=2, calibration="auto").fit(X, TWO)
    assert np.isnan(model.coverage_guarantee_)
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    by_loss = kind(Cs=[0.1, 1.0], cv=2, calibration="auto", scoring="neg_log_loss").fit(X, TWO)
    assert (by_loss.cv_results_["scores"] < 0).all()
