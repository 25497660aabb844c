"""Annotators on the page: their accuracy, their mistakes, and answers that look wrong."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave.report import to_html
from kernelweave.report.annotators import _agreement, _confusion, _mistake, _multiples, section
from kernelweave.report.subject import Subject
from report_models import ANSWERS, fitted

MODEL = SimpleNamespace(
    classes_=np.array(["cat", "dog"]),
    confusions_=np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.0, 1.0]]]),
    n_answers_=np.array([30, 10]),
    _answer_rows=np.array([0, 0, 1, 1, 2]),
    _given=np.array([1, 1, 0, 1, 0]),
)


def test_the_largest_confusion_is_the_mistake():
    assert _mistake(MODEL, 0) == "dog called cat: 40%"
    assert _mistake(MODEL, 1) == "cat called dog: 50%"


def test_rows_with_one_answer_do_not_agree():
    answered = np.bincount(MODEL._answer_rows, minlength=4)
    assert _agreement(MODEL, answered) == 0.5
    assert _agreement(MODEL, np.ones(4, dtype=int)) == 1.0


def test_confusions_are_weighted_by_answers(monkeypatch):
    table = _confusion(MODEL)
    texts = [[cell.text for _, cell in row] for row in table.rows]
    assert texts == [["cat", "80.0%", "20.0%"], ["dog", "30.0%", "70.0%"]]
    monkeypatch.setattr("kernelweave.report.annotators._MOST_CLASSES", 1)
    assert _confusion(MODEL) is None


def test_facts_and_tables_are_those_of_the_model():
    model = fitted("annotators")[0]
    values = section(Subject(model)).values
    facts = dict(values["facts"])
    assert facts["Annotators"] == "3"
    assert facts["Answers"] == f"{np.isfinite(ANSWERS).sum()}, 2 a row"
    assert facts["Rows without answers"] == "0"
    least, most = np.nanmin(ANSWERS, axis=1), np.nanmax(ANSWERS, axis=1)
    assert facts["Rows on which all answers agree"] == f"{np.mean(least == most):.1%}"
    shown = [row[2][1].text for row in values["annotators"].rows]
    assert shown == [f"{value:.1%}" for value in np.sort(model.annotator_accuracy_)]
    assert len(values["suspects"].rows) == len(values["found"])
    quality = [float(row[-1][1].text) for row in values["suspects"].rows]
    assert quality == pytest.approx(np.sort(model.suspects().quality), abs=5e-4)


def test_answers_are_not_scored_against():
    model, rows, _ = fitted("annotators")
    for given in ((rows, ANSWERS), (rows,)):
        page = to_html(model, *given)
        assert "the answers of annotators are no truth to score against" in page


def test_each_annotator_has_a_picture_the_least_accurate_first():
    people = SimpleNamespace(
        **vars(MODEL),
        annotators_=np.array(["ann", "bob"]),
        annotator_accuracy_=np.array([0.8, 0.7]),
    )
    found = _multiples(people)
    assert [one.name for one in found] == ["bob", "ann"]
    bob = found[0]
    assert bob.about == "70% right, 10 answers"
    # Class 0: half right, half wrong; class 1: all right, and the empty cell is not drawn.
    assert bob.cells == [
        (0.0, 0.0, 0.5, True),
        (bob.step, 0.0, 0.5, False),
        (bob.step, bob.step, 1.0, True),
    ]
    assert "How each annotator errs" in to_html(fitted("annotators")[0])
