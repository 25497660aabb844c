"""Tables of any library become rows of numbers."""

import decimal

import narwhals as nw
import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_selector

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import RBF, Linear
from kernelweave.kernels.table import read_table
from table_cases import ARRAY, NAMES, PANDAS, POLARS, upper


@pytest.mark.parametrize("X", [PANDAS, POLARS, nw.from_native(POLARS)], ids=["pd", "pl", "nw"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, [0, 1, 2]),
        ("bmi", [1]),
        (["dose", "age"], [2, 0]),
        (np.array(["dose", "age"]), [2, 0]),
        (pd.Index(["dose"]), [2]),
        (slice("bmi", "dose"), [1, 2]),
        (slice("bmi", None), [1, 2]),
        (slice(None, "bmi"), [0, 1]),
        (1, [1]),
        (-1, [2]),
        ([2, "age"], [2, 0]),
        (slice(0, 3, 2), [0, 2]),
        ([True, False, True], [0, 2]),
        (np.array([False, True, False]), [1]),
        (upper, [1, 2]),
        (lambda X: ["dose"], [2]),
        (lambda X: slice(0, 2), [0, 1]),
        (lambda X: "bmi", [1]),
        (ncs.matches("^a|^b"), [0, 1]),
    ],
)
def test_columns_of_frames(X, columns, expected):
    rows = Linear(columns=columns).prepare(X)
    np.testing.assert_array_equal(rows, ARRAY[:, expected])
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, [0, 1, 2]),
        (np.int64(2), [2]),
        (-3, [0]),
        (range(1, 3), [1, 2]),
        (np.array([2, 0], dtype=np.int8), [2, 0]),
        (slice(1, None), [1, 2]),
        ((False, False, True), [2]),
        (upper, [1, 2]),
    ],
)
@pytest.mark.parametrize(
    "read", [np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist]
)
def test_columns_of_arrays(read, columns, expected):
    rows = Linear(columns=columns).prepare(read(ARRAY))
    assert sp.issparse(rows) == sp.issparse(read(ARRAY))
    if sp.issparse(rows):
        assert rows.format == "csr"
        rows = rows.toarray()
    else:
        assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, ARRAY[:, expected])


def test_column_selector_of_scikit_learn_sees_the_frame():
    X = PANDAS.assign(city=["x", "y"])
    selector = make_column_selector(dtype_include=float)
    np.testing.assert_array_equal(Linear(columns=selector).prepare(X), ARRAY)


@pytest.mark.parametrize(
    ("columns", "X", "message"),
    [
        ("agee", PANDAS, r"linear on agee: X has no column 'agee', did you mean 'age'; .*age, bmi"),
        ("weight", POLARS, r"linear on weight: X has no column 'weight', check the spelling"),
        ("age", ARRAY, r"linear on age: column 'age' is given by name, but X has no column names"),
        (slice("age", "bmi"), ARRAY, r"column 'age' is given by name"),
        (3, ARRAY, r"linear on column 3: column position 3 is out of range, X has 3 columns"),
        (-4, PANDAS, r"column position -4 is out of range"),
        ([], ARRAY, r"linear on 0 columns \(\): no column is selected of the 3 X has"),
        (slice(5, 9), ARRAY, r"linear on columns 5:9: no column is selected"),
        ([False] * 3, ARRAY, r"no column is selected"),
        ([True, False], ARRAY, r"the mask has 2 entries, but X has 3 columns"),
        (lambda X: [], ARRAY, r"linear on columns by <lambda>: no column is selected"),
        (ncs.numeric(), ARRAY, r"linear on selected columns: a selector needs a data frame"),
        (None, np.empty((2, 0)), r"linear: no column is selected of the 0 X has"),
        (None, ARRAY[0], r"linear: X must have two dimensions .*, got 1"),
        (None, pd.Series([1.0]), r"linear: X must have two dimensions .*, got 1"),
        (None, 3.0, r"linear: X must have two dimensions .*, got 0"),
        (None, sp.coo_array(ARRAY[0]), r"linear: X must have two dimensions, got 1"),
        (None, [[1.0, 2.0], [3.0]], r"linear: X must be a table with rows of equal length"),
        (None, ARRAY + 1j, r"linear: X holds complex128 values where real numbers are needed"),
        (None, sp.csr_array(ARRAY + 1j), r"linear: X holds complex128 values"),
        (None, ARRAY.astype(str), r"linear: X holds <U\d+ values where real numbers are needed"),
        (None, [["a", 1.0]], r"linear: X holds objects that are not real numbers .*'a'"),
        (None, pd.DataFrame([[1, 2]], columns=["a", "a"]), r"two columns of the same name"),
    ],
)
def test_wrong_tables_and_columns(columns, X, message):
    with pytest.raises(InputError, match=message):
        Linear(columns=columns).prepare(X)


