"""Values of columns: quantiles, few numbers, thresholds, dates, categories."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave.inspection.grids import MOST_LEVELS, make_grid

RANDOM = np.random.default_rng(0)


def test_numbers_lie_between_quantiles():
    X = np.column_stack([np.linspace(0.0, 1.0, 101), RANDOM.normal(size=101)])
    grid = make_grid(X, 0, "age", 10)
    assert (grid.kind, len(grid)) == ("number", 10)
    np.testing.assert_allclose(grid.places, np.linspace(0.05, 0.95, 10))
    np.testing.assert_array_equal(grid.rows, X[:, 0])


def test_few_and_whole_numbers():
    few = make_grid(np.array([[2.0], [0.5], [2.0], [np.nan]]), 0, "x", 10)
    np.testing.assert_array_equal(few.values, [0.5, 2.0])
    whole = make_grid(np.arange(200)[:, None], 0, "x", 7)
    assert len(whole) == 7
    assert (whole.values % 1 == 0).all()
    assert np.isnan(make_grid(np.full((3, 1), np.nan), 0, "x", 5).places).all()


def test_thresholds_have_numbers_on_both_sides():
    X = np.linspace(0.0, 1.0, 101)[:, None]
    grid = make_grid(X, 0, "x", 10, cuts=[0.3, 0.99, -5.0])
    np.testing.assert_array_equal(grid.places, [X[5, 0], 0.3, np.nextafter(0.3, 1.0), X[95, 0]])


def test_dates_are_those_of_the_data():
    days = pd.date_range("2024-01-01", periods=60).to_series().reset_index(drop=True)
    frame = pd.DataFrame({"day": days, "text": days.dt.strftime("%d.%m.%Y")})
    for grid in (
        make_grid(frame, 0, "day", 5),
        make_grid(frame, 1, "text", 5, date_format="%d.%m.%Y"),
    ):
        assert (grid.kind, len(grid)) == ("date", 5)
        assert np.isin(grid.values, days.to_numpy().astype("datetime64[us]")).all()
        np.testing.assert_allclose(np.diff(grid.places).sum(), 53, atol=1)
    first = make_grid(frame, 0, "day", 5)
    assert first.places[0] == (first.values[0] - np.datetime64("1970-01-01")) / np.timedelta64(
        1, "D"
    )


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_categories_are_the_most_frequent(library):
    towns = ["Ulm"] * 3 + ["Bonn"] * 4 + [None] * 2 + [f"t{k}" for k in range(20)]
    grid = make_grid(library({"town": towns}), 0, "town", 5)
    assert (grid.kind, len(grid)) == ("category", MOST_LEVELS)
    assert grid.values[:3].tolist() == ["Bonn", "Ulm", None]
    np.testing.assert_array_equal(grid.rows[[0, 3, 7]], [1.0, 0.0, 2.0])
    assert np.isnan(grid.rows[-1])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_filled_tables_keep_other_columns(library):
    table = library({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    filled = make_grid(table, 0, "a", 5).filled(table, np.array([2, 0]), np.array([0, 1]))
    assert filled["a"].to_list() == [1, 2]
    assert filled["b"].to_list() == ["z", "x"]
    assert filled["a"].dtype == table["a"].dtype


def test_arrays_are_filled():
    X = RANDOM.normal(size=(4, 2))
    grid = make_grid(X, 1, "b", 9)
    filled = grid.filled(X, np.array([3, 3]), np.array([0, 1]))
    np.testing.assert_array_equal(filled[:, 0], X[[3, 3], 0])
    np.testing.assert_array_equal(filled[:, 1], grid.places[:2])
