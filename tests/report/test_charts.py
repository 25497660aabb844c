"""Maps of rows."""

import numpy as np

from kernelweave.report.charts import scatter
from kernelweave.report.clusters import draw_map


def test_groups_without_rows_have_no_name_on_the_map():
    points, codes = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]]), np.array([0, 2, 2])
    found = scatter(points, codes, ["a", "b", "c"], "label", "caption")
    assert [name for _, _, name in found.names] == ["a", "c"]
    assert [colour for _, _, colour in found.points] == [0, 2, 2]


def test_many_points_are_a_sample(monkeypatch):
    monkeypatch.setattr("kernelweave.report.clusters._MOST", 5)
    rng = np.random.default_rng(0)
    points, codes = rng.normal(size=(9, 3)), rng.integers(2, size=9)
    found = draw_map(points, codes, ["a", "b"], "A caption.")
    assert len(found.points) == 5
    assert found.caption == "A caption. 5 of 9 rows are drawn."
