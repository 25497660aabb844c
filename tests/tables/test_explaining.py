"""Tables are explained row by row, or some rows where they are many."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, CombinedRegressor, Linear, MKLRegressor, RuleEnsembleRegressor
from kernelweave.errors import DataError, InputError
from kernelweave.inspection import explain
from kernelweave.tables import explain_table

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(RANDOM.normal(size=(60, 3)), columns=["a", "b", "c"])
Y = FRAME["a"] * FRAME["b"] + FRAME["c"]


@pytest.fixture(scope="module")
def model():
    return MKLRegressor([RBF(1.0), Linear()]).fit(FRAME, Y)


def test_values_are_those_of_explain(model):
    found, rows = explain_table(model, FRAME)
    assert rows == list(range(60))
    np.testing.assert_array_equal(found.values, explain(model, FRAME, FRAME).values)
    some, rows = explain_table(model, FRAME[:3], FRAME, rows=[2, 0], by="kernel")
    assert rows == [2, 0]
    assert some.feature_names == explain(model, FRAME[:3], FRAME, by="kernel").feature_names
    np.testing.assert_allclose(some.predictions, model.predict(FRAME.iloc[[2, 0]]))


def test_some_rows_are_enough_for_importance(model, monkeypatch):
    monkeypatch.setattr("kernelweave.tables.explaining._MOST_ROWS", 7)
    found, rows = explain_table(model, FRAME, every=False)
    assert len(found) == len(rows) == 7
    assert np.ptp(np.diff(rows)) <= 1
    assert len(explain_table(model, FRAME)[1]) == 60
    # Standard errors take rows and background for two samples.
    assert found.n_background == 53
    assert explain_table(model, FRAME, FRAME, every=False)[0].n_background == 60


def test_models_that_mix_columns_are_sampled_on_fewer_rows(monkeypatch):
    monkeypatch.setattr("kernelweave.tables.explaining._SAMPLED_ROWS", 5)
    monkeypatch.setattr("kernelweave.tables.explaining._SAMPLED_BACKGROUND", 10)
    monkeypatch.setattr("kernelweave.tables.explaining._SINGLE", 4)
    members = [("log", MKLRegressor([Linear()])), ("plain", MKLRegressor([Linear()]))]
    mixed = CombinedRegressor(members, logarithms=[(9.0, 1.0), None]).fit(FRAME, Y)
    found, rows = explain_table(mixed, FRAME, every=False)
    assert len(rows) == 5
    assert found.n_background == 10
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 6))).add_prefix("c")
    mixed.fit(wide, Y)
    assert explain_table(mixed, wide, every=False)[0].n_permutations > 0
    assert explain_table(mixed, wide, rows=range(5))[0].n_permutations == 0  # exact
    mixed.fit(FRAME, Y)
    single, _ = explain_table(mixed, FRAME, rows=[3])
    assert single.n_background == 60


def test_arrays_have_no_names():
    model = MKLRegressor([Linear()]).fit(FRAME.to_numpy(), Y)
    found, _ = explain_table(model, FRAME)
    np.testing.assert_allclose(found.predictions, model.predict(FRAME.to_numpy()))


def test_refusals(model):
    with pytest.raises(InputError, match=r"--rows: the table has the rows 0 to 59, .* got 60"):
        explain_table(model, FRAME, rows=[3, 60])
    with pytest.raises(DataError, match="The table has 5 rows, too few to be compared"):
        explain_table(model, FRAME[:5])
    tasks = RuleEnsembleRegressor(C=10).fit(FRAME, Y, task=np.arange(60) % 2)
    with pytest.raises(InputError, match="fitted with tasks, which the command line"):
        explain_table(tasks, FRAME)
