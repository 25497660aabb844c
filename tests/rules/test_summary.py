"""Tables that come in blocks of rows: summaries, packed propositions, scores."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import Propositions
from kernelweave.banks.rules import PackedRows
from kernelweave.errors import InputError
from kernelweave.rules import summary as summaries
from kernelweave.rules.packing import pack_block
from kernelweave.rules.summary import join_summaries, summarise_block
from mixed_table import mixed
from row_blocks import LocalParts


def split(X, cuts):
    edges = [0, *cuts, len(X)]
    rows = [slice(a, b) for a, b in itertools.pairwise(edges)]
    return LocalParts([X.iloc[r] if hasattr(X, "iloc") else X[r] for r in rows])


def chosen(parts, weight=None, **options):
    parts = parts.map(summarise_block, parts.n_rows, by_row=weight)
    return Propositions(**options).fit_summary(join_summaries(parts))


@pytest.mark.parametrize("cuts", [[], [1], [100, 101, 350], [250, 250]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_blocks_give_the_propositions_of_the_table(cuts, weighted, library):
    X = mixed()
    if library == "polars":
        X = pl.from_pandas(X.drop(columns="anything"))
    if library == "array":
        X = X[["age", "pay"]].to_numpy(dtype=float)
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    whole = Propositions(categorical=[0]).fit(X, sample_weight=weight)
    parts = split(X, cuts)
    found = chosen(parts, weight, categorical=[0])
    assert found.propositions_ == whole.propositions_
    assert found.n_features_in_ == whole.n_features_in_
    np.testing.assert_array_equal(
        getattr(found, "feature_names_in_", None), getattr(whole, "feature_names_in_", None)
    )
    packed = PackedRows.join(parts.map(pack_block, found.propositions_, ()))
    np.testing.assert_array_equal(packed.unpack(), whole.transform(X))


def test_many_distinct_numbers_are_drawn_whatever_the_blocks(monkeypatch):
    monkeypatch.setattr(summaries, "COUNTED", 100)
    monkeypatch.setattr(summaries, "DRAWN", 3000)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=20_000), rng.integers(0, 50, 20_000)])
    first = chosen(split(X, [7000])).propositions_
    assert first == chosen(split(X, [50, 60, 12_345, 19_000])).propositions_
    exact = Propositions().fit(X).propositions_
    assert first != exact
    assert first[8:] == exact[8:]  # few distinct numbers are all counted
    for drawn, wanted in zip(first[:8], exact[:8], strict=True):
        below = [np.mean(X[:, 0] <= p.value) for p in (drawn, wanted)]
        assert abs(below[0] - below[1]) < 4 * np.sqrt(0.25 / 3000)
    with pytest.raises(InputError, match="more than 100 distinct numbers"):
        chosen(split(X, [7000]), categorical=[0])


def test_few_rows_are_all_drawn(monkeypatch):
    monkeypatch.setattr(summaries, "COUNTED", 10)
    X = np.random.default_rng(0).normal(size=(400, 2))
    assert chosen(split(X, [100, 300])).propositions_ == Propositions().fit(X).propositions_


def test_blocks_that_do_not_fit_together_are_refused():
    X = mixed()
    texts = X.assign(age=X["age"].astype(str))
    with pytest.raises(
        InputError, match="'age' holds numeric values in some blocks of rows and nom"
    ):
        chosen(LocalParts([X, texts]))
    with pytest.raises(InputError, match="same columns"):
        chosen(LocalParts([X, X.drop(columns="age")]))


def test_a_block_without_values_says_nothing():
    X = mixed()
    empty = X.iloc[:20].assign(colour=None, pay=np.nan)
    parts = LocalParts([empty, X.iloc[20:]])
    assert chosen(parts).propositions_ == Propositions().fit(pd.concat(parts.blocks)).propositions_
