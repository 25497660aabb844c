"""Targets and columns of a problem."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import make_problem
from source_table import SOURCES, source_table

N = 40
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "task", "regression", "type_"),
    [
        (list("ab") * 20, "auto", False, str),
        (np.arange(N) % 3, "auto", False, int),
        (np.arange(N) % 3 + 0.0, "auto", False, int),
        (np.arange(N) % 3 > 0, "auto", False, bool),
        (np.arange(N) % 25, "auto", True, float),
        (np.arange(N) % 25, "classification", False, int),
        (np.arange(N) % 3, "regression", True, float),
        (RANDOM.normal(size=N), "auto", True, float),
    ],
)
def test_targets(values, task, regression, type_):
    problem = make_problem(pd.DataFrame({"x": RANDOM.normal(size=N), "y": values}), "y", task=task)
    assert problem.regression is regression
    assert isinstance(problem.y.tolist()[0], type_)


def test_mistakes():
    frame = pd.DataFrame({"x": RANDOM.normal(size=N), "y": [f"n{i}" for i in range(N)]})
    with pytest.raises(InputError, match="40 different values in 40 rows, which are too many"):
        make_problem(frame, "y")
    with pytest.raises(InputError, match="task: must be one of"):
        make_problem(frame, "y", task="class")
    with pytest.raises(DataError, match="The matrix 'g' has 3 rows, but the table 40"):
        make_problem(frame, "x", grams={"g": np.eye(3)})


def test_groups():
    table = pd.DataFrame({"x": [0.5, 0.1, 0.7, 0.7, 0.3, 0.2], "y": [0.5, 1, 2, 3, 4, 5]})
    table["who"] = ["a", "a", "b", "b", None, None]
    problem = make_problem(table, "y", groups="who")
    assert problem.X.columns.tolist() == ["x"]
    assert problem.groups.tolist() == [0, 0, 1, 1, 2, 3]
    assert problem.take([5, 0]).groups.tolist() == [3, 0]
    assert "(4 groups)" in problem.notes[0]
    for groups, error, sentence in [
        ("y", InputError, "groups: must be another column than the target"),
        ("when", DataError, "no column 'when'"),
        ("same", InputError, "groups: the column 'same' has one value only"),
    ]:
        with pytest.raises(error, match=sentence):
            make_problem(table.assign(same=1), "y", groups=groups)


def test_sources_are_found_by_patterns_and_counted():
    frame = source_table()
    lacking = frame["scan_0"].isna().sum()
    problem = make_problem(frame, "ill", sources=SOURCES, missing="off")
    assert problem.has_own_kernels
    assert problem.sources["scan"] == ("scan_0", "scan_1", "scan_2")
    assert f"{lacking} of 160 rows lack the source 'scan'" in problem.notes
    single = (frame["hdl"].isna() & frame["ldl"].notna()).sum()
    assert {c.name: c.missing for c in problem.kinds}["hdl"] == single
    assert {c.name: c.missing for c in problem.kinds}["scan_0"] == 0
    assert problem.take([0, 1]).sources == problem.sources
    assert problem.without(["hdl", "ldl"]).sources == {"scan": problem.sources["scan"]}
    assert not make_problem(frame, "ill").has_own_kernels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "missing: must be one of fill, refuse, off, complete, got 'drop'"),
        ({"missing": "complete", "sources": {"a": ["age"]}}, "needs two sources or more, got 1"),
        ({"missing": "refuse"}, r"Values are missing .* in 'scan_0' \(\d+ rows\)"),
        ({"sources": {"a": ["agee"]}}, "source 'a': no column to learn from is named agee"),
        ({"sources": {"a": ["age", "b*"]}}, r"source 'a': no column to learn from is named b\*"),
    ],
)
def test_bad_sources_and_rules(options, message):
    with pytest.raises((InputError, DataError), match=message):
        make_problem(source_table(), "ill", **options)


def test_a_source_that_all_rows_lack():
    frame = source_table().assign(hdl=np.nan, ldl=np.nan)
    with pytest.raises(DataError, match="source 'lab': no column"):  # empty columns are left out
        make_problem(frame, "ill", sources=SOURCES)
