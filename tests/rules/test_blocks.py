"""Tables that come in blocks of rows: summaries, packed propositions, scores."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import Propositions
from kernelweave.banks.rules import PackedRows
from kernelweave.errors import InputError
from kernelweave.rules import summary as summaries
from kernelweave.rules import table as tables
from kernelweave.rules.packing import pack_block, pack_rows, read_given
from kernelweave.rules.summary import join_summaries, summarise_block
from row_blocks import LocalParts


def mixed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    size = pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l", "xl"], ordered=True)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": rng.normal(size=n).round(2),
            "colour": rng.choice(["red", "blue", "green"], n),
            "smoker": rng.random(n) < 0.3,
            "size": size,
            "anything": rng.choice(np.array([True, False, None], dtype=object), n),
        }
    )
    frame.loc[::7, "pay"] = np.nan
    frame.loc[3::11, "colour"] = None
    return frame


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
    packed = PackedRows.join(parts.map(pack_block, found.propositions_))
    np.testing.assert_array_equal(packed.unpack(), whole.transform(X))


def test_what_runs_elsewhere_can_be_pickled():
    X = mixed(60)
    again = pickle.loads(
        pickle.dumps((summarise_block, pack_block, summarise_block(X, 0, None, 60)))
    )
    assert again[0] is summarise_block
    assert again[1] is pack_block
    assert Propositions().fit_summary(again[2]).propositions_ == Propositions().fit(X).propositions_
    packed = pickle.loads(pickle.dumps(pack_rows(X, Propositions().fit(X).propositions_)))
    assert packed.shape[0] == 60


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


def test_given_columns():
    P = np.random.default_rng(0).random((100, 11)) < 0.5
    for X in (P, P.astype(int), pd.DataFrame(P).rename(columns=str)):
        np.testing.assert_array_equal(pack_rows(X, read_given(X)).unpack(), P)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_columns_of_packed_rows(n, monkeypatch):
    from kernelweave import _core
    from kernelweave.banks import rules

    monkeypatch.setattr(rules, "OPTIONS", rules.RuleOptions(unpacked=64))
    P = np.random.default_rng(n).random((n, 13)) < 0.5
    packed = PackedRows.of(P)
    np.testing.assert_array_equal(packed.unpack(), P)
    np.testing.assert_array_equal(packed.columns(), _core.pack_bits(P))
    index = np.arange(n)[::3]
    np.testing.assert_array_equal(packed[index].unpack(), P[index])


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
