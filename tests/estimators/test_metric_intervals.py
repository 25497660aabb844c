import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from kernelweave import MetricKernelClassifier, MetricKernelRegressor
from kernelweave.errors import InputError
from kernelweave.io import load, save

RANDOM = np.random.default_rng(11)
X, Y = make_friedman1(700, noise=1.0, random_state=0)
TRAIN, NEW = slice(0, 120), slice(120, None)


def refit_without(model, i, weight, y, new):
    """Ridge regression with the learned kernel on all rows but one, as predictions at new rows."""
    rest = np.delete(np.arange(len(y)), i)
    K = model.kernel_(X[TRAIN])[np.ix_(rest, rest)] + np.diag(model.ridge_ / weight[rest])
    ones = np.ones((len(rest), 1))
    system = np.block([[K, ones], [ones.T, np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([y[rest], np.zeros((1, y.shape[1]))]))
    return model.kernel_(new, X[TRAIN][rest]) @ solved[:-1] + solved[-1]


@pytest.mark.parametrize("weight", [None, RANDOM.uniform(0.5, 2.0, 120)], ids=["plain", "weights"])
def test_intervals_are_those_of_models_refitted_without_each_row(weight):
    model = MetricKernelRegressor(n_steps=1).fit(X[TRAIN], Y[TRAIN], sample_weight=weight)
    new, y = X[NEW][:3], Y[TRAIN][:, None]
    weight = np.ones(120) if weight is None else weight / weight.mean()
    everywhere = np.vstack([X[TRAIN], new])
    lows, highs = [], []
    for i in range(120):
        values = refit_without(model, i, weight, y, everywhere)[:, 0]
        size = abs(Y[i] - values[i])
        lows.append(values[120:] - size)
        highs.append(values[120:] + size)
    k = int(np.ceil(0.8 * 121))
    expected = np.column_stack([np.sort(lows, axis=0)[120 - k], np.sort(highs, axis=0)[k - 1]])
    np.testing.assert_allclose(model.predict_interval(new, 0.8), expected, atol=1e-7)


@pytest.mark.parametrize("max_exact", [2000, 50], ids=["closed form", "folds"])
def test_intervals_hold_about_as_many_rows_as_they_say(max_exact):
    model = MetricKernelRegressor(max_exact=max_exact, n_landmarks=60).fit(X[TRAIN], Y[TRAIN])
    interval = model.predict_interval(X[NEW], coverage=0.9)
    held = (interval[:, 0] <= Y[NEW]) & (Y[NEW] <= interval[:, 1])
    assert 0.82 < held.mean() < 0.97
    assert np.isnan(model.coverage_guarantee_)
    narrow = model.predict_interval(X[NEW], coverage=0.5)
    assert (np.diff(narrow) < np.diff(interval)).all()


def test_residuals_of_folds_are_added_and_subtracted():
    given = RANDOM.normal(size=(49, 2)) * [1.0, 50.0]
    both = np.column_stack([Y, 100 * X[:, 0]])[TRAIN]
    model = MetricKernelRegressor(residuals=given).fit(X[TRAIN], both)
    interval = model.predict_interval(X[NEW], coverage=0.8)
    sizes = np.sort(np.abs(given), axis=0)[39]  # the 40th of 50 places
    np.testing.assert_allclose(interval[..., 1] - model.predict(X[NEW]) - sizes, 0, atol=1e-12)
    np.testing.assert_allclose(model.predict(X[NEW]) - interval[..., 0] - sizes, 0, atol=1e-12)
    with pytest.raises(InputError, match="residuals: must be finite numbers"):
        model.set_params(residuals=given[:, 0]).fit(X[TRAIN], both)


def test_several_targets_and_files(tmp_path):
    both = np.column_stack([Y, 100 * X[:, 0]])
    model = MetricKernelRegressor().fit(X[TRAIN], both[TRAIN])
    interval = model.predict_interval(X[NEW])
    assert interval.shape == (580, 2, 2)
    save(model, tmp_path / "model.kw")
    np.testing.assert_array_equal(load(tmp_path / "model.kw").predict_interval(X[NEW]), interval)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_are_those_of_models_refitted_without_each_row(n_classes, tmp_path):
    codes = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    model = MetricKernelClassifier(n_steps=1).fit(X[TRAIN], codes[TRAIN])
    signs = np.where(codes[TRAIN][:, None] == np.arange(n_classes), 1.0, -1.0)
    smaller = np.zeros((3, n_classes))
    new = X[NEW][:3]
    for i in range(120):
        F = refit_without(model, i, np.ones(120), signs, np.vstack([X[[i]], new]))
        others = np.array([np.delete(F, c, axis=1).max(axis=1) for c in range(n_classes)]).T
        margin = others - F
        smaller += margin[0, codes[i]] < margin[1:]
    np.testing.assert_array_equal(model.predict_set(new, 0.85), smaller < 0.85 * 121)
    sets = model.predict_set(X[NEW])
    assert 0.8 < sets[np.arange(580), codes[NEW]].mean() < 0.98
    save(model, tmp_path / "model.kw")
    np.testing.assert_array_equal(load(tmp_path / "model.kw").predict_set(X[NEW]), sets)


def test_bad_coverage_and_few_rows():
    model = MetricKernelRegressor(n_steps=0).fit(X[:20], Y[:20])
    with pytest.raises(InputError, match="coverage: must be a number between 0 and 1, got 1"):
        model.predict_interval(X[:2], coverage=1)
    with pytest.warns(UserWarning, match="20 rows are too few for a coverage of 0.99"):
        interval = model.predict_interval(X[:2], coverage=0.99)
    assert np.isinf(interval).all()


def test_given_margins_decide_the_sets(tmp_path):
    random = np.random.default_rng(3)
    X = random.normal(size=(90, 4))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=90), [-0.4, 0.4])
    given = random.normal(size=40)
    model = MetricKernelClassifier(margins=given).fit(X, y)
    logs = np.log(model.predict_proba(X))
    others = np.stack([np.delete(logs, k, axis=1).max(axis=1) for k in range(3)], axis=1)
    expected = others - logs <= np.sort(given)[36]  # the 37th of 40 for nine tenths
    assert np.array_equal(model.predict_set(X, 0.9), expected)
    assert not np.array_equal(MetricKernelClassifier().fit(X, y).predict_set(X), expected)
    again = load(save(model, tmp_path / "model.kw"))
    assert np.array_equal(again.predict_set(X, 0.9), expected)
    with pytest.raises(InputError, match="margins: must be finite numbers"):
        MetricKernelClassifier(margins=[[0.0, np.nan]]).fit(X, y)
