"""Decisions of a person: files, labels and pairs, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import apply_decisions
from kernelweave.errors import DataError, InputError, InputTypeError
from kernelweave.noise import read_decisions
from kernelweave.noise.decisions import find_known, merge_known


def line(row, kind, given, label):
    return {"row": row, "decision": kind, "given": given, "label": label}


def test_labels_are_kept_and_changed():
    lines = [line(0, "keep", "a", "a"), line(2, "change", "b", "c"), line(1, "unsure", "a", "")]
    decided = apply_decisions(np.array(["a", "a", "b"]), lines)
    assert decided.labels.tolist() == ["a", "a", "c"]
    assert decided.certain.tolist() == [True, False, True]
    assert decided.unsure.tolist() == [1]
    assert decided.known.tolist() == ["a", None, "c"]
    assert decided.pairs is None


def test_numbers_stay_numbers():
    decided = apply_decisions(np.array([0, 1, 2]), [line(2, "change", "2", "0")])
    assert decided.labels.tolist() == [0, 1, 0]
    assert decided.labels.dtype.kind == "i"
    with pytest.raises(InputError, match="which is no class; these are: 0, 1, 2"):
        apply_decisions(np.array([0, 1, 2]), [line(2, "change", "2", "7")])


def test_a_file_and_a_frame_are_the_same(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes('\ufeffrow,decision,given,label\r\n1,change,"a,b","x ""y"""\r\n'.encode())
    y = np.array(["a,b", "a,b", 'x "y"'], dtype=object)
    decided = apply_decisions(y, path)
    assert decided.labels.tolist() == ["a,b", 'x "y"', 'x "y"']
    for frame in (pd.read_csv(path, encoding="utf-8-sig"), pl.read_csv(path)):
        assert apply_decisions(y, frame).labels.tolist() == decided.labels.tolist()


@pytest.mark.parametrize("kind", [int, float])
def test_numbers_of_a_frame_are_floats_where_a_label_is_missing(kind):
    lines = [line(0, "change", 0, 1), line(1, "unsure", 1, None), line(2, "keep", 1, 1)]
    decided = apply_decisions(np.array([0, 1, 1], dtype=kind), pd.DataFrame(lines))
    assert decided.labels.tolist() == [1, 1, 1]
    assert decided.labels.dtype == kind
    texts = [line(0, "change", str(kind(0)), str(kind(1)))]
    assert apply_decisions(np.array([0, 1], dtype=kind), texts).labels.tolist() == [1, 1]


@pytest.mark.parametrize("source", [3, ["row"], {"row": 1}])
def test_other_sources_are_refused(source):
    with pytest.raises(InputTypeError, match="must be a file, a data frame or a list of dicts"):
        read_decisions(source)


def test_the_last_decision_on_a_row_counts():
    lines = [line(1, "keep", "a", "a"), line(1, "change", "a", "b")]
    assert [one.label for one in read_decisions(lines)] == ["b"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line(7, "keep", "a", "a")], "row 7 does not exist"),
        ([line(0, "keep", "b", "b")], "was labelled 'b' when it was reviewed, but is 'a'"),
        ([line(0, "drop", "a", "a")], "must say keep, change or unsure, but says 'drop'"),
        ([line("x", "keep", "a", "a")], "has no row number"),
        ([line(0, "keep", "a", "")], "says keep, but has no label"),
        ([{"decision": "keep"}], "must have the columns row"),
        ([{"left": 0, "right": 1, "decision": "keep", "label": "same"}], "are on pairs"),
    ],
)
def test_bad_decisions_are_refused(lines, message):
    with pytest.raises((InputError, DataError), match=message):
        apply_decisions(["a", "b", "b"], lines)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(b"\xff\xfe\x00row")
    with pytest.raises(DataError, match="not a text file"):
        read_decisions(path)


def test_pairs_are_changed_and_added():
    lines = [
        {"left": 2, "right": 0, "decision": "change", "given": "same", "label": "different"},
        {"left": 1, "right": 2, "decision": "change", "given": "", "label": "same"},
        {"left": 0, "right": 1, "decision": "unsure", "given": "same", "label": ""},
    ]
    decided = apply_decisions([1, 1], lines, pairs=[[0, 1], [0, 2]])
    assert decided.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert decided.labels.tolist() == [1, -1, 1]
    assert decided.certain.tolist() == [False, True, True]
    assert decided.unsure.tolist() == [0]
    bad = [{"left": 0, "right": 1, "decision": "keep", "label": "cat"}]
    with pytest.raises(InputError, match="same or different"):
        apply_decisions([1], bad, pairs=[[0, 1]])
    with pytest.raises(InputError, match="rows, but pairs were given"):
        apply_decisions([1], [line(0, "keep", "", "1")], pairs=[[0, 1]])


def test_known_labels_take_the_place_of_others():
    labels, certain = merge_known(np.array([0, 1, 1]), [None, 0, np.nan])
    assert labels.tolist() == [0, 0, 1]
    assert certain.tolist() == [False, True, False]
    assert merge_known([0, 1], None)[1] is None
    with pytest.raises(InputError, match="an entry for each of the 3 rows"):
        find_known([None, 1], 3)
