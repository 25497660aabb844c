"""Estimates from scores."""

import numpy as np
import pytest

from kernelweave.noise.scores import (
    Range,
    Transition,
    confident_counts,
    in_order_of,
    margin_quality,
    margins,
    score_range,
)


def test_the_range_is_made_of_quantiles_or_of_means_of_three():
    scores = np.random.default_rng(0).normal(size=200)
    assert score_range(scores) == pytest.approx(tuple(np.quantile(scores, [0.05, 0.95])))
    assert score_range(scores, 0.2) == pytest.approx(tuple(np.quantile(scores, [0.2, 0.8])))
    few = np.sort(scores[:59])
    assert score_range(few) == pytest.approx((few[:3].mean(), few[-3:].mean()))
    assert score_range(np.array([1.0])) == (1.0, 1.0)


def test_rates_and_posteriors_follow_from_the_range():
    scores = np.linspace(-0.6, 0.3, 101)
    found = Range.of(scores, tail=1e-9)
    assert found.rates == pytest.approx((0.2, 0.35))
    assert found.middle == pytest.approx(-0.15)
    assert Range.of(scores, tail=1e-9, shift=0.0).rates == pytest.approx((0.275, 0.275))
    half = Range.of(scores, tail=1e-9, shift=0.5)
    assert half.middle == pytest.approx(-0.075)
    assert half.width == pytest.approx(found.width)
    assert Range.of(scores, tail=1e-9, middle=0.1).middle == pytest.approx(0.1)
    # by Bayes' rule, from p = 1/2 and the rates
    for sign, expected in ((1.0, 0.65 / 0.85), (-1.0, 0.35 / 1.15)):
        at = found.posterior(np.array([found.middle]), np.array([sign]))
        assert at == pytest.approx(expected)
        wrong = found.wrong(np.array([found.middle]), np.array([sign]))
        assert wrong == pytest.approx(1 - expected if sign > 0 else expected)
    assert Range.known(0.1, 0.3).middle == pytest.approx(-0.2)
    assert Range.of(np.full(100, 0.3)).is_empty
    assert np.isfinite(Range.of(np.full(100, 0.3)).clean(np.array([0.3]))).all()


def test_rates_of_ideal_scores_of_several_classes():
    rates = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.1, 0.6]])
    codes = np.repeat([0, 1, 2], 100)
    scores = rates[codes]  # the true class is certain everywhere
    found = Transition.of(scores, codes)
    np.testing.assert_allclose(found.rates, rates, atol=1e-12)
    posterior = found.posterior(codes)
    assert (posterior.argmax(axis=1) == codes).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    known = Transition.of(scores, codes, rates=np.eye(3))
    np.testing.assert_allclose(known.posterior(codes)[np.arange(300), codes], 1, atol=1e-9)


def test_confident_counts_find_sure_flips():
    codes = np.repeat([0, 1], 50)
    plus = np.repeat([0.1, 0.9], 50)
    plus[:10] = 0.9  # labelled 0, surely 1
    joint = confident_counts(np.column_stack([1 - plus, plus]), codes)
    np.testing.assert_allclose(joint, [[0.4, 0.1], [0.0, 0.5]])
    empty = confident_counts(np.full((4, 3), 1 / 3), np.array([0, 0, 1, 1]))  # class 2 is absent
    assert np.isfinite(empty).all()
    assert empty.sum() == pytest.approx(1)


def test_margins_of_several_classes():
    scores = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.9]])
    found = margins(scores, np.array([0, 1]))
    np.testing.assert_allclose(found, [0.2, -0.2])
    quality = margin_quality(found)
    assert quality[0] > 0.5 > quality[1]


def test_values_follow_the_order_of_quality():
    values, quality = np.array([0.1, 0.9, 0.5]), np.array([0.2, 0.8, 0.4])
    assert in_order_of(values, quality).tolist() == [0.9, 0.1, 0.5]
