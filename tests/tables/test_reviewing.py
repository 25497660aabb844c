"""Questions for a person: which rows and pairs, and what contradicts them."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import MKLClassifier
from kernelweave.errors import InputError
from kernelweave.tables import find_suspects, fit_answers, fit_table, make_review
from table_groups import TABLE

WRONG = TABLE.copy()
WRONG.loc[[10, 70], "y"] = ["out", "in"]


@pytest.fixture(scope="module")
def noisy():
    return fit_table(WRONG, "y", method="noisy", test_share=0).model


def test_suspects_are_asked_about_with_reasons(noisy):
    review = make_review(noisy, WRONG, limit=2)
    assert {item.place for item in review.items} == {(10,), (70,)}
    item = next(item for item in review.items if item.place == (10,))
    assert (item.given, item.suggested) == ("out", "in")
    assert item.quality < 0.5
    assert "nearest rows are labelled in" in item.why[0]
    assert {label for _, label in item.beside} <= {"in", "out"}
    assert all(row in review.rows for one in item.beside for row in one[:1])
    assert "y" not in review.columns


def test_other_classifiers_are_asked_too():
    model = fit_table(WRONG, "y", method="mkl", C=1.0, test_share=0).model
    assert {item.place for item in make_review(model, WRONG, limit=2).items} == {(10,), (70,)}


def test_decisions_are_not_asked_again_and_count_as_certain(noisy):
    lines = [{"row": 10, "decision": "change", "given": "out", "label": "in"}]
    unsure = [{"row": 70, "decision": "unsure", "given": "in", "label": ""}]
    review = make_review(noisy, WRONG, limit=5, decisions=lines + unsure)
    assert not {(10,), (70,)} & {item.place for item in review.items}
    assert [line["row"] for line in review.before] == [10, 70]
    fit = fit_table(WRONG, "y", method="noisy", test_share=0, decisions=lines)
    assert fit.model[-1].label_quality_[10] == 1.0
    assert fit.model[-1].classes_[fit.model[-1]._given[10]] == "in"
    assert any("decided by a person" in note for note in fit.notes)
    again = find_suspects(fit.model, WRONG)
    assert 10 not in again["row"].tolist()
    assert 70 in again["row"].tolist()


def test_decisions_change_the_labels_of_any_method():
    lines = [{"row": 10, "decision": "change", "given": "out", "label": "in"}]
    fit = fit_table(WRONG, "y", method="mkl", C=1.0, test_share=0, decisions=lines)
    assert fit.problem.y[10] == "in"


@pytest.fixture(scope="module")
def answered():
    rng = np.random.default_rng(0)
    said = [
        (i, f"p{j}", TABLE["y"][i] if rng.random() < 0.8 else rng.choice(["in", "out"]))
        for i in range(len(TABLE))
        for j in rng.permutation(4)[:2]
    ]
    triples = pd.DataFrame(said, columns=["number", "who", "answer"])
    return triples, fit_answers(TABLE, triples, target="y").model


def test_uncertain_rows_of_annotators_are_asked_about(answered):
    triples, model = answered
    review = make_review(model, TABLE, limit=4)
    sure = model[-1].truth_.max(axis=1)
    first = review.items[0].place[0]
    assert sure[first] == sure.min()
    said = triples.loc[triples["number"] == first, "answer"].value_counts()
    expected = ", ".join(f"{n} {label}" for label, n in sorted(said.items(), key=lambda i: -i[1]))
    assert review.items[0].why[0] == f"Answers: {expected}."
    assert f"Of {(sure < 1).sum()} rows with answers this page asks about 4 rows" in review.lead
    assert "look doubtful" not in review.lead
    lines = [{"row": first, "decision": "change", "given": "", "label": "in"}]
    again = fit_answers(TABLE, triples, target="y", decisions=lines).model[-1]
    assert again.truth_[first].max() == 1.0
    assert again.labels_[first] == "in"


def test_pairs_nearest_to_the_threshold_are_asked_about():
    model = fit_table(TABLE, "y", method="pairs", test_share=0).model
    review = make_review(model, TABLE, limit=6)
    assert len(review.items) == 6
    assert review.pairs
    assert review.items[0].given == ""
    scores = [
        abs(
            float(
                model[-1].score_pairs(
                    model[0].transform(TABLE[list(model[0].feature_names_in_)]), [list(item.place)]
                )[0]
            )
            - model[-1].threshold_
        )
        for item in review.items
    ]
    assert scores == sorted(scores)
    left, right = review.items[0].place
    lines = [{"left": left, "right": right, "decision": "change", "given": "", "label": "same"}]
    assert review.items[0].place not in {
        item.place for item in make_review(model, TABLE, limit=6, decisions=lines).items
    }
    fit = fit_table(TABLE, "y", method="pairs", test_share=0, decisions=lines)
    more = fit.problem.fit_arguments(fit.model[-1])
    assert [left, right] in more["pairs"].tolist() or [right, left] in more["pairs"].tolist()


def test_labelled_pairs_are_asked_about_where_the_score_contradicts(noisy):
    model = fit_table(TABLE, "y", method="pairs", test_share=0).model
    same = np.flatnonzero(TABLE["y"] == TABLE["y"][0])[1:6]
    pairs = np.column_stack([np.zeros(5, dtype=int), same])
    labels = np.array([-1, 1, 1, 1, 1])  # the first is wrong
    own = model[0].transform(TABLE[list(model[0].feature_names_in_)])
    if model[-1].predict_pairs(own, pairs)[0] == 1:
        review = make_review(model, TABLE, pairs=(pairs, labels))
        assert (0, int(same[0])) in {item.place for item in review.items}
    with pytest.raises(InputError, match="was not learned from pairs"):
        make_review(noisy, TABLE, pairs=(pairs, labels))
    with pytest.raises(InputError, match="does not exist in the table"):
        make_review(model, TABLE, pairs=(pairs + 10_000, labels))


def test_models_of_python_are_refused():
    model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(InputError, match="kernelweave fit has written"):
        make_review(model, TABLE)
