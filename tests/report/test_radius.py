"""Learned widths on the page."""

from types import SimpleNamespace

import numpy as np

from kernelweave.report.radius import _widths


def test_columns_are_ordered_by_relevance():
    model = SimpleNamespace(feature_names_in_=np.array(["a", "b", "c"], dtype=object))
    table = _widths(model, np.array([4.0, 1.0, 2.0]))
    rows = [[cell.text for _, cell in row] for row in table.rows]
    assert rows == [["b", "1", "1.00"], ["c", "2", "0.50"], ["a", "4", "0.25"]]