def test_lazy_frames_are_refused():
    with pytest.raises(InputTypeError, match="linear: X is a lazy frame; collect"):
        Linear().prepare(POLARS.lazy())


@pytest.mark.parametrize("columns", [1.5, True, {"a": 1}, {"a"}, b"age"])
def test_columns_of_a_wrong_type(columns):
    with pytest.raises(InputTypeError, match="RBF: columns must be names, positions"):
        RBF(columns=columns)


@pytest.mark.parametrize("columns", [[1, None], [0, True], [True, 0], [1.5], [["a"]]])
def test_column_items_of_a_wrong_type(columns):
    with pytest.raises(InputTypeError, match=r"RBF: columns must be .*, but item \d is"):
        RBF(columns=columns)


def test_callables_must_return_columns():
    with pytest.raises(InputTypeError, match="the columns callable must return columns"):
        Linear(columns=lambda X: upper).prepare(ARRAY)
    with pytest.raises(InputTypeError, match=r"what the callable returned.*columns must be"):
        Linear(columns=lambda X: 1.5).prepare(ARRAY)
    assert Linear(columns=lambda X: None).prepare(ARRAY) is ARRAY


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("read", "column"),
    [
        (np.array, "column 2"),
        (sp.csr_array, "column 2"),
        (lambda X: pd.DataFrame(X, columns=NAMES), "column 'dose'"),
        (lambda X: pl.DataFrame(X, schema=NAMES), "column 'dose'"),
    ],
)
def test_missing_and_infinite_values(read, column, bad):
    X = ARRAY.copy()
    X[1, 2] = bad
    with pytest.raises(InputError, match=rf"linear.*: {column} has a missing or inf.* in row 1;"):
        Linear(columns=[0, 2]).prepare(read(X))
    assert Linear(columns=[0, 1])(read(X))[0, 0] == 5.0  # other columns do not matter


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [True, False]}),
        pd.DataFrame({"a": pd.array([True, None], dtype="boolean"), "b": [1.5, 2.5]}),
        pl.DataFrame({"a": [1, None], "b": [True, False]}),
        pa.table({"a": [1, None], "b": [True, False]}),
        pl.DataFrame({"a": [True, None], "b": [True, False]}),
        np.array([[1.0, 2.0], [None, 3.0]], dtype=object),
    ],
)
def test_missing_values_of_nullable_types(X):
    with pytest.raises(
        InputError, match=r"column ('a'|0) has a missing or infinite value in row 1"
    ):
        Linear().prepare(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [True, False]}),
        pd.DataFrame({"a": [1, 2], "b": pd.array([True, False], dtype="boolean")}),
        pl.DataFrame({"a": [1, 2], "b": [True, False]}),
        pd.DataFrame({"a": [1, 2], "b": [True, False]}).convert_dtypes(dtype_backend="pyarrow"),
        pa.table({"a": [1, 2], "b": [True, False]}),
        pl.DataFrame({"a": [decimal.Decimal(1), decimal.Decimal(2)], "b": [True, False]}),
        np.array([[1, True], [2, False]], dtype=object),
        np.array([[1, 1], [2, 0]], dtype=np.float16),
        np.array([[1, 1], [2, 0]], dtype=np.longdouble),
        sp.csr_array(np.array([[1, 1], [2, 0]], dtype=np.int8)),
    ],
)
def test_number_types_become_float64(X):
    rows = Linear().prepare(X)
    assert rows.dtype == np.float64
    rows = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_array_equal(rows, [[1.0, 1.0], [2.0, 0.0]])


def test_a_number_beyond_float64_is_refused():
    with pytest.raises(InputError, match="column 0 has a missing or infinite value in row 0"):
        Linear().prepare(np.array([[1e308]], dtype=np.longdouble) * 100)


def test_text_columns_are_named():
    X = PANDAS.assign(city=["x", "y"], day=pd.to_datetime(["2020-01-01", "2020-01-02"]))
    with pytest.raises(InputError, match=r"linear: not numeric: city, day; .*Overlap"):
        Linear().prepare(X)
    with pytest.raises(InputError, match=r"on 2 columns \(city, age\): not numeric: city;"):
        Linear(columns=["city", "age"]).prepare(X)


def test_whole_number_column_names_are_positions():
    X = pd.DataFrame(ARRAY, columns=[2, 1, 0])
    np.testing.assert_array_equal(Linear(columns=0).prepare(X), ARRAY[:, [0]])
    assert read_table(X, "").keys([0, 2]) == (0, 2)
    with pytest.raises(InputError, match="X has no column '0', check the spelling"):
        Linear(columns="0").prepare(X)
