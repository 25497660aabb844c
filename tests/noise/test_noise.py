"""Noise levels, rates and suspects."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import RBF, Linear, estimate_noise, estimate_rates, label_quality, suspects
from kernelweave.banks import make_bank
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError, InputTypeError, KernelweaveError
from kernelweave.noise import assess_labels, assess_rows
from kernelweave.noise.scores import (
    Range,
    Transition,
    confident_counts,
    margin_quality,
    margins,
    score_range,
)


def blobs(n=300, seed=0, rates=(0.2, 0.2), apart=5.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += apart * y
    flipped = rng.random(n) < np.where(y == 1, rates[1], rates[0])
    return X, y, np.where(flipped, 1 - y, y)


def three(n=300, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + 4.0 * np.eye(3)[y]
    flipped = rng.random(n) < noise
    return X, y, np.where(flipped, (y + rng.integers(1, 3, n)) % 3, y)


X, TRUE, NOISY = blobs()
WRONG = TRUE != NOISY


# Scores


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


# Levels and rates


@pytest.mark.parametrize("method", ["range", "counts"])
@pytest.mark.parametrize("level", [0.0, 0.2, 0.4])
def test_levels_are_near(method, level):
    X, y, noisy = blobs(400, seed=1, rates=(level, level))
    found = estimate_noise(X, noisy, method=method, random_state=0)
    assert found.level == pytest.approx((y != noisy).mean(), abs=0.08)
    assert found.interval[0] <= found.level <= found.interval[1]
    assert list(found.other) == [{"range": "counts", "counts": "range"}[method]]
    assert 0 <= found.level <= 0.49
    assert f"by {method}" in repr(found)


def test_rates_tell_the_direction():
    X, _, noisy = blobs(400, rates=(0.05, 0.4))
    names = np.array(["no", "yes"])
    for method in ("range", "counts"):
        found = estimate_rates(X, names[noisy], method=method, random_state=0)
        np.testing.assert_allclose(found.rates.sum(axis=1), 1)
        assert found.rates[0, 1] < 0.15
        assert found.rates[1, 0] == pytest.approx(0.4, abs=0.1)
        assert (found.lower <= found.upper).all()
        assert found.classes.tolist() == ["no", "yes"]
        assert "yes: no " in repr(found)


def test_several_classes():
    X, y, noisy = three(noise=0.4)
    for method in ("range", "counts"):
        found = estimate_noise(X, noisy, method=method, random_state=0)
        assert found.level == pytest.approx((y != noisy).mean(), abs=0.1)
    assert estimate_rates(X, noisy, random_state=0).rates.shape == (3, 3)


def test_the_same_seed_gives_the_same_interval_and_more_confidence_a_wider_one():
    one = estimate_noise(X, NOISY, random_state=3)
    assert estimate_noise(X, NOISY, random_state=3, n_jobs=2).interval == one.interval
    wide = estimate_noise(X, NOISY, random_state=3, confidence=0.99)
    assert wide.interval[0] < one.interval[0]
    assert wide.interval[1] > one.interval[1]


def test_kernels_frames_and_lists():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one = estimate_noise(frame, NOISY, RBF(2.0, columns=["a", "b"]), random_state=0)
    other = estimate_noise(X[:, :2].tolist(), NOISY.tolist(), [RBF(2.0)], random_state=0)
    assert one.level == pytest.approx(other.level)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method: must be 'range' or 'counts'"),
        ({"n_bootstrap": 0}, "n_bootstrap"),
        ({"n_bootstrap": 2.5}, "n_bootstrap"),
        ({"confidence": 1.0}, "confidence: must lie between 0 and 1"),
        ({"y": None}, "y: labels are needed"),
        ({"y": np.zeros(300)}, "y: two classes or more"),
        ({"y": np.where(WRONG, np.nan, 1.0)}, "y: contains NaN"),
        ({"X": np.where(WRONG[:, None], np.nan, X)}, "missing or infinite"),
        ({"X": X[:, 0]}, "two dimensions"),
        ({"kernels": []}, "kernels: the list is empty"),
    ],
)
def test_bad_input_gets_one_sentence(options, message):
    arguments = {"X": X, "y": NOISY} | options
    for function in (estimate_noise, estimate_rates):
        with pytest.raises(InputError, match=message) as refused:
            function(**arguments)
        assert "\n" not in str(refused.value)
        assert isinstance(refused.value, KernelweaveError)


# Reports


def test_a_report_of_a_bank():
    for normalize in ("trace", "diagonal", None):
        bank = make_bank([RBF(1.0), Linear(), RBF(4.0)], X, normalize=normalize)
        report = assess_labels(bank, NOISY, 2)
        assert roc_auc_score(WRONG, -report.label_quality) > 0.95
        assert report.noise_level == pytest.approx(report.wrong_label_probability.mean())
        assert report.noise_level == pytest.approx(WRONG.mean(), abs=0.08)
        np.testing.assert_allclose(report.rates.sum(axis=1), 1)
        assert report.scores.shape == (300,)
        assert ((report.suggested != NOISY) == (report.label_quality < 0.5)).all()
    # each kernel counts the same whatever its scale
    plain = assess_labels(make_bank([RBF(1.0), Linear()], X, normalize=None), NOISY, 2)
    scaled = assess_labels(make_bank([RBF(1.0), 9 * Linear()], X, normalize=None), NOISY, 2)
    np.testing.assert_allclose(plain.scores, scaled.scores, atol=1e-7)


def test_a_report_of_several_classes():
    X, y, noisy = three()
    report = assess_labels(make_bank([RBF(2.0), Linear()], X), noisy, 3)
    assert roc_auc_score(y != noisy, -report.label_quality) > 0.95
    assert report.scores.shape == (300, 3)
    assert ((report.suggested != noisy) == (report.label_quality < 0.5)).all()
    assert ((report.wrong_label_probability >= 0) & (report.wrong_label_probability <= 1)).all()


def test_labels_of_large_tables_are_assessed_in_passes(monkeypatch):
    kernels = [RBF(2.0), Linear()]
    exact = estimate_noise(X, NOISY, kernels, random_state=0)
    report = assess_labels(make_bank(kernels, X), NOISY, 2)
    monkeypatch.setattr(large, "PASS_ROWS", 10)
    monkeypatch.setattr(source, "WORK_ROWS", 70)
    found = estimate_noise(X, NOISY, kernels, random_state=0)
    assert found.level == pytest.approx(exact.level, abs=1e-5)
    np.testing.assert_allclose(found.interval, exact.interval, atol=1e-5)
    passed = assess_rows(kernels, X, NOISY, 2)
    np.testing.assert_allclose(passed.label_quality, report.label_quality, atol=1e-5)
    shares = assess_rows([Linear()], np.ones((300, 1)), NOISY, 2)  # no kernel tells anything
    np.testing.assert_allclose(shares.label_quality, np.bincount(NOISY)[NOISY] / 300)


# Suspects of any classifier


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        SVC(),
        RandomForestClassifier(20, random_state=0),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_classifier_finds_flipped_labels(model):
    quality = label_quality(model, X, NOISY)
    assert roc_auc_score(WRONG, -quality) > 0.9
    assert ((quality >= 0) & (quality <= 1)).all()
    np.testing.assert_array_equal(label_quality(model, X, NOISY), quality)
    X3, y3, noisy3 = three()
    assert roc_auc_score(y3 != noisy3, -label_quality(model, X3, noisy3)) > 0.9


def test_suspects_are_ranked():
    names = np.array(["no", "yes"])
    found = suspects(LogisticRegression(), X, names[NOISY])
    assert len(found) == pytest.approx(WRONG.sum(), abs=10)
    assert (np.diff(found.quality) >= 0).all()
    assert (found.quality < 0.5).all()
    assert (found.given != found.suggested).all()
    np.testing.assert_array_equal(found.given, names[NOISY][found.index])
    frame = found.to_frame()
    assert list(frame.columns) == ["index", "quality", "given", "suggested"]
    few = suspects(LogisticRegression(), X, names[NOISY], limit=4)
    np.testing.assert_array_equal(few.index, found.index[:4])
    assert f"{len(found)} of 300 labels look wrong" in repr(few)
    assert repr(few).count("example") == 4
    assert repr(few).endswith("...")
    assert repr(found).endswith("...")
    clean = suspects(LogisticRegression(), X[~WRONG], NOISY[~WRONG], cv=KFold(4, shuffle=True))
    assert len(clean) < 10


def test_the_given_model_is_not_fitted():
    model = LogisticRegression()
    suspects(model, X, NOISY)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((LogisticRegression(),), {}, "has not assessed its training labels"),
        ((LogisticRegression(), X), {}, "y is missing"),
        ((LogisticRegression(), None, NOISY), {}, "X is missing"),
        ((LinearRegression(), X, NOISY), {}, "must be a classifier"),
        ((LogisticRegression(), X, NOISY), {"cv": 1}, "cv=1: must be at least 2"),
        ((LogisticRegression(), X, NOISY), {"limit": 0}, "limit: must be a whole number"),
        ((LogisticRegression(), X, NOISY), {"limit": 1.5}, "limit: must be a whole number"),
        ((LogisticRegression(), X, np.r_[2, NOISY[1:]]), {}, "smallest class, 2"),
        ((LogisticRegression(), X, np.ones(300)), {}, "two classes or more"),
    ],
)
def test_what_cannot_be_assessed_is_refused(arguments, options, message):
    with pytest.raises((InputError, InputTypeError), match=message) as refused:
        suspects(*arguments, **options)
    assert "\n" not in str(refused.value)
