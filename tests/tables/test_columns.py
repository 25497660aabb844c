"""What columns hold, and what is done with them."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import describe_columns, make_problem, offer_kernels
from kernelweave.tables.columns import note_columns

N = 40
RANDOM = np.random.default_rng(0)
SENTENCES = [" ".join(RANDOM.choice(list("abcdefgh"), 5)) for _ in range(N)]


@pytest.mark.parametrize(
    ("values", "kind", "why"),
    [
        (RANDOM.normal(size=N), "number", ""),
        (np.where(np.arange(N) % 2, np.nan, RANDOM.normal(size=N)), "number", ""),
        (RANDOM.choice(["u", "v"], N), "category", ""),
        (np.arange(N) % 2 == 0, "number", ""),
        (SENTENCES, "text", ""),
        ([f"2024-01-{1 + i % 28:02d}" for i in range(N)], "date", ""),
        ([f"{1 + i % 28}.3.2024" for i in range(N)], "date", ""),
        (pd.date_range("2024-01-01", periods=N), "date", ""),
        (np.ones(N), "none", "one value only"),
        ([None] * N, "none", "empty"),
        (np.arange(N), "none", "counts the rows"),
        (1 + np.arange(N), "none", "counts the rows"),
        (RANDOM.permutation(N) + 500, "none", "as of identifiers"),
        ([f"name {i}" for i in range(N)], "none", "as of names"),
        (RANDOM.permutation(N) * 1000, "number", ""),  # spread out, as incomes are
        (np.where(np.arange(N) % 3, None, "yes"), "category", ""),  # missing says no
    ],
)
def test_kinds(values, kind, why):
    (found,) = describe_columns(pd.DataFrame({"x": values}))
    assert found.kind == kind
    assert why in found.why
    assert bool(found.why) == (kind == "none")


@pytest.mark.parametrize("name", ["id", "customer_id", "Customer ID", "caseId", "Nr", "row"])
def test_names_of_identifiers(name):
    values = RANDOM.permutation(N) * 1000
    (found,) = describe_columns(pd.DataFrame({name: values}))
    assert found.kind == "none"
    (found,) = describe_columns(pd.DataFrame({"valid": values}))
    assert found.kind == "number"


def test_notes():
    gaps = np.where(np.arange(N) % 4, 1.5 * np.arange(N), np.nan)
    frame = pd.DataFrame({"x": gaps, "t": SENTENCES, "c": np.where(gaps > 9, "u", "v"), "one": 1})
    frame.loc[3, "c"] = None
    assert note_columns(describe_columns(frame)) == [
        "the column 'one' is left out: it has one value only",
        "'t' holds text, which is compared by its words",
        "missing values in 'x' (10 rows) are filled with the median",
        "missing values in 'c' (1 row) are a value of their own",
    ]
    (gaps,) = (n for n in note_columns(describe_columns(frame), kept=True) if "missing" in n)
    assert gaps == "missing values in 'x' (10 rows), 'c' (1 row) are kept as such"


def test_kernels_follow_the_kinds():
    frame = pd.DataFrame({"x": RANDOM.normal(size=N), "t": SENTENCES, "c": list("uv") * (N // 2)})
    frame["y"] = list("pq") * (N // 2)
    problem = make_problem(frame, "y", grams={"photo": np.eye(N)})
    names = [str(kernel) for kernel in offer_kernels(problem)]
    assert names == ["mixed_ladder on 2 columns (x, c)", "words on t", "photo"]
    assert problem.X["photo"].tolist() == list(range(N))


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
