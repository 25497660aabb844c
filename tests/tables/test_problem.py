"""Targets and columns of a problem."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import make_problem

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
