"""Columns of a table, as the page describes them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from kernelweave import KernelSpectralClustering
from kernelweave.report import to_html
from kernelweave.report.data import describe_columns

FRAME = pd.DataFrame(
    {
        "number": [1.0, np.nan, 3.0],
        "text": ["a", "b", "b"],
        "truth": pd.array([True, None, False], dtype="boolean"),
        "empty": [None, None, None],
        "no number": [np.nan] * 3,
        "mixed": pd.Series([1, None, 2.5], dtype=object),
    }
)


def shown(row):
    """Return the cells of a row as text."""
    return [cell if isinstance(cell, str) else cell.text for cell in row]


def test_columns_of_a_frame():
    assert [shown(row) for row in describe_columns(FRAME, list(FRAME.columns))] == [
        ["number", "number", "1", "2", "1 to 3, median 2"],
        ["text", "text", "0", "2", "mostly b (66.7%)"],
        ["truth", "true or false", "1", "2", "true in 50.0%"],
        ["empty", "empty", "3", "0", ""],
        ["no number", "number", "3", "0", ""],
        ["mixed", "number", "1", "2", "1 to 2.5, median 1.75"],
    ]


@pytest.mark.parametrize("names", [["a", "b"], ["a"]])
def test_columns_of_an_array(names):
    rows = describe_columns(np.array([[1, 2], [3, 2]]), names)
    first = names[0] if len(names) == 2 else "column 0"
    assert shown(rows[0]) == [first, "number", "0", "2", "1 to 3, median 2"]
    text = describe_columns(np.array([["u", "v"]], dtype=object), ["a", "b"])
    assert shown(text[1]) == ["b", "text", "0", "1", "mostly v (100.0%)"]


def test_sparse_tables_have_a_density():
    assert describe_columns(csr_array(np.eye(3)), ["a", "b", "c"]) is None


def test_ready_matrices_have_no_columns():
    X = np.random.default_rng(0).normal(size=(20, 2))
    K = X @ X.T
    model = KernelSpectralClustering(2, affinity="precomputed", random_state=0).fit(np.exp(K))
    assert describe_columns(K, None) == []
    assert "The columns are those of a precomputed kernel." in to_html(model, np.exp(K))
