"""Calibrations and combinations against independent solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from kernelweave.estimators.combination import to_probabilities
from kernelweave.tables.blending import (
    best_scale,
    blend,
    calibrate,
    halves,
    learn_calibration,
    share_calibration,
)

RANDOM = np.random.default_rng(1)
N = 400


def test_two_classes_are_calibrated_as_by_logistic_regression():
    y = (RANDOM.random(N) < 0.3).astype(int)
    values = (7.0 * (RANDOM.normal(size=N) + y))[:, None]
    slopes, intercepts = learn_calibration(values, y, 2)
    expected = LogisticRegression(C=1e6, tol=1e-10).fit(values / values.std(), y)
    assert slopes[0, 0] * values.std() == pytest.approx(expected.coef_[0, 0], rel=0.05)
    assert intercepts[0] == pytest.approx(expected.intercept_[0], abs=0.05)


def test_several_classes_get_one_slope():
    y = RANDOM.integers(3, size=N)
    values = 2.0 * np.eye(3)[y] + RANDOM.normal(size=(N, 3))
    slopes, intercepts = learn_calibration(values, y, 3)
    assert (slopes == slopes[0, 0] * np.eye(3)).all()
    best = log_loss(y, to_probabilities(values, slopes, intercepts))
    for change in (0.8, 1.2):
        assert best < log_loss(y, to_probabilities(values, change * slopes, intercepts))


def test_values_that_are_worse_than_chance_say_nothing():
    y = np.arange(N) % 2
    slopes, _ = learn_calibration((RANDOM.normal(size=N) - y)[:, None], y, 2)
    assert slopes[0, 0] == 0.0


def test_calibration_is_learned_on_other_parts():
    y = np.arange(N) % 2
    values = (RANDOM.normal(size=N) + y)[:, None]
    parts = np.arange(N) // (N // 2)
    before = calibrate(values, y, parts, 2)
    flipped = np.where(parts == 0, 1 - y, y)
    after = calibrate(values, flipped, parts, 2)
    np.testing.assert_array_equal(before[parts == 0], after[parts == 0])
    assert (before[parts == 1] != after[parts == 1]).all()


def test_models_that_share_a_slope_keep_their_order_of_the_rows():
    y = (np.arange(N) % 20 == 0).astype(int)
    good, reversed_ = RANDOM.normal(size=N) + 2 * y, RANDOM.normal(size=N) - 0.1 * y
    found = share_calibration([5 * good + 3, reversed_], y)
    mean = (good - good.mean()) / good.std() + (reversed_ - reversed_.mean()) / reversed_.std()
    expected = LogisticRegression(C=1e6, tol=1e-10).fit(mean[:, None] / 2, y)
    for values, (slopes, _) in zip((5 * good + 3, reversed_), found, strict=True):
        assert slopes[0, 0] * values.std() == pytest.approx(expected.coef_[0, 0], rel=0.05)
    pairs = zip((5 * good + 3, reversed_), found, strict=True)
    shares = [to_probabilities(values, *one)[:, 1].mean() for values, one in pairs]
    assert np.mean(shares) == pytest.approx(y.mean(), abs=1e-9)
    worse = share_calibration([-good, reversed_], y)  # together worse than chance
    assert all(0 < slopes[0, 0] < 0.01 for slopes, _ in worse)


def test_a_model_that_knew_nothing_in_folds_is_not_blown_up():
    y = (np.arange(N) % 20 == 0).astype(int)
    flat = 1e-6 * RANDOM.normal(size=N) - 3.0
    (slopes, _), (others, _) = share_calibration([flat, RANDOM.normal(size=N) + y], y)
    assert slopes[0, 0] < 3 * others[0, 0]


def test_halves_learn_on_other_parts():
    y = (np.arange(N) % 10 == 0).astype(int)
    values = [RANDOM.normal(size=N) + y, RANDOM.normal(size=N) + 2 * y]
    parts = np.arange(N) // (N // 2)
    before = halves(values, y, parts)
    np.testing.assert_allclose(before.sum(axis=1), 1.0)
    assert before[:, 1].mean() == pytest.approx(y.mean(), rel=0.3)
    after = halves(values, np.where(parts == 0, 1 - y, y), parts)
    np.testing.assert_array_equal(before[parts == 0], after[parts == 0])
    assert (before[parts == 1] != after[parts == 1]).all()


def test_the_scale_has_the_least_squared_error():
    guess = RANDOM.uniform(1, 3, N)
    assert best_scale(1.1 * guess, guess) == pytest.approx(1.1)
    assert best_scale(9.0 * guess, guess) == 1.25  # more would be a fault of the model


def test_weights_of_numbers_against_another_solver():
    y = RANDOM.normal(size=N)
    stack = np.stack([y + RANDOM.normal(size=N), y + 1.5 * RANDOM.normal(size=N)])
    found = blend(stack, y, np.arange(N) % 3, regression=True).weights
    best = minimize(lambda w: np.mean((y - w * stack[0] - (1 - w) * stack[1]) ** 2), 0.5).x[0]
    np.testing.assert_allclose(found, [best, 1 - best], atol=1e-4)


def test_weights_of_classes_against_another_solver():
    y = RANDOM.integers(2, size=N)
    stack = np.stack([_noisy(y, 0.5), _noisy(y, 1.0), np.full((N, 2), 0.5)])
    mixed = blend(stack, y, np.arange(N) % 4, regression=False)

    def loss(free):
        weights = np.exp(free) / np.exp(free).sum()
        return log_loss(y, np.tensordot(weights, stack, 1))

    free = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8}).x
    expected = np.exp(free) / np.exp(free).sum()
    expected = np.where(expected < 0.05, 0, expected)
    np.testing.assert_allclose(mixed.weights, expected / expected.sum(), atol=0.02)
    assert mixed.crossed.sum(axis=1) == pytest.approx(1)


def _noisy(y, noise):
    odds = (2 * y - 1) + noise * np.random.default_rng(int(10 * noise)).normal(size=len(y)) * 2
    share = 1 / (1 + np.exp(-odds))
    return np.column_stack([1 - share, share])
