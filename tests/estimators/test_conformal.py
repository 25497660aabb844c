"""Order statistics over the models without each fold."""

import numpy as np
import pytest

from kernelweave.estimators.conformal import (
    FoldScores,
    class_scores,
    guaranteed_coverage,
)

RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize("n_folds", [2, 5, 60])
@pytest.mark.parametrize("ties", [False, True])
def test_the_upper_end_is_the_order_statistic(n_folds, ties):
    n = 60
    fold = RANDOM.permutation(n) % n_folds
    scores = np.abs(RANDOM.normal(size=n))
    predictions = RANDOM.normal(size=(40, n_folds))
    if ties:
        scores, predictions = scores.round(1), predictions.round(1)
    held_out = FoldScores(scores, fold, np.ones(n), n_folds)
    for coverage in (0.5, 0.8, 0.9, 0.95):
        rank = held_out.rank(coverage)
        assert rank == np.ceil(coverage * (n + 1) - 1e-9)
        expected = np.sort(predictions[:, fold] + scores, axis=1)[:, int(rank) - 1]
        np.testing.assert_allclose(held_out.upper(predictions, rank), expected, atol=1e-12)


@pytest.mark.parametrize("n_folds", [5, 60])
def test_weights_are_repetitions(n_folds):
    n, predictions = 60, RANDOM.normal(size=(30, n_folds))
    fold, scores = RANDOM.permutation(n) % n_folds, np.abs(RANDOM.normal(size=n))
    weight = RANDOM.integers(1, 4, size=n)
    again = np.repeat(np.arange(n), weight)
    one = FoldScores(scores, fold, weight.astype(float), n_folds)
    two = FoldScores(scores[again], fold[again], np.ones(len(again)), n_folds)
    for coverage in (0.5, 0.9):
        assert one.rank(coverage) == two.rank(coverage)
        ends = [s.upper(predictions, s.rank(coverage)) for s in (one, two)]
        np.testing.assert_allclose(*ends, atol=1e-12)


def test_folds_may_be_empty_uneven_and_far_apart():
    fold = np.repeat([0, 2, 3], [1, 7, 52])  # no row in fold 1
    scores = np.concatenate([[50.0], 1e-9 * RANDOM.random(7), 1.0 + np.zeros(52)])
    predictions = 1e3 * RANDOM.normal(size=(40, 4))
    held_out = FoldScores(scores, fold, np.ones(60), 4)
    for coverage in (0.02, 0.1, 0.5, 0.9, 0.97):
        rank = held_out.rank(coverage)
        expected = np.sort(predictions[:, fold] + scores, axis=1)[:, int(rank) - 1]
        np.testing.assert_allclose(held_out.upper(predictions, rank), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "coverage", "finite"), [(8, 0.9, False), (9, 0.9, True)])
def test_infinite_exactly_where_rows_are_too_few(n, coverage, finite):
    held_out = FoldScores(np.ones(n), np.arange(n) % 3, np.ones(n), 3)
    assert np.isfinite(held_out.rank(coverage)) == finite
    ends = held_out.upper(np.zeros((2, 3)), held_out.rank(coverage))
    assert np.isfinite(ends).all() == finite


def test_counts_are_those_of_smaller_scores():
    scores, fold = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    held_out = FoldScores(scores, fold, np.ones(4), 2)
    values = np.array([[2.0, 2.0], [5.0, 0.0]])
    assert held_out.below(values, equal=False).tolist() == [1, 2]
    assert held_out.below(values, equal=True).tolist() == [3, 2]


def test_the_theorems_bounds():
    assert guaranteed_coverage(0.9, 100, 100) == pytest.approx(0.8)
    # min(2 (1 - 1/5) / (100/5 + 1), (1 - 5/100) / (5 + 1))
    expected = 0.8 - min(1.6 / 21, 0.95 / 6)
    assert guaranteed_coverage(0.9, 100, 5) == pytest.approx(expected)


def test_scores_of_classes():
    decision = np.array([[1.0, 3.0, 2.0]])
    assert class_scores(decision, None, "margin").tolist() == [[2.0, -1.0, 1.0]]
    log_p = np.log(np.array([[0.2, 0.5, 0.3]]))
    np.testing.assert_allclose(class_scores(decision, log_p, "lac"), [[0.8, 0.5, 0.7]])
    np.testing.assert_allclose(class_scores(decision, log_p, "aps"), [[1.0, 0.5, 0.8]])
