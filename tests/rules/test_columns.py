"""Kinds of columns, whatever the library."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import Propositions
from kernelweave.rules.columns import read_column
from proposition_frame import EXPECTED, ROWS, frame


def texts(X, **parameters):
    return [p.text for p in Propositions(**parameters).fit(X).propositions_]


class TestKinds:
    def test_pandas(self):
        X = frame()
        before = X.copy(deep=True)
        model = Propositions().fit(X)
        assert [p.text for p in model.propositions_] == EXPECTED
        np.testing.assert_array_equal(model.transform(X), ROWS)
        pd.testing.assert_frame_equal(X, before)

    def test_polars(self):
        X = pl.from_pandas(frame().astype({"size": str}).replace({"size": {"nan": None}}))
        X = X.with_columns(pl.col("size").cast(pl.Enum(["S", "M", "L"])))
        model = Propositions().fit(X)
        assert [p.text for p in model.propositions_] == EXPECTED
        np.testing.assert_array_equal(model.transform(X), ROWS)

    def test_pandas_rows_through_a_model_fitted_with_polars(self):
        X = frame()[["age", "colour"]]
        model = Propositions().fit(pl.from_pandas(X))
        np.testing.assert_array_equal(model.transform(X), ROWS[:, :10])

    def test_pyarrow(self):
        X = pl.from_pandas(frame()[["age", "colour", "smoker"]])
        model = Propositions().fit(X.to_arrow())
        assert [p.text for p in model.propositions_] == EXPECTED[:10] + EXPECTED[12:14]
        np.testing.assert_array_equal(model.transform(X.to_arrow()), model.transform(X))

    def test_objects(self):
        X = frame().astype(object).to_numpy()
        model = Propositions().fit(X[:, :4])
        assert [p.text for p in model.propositions_] == [
            text.replace(name, f"column {i}")
            for text in EXPECTED[:14]
            for i, name in enumerate(["age", "colour", "side", "smoker"])
            if name in text
        ]
        np.testing.assert_array_equal(model.transform(X[:, :4]), ROWS[:, :14])

    def test_mixed_list(self):
        X = [[1, "a"], [2, "b"], [3, None]]
        assert texts(X) == [
            *("column 0 <= 1.5", "column 0 > 1.5", "column 0 <= 2.5", "column 0 > 2.5"),
            *("column 1 == a", "column 1 == b"),
        ]

    def test_truth_values_of_numpy(self):
        X = np.array([[True, True], [False, True]])
        assert texts(X) == ["column 0", "not column 0"]

    def test_text_array(self):
        assert texts(np.array([["1"], ["2"], ["3"]]))[:2] == ["column 0 == 1", "column 0 != 1"]

    def test_listed_columns_are_nominal(self):
        X = frame()[["age", "size"]]
        expected = [
            *("age == 20", "age != 20", "age == 30", "age != 30", "age == 50", "age != 50"),
            *("size == S", "size != S", "size == M", "size != M", "size == L", "size != L"),
        ]
        assert texts(X, categorical=["age", 1]) == expected
        assert texts(X, categorical=np.array([0, 1])) == expected
        assert texts(X.to_numpy(), categorical=[0])[0] == "column 0 == 20"

    def test_categories_that_do_not_occur_give_nothing(self):
        X = pd.DataFrame({"a": pd.Categorical(["x", "y"], categories=["x", "y", "z"])})
        assert texts(X) == ["a == x", "a == y"]

    def test_order_of_categories_that_do_not_occur(self):
        levels = list("abcde")
        X = pd.DataFrame({"g": pd.Categorical(["a", "e", "b"], levels, ordered=True)})
        model = Propositions().fit(X)
        assert [p.text for p in model.propositions_] == ["g <= a", "g > a", "g <= c", "g > c"]
        assert model.transform(X).astype(int).tolist() == [
            [1, 0, 1, 0],
            [0, 1, 0, 1],
            [0, 1, 1, 0],
        ]

    def test_names_that_are_numbers(self):
        X = pd.DataFrame({10: [1, 2], 20: [3, 3]})
        assert texts(X) == ["column 10 <= 1.5", "column 10 > 1.5"]

    def test_constant_and_empty_columns(self):
        X = pd.DataFrame({"a": [1, 1], "b": ["x", "x"], "c": [None, None], "d": [True, None]})
        model = Propositions().fit(X)
        assert model.propositions_ == ()
        assert model.transform(X).shape == (2, 0)
        assert model.get_feature_names_out().shape == (0,)
        assert texts(pl.DataFrame({"n": [None, None]})) == []

    def test_cuts(self):
        X = np.arange(101.0)[:, None]
        assert len(texts(X, n_cuts=9)) == 18
        assert texts(X, n_cuts=1) == ["column 0 <= 49.5", "column 0 > 49.5"]
        skewed = np.r_[np.zeros(90), np.arange(1, 11)][:, None]
        assert texts(skewed, n_cuts=1, cut_strategy="uniform")[0] == "column 0 <= 4.5"

    def test_adjacent_floats_are_told_apart(self):
        X = np.array([[1.0], [np.nextafter(1.0, 2)]])
        model = Propositions().fit(X)
        assert model.transform(X).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_large_integers_beside_gaps_are_not_rounded(library):
    kind = {"dtype": "Int64"} if library is pd else {}
    column = read_column(library.Series([2**53 + 1, None, 2**53], **kind), "x")
    assert column.labels.values == (2**53 + 1, 2**53)
    np.testing.assert_array_equal(column.numbers, [2.0**53, np.nan, 2.0**53])
    assert column.kind == "numeric"
    cuts = Propositions().fit(library.DataFrame({"x": library.Series([2**60, None, 1], **kind)}))
    assert [p.text for p in cuts.propositions_] == ["x <= 5.8e+17", "x > 5.8e+17"]
