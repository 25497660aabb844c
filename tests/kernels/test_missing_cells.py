"""Cells without a value in columns of any type."""

import numpy as np
import pandas as pd
import pytest

from gap_cases import mixed_frame
from kernelweave._validation import unmasked
from kernelweave.kernels.missing_cells import missing_rows
from kernelweave.kernels.table import read_table


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, np.nan]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([1, None], dtype=object),
        np.array(["a", float("nan")], dtype=object),
        np.array([1, pd.NA], dtype=object),
        np.array([1, pd.NaT], dtype=object),
    ],
)
def test_the_second_is_missing(column):
    assert missing_rows(column).tolist() == [1]


def test_whole_numbers_and_text_have_no_gaps():
    assert not len(missing_rows(np.array([1, 2])))
    assert not len(missing_rows(np.array(["nan", ""])))
    assert missing_rows(np.array([float("nan"), 1.0, float("nan")], dtype=object)).tolist() == [
        0,
        2,
    ]


def test_masked_entries_are_missing():
    mask = [[True, False]]
    np.testing.assert_array_equal(unmasked(np.ma.array([[1, 2]], mask=mask)), [[np.nan, 2.0]])
    assert unmasked(np.ma.array([["a", "b"]], mask=mask)).tolist() == [[None, "b"]]
    whole = np.ma.array([[1, 2]])
    assert unmasked(whole).dtype == whole.dtype


def test_known_cells_of_a_frame():
    known = read_table(mixed_frame(), "X").known(None, "X")
    np.testing.assert_array_equal(known, [[True] * 4, [False] * 4, [True] * 4, [True] * 4])
