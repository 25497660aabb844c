"""The first screen: which score comes first, its rank, and the verdict."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave.io import FitRecord, ScoredModel
from kernelweave.report.answers import how_good, title_of
from kernelweave.report.cross_validation import CrossValidation, NotMeasured, Score

RECORD = FitRecord(
    (
        ScoredModel("linear", {"accuracy": 0.9}, 200),
        ScoredModel("SVM", {"accuracy": 0.8}, 200, (0.1, 0.01)),
        ScoredModel("forest", {"accuracy": 0.7}, 50, (0.3, 0.01), 0.95),
    ),
    "on 200 rows left out",
    (0.85, 0.95),
    constant={"accuracy": 0.5},
)


def evaluation(gain):
    score = SimpleNamespace(
        name="roc_auc",
        title="AUC",
        value=0.8,
        constant=0.5,
        interval=(0.7, 0.9),
        gain=gain,
        show="{:.3f}".format,
    )
    return SimpleNamespace(score=lambda: score)


def subject(**parts):
    known = {
        "evaluation": None,
        "record": None,
        "measured_on": "on new rows",
        "folds": NotMeasured("no data"),
    }
    return SimpleNamespace(**(known | parts))


def test_new_rows_come_before_the_fit_and_that_before_folds():
    found = how_good(subject(evaluation=evaluation((0.1, 0.4)), record=RECORD))
    assert (found.title, found.value, found.where) == ("AUC", "0.800", "on new rows")
    assert found.ends == "95% interval 0.700 to 0.900"
    assert found.verdict == ("Better than a constant prediction (0.500).",)
    assert how_good(subject(record=RECORD)).where == "on 200 rows left out"
    assert how_good(subject()) == "no data"


@pytest.mark.parametrize("gain", [None, (-0.1, 0.4)])
def test_what_is_not_significant_is_said(gain):
    (sentence,) = how_good(subject(evaluation=evaluation(gain))).verdict
    assert sentence == "Not significantly better than a constant prediction (0.500)."


def test_another_score_is_shown_where_the_first_is_undefined():
    """Rows of one class have no AUC."""
    found = evaluation(None)
    score = found.score()
    score.value = score.constant = float("nan")
    other = SimpleNamespace(**(vars(score) | {"name": "accuracy", "title": "accuracy"}))
    other.value, other.constant = 0.9, 1.0
    found.scores = [score, other]
    shown = how_good(subject(evaluation=found))
    assert (shown.title, shown.value) == ("accuracy", "0.900")
    assert shown.verdict[0] == "AUC is undefined on these rows."
    found.scores = [score]
    assert how_good(subject(evaluation=found)) == "AUC is undefined on these rows."


def test_ranks_of_a_fit():
    found = how_good(subject(record=RECORD))
    assert [rank.name for rank in found.ranks] == [
        "this model",
        "SVM",
        "forest",
        "constant prediction",
    ]
    places = [rank.at for rank in found.ranks]
    assert places == sorted(places, reverse=True)
    own = found.ranks[0]
    assert own.own
    assert own.low < own.at < own.high
    assert (own.high, found.ranks[-1].at) == (pytest.approx(0.98), pytest.approx(0.02))
    assert found.ranks[2].word == "on 50 rows, where this model has 95.0%"
    assert found.verdict[-1] == "Better than SVM and forest."


def test_folds_of_equal_scores():
    same = Score("accuracy", np.array([1.0, 1.0]), np.nan, np.nan)
    folds = CrossValidation((same,), 60, [], 0, 0.6, ())
    found = how_good(subject(folds=folds))
    assert found.ends == ""
    assert found.verdict[0] == "Better than a constant prediction (60.0%)."
    assert found.where == "on 60 rows, each predicted without it in 2 folds"


def test_titles():
    assert title_of("r2") == "R\u00b2"
    assert title_of("my score") == "my score"
