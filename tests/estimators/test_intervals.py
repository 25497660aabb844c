"""Prediction intervals of the regressors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

import kernelweave as kw
from kernelweave import RBF, Linear
from kernelweave.errors import InputError
from kernelweave.io import load, save
from quick import first

RANDOM = np.random.default_rng(0)
N = 70
X = RANDOM.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * RANDOM.normal(size=N)
NEW = RANDOM.normal(size=(40, 3))
KERNELS = [RBF(1.0, columns=[j]) for j in range(3)] + [Linear()]
NODES = {f"k{j}": RBF(1.0, columns=[j]) for j in range(3)}
FIXED = {"norm": "uniform", "normalize": None, "C": 5.0, "target_scale": None}


def mkl(**options):
    return kw.MKLRegressor(KERNELS, **{"C": 5.0, **options})


REGRESSORS = {
    "square": lambda **o: mkl(loss="square", **o),
    "square, no intercept": lambda **o: mkl(loss="square", fit_intercept=False, **o),
    "epsilon": lambda **o: mkl(**o),
    "huber": lambda **o: mkl(loss="huber", epsilon=1.0, **o),
    "hierarchy": lambda **o: kw.HierarchicalMKLRegressor(NODES, C=10, **o),
    "lattice": lambda **o: kw.HierarchicalMKLRegressor(C=10, tol=1e-2, loss="square", **o),
    "rules": lambda **o: kw.RuleEnsembleRegressor(C=5, **o),
    "quantiles": lambda **o: mkl(loss="quantile", quantile=(0.05, 0.5, 0.95), **o),
    "median": lambda **o: mkl(loss="quantile", **o),
}


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals(name, tmp_path):
    plain = quiet(REGRESSORS[name](), X, Y)
    model = quiet(REGRESSORS[name](intervals="auto"), X, Y)
    assert np.array_equal(plain.predict(NEW), model.predict(NEW))
    assert plain.objective_ == model.objective_
    for attribute in ("weights_", "dual_coef_", "intercept_"):
        if hasattr(plain, attribute):
            assert np.array_equal(getattr(plain, attribute), getattr(model, attribute))
    wide, narrow = model.predict_interval(NEW), model.predict_interval(NEW, coverage=0.5)
    assert wide.shape == (len(NEW), 2)
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (narrow[:, 1] <= wide[:, 1]).all()
    covered = model.predict_interval(X)
    assert ((covered[:, 0] <= Y) & (covered[:, 1] >= Y)).mean() > 0.8
    own = model._fold_outputs(X)[np.arange(N), model._fold]
    np.testing.assert_allclose(own, model.out_of_fold_, atol=2e-6)
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_interval(NEW), wide)
    with pytest.raises(AttributeError, match="fit with intervals='auto'"):
        plain.predict_interval(NEW)


def brute_force(make, left_out, coverage, weight=None):
    """Refit without some copies of some rows, and take order statistics of all values.

    ``left_out`` lists pairs of rows and the number of their copies that are left out.
    """
    weight = np.ones(N, dtype=int) if weight is None else weight
    lows, highs = [], []
    for rows, copies in left_out:
        rest = weight.copy()
        rest[rows] -= copies
        kept = np.repeat(np.arange(N), rest)
        other = make().fit(X[kept], Y[kept])
        missed, predicted = np.abs(Y[rows] - other.predict(X[rows])), other.predict(NEW)[:, None]
        lows.append(np.repeat(predicted - missed, weight[rows], axis=1))
        highs.append(np.repeat(predicted + missed, weight[rows], axis=1))
    low, high = np.sort(np.hstack(lows), axis=1), np.sort(np.hstack(highs), axis=1)
    n = low.shape[1]
    k = int(np.ceil(coverage * (n + 1) - 1e-9))
    return np.column_stack([low[:, n - k], high[:, k - 1]])


@pytest.mark.parametrize("intercept", first(1, [True, False]))
def test_jackknife_is_a_refit_without_each_row(intercept):
    def make(**options):
        return kw.MKLRegressor(KERNELS, loss="square", fit_intercept=intercept, **FIXED, **options)

    model = make(intervals="jackknife+").fit(X, Y)
    for coverage in (0.5, 0.9):
        expected = brute_force(make, [([i], 1) for i in range(N)], coverage)
        found = model.predict_interval(NEW, coverage)
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert model.coverage_guarantee_ == pytest.approx(0.8)


def test_jackknife_leaves_out_one_copy_of_a_repeated_row():
    weight = np.where(np.arange(N) % 4 == 0, 3, 1)

    def make(**options):
        return kw.MKLRegressor(KERNELS, loss="square", **FIXED, **options)

    expected = brute_force(make, [([i], 1) for i in range(N)], 0.9, weight)
    one = make(intervals="jackknife+").fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(one.predict_interval(NEW), expected, atol=1e-10)
    again = np.repeat(np.arange(N), weight)
    two = make(intervals="jackknife+").fit(X[again], Y[again])
    assert np.array_equal(one.predict_interval(NEW), two.predict_interval(NEW))


@pytest.mark.parametrize("loss", ["square", "epsilon_insensitive", "huber"])
def test_cross_validation_plus_is_a_refit_without_each_fold(loss):
    def make(**options):
        return kw.MKLRegressor(KERNELS, loss=loss, tol=1e-9, epsilon=0.3, **FIXED, **options)

    model = quiet(make(intervals="auto"), X, Y)
    folds = [(np.flatnonzero(model._fold == k), 1) for k in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = brute_force(make, folds, 0.9)
    tol = 1e-6 if loss == "square" else 1e-4  # a gap of 1e-9 leaves 1e-5 of the function open
    np.testing.assert_allclose(model.predict_interval(NEW), expected, atol=tol)
    assert 0.6 < model.coverage_guarantee_ < 0.8


# Intervals of MAPIE 1.6.0: CrossConformalRegressor(KernelRidge(alpha=0.2, kernel="rbf",
# gamma=0.5 / 1.5**2), method="plus") with LeaveOneOut() and KFold(4).
MAPIE = {
    ("jackknife+", 0.5): [
        [-0.028771182184782307, 0.559509356021981],
        [0.9067697422509275, 1.5005893445408334],
        [-0.0811536049237479, 0.512665997366158],
    ],
    ("jackknife+", 0.8): [
        [-0.24292720689870956, 0.7560473949668461],
        [0.7070020771215388, 1.7220500122406368],
        [-0.3031087424586356, 0.6852021199632528],
    ],
    ("auto", 0.5): [
        [0.030935001399917228, 0.6169991796348024],
        [0.9390351440276221, 1.526221393531381],
        [-0.13612421151222043, 0.5114231283861947],
    ],
    ("auto", 0.8): [
        [-0.2186843459832144, 0.8100351194332391],
        [0.6840605920223621, 1.7219131588352568],
        [-0.2782079506743219, 0.674244840469971],
    ],
}


@pytest.mark.parametrize(("intervals", "coverage"), MAPIE)
def test_intervals_are_those_of_mapie(intervals, coverage):
    t = np.arange(24)
    rows = np.column_stack([np.sin(1.7 * t), np.cos(0.9 * t * t)]).round(3)
    y = (rows[:, 0] ** 2 - rows[:, 1] + np.sin(5.0 * t) / 4).round(3)
    fixed = {**FIXED, "loss": "square", "fit_intercept": False}  # C = 1 / alpha
    cv = t // 6 if intervals == "auto" else None
    model = kw.MKLRegressor([RBF(1.5)], intervals=intervals, calibration_cv=cv, **fixed)
    found = model.fit(rows, y).predict_interval([[0.0, 0.0], [0.5, -1.0], [3.0, 2.0]], coverage)
    np.testing.assert_allclose(found, MAPIE[intervals, coverage], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_guaranteed_intervals_are_refits_with_their_own_scales():
    kernels = None  # default widths too
    model = kw.MKLRegressor(kernels, intervals="guaranteed", loss="square").fit(X, Y)
    for k in range(5):
        kept = model._fold != k
        other = kw.MKLRegressor(kernels, loss="square").fit(X[kept], Y[kept])
        np.testing.assert_allclose(other.predict(X[~kept]), model.out_of_fold_[~kept, 0], atol=2e-2)
        assert np.allclose(model._folds[k].scales_, other.scales_)
    assert 0.6 < model.coverage_guarantee_ < 0.8


def test_no_guarantee_where_weights_or_scales_saw_the_rows():
    for options in ({}, {"norm": "uniform"}, {"loss": "square", "intervals": "jackknife+"}):
        model = quiet(mkl(**{"intervals": "auto", **options}), X, Y)
        assert np.isnan(model.coverage_guarantee_)
    unit = mkl(**{**FIXED, "target_scale": "spread"}, intervals="auto")
    assert np.isnan(quiet(unit, X, Y).coverage_guarantee_)  # the unit of the targets
    learned = mkl(normalize=None, intervals="auto", calibration_cv=3)
    assert np.isnan(quiet(learned, X, Y).coverage_guarantee_)  # weights are held


def test_targets_may_be_moved_and_scaled():
    base = mkl(loss="square", intervals="auto").fit(X, Y)
    moved = mkl(loss="square", intervals="auto").fit(X, Y + 100.0)
    scaled = mkl(loss="square", intervals="auto").fit(X, 8.0 * Y)
    np.testing.assert_allclose(
        moved.predict_interval(NEW), base.predict_interval(NEW) + 100.0, atol=1e-6
    )
    np.testing.assert_allclose(
        scaled.predict_interval(NEW), 8.0 * base.predict_interval(NEW), atol=1e-6
    )
    plain = {"intervals": "auto", "tol": 1e-6, "target_scale": None}
    eps = mkl(**plain).fit(X, Y)
    large = mkl(**plain, C=40.0, epsilon=0.8).fit(X, 8.0 * Y)
    np.testing.assert_allclose(
        large.predict_interval(NEW), 8.0 * eps.predict_interval(NEW), atol=0.1
    )


@pytest.mark.parametrize(("loss", "C"), [("quantile", 40.0), ("huber", 5.0)])
def test_intervals_scale_with_targets_cost_and_threshold(loss, C):
    """The Huber loss is a square near zero, so that its cost stays and its threshold does not."""
    plain = {"loss": loss, "intervals": "auto", "tol": 1e-8, "target_scale": None}
    one = quiet(mkl(**plain, quantile=(0.1, 0.9), epsilon=0.2), X, Y)
    more = quiet(mkl(**plain, quantile=(0.1, 0.9), epsilon=1.6, C=C), X, 8.0 * Y + 3.0)
    expected = 8.0 * one.predict_interval(NEW) + 3.0
    np.testing.assert_allclose(more.predict_interval(NEW), expected, atol=1e-2)


def test_several_targets():
    both = np.column_stack([Y, -3.0 * Y])
    model = mkl(loss="square", intervals="auto").fit(X, both)
    found = model.predict_interval(NEW)
    assert found.shape == (len(NEW), 2, 2)
    np.testing.assert_allclose(found[:, 1], -3.0 * found[:, 0, ::-1], atol=1e-6)
    jackknife = mkl(loss="square", intervals="jackknife+").fit(X, both)
    assert jackknife.predict_interval(NEW).shape == (len(NEW), 2, 2)


def test_tasks(tmp_path):
    task = np.where(np.arange(N) % 2, "a", "b")
    model = kw.RuleEnsembleRegressor(C=5, intervals="auto").fit(X, Y, task=task)
    found = model.predict_interval(X, task=task)
    assert found.shape == (N, 2)
    alone = model.predict_interval(X, task="a")
    assert np.array_equal(found[task == "a"], alone[task == "a"])
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_interval(X, task=task), found)


def test_infinite_exactly_where_rows_are_too_few():
    model = mkl(loss="square", intervals="auto").fit(X[:9], Y[:9])
    assert np.isfinite(model.predict_interval(NEW, 0.9)).all()
    with pytest.warns(UserWarning, match="9 training rows are too few.* use 11 rows or more"):
        assert np.isinf(model.predict_interval(NEW, 0.91)).all()


def test_many_new_rows_come_in_blocks(monkeypatch):
    model = mkl(loss="square", intervals="jackknife+").fit(X, Y)
    whole = model.predict_interval(NEW)
    monkeypatch.setattr("kernelweave.estimators.intervals._VALUES", 7 * N)
    np.testing.assert_allclose(model.predict_interval(NEW), whole, atol=1e-12)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = kw.MKLRegressor(loss="square", intervals="jackknife+").fit(frame, Y)
    assert model.predict_interval(frame).shape == (N, 2)


def test_landmarks_and_dask():
    da = pytest.importorskip("dask.array")
    random = np.random.default_rng(5)
    rows = random.normal(size=(3600, 2))
    y = rows[:, 0] ** 2 + rows[:, 1] + 0.5 * random.normal(size=3600)
    model = kw.MKLRegressor([RBF(1.0), RBF(3.0)], intervals="auto", tol=1e-2, loss="square")
    model.fit(rows, y)
    found = model.predict_interval(rows)
    assert 0.88 < ((found[:, 0] <= y) & (y <= found[:, 1])).mean() < 0.93
    parts = da.from_array(rows, chunks=(1200, 2))
    assert np.array_equal(model.predict_interval(parts).compute(), found)


def test_quantile_pairs_are_conformalised():
    random = np.random.default_rng(2)
    rows = random.uniform(-2, 2, size=(2060, 1))
    y = np.sin(2 * rows[:, 0]) + (0.2 + np.abs(rows[:, 0])) * random.normal(size=2060)
    options = {"loss": "quantile", "quantile": (0.05, 0.95), "C": 30.0}
    model = kw.MKLRegressor([RBF(0.5)], intervals="auto", **options).fit(rows[:60], y[:60])
    raw, widened = model.predict(rows[60:]), model.predict_interval(rows[60:])
    new = y[60:]
    cover = [((low <= new) & (new <= high)).mean() for low, high in (raw.T, widened.T)]
    assert cover[0] < 0.85 < cover[1]
    width = np.diff(widened, axis=1)[:, 0]
    quiet_rows = np.abs(rows[60:, 0]) < 0.5
    assert width[quiet_rows].mean() < 0.8 * width[~quiet_rows].mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intervals": "jackknife+"}, "needs loss='square' and at most 2000 rows"),
        ({"intervals": "auto", "calibration_cv": np.arange(3)}, "fold of each of the 70 rows"),
        ({"intervals": "auto", "calibration_cv": 71}, "71 folds need as many rows"),
        ({"intervals": "split"}, "intervals"),
    ],
)
def test_bad_input(options, message):
    model = mkl(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "weights_")


def test_jackknife_needs_unrelated_outputs():
    model = kw.HierarchicalMKLRegressor(
        NODES, loss="square", intervals="jackknife+", task_correlation=1.0
    )
    with pytest.raises(InputError, match="outputs that are not related"):
        model.fit(X, np.column_stack([Y, Y]))


def test_guaranteed_rules_need_given_propositions():
    with pytest.raises(InputError, match="propositions='given'"):
        kw.RuleEnsembleRegressor(intervals="guaranteed").fit(X, Y)
    binary = (X > 0).astype(float)
    model = kw.RuleEnsembleRegressor(intervals="guaranteed", propositions="given", C=5)
    assert model.fit(binary, Y).coverage_guarantee_ > 0.6


def test_bad_coverage():
    model = mkl(loss="square", intervals="auto").fit(X, Y)
    with pytest.raises(InputError, match="coverage: must be a number between 0 and 1"):
        model.predict_interval(NEW, 90)


def test_folds_of_the_user():
    model = mkl(loss="square", intervals="auto", calibration_cv=KFold(7)).fit(X, Y)
    assert model._n_folds == 7


@pytest.mark.slow
def test_coverage_of_a_linear_model_is_near_nominal():
    random = np.random.default_rng(8)
    share = []
    for _ in range(40):
        rows = random.normal(size=(140, 2))
        y = rows[:, 0] + random.normal(size=140)
        model = kw.MKLRegressor([Linear()], loss="square", intervals="jackknife+", C=100)
        found = model.fit(rows[:40], y[:40]).predict_interval(rows[40:])
        share.append(((found[:, 0] <= y[40:]) & (y[40:] <= found[:, 1])).mean())
    assert 0.87 < np.mean(share) < 0.94


@pytest.mark.parametrize("kind", [kw.MKLRegressorCV, kw.RuleEnsembleRegressorCV])
def test_estimators_that_choose_their_c(kind, tmp_path):
    model = quiet(kind(Cs=[0.1, 1.0], intervals="auto"), X, Y)
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_interval(NEW), model.predict_interval(NEW))


@pytest.mark.parametrize("loss", ["square", "huber"])
def test_one_row_with_a_weight_has_no_interval(loss):
    X = np.random.default_rng(0).normal(size=(5, 2))
    model = kw.MKLRegressor([Linear()], loss=loss, intervals="auto")
    with pytest.raises(InputError, match="needs two rows with a positive weight, got 1"):
        model.fit(X, X[:, 0], [0, 0.75, 0, 0, 0])
    few = model.fit(X, X[:, 0], [0.1, 0.2, 0, 0.1, 0.1])  # weights that sum up to less than one
    with pytest.warns(UserWarning, match="0.5 training rows are too few"):
        assert np.isinf(few.predict_interval(X)).all()


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive", "square"])
def test_several_targets_far_from_zero(loss):
    """Folds are outputs of one problem, each with the shift of its target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    offsets = np.array([100.0, -50.0, 7.0])
    Y = np.column_stack([X[:, 0], X[:, 1], X.sum(axis=1)]) + offsets
    model = kw.MKLRegressor([RBF(1.0)], loss=loss, C=10.0, intervals="auto").fit(X, Y)
    alone = kw.MKLRegressor([RBF(1.0)], loss=loss, C=10.0, intervals="auto").fit(
        X, Y - Y.mean(axis=0)
    )
    np.testing.assert_allclose(
        model.predict_interval(X),
        alone.predict_interval(X) + Y.mean(axis=0)[None, :, None],
        atol=0.2,
    )
