"""Scores as functions of row weights: those of scikit-learn, on rows, resamples and weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from kernelweave.tables.measures import MEASURES, Classes, Values
from kernelweave.tables.resampling import (
    Several,
)


def predictions(seed, n, n_classes, digits):
    """Return random probabilities, with ties where they are rounded."""
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.full(n_classes, 0.7), n).round(digits) + 10.0**-digits
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.array([random.choice(n_classes, p=p) for p in proba])
    y[:n_classes] = np.arange(n_classes)  # all classes are there
    return Classes(y, proba.argmax(axis=1), tuple(range(n_classes)), 1, proba, proba)


def expected(found, weight):
    """Return the scores of scikit-learn."""
    y, predicted, proba = found.y, found.predicted, found.proba
    two = len(found.classes) == 2
    own = np.eye(len(found.classes))[y]
    labels = list(found.classes)
    return {
        "log_loss": metrics.log_loss(y, proba, sample_weight=weight, labels=labels),
        "roc_auc": metrics.roc_auc_score(
            y if two else own, proba[:, 1] if two else proba, sample_weight=weight
        ),
        "average_precision": metrics.average_precision_score(
            y if two else own, proba[:, 1] if two else proba, sample_weight=weight
        ),
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=weight),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted, sample_weight=weight),
        "f1": metrics.f1_score(
            y, predicted, average="binary" if two else "macro", sample_weight=weight
        ),
        "brier": metrics.brier_score_loss(
            y, proba[:, 1] if two else proba, sample_weight=weight, labels=labels
        ),
    }


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 80),
    n_classes=st.integers(2, 5),
    digits=st.sampled_from([1, 2, 9]),
    kind=st.sampled_from(["ones", "counts", "weights"]),
)
def test_classes(seed, n, n_classes, digits, kind):
    """All scores are those of scikit-learn, with ties and with weights."""
    found = predictions(seed, n, n_classes, digits)
    random = np.random.default_rng(seed + 1)
    weight = {
        "ones": np.ones(n),
        "counts": 1.0 + random.integers(0, 4, n),
        "weights": random.uniform(0.1, 3.0, n),
    }[kind]
    wanted = expected(found, weight)
    evaluators = found.evaluators()
    assert list(evaluators) == list(wanted)
    for name, evaluate in evaluators.items():
        assert evaluate(weight[None])[0] == pytest.approx(wanted[name], abs=1e-12), name


def test_counts_are_copies_of_rows():
    """A resample by counts has the score of the table in which rows are written out."""
    found = predictions(0, 60, 3, 2)
    counts = np.random.default_rng(1).integers(0, 4, 60).astype(float)
    copies = found.take(np.repeat(np.arange(60), counts.astype(int)))
    ones = np.ones((1, len(copies)))
    for name, evaluate in found.evaluators().items():
        alone = copies.evaluators()[name](ones)[0]
        assert evaluate(counts[None])[0] == pytest.approx(alone, abs=1e-12), name


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), offset=st.sampled_from([0.0, 1e6]))
def test_values(seed, n, offset):
    """Scores of numbers are those of scikit-learn, also far from zero."""
    random = np.random.default_rng(seed)
    y, weight = offset + random.normal(size=n), random.integers(1, 4, n).astype(float)
    found = Values(y, y + random.normal(size=n))
    wanted = {
        "r2": metrics.r2_score,
        "rmse": metrics.root_mean_squared_error,
        "mean_absolute_error": metrics.mean_absolute_error,
        "median_absolute_error": metrics.median_absolute_error,
    }
    for name, evaluate in found.evaluators().items():
        for w in (np.ones(n), weight):
            reference = wanted[name](found.y, found.predicted, sample_weight=w)
            assert evaluate(w[None])[0] == pytest.approx(reference, rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles(level):
    """The pinball loss; other scores only where the quantile is a guess of the value."""
    random = np.random.default_rng(0)
    found = Values(random.normal(size=40), random.normal(size=40), level)
    value = found.evaluators()["pinball_loss"](np.ones((1, 40)))[0]
    wanted = metrics.mean_pinball_loss(found.y, found.predicted, alpha=level)
    assert value == pytest.approx(wanted, rel=1e-12)
    assert ("r2" in found.evaluators()) == (level == 0.5)
    constant = found.constant(np.ones(40))["pinball_loss"]
    best = min(metrics.mean_pinball_loss(found.y, np.full(40, v), alpha=level) for v in found.y)
    own = constant.evaluators()["pinball_loss"](np.ones((1, 40)))[0]
    assert own == pytest.approx(best, rel=1e-12)


def test_constants():
    """A constant prediction has the scores that are known for it."""
    found = predictions(3, 200, 2, 9)
    ones = np.ones((1, 200))
    values = {n: c.evaluators()[n](ones)[0] for n, c in found.constant(ones[0]).items()}
    share = (found.y == 1).mean()
    assert values["roc_auc"] == 0.5
    assert values["average_precision"] == pytest.approx(share)
    assert values["accuracy"] == pytest.approx(max(share, 1 - share))
    assert values["log_loss"] == pytest.approx(stats.entropy([share, 1 - share]))
    numbers = Values(np.arange(11.0) ** 2, np.zeros(11))
    made = numbers.constant(np.ones(11))
    assert made["r2"].evaluators()["r2"](np.ones((1, 11)))[0] == pytest.approx(0.0)
    assert (made["mean_absolute_error"].predicted == 25.0).all()


def test_undefined():
    """One class has no AUC, but other scores; a constant target has no R squared."""
    found = predictions(0, 30, 2, 9).take(np.arange(0, 1))
    values = {n: float(e(np.ones((1, 1)))[0]) for n, e in found.evaluators().items()}
    assert np.isnan(values["roc_auc"])
    assert np.isfinite(values["log_loss"])
    assert np.isnan(Values(np.ones(5), np.arange(5.0)).evaluators()["r2"](np.ones((1, 5)))[0])


def test_several():
    """Means over outputs; scores that some outputs lack are those of the others."""
    random = np.random.default_rng(0)
    y = random.normal(size=50)
    outputs = tuple(Values(y, y + random.normal(size=50), q) for q in (0.1, 0.5, 0.9))
    evaluators = Several(outputs).evaluators()
    ones = np.ones((1, 50))
    losses = [output.evaluators()["pinball_loss"](ones)[0] for output in outputs]
    assert evaluators["pinball_loss"](ones)[0] == pytest.approx(np.mean(losses))
    assert evaluators["r2"](ones) == outputs[1].evaluators()["r2"](ones)


def test_shown():
    """Scores as text, zeros without a sign."""
    assert MEASURES["accuracy"].show(0.98245) == "98.2%"
    assert MEASURES["roc_auc"].show(-1e-9) == "0.000"
    assert MEASURES["rmse"].show(123.456) == "123.5"
    assert MEASURES["r2"].show(float("nan")) == "-"
