"""Intervals and sets of combinations from residuals and margins of rows that were left out."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_predict

from kernelweave import CombinedClassifier, CombinedRegressor, Linear, MKLClassifier, MKLRegressor
from kernelweave.errors import InputError
from kernelweave.estimators.left_out_scores import class_margins
from kernelweave.io import load, save

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(700, 2))
Y = X[:, 0] + RANDOM.normal(size=700)
LINEAR = [("linear", MKLRegressor([Linear()], loss="square"))]


def residuals(y):
    return y[:200] - cross_val_predict(CombinedRegressor(LINEAR), X[:200], y[:200], cv=5)


def test_intervals_cover_new_rows(tmp_path):
    """Ends are the prediction plus and minus an order statistic; a file keeps them."""
    left_out = residuals(Y)
    model = CombinedRegressor(LINEAR, residuals=left_out).fit(X[:200], Y[:200])
    ends, f = model.predict_interval(X[200:], 0.9), model.predict(X[200:])
    half = np.sort(np.abs(left_out))[int(np.ceil(0.9 * 201)) - 1]
    assert ends[:, 0] == pytest.approx(f - half)
    assert ends[:, 1] == pytest.approx(f + half)
    inside = (ends[:, 0] <= Y[200:]) & (Y[200:] <= ends[:, 1])
    assert 0.85 <= inside.mean() <= 0.95
    again = load(save(model, tmp_path / "m.kw"))
    assert np.array_equal(again.predict_interval(X[200:], 0.9), ends)
    assert np.isnan(model.coverage_guarantee_)
    with pytest.warns(UserWarning, match="200 training rows are too few, so every interval is inf"):
        assert np.isinf(model.predict_interval(X[:2], 0.999)).all()


def test_logarithms():
    """Where all members learn a logarithm, residuals are those of logarithms."""
    y = np.exp(Y)
    plain = CombinedRegressor(LINEAR, logarithms=[(0.0, 1.0)])
    logs = np.log(y[:200]) - np.log(cross_val_predict(plain, X[:200], y[:200], cv=5))
    model = CombinedRegressor(LINEAR, logarithms=[(0.0, 1.0)], residuals=logs).fit(X[:200], y[:200])
    ends = model.predict_interval(X[200:], 0.9)
    assert (ends > 0).all()
    ratio = ends[:, 1] / model.predict(X[200:])
    assert ratio == pytest.approx(np.full(500, ratio[0]))
    inside = (ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1])
    assert 0.85 <= inside.mean() <= 0.95
    two = [*LINEAR, ("other", MKLRegressor([Linear()], loss="square"))]
    mixed = CombinedRegressor(two, logarithms=[None, (0.0, 1.0)], residuals=np.ones(50))
    ends = mixed.fit(X[:200], y[:200]).predict_interval(X[200:], 0.9)
    assert ends[:, 1] - ends[:, 0] == pytest.approx(np.full(500, 2.0))


def test_several_outputs():
    """Each output has residuals of its own."""
    both = np.column_stack([Y, 10 * Y])
    left_out = np.column_stack([residuals(Y), residuals(10 * Y)])
    model = CombinedRegressor(LINEAR, residuals=left_out).fit(X[:200], both[:200])
    ends = model.predict_interval(X[200:])
    assert ends.shape == (500, 2, 2)
    assert 10 * ends[:, 0] == pytest.approx(ends[:, 1], rel=1e-3, abs=1e-2)
    with pytest.raises(InputError, match=r"residuals: must be finite numbers, one for each row"):
        CombinedRegressor(LINEAR, residuals=[1.0, 2.0]).fit(X[:200], both[:200])


def test_sets_cover_new_rows(tmp_path):
    """A class is in the set where its margin is among the margins of left-out rows."""
    rows, y = load_wine(return_X_y=True)
    rows = rows[:, 1:4] + RANDOM.normal(size=(len(y), 3))  # classes overlap
    order = RANDOM.permutation(len(y))
    train, new = order[:90], order[90:]
    members = [("linear", MKLClassifier([Linear()], loss="logistic"))]
    proba = cross_val_predict(
        CombinedClassifier(members), rows[train], y[train], cv=5, method="predict_proba"
    )
    own = class_margins(proba)[np.arange(90), y[train]]
    model = CombinedClassifier(members, margins=own).fit(rows[train], y[train])
    sets, p = model.predict_set(rows[new], 0.8), model.predict_proba(rows[new])
    limit = np.sort(own)[int(np.ceil(0.8 * 91)) - 1]
    assert np.array_equal(sets, class_margins(p) <= limit)
    assert 0.65 <= sets[np.arange(len(new)), y[new]].mean() <= 0.95
    wider = model.predict_set(rows[new], 0.95)
    assert (sets <= wider).all()
    again = load(save(model, tmp_path / "m.kw"))
    assert np.array_equal(again.predict_set(rows[new], 0.8), sets)
    assert np.array_equal(again.margins, own)


def test_margins():
    """The largest log-probability of another class less the own one, finite also at zero."""
    found = class_margins(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    assert found[0] == pytest.approx([-np.log(2), np.log(2), np.log(2)])
    assert np.isfinite(found).all()


def test_without_scores():
    """The sentence says how to get them."""
    model = CombinedRegressor(LINEAR).fit(X[:50], Y[:50])
    with pytest.raises(AttributeError, match="gives no intervals as it is; set residuals"):
        model.predict_interval(X)
    model = CombinedClassifier().fit(X[:50], Y[:50] > 0)
    with pytest.raises(AttributeError, match="gives no prediction sets as it is; set margins"):
        model.predict_set(X)
    with pytest.raises(InputError, match="margins: must be finite numbers"):
        CombinedClassifier(margins=[np.nan]).fit(X[:50], Y[:50] > 0)
