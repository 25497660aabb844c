"""Rows of a table are read in blocks."""

import itertools

import numpy as np
import polars as pl
import pytest

from kernelweave import Propositions
from kernelweave.errors import InputError
from kernelweave.rules import table as tables
from kernelweave.rules.packing import pack_rows
from mixed_table import mixed


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_rows_are_read_in_blocks(library, monkeypatch):
    """Scores and packed rows do not depend on how many rows are read at a time."""
    from kernelweave._threads import threads
    from kernelweave.rules import Rule, score_rules

    X = mixed().drop(columns="anything")
    X = {"pandas": X, "polars": pl.from_pandas(X), "array": X[["age", "pay"]].to_numpy(float)}[
        library
    ]
    statements = Propositions().fit(X).propositions_
    rules = [Rule((a, b), 0.1 * k, 0.5) for k, (a, b) in enumerate(itertools.pairwise(statements))]
    scores, packed = score_rules(rules, 0.3, X), pack_rows(X, statements)
    monkeypatch.setattr(tables, "_ROWS", 64)
    for count in (1, 3):
        with threads(count):
            np.testing.assert_array_equal(score_rules(rules, 0.3, X), scores)
            np.testing.assert_array_equal(pack_rows(X, statements).rows, packed.rows)


def test_an_infinite_value_is_named_by_its_row(monkeypatch):
    monkeypatch.setattr(tables, "_ROWS", 64)
    X = np.zeros((200, 1))
    X[150] = np.inf
    with pytest.raises(InputError, match="infinite in row 150"):
        pack_rows(X, Propositions().fit([[0.0], [1.0]]).propositions_)


def test_a_column_of_objects_is_read_as_a_whole(monkeypatch):
    """A block with numbers only says nothing wrong where the column holds text as well."""
    monkeypatch.setattr(tables, "_ROWS", 64)
    X = np.array([["a"]] * 100 + [[1]] * 100, dtype=object)
    maker = Propositions().fit(X)
    np.testing.assert_array_equal(pack_rows(X, maker.propositions_).unpack(), maker.transform(X))
