"""Suspects of any classifier."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import label_quality, suspects
from kernelweave.errors import InputError, InputTypeError
from kernelweave.noise.ranking import Suspects
from noisy_blobs import NOISY, WRONG, X, three


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


def test_no_suspect_at_all():
    empty = np.empty(0, dtype=int)
    found = Suspects(empty, np.empty(0), empty, empty, 7, 0)
    assert repr(found) == "0 of 7 labels look wrong"


def test_a_model_must_give_one_value_per_class():
    class Odd(LogisticRegression):
        def decision_function(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(InputError, match="Odd must give one finite value per example and class"):
        suspects(Odd(), X, NOISY)
