"""Losses of rows agree with scikit-learn's scores, and intervals cover."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

from kernelweave.errors import InputError
from kernelweave.tables.scoring import (
    choose_scoring,
    paired_difference,
    row_losses,
    score_interval,
    total_score,
)

RANDOM = np.random.default_rng(0)
N = 200
TWO = (RANDOM.random(N) < 0.2).astype(int)
SCORE = np.round(RANDOM.normal(size=N) + TWO, 1)  # with ties
PROBABILITY = 1 / (1 + np.exp(-SCORE))
PAIR = np.column_stack([1 - PROBABILITY, PROBABILITY])
THREE = RANDOM.integers(3, size=N)
MANY = RANDOM.dirichlet(np.ones(3), N)
VALUE = RANDOM.normal(size=N)


def test_scores_are_those_of_scikit_learn():
    guess = VALUE + RANDOM.normal(size=N)
    assert total_score("r2", VALUE, guess) == pytest.approx(r2_score(VALUE, guess))
    assert total_score("absolute_error", VALUE, guess) == pytest.approx(
        mean_absolute_error(VALUE, guess)
    )
    assert total_score("roc_auc", TWO, PAIR) == pytest.approx(roc_auc_score(TWO, SCORE))
    assert total_score("roc_auc", THREE, MANY) == pytest.approx(
        roc_auc_score(THREE, MANY, multi_class="ovr", average="macro")
    )
    assert total_score("log_loss", THREE, MANY) == pytest.approx(log_loss(THREE, MANY))
    labels = MANY.argmax(axis=1)
    assert total_score("accuracy", THREE, MANY) == pytest.approx(accuracy_score(THREE, labels))
    assert total_score("balanced_accuracy", THREE, MANY) == pytest.approx(
        balanced_accuracy_score(THREE, labels)
    )


def test_the_standard_error_of_an_area_is_that_of_delong():
    """Compared with the spread of the area over many samples of the same size."""
    areas, errors = [], []
    for seed in range(300):
        random = np.random.default_rng(seed)
        y = (random.random(150) < 0.3).astype(int)
        score = random.normal(size=150) + y
        pair = np.column_stack([-score, score])
        areas.append(total_score("roc_auc", y, pair))
        errors.append(np.std(row_losses("roc_auc", y, pair)) / np.sqrt(150))
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.12)


def test_the_interval_of_r_squared_covers():
    """Of samples from one population, about 95% of the intervals hold its R squared."""
    hits = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        guess = random.normal(size=120)
        low, high = score_interval("r2", guess + 0.7 * random.normal(size=120), guess)
        hits += low <= 1 - 0.49 / 1.49 <= high
    assert 270 <= hits <= 297


def test_paired_differences():
    gap, error = paired_difference(np.zeros(4), np.array([1.0, 3.0, 1.0, 3.0]))
    assert (gap, error) == (2.0, 0.5)


def test_what_suits_the_target():
    assert choose_scoring(VALUE, True, "auto", False).chooses == "r2"
    equal = choose_scoring(THREE, False, "auto", False)
    assert (equal.chooses, equal.shows) == ("log_loss", ("accuracy", "log_loss"))
    assert choose_scoring(TWO, False, "auto", False).chooses == "roc_auc"
    rare = choose_scoring(TWO, False, "auto", True)
    assert rare.shows == ("roc_auc", "log_loss", "balanced_accuracy")
    weights = np.bincount(TWO, rare.weights)
    assert weights[0] == pytest.approx(weights[1])  # both classes weigh the same
    assert choose_scoring(TWO, False, "accuracy", False).chooses == "accuracy"
    with pytest.raises(InputError, match="scoring: must be one of auto, r2, absolute_error"):
        choose_scoring(VALUE, True, "roc_auc", False)
