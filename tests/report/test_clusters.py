"""Maps of rows."""

import numpy as np

from kernelweave.report import clusters
from kernelweave.report.clusters import draw_map


def test_few_of_many_rows_are_drawn_and_that_is_said(monkeypatch):
    points, codes = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    every = draw_map(points, codes, ["a", "b"], "Rows.")
    assert every.caption == "Rows."
    monkeypatch.setattr(clusters, "_MOST", 20)
    some = draw_map(points, codes, ["a", "b"], "Rows.")
    assert some.caption == "Rows. 20 of 50 rows are drawn."
    assert "20 rows in 2 groups" in some.label
