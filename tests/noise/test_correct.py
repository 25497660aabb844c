"""Corrections of ridge classifiers for wrong labels."""

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.ridge import average_ridges
from wrong_labels import NEW, NOISY, X, fitted


def test_known_rates_set_the_threshold():
    assert fitted(rates=(0.2, 0.2)).threshold_ == pytest.approx(0, abs=1e-15)
    model = fitted(rates=(0.1, 0.35))
    assert model.threshold_ == pytest.approx(-0.25)
    assert model.rates_.tolist() == [0.1, 0.35]
    matrix = fitted(rates=[[0.9, 0.1], [0.35, 0.65]])
    np.testing.assert_array_equal(matrix.decision_function(NEW), model.decision_function(NEW))
    same = [fitted(shift=0.0), fitted(mode="symmetric"), fitted(rates=(0.3, 0.3))]
    for other in same:
        np.testing.assert_array_equal(other.predict(NEW), same[0].predict(NEW))
    part, whole = fitted(), fitted(shift=1.0)
    assert part.threshold_ == pytest.approx(0.7 * whole.threshold_)
    assert whole.threshold_ == pytest.approx(np.quantile(whole.loo_scores_, [0.05, 0.95]).mean())


def test_a_known_share_of_classes_sets_the_threshold():
    for mode in ("auto", "class"):
        model = fitted(class_prior=0.3, mode=mode)
        assert (model.loo_scores_ > model.threshold_).mean() == pytest.approx(0.3, abs=0.01)


def test_the_correction_is_the_unbiased_square_loss():
    """Ridge regression on (y - c) / D has the values (F - c) / D."""
    model = fitted(rates=(0.1, 0.35))
    c, D = 0.1 - 0.35, 1 - 0.1 - 0.35
    plain = fitted(mode="symmetric")
    y = np.where(NOISY == 1, 1.0, -1.0)
    unbiased = [
        ((1 - q_other) * (t - y) ** 2 - q_own * (t + y) ** 2) / D
        for t in (-0.7, 0.4)
        for q_other, q_own in [(np.where(y > 0, 0.1, 0.35), np.where(y > 0, 0.35, 0.1))]
    ]
    corrected = (y - c) / D
    for t, loss in zip((-0.7, 0.4), unbiased, strict=True):
        rest = loss - (t - corrected) ** 2
        for sign in (-1, 1):  # the difference is a constant of the label
            assert np.ptp(rest[y == sign]) < 1e-12
    np.testing.assert_allclose(
        model.decision_function(NEW), plain.decision_function(NEW) - c, atol=1e-10
    )


@pytest.mark.parametrize("rates", [None, (0.05, 0.25)])
def test_the_second_fit_is_to_expected_true_labels(rates):
    """Step by step, with the weights of the first fit."""
    model, plain = fitted(mode="class", rates=rates), fitted(mode="symmetric")
    y, s = np.where(NOISY == 1, 1.0, -1.0), plain.loo_scores_
    if rates is None:
        low, high = np.quantile(s, [0.05, 0.95])
        q_minus, q_plus = np.clip([(1 + low) / 2, (1 - high) / 2], 0.02, 0.48)
    else:
        (q_minus, q_plus), low, high = rates, 2 * rates[0] - 1, 1 - 2 * rates[1]
    p = np.clip((s - low) / (high - low), 0.02, 0.98)
    plus = np.where(y > 0, (1 - q_plus) * p, q_plus * p)
    tau = 2 * plus / (plus + np.where(y > 0, q_minus, 1 - q_minus) * (1 - p)) - 1
    bank = make_bank(model.kernels_, X, tol=1e-4)
    average = average_ridges(bank, y[:, None], power=2)
    np.testing.assert_allclose(average.scores[:, 0], s, atol=1e-10)
    again = average.loo(tau[:, None])[:, 0]
    z = (s / s.std() + again / again.std()) / 2
    np.testing.assert_allclose(model.loo_scores_, z, atol=1e-9)
    ends = np.quantile(z, [0.05, 0.95])
    threshold = ends.mean() if rates is None else (q_minus - q_plus) / (2 * s.std())
    assert model.threshold_ == pytest.approx(threshold)
    quality = 1 / (1 + np.exp(-8 * y * (z - threshold) / np.ptp(ends)))
    np.testing.assert_allclose(model.label_quality_, quality, atol=1e-9)
    targets = (y / s.std() + tau / again.std()) / 2
    dual_coef, intercept, _ = average.coefficients((targets - targets.mean())[:, None])
    expected = intercept[0] + targets.mean() - threshold
    for j, kernel in enumerate(bank.kernels):
        expected = expected + bank.scales[j] * kernel(NEW, X) @ dual_coef[j, 0]
    np.testing.assert_allclose(model.decision_function(NEW), expected, atol=1e-8)
