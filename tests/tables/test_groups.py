"""Groups of rows by the values of a column."""

from itertools import pairwise

import numpy as np
import pandas as pd

from kernelweave.tables.groups import split_groups


def named(values):
    groups, notes = split_groups(pd.Series(values, name="site"))
    return {name: rows.tolist() for name, rows in groups}, notes


def test_the_largest_comes_first_and_gaps_last():
    found, notes = named([None, "b", "a", "b", None, None])
    assert list(found) == ["b", "a", "(missing)"]
    assert found == {"b": [1, 3], "a": [2], "(missing)": [0, 4, 5]}
    assert notes == []


def test_numbers_of_many_values_are_ranges():
    values = np.random.default_rng(0).normal(size=100)
    values[7] = np.nan
    groups, _ = split_groups(pd.Series(values))
    assert [len(rows) for _, rows in groups] == [25, 25, 24, 25, 1]
    assert groups[-1][0] == "(missing)"
    ends = [(values[rows].min(), values[rows].max()) for _, rows in groups[:4]]
    assert sorted(ends) == ends
    assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_few_numbers_are_values():
    assert named([3, 1, 3])[0] == {"3": [0, 2], "1": [1]}


def test_many_texts_are_cut():
    found, notes = named([f"t{k}" for k in range(25)] + ["t24"])
    assert len(found) == 20
    assert next(iter(found)) == "t24"
    assert notes == ["'site' has 25 values, of which the 20 largest groups are shown"]
