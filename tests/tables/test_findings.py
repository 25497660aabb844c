"""An evaluation in sentences, tables of text and plain values."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from kernelweave.tables import evaluate_table
from kernelweave.tables.findings import (
    class_table,
    confused_table,
    confusion_table,
    coverage_table,
    describe_differences,
    describe_evaluation,
    describe_residuals,
    difference_table,
    evaluation_as_json,
    further_blocks,
    group_table,
    score_table,
)

RANDOM = np.random.default_rng(0)
N = 200
X = RANDOM.normal(size=(N, 2))
FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(
    y=np.where(X[:, 0] + 0.5 * RANDOM.normal(size=N) > 0, "yes", "no"),
    z=X[:, 0] + 0.1 * RANDOM.normal(size=N),
    site=np.where(np.arange(N) < 190, "Ulm", "Bonn"),
)
CLASSES = LogisticRegression().fit(FRAME[["a", "b"]], FRAME["y"])
CONSTANT = LogisticRegression(C=1e-9).fit(FRAME[["b"]], FRAME["y"])
NUMBERS = LinearRegression().fit(FRAME[["a", "b"]], FRAME["z"])


@pytest.fixture(scope="module")
def found():
    return evaluate_table(CLASSES, FRAME, "y", by="site", against=CONSTANT, sources=True)


@pytest.fixture(scope="module")
def numbers():
    return evaluate_table(NUMBERS, FRAME, "z")


def test_the_answer_comes_first(found):
    score = found.score()
    low, high = map(score.show, score.interval)
    first, second = describe_evaluation(found)
    assert first == (
        f"AUC {score.show(score.value)} (95% interval {low} to {high}), significantly better than "
        "a constant prediction (0.500)."
    )
    assert second.startswith("Probabilities can be taken as they are: calibration error 0.0")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gain": (-0.1, 0.1)}, "not significantly better than a constant prediction (0.500)."),
        ({"gain": (-0.2, -0.1)}, ", significantly worse than a constant prediction (0.500)."),
        ({"gain": None}, ", beside a constant prediction (0.500)."),
        ({"value": np.nan}, "AUC is undefined on these rows."),
    ],
)
def test_verdicts(found, changes, said):
    scores = tuple(replace(s, **changes) if s.name == found.main else s for s in found.scores)
    assert describe_evaluation(replace(found, scores=scores))[0].endswith(said)


def test_rows_of_one_class_show_little(found):
    one, other = found.class_scores
    alone = replace(found, class_scores=(one, replace(other, n_rows=0)))
    scores = tuple(replace(s, value=np.nan) if s.name == found.main else s for s in found.scores)
    said = describe_evaluation(replace(alone, scores=scores))
    assert said[0] == f"AUC is undefined on these rows, which all have the class {one.label}."
    for lines in (said, describe_evaluation(alone)):
        assert not any(line.startswith("Probabilities") for line in lines)


def test_an_error_just_above_chance_has_more_digits(found):
    bins = replace(found.reliability, error=0.06504, tolerated=0.06501, excess=0.0)
    said = describe_evaluation(replace(found, reliability=bins))[1]
    assert said == (
        "Probabilities are not right: calibration error 0.06504 (up to 0.06501 is chance for "
        "this number of rows)."
    )


@pytest.mark.parametrize(
    ("excess", "how"),
    [(0.1, ", the model is too sure"), (-0.1, ", the model is not sure enough"), (0.0, "")],
)
def test_wrong_probabilities(found, excess, how):
    bins = replace(found.reliability, error=0.2, tolerated=0.1, excess=excess)
    said = describe_evaluation(replace(found, reliability=bins))[1]
    assert said == (
        f"Probabilities are not right{how}: calibration error 0.200 (up to 0.100 is chance for "
        "this number of rows)."
    )


def test_tables_of_scores_and_classes(found):
    heads, rows = score_table(found)
    assert heads == ["score", "value", "95% interval", "constant", "better"]
    assert {row[0]: row[1] for row in rows} == {s.title: s.show(s.value) for s in found.scores}
    assert {row[0] for row in rows if row[4]} == {"log-loss", "Brier score"}
    lines = class_table(found)[1]
    assert [(line[0], line[1]) for line in lines] == [
        (name, str((FRAME["y"] == name).sum())) for name in ("no", "yes")
    ]
    assert lines[0][2].startswith(f"{found.class_scores[0].recall:.1%} (")
    matrix = confusion_table(found)
    assert matrix[0] == ["true / predicted", "no", "yes"]
    assert [[int(v) for v in row[1:]] for row in matrix[1]] == found.confusion.tolist()
    worst = confused_table(found)[1][0]
    assert int(worst[2]) == max(found.confusion[0, 1], found.confusion[1, 0])


def test_differences_in_words(found):
    assert describe_differences((), "the other") == [
        "No score differs significantly from that of the other on the same rows."
    ]
    (line,) = describe_differences(found.differences, "the other")
    better = [d.title for d in found.differences if d.better]
    assert line == f"Significantly better than the other: {', '.join(better)}."
    turned = [
        replace(d, better=None if d.better is None else not d.better) for d in found.differences
    ]
    assert describe_differences(turned, "it")[0].startswith("Significantly worse than it: ")
    rows = {row[0]: row for row in difference_table(found)[1]}
    assert rows["AUC"][-1] == "better"
    part = next(d for d in found.differences if d.title == "AUC")
    assert rows["AUC"][3] == part.show(part.value - part.other)


def test_blocks_that_were_asked_for(found, numbers):
    blocks = further_blocks(found)
    assert [block.title for block in blocks] == [
        f"Beside {found.against}",
        "By site",
        "Without each source",
    ]
    assert blocks[1].remark == "A group of few rows says little."
    assert [row[:2] for row in group_table(found)[1]] == [["Ulm", "190"], ["Bonn (few rows)", "10"]]
    assert [row[0] for row in blocks[2].rows] == [part.name for part in found.sources]
    assert further_blocks(numbers) == []


def test_residuals_in_words(numbers):
    facts = dict(describe_residuals(numbers))
    errors = FRAME["z"] - NUMBERS.predict(FRAME[["a", "b"]])
    assert facts["errors"].startswith(f"half are within {np.abs(errors).median():.4g}; 90% from")
    assert facts["largest errors"].startswith(f"row {np.abs(errors).argmax()} (is ")
    assert facts["largest errors"].count("row ") == 5
    assert describe_residuals(replace(numbers, residuals=None)) == []
    assert coverage_table(numbers)[1] == []


def test_json_has_no_nan(found, numbers):
    scores = (replace(found.scores[0], value=np.nan), *found.scores[1:])
    plain = evaluation_as_json(replace(found, scores=scores))
    text = json.dumps(plain, allow_nan=False)
    assert json.loads(text)["scores"][0]["value"] is None
    assert plain["confusion"] == found.confusion.tolist()
    assert set(plain) == set(vars(found))
    largest = evaluation_as_json(numbers)["residuals"]["largest"]
    assert largest[0]["row"] == numbers.residuals.rows[numbers.residuals.largest(1)[0]]
