"""A table and a list of answers of several annotators."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError
from kernelweave.tables import find_suspects, fit_answers
from table_groups import TABLE


def make_triples(key=None, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        (
            i if key is None else key[i],
            f"p{j}",
            TABLE["y"][i] if rng.random() < 0.85 else rng.choice(["in", "out"]),
        )
        for i in range(len(TABLE))
        for j in rng.permutation(4)[:2]
    ]
    return pd.DataFrame(rows, columns=["key", "who", "answer"])


def test_rows_by_number_and_by_key_are_the_same():
    names = [f"n{i}" for i in range(len(TABLE))]
    keyed = TABLE.assign(key=names)
    by_number = fit_answers(TABLE, make_triples(), target="y").model[-1]
    by_key = fit_answers(keyed, make_triples(names), target="y")
    assert np.array_equal(by_number.truth_, by_key.model[-1].truth_)
    assert "key" not in by_key.problem.X.columns
    assert (by_number.labels_ == TABLE["y"].to_numpy()).mean() > 0.9
    assert any("the answers take its place" in note for note in by_key.notes)


def test_answers_that_look_wrong_are_listed_with_their_annotator():
    fit = fit_answers(TABLE, make_triples(), target="y")
    found = find_suspects(fit.model, TABLE, limit=3)
    assert len(found) == 3
    assert set(found["annotator"]) <= {"p0", "p1", "p2", "p3"}
    assert "a" in found.columns


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[["key", "who"]], "must have three columns"),
        (lambda t: t.assign(key=t["key"] + 1000), r"row numbers from 0 to .* got 1\d* in line 2"),
        (lambda t: t.assign(key="x"), "got x in line 2"),
        (lambda t: t.rename(columns={"key": "kind"}), "occurs more than once"),
    ],
)
def test_bad_answers_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        fit_answers(TABLE, change(make_triples()), target="y")


def test_unknown_keys_are_refused():
    names = [f"n{i}" for i in range(len(TABLE))]
    triples = make_triples(["other", *names[1:]])
    with pytest.raises(DataError, match="no row of the table has 'other'"):
        fit_answers(TABLE.assign(key=names), triples, target="y")
