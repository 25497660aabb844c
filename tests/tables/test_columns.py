"""What columns hold, and what is done with them."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import describe_columns
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
