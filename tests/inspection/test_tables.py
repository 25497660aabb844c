"""Rows of tables: the columns of a model, their cells, rows merged and mixed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kernelweave.errors import InputError
from kernelweave.inspection.tables import Mixer, cells, merge_equal, model_columns, two_samples

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [5, 6]})


def test_columns_are_those_of_the_fit():
    first = SimpleNamespace(feature_names_in_=["c", "a"], n_features_in_=2)
    assert list(model_columns(first, FRAME).columns) == ["c", "a"]
    with pytest.raises(InputError, match="background: lacks 'a', which the model needs"):
        model_columns(first, FRAME[["b", "c"]], "background")
    with pytest.raises(InputError, match="X: has 3 columns, but the model was fitted to 2"):
        model_columns(SimpleNamespace(n_features_in_=2), np.zeros((4, 3)))


def test_two_samples_are_apart_where_they_can_be():
    rows, behind = two_samples(100, 30, 40)
    assert (len(rows), len(behind)) == (30, 40)
    assert not set(rows) & set(behind)
    assert (rows[0], rows[-1]) == (0, 99)
    assert np.diff(behind).max() <= 5  # spread evenly
    rows, behind = two_samples(50, 30, 40)
    assert (len(rows), len(behind)) == (30, 40)
    assert [len(part) for part in two_samples(3, 200, 200)] == [3, 3]


def test_cells_are_numbers_where_they_can():
    numbers = cells(FRAME, [0, 2])
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [[1.0, 5.0], [2.0, 6.0]])
    assert cells(FRAME, [2, 1]).tolist() == [[5, "x"], [6, "y"]]
    np.testing.assert_array_equal(cells(sp.csr_array(np.eye(3)), [2]), [[0.0], [0.0], [1.0]])


def test_equal_rows_are_merged():
    Z = np.array([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0], [2.0, 0.0]])
    rows, weights = merge_equal(Z)
    np.testing.assert_array_equal(rows, [[2.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(weights, [0.75, 0.25])
    same, equal = merge_equal(FRAME)
    assert same is FRAME
    np.testing.assert_allclose(equal, 0.5)


FROM_X = np.array([[True, False, True], [False, True, False]])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_are_mixed(library):
    X = library({"a": [1.0, 2.0], "b": ["x", "y"], "c": [5, 6]})
    Z = library({"a": [9.0], "b": ["z"], "c": [7]})
    mixed = Mixer(X, Z).rows(np.array([1, 0]), np.array([0, 0]), FROM_X)
    assert mixed["a"].to_list() == [2.0, 9.0]
    assert mixed["b"].to_list() == ["z", "x"]
    assert mixed["c"].to_list() == [6, 7]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_arrays_are_mixed(kind):
    X, Z = np.arange(6.0).reshape(2, 3), -np.ones((1, 3))
    mixed = Mixer(kind(X), kind(Z)).rows(np.array([1, 0]), np.array([0, 0]), FROM_X)
    found = mixed.toarray() if sp.issparse(mixed) else mixed
    np.testing.assert_array_equal(found, [[3.0, -1.0, 5.0], [-1.0, 1.0, -1.0]])


def test_tables_of_two_kinds_are_refused():
    with pytest.raises(InputError, match="background: must be a table of the same kind as X"):
        Mixer(FRAME, np.zeros((2, 3)))
