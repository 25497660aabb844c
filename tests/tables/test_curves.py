"""Curves and tables of predictions against scikit-learn, and by hand."""

import numpy as np
import pytest
from sklearn import metrics

from kernelweave.tables.curves import (
    class_scores,
    confusion,
    interval_coverage,
    precision_recall_curves,
    quantile_coverage,
    reliability,
    residuals,
    roc_curves,
    set_coverage,
)
from kernelweave.tables.measures import Classes, Values

RANDOM = np.random.default_rng(0)
N = 300
PROBA = RANDOM.dirichlet(np.ones(3), N)
Y = np.array([RANDOM.choice(3, p=p) for p in PROBA])
THREE = Classes(Y, PROBA.argmax(axis=1), ("a", "b", "c"), 2, PROBA, PROBA)
PAIR = np.column_stack([1 - PROBA[:, 0], PROBA[:, 0]])
TWO = Classes((Y == 0).astype(int), PAIR.argmax(axis=1), ("no", "yes"), 1, PAIR, PAIR)
WEIGHT = RANDOM.integers(1, 4, N).astype(float)
EQUAL = np.ones(N)


def test_roc_curves_are_those_of_scikit_learn():
    (curve,) = roc_curves(TWO, WEIGHT)
    x, y, _ = metrics.roc_curve(TWO.y, PAIR[:, 1], sample_weight=WEIGHT)
    np.testing.assert_array_equal(curve.x, x)
    np.testing.assert_array_equal(curve.y, y)
    assert curve.area == pytest.approx(
        metrics.roc_auc_score(TWO.y, PAIR[:, 1], sample_weight=WEIGHT)
    )
    assert curve.label == "yes"
    assert curve.base == pytest.approx(np.average(TWO.y, weights=WEIGHT))
    areas = [one.area for one in roc_curves(THREE, EQUAL)]
    assert np.mean(areas) == pytest.approx(metrics.roc_auc_score(Y, PROBA, multi_class="ovr"))


def test_average_precision_is_that_of_scikit_learn():
    for k, curve in enumerate(precision_recall_curves(THREE, WEIGHT)):
        expected = metrics.average_precision_score(Y == k, PROBA[:, k], sample_weight=WEIGHT)
        assert curve.area == pytest.approx(expected)
        assert curve.thresholds[0] == np.inf
        assert (np.diff(curve.thresholds) < 0).all()
        assert (curve.x[0], curve.x[-1]) == (0.0, 1.0)


def test_long_curves_keep_their_ends(monkeypatch):
    (whole,) = roc_curves(TWO, EQUAL)
    monkeypatch.setattr("kernelweave.tables.curves._POINTS", 20)
    (thin,) = roc_curves(TWO, EQUAL)
    assert len(thin.x) <= 22 < len(whole.x)
    assert (thin.x[0], thin.y[0], thin.x[-1], thin.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert thin.area == whole.area


def test_one_class_has_no_curves():
    one = Classes(
        np.ones(4, dtype=int), np.ones(4, dtype=int), ("no", "yes"), 1, PAIR[:4], PAIR[:4]
    )
    assert roc_curves(one, np.ones(4)) == precision_recall_curves(one, np.ones(4)) == ()
    none = Classes(TWO.y, TWO.predicted, ("no", "yes"), 1, None, None)
    assert roc_curves(none, EQUAL) == ()
    assert reliability(none, EQUAL, 0) is None


def test_reliability_of_right_and_of_sharpened_probabilities():
    right = reliability(TWO, EQUAL, 0)
    assert right.counts.sum() == N
    assert right.predicted @ right.counts == pytest.approx(PAIR[:, 1].sum())
    assert right.observed @ right.counts == pytest.approx(TWO.y.sum())
    assert right.error <= right.tolerated
    sharp = PAIR**4 / (PAIR**4).sum(axis=1, keepdims=True)
    sure = reliability(Classes(TWO.y, TWO.predicted, TWO.classes, 1, sharp, sharp), EQUAL, 0)
    assert sure.error > sure.tolerated
    assert sure.excess > 0.05
    assert reliability(THREE, EQUAL, 0).label is None


def test_coverage_by_hand():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    ends = np.column_stack([y - 1, y + np.array([1.0, 1.0, -0.5, 3.0])])
    found = interval_coverage("interval", y, ends, 0.5, np.ones(4))
    assert (found.reached, found.size) == (0.75, pytest.approx(8.5 / 4))
    assert found.beside == pytest.approx(np.diff(np.quantile(y, [0.25, 0.75]))[0])
    assert found.low < 0.75 < found.high
    below = quantile_coverage(y, np.full(4, 2.0), 0.5, np.array([1.0, 1.0, 2.0, 4.0]))
    assert below.reached == 0.25
    sets = np.array([[True, True], [False, False], [True, False], [False, True]])
    found = set_coverage(np.array([0, 0, 1, 1]), sets, 0.9, np.ones(4))
    assert (found.reached, found.size, found.beside, found.empty) == (0.5, 1.0, 2.0, 0.25)


def test_confusion_and_classes():
    matrix = confusion(THREE, WEIGHT)
    expected = metrics.confusion_matrix(Y, THREE.predicted, sample_weight=WEIGHT)
    np.testing.assert_allclose(matrix, expected)
    parts = class_scores(THREE, roc_curves(THREE, EQUAL))
    np.testing.assert_allclose(
        [p.recall for p in parts], metrics.recall_score(Y, THREE.predicted, average=None)
    )
    np.testing.assert_allclose(
        [p.precision for p in parts], metrics.precision_score(Y, THREE.predicted, average=None)
    )
    never = Classes(np.zeros(3, dtype=int), np.zeros(3, dtype=int), ("a", "b"), 1)
    last = class_scores(never, ())[1]
    assert (last.n_rows, last.recall_interval) == (0, None)
    assert np.isnan([last.recall, last.precision, last.auc]).all()


def test_residuals():
    found = residuals(
        Values(np.array([1.0, 5.0, 2.0]), np.array([1.5, 2.0, 2.0])),
        np.array([4, 7, 9]),
        np.array([2.0, 1.0, 1.0]),
    )
    assert found.mean == pytest.approx((-0.5 * 2 + 3.0) / 4)
    assert found.quantiles[0.5] == 0.0
    assert found.rows[found.largest(2)].tolist() == [7, 4]
