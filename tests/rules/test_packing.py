"""Propositions of rows, packed as bits."""

import pickle

import numpy as np
import pandas as pd
import pytest

from kernelweave import Propositions
from kernelweave.banks.rules import PackedRows
from kernelweave.rules.packing import pack_block, pack_rows, read_given
from kernelweave.rules.summary import summarise_block
from mixed_table import mixed


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
