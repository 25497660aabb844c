"""Calibrated probabilities and prediction sets of the classifiers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import RBF, Linear
from kernelweave.errors import InputError
from kernelweave.io import load, save

RANDOM = np.random.default_rng(0)
N = 90
X = RANDOM.normal(size=(N, 4))
SCORE = X[:, 0] + 0.5 * X[:, 1] + 0.7 * RANDOM.normal(size=N)
TWO = np.where(SCORE > 0, "yes", "no")
THREE = np.digitize(SCORE, [-0.6, 0.6])
NEW = RANDOM.normal(size=(60, 4))
KERNELS = [RBF(1.0, columns=[j]) for j in range(4)] + [Linear()]
NODES = {f"k{j}": RBF(1.0, columns=[j]) for j in range(4)}
MANY = [RBF(w, columns=[j]) for w in (0.3, 0.5, 0.8, 1, 2, 3, 4, 5, 6, 7, 8, 9) for j in range(4)]

CLASSIFIERS = {
    "mkl": lambda **o: kw.MKLClassifier(KERNELS, **o),
    "many kernels": lambda **o: kw.MKLClassifier(MANY, **o),
    "norm 2": lambda **o: kw.MKLClassifier(KERNELS, norm=2, **o),
    "uniform": lambda **o: kw.MKLClassifier(KERNELS, norm="uniform", normalize=None, **o),
    "radius": lambda **o: kw.RadiusMKLClassifier(KERNELS, **o),
    "chapelle": lambda **o: kw.RadiusMKLClassifier(KERNELS, criterion="chapelle", **o),
    "radius kernel": lambda **o: kw.RadiusKernelClassifier(**o),
    "noisy": lambda **o: kw.NoisyLabelMKLClassifier(KERNELS, lam=0.02, **o),
    "noisy, best": lambda **o: kw.NoisyLabelMKLClassifier(KERNELS, robust="best", **o),
    "structure": lambda **o: kw.SumProductMKLClassifier(KERNELS[:4], **o),
    "structure, many": lambda **o: kw.SumProductMKLClassifier(MANY, **o),
    "hierarchy": lambda **o: kw.HierarchicalMKLClassifier(NODES, C=10, **o),
    "lattice": lambda **o: kw.HierarchicalMKLClassifier(C=10, tol=1e-2, **o),
    "rules": lambda **o: kw.RuleEnsembleClassifier(C=5, **o),
}


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


@pytest.fixture(scope="module", params=list(CLASSIFIERS))
def pair(request):
    """The same classifier without and with calibration, of two and of three classes."""
    make = CLASSIFIERS[request.param]
    return [(quiet(make(), X, y), quiet(make(calibration="auto"), X, y), y) for y in (TWO, THREE)]


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


def test_out_of_fold_values_are_those_of_models_without_the_row(pair):
    for _, model, _ in pair:
        own = model._fold_outputs(X)[np.arange(N), model._fold]
        assert model.out_of_fold_.shape == own.shape
        np.testing.assert_allclose(own, model.out_of_fold_, atol=2e-6)


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


def test_guarantee_only_without_learned_weights_and_scales():
    fixed = kw.MKLClassifier(KERNELS[:4], norm="uniform", normalize=None, calibration="auto")
    assert 0.6 < fixed.fit(X, TWO).coverage_guarantee_ < 0.8
    for options in ({"normalize": "trace"}, {"norm": 1.0}, {"kernels": None}):
        other = kw.MKLClassifier(**{**fixed.get_params(deep=False), **options})
        assert np.isnan(quiet(other, X, TWO).coverage_guarantee_)


def test_rows_in_another_order_have_the_same_folds():
    order = RANDOM.permutation(N)
    for rows in (X, sparse.csr_array(X)):
        one = kw.MKLClassifier(KERNELS, calibration="auto", tol=1e-8).fit(rows, TWO)
        two = kw.MKLClassifier(KERNELS, calibration="auto", tol=1e-8)
        two.fit(rows[order], TWO[order])
        assert np.array_equal(one._fold[order], two._fold)
        np.testing.assert_allclose(one.out_of_fold_[order], two.out_of_fold_, atol=1e-3)


def test_a_weight_of_two_is_a_row_given_twice():
    weight = RANDOM.integers(0, 3, size=N)
    again = np.repeat(np.arange(N), weight)
    one = kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO, sample_weight=weight)
    two = kw.MKLClassifier(KERNELS, calibration="auto").fit(X[again], TWO[again])
    assert np.array_equal(one.predict_proba(NEW), two.predict_proba(NEW))
    assert np.array_equal(one.predict_set(NEW), two.predict_set(NEW))
    assert np.isnan(one.out_of_fold_[weight == 0]).all()
    assert np.array_equal(one.out_of_fold_[again], two.out_of_fold_)


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


def test_folds_of_the_user():
    groups = np.arange(N) // 10
    for cv in (groups, list(groups), 4, KFold(3), GroupKFold(3)):
        model = kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=cv)
        if isinstance(cv, GroupKFold):
            with pytest.raises(ValueError, match="groups"):
                model.fit(X, TWO)
            continue
        model.fit(X, TWO)
        assert model._n_folds == (9 if not isinstance(cv, (int, KFold)) else 4 if cv == 4 else 3)
    assert np.array_equal(
        kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=groups).fit(X, TWO)._fold,
        groups,
    )


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


def test_no_worse_than_five_fits():
    random = np.random.default_rng(11)
    rows = random.normal(size=(600, 6))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] + random.normal(size=600) > 0
    kernels = [RBF(w, columns=[j]) for w in (1.0, 3.0) for j in range(6)] + [RBF(2.0)]
    model = kw.MKLClassifier(kernels, calibration="auto").fit(rows[:200], y[:200])
    peer = CalibratedClassifierCV(kw.MKLClassifier(kernels), ensemble=False)
    theirs = log_loss(y[200:], peer.fit(rows[:200], y[:200]).predict_proba(rows[200:]))
    assert log_loss(y[200:], model.predict_proba(rows[200:])) < theirs + 0.01


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


@pytest.mark.parametrize("kind", [kw.MKLClassifierCV, kw.RuleEnsembleClassifierCV])
def test_estimators_that_choose_their_c(kind, tmp_path):
    model = kind(Cs=[0.1, 1.0], calibration="auto").fit(X, TWO)
    assert np.isnan(model.coverage_guarantee_)
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    by_loss = kind(Cs=[0.1, 1.0], calibration="auto", scoring="neg_log_loss").fit(X, TWO)
    assert (by_loss.cv_results_["scores"] < 0).all()
