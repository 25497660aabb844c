"""Charts and tables of an evaluation, from plain values."""

from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave.report.curves import draw_curves, from_plain

NOTHING = {
    "reliability": None,
    "roc": [],
    "precision_recall": [],
    "residuals": None,
    "confusion": None,
    "classes": None,
    "class_scores": [],
    "coverage": [],
}
CURVE = {
    "label": "ill",
    "x": np.linspace(0, 1, 999),
    "y": np.linspace(0, 1, 999),
    "area": 0.75,
    "base": 0.3,
}


def drawn(**parts):
    return draw_curves(from_plain(NOTHING | parts))


def texts(table):
    return [[getattr(cell, "text", cell) for _, cell in row] for row in table.rows]


def test_plain_values_become_attributes():
    found = from_plain({"a": [{"b": 1}], "c": {0.5: 2}})
    assert found.a == (SimpleNamespace(b=1),)
    assert found.c == {0.5: 2}


def test_nothing_is_drawn_of_nothing():
    found = drawn()
    assert found["charts"] == []
    assert not any(found.values())


def test_bins_are_marks_and_the_error_is_judged():
    bins = {"label": None, "error": 0.05, "tolerated": 0.02}
    bins |= {name: np.array([0.2, 0.8]) for name in ("predicted", "observed", "low", "high")}
    (chart,) = drawn(reliability=bins)["charts"]
    assert [(mark.x, mark.y) for mark in chart.marks] == [(0.2, 0.2), (0.8, 0.8)]
    assert "off by 5.00% on average, more than the 2.00% that chance" in chart.caption
    (chart,) = drawn(reliability=bins | {"error": 0.01})["charts"]
    assert "as small as chance alone leaves it" in chart.caption


def test_rows_of_folds_are_said_to_be_ranked_together():
    found = from_plain(NOTHING | {"roc": [CURVE]})
    captions = [draw_curves(found, pooled=pooled)["charts"][0].caption for pooled in (False, True)]
    assert ["all folds" in caption for caption in captions] == [False, True]


def test_long_curves_are_thinned():
    one, several = drawn(roc=[CURVE])["charts"][0], drawn(roc=[CURVE] * 50)["charts"][0]
    assert len(one.line[0]) == 160
    assert (one.line[0][0], one.line[0][-1]) == (0.0, 1.0)
    assert one.faint == ()
    assert several.line is None
    assert [len(x) for x, _ in several.faint] == [50] * 40
    assert "the area under the curve is 0.750" in one.caption
    (chart,) = drawn(precision_recall=[CURVE])["charts"]
    np.testing.assert_array_equal(chart.reference[1], [0.3, 0.3])


def test_residuals_are_two_charts():
    actual, predicted = np.arange(600.0), np.arange(600.0) + 1.0
    part = {"actual": actual, "predicted": predicted, "quantiles": {0.05: -2.0, 0.95: 3.0}}
    both, errors = drawn(residuals=part)["charts"]
    assert "500 rows are drawn, at random" in both.caption
    np.testing.assert_array_equal(errors.cloud[1], -np.ones(500))
    assert "between -2 and 3" in errors.caption


def test_confusions_of_many_classes():
    counts = np.diag([5, 5, 5, 5])
    assert drawn(confusion=counts, classes=list("abcd"))["confusions"] is None
    counts[0, 1], counts[2, 3] = 1, 4
    found = drawn(confusion=counts, classes=list("abcd"))
    assert [line[:3] for line in texts(found["confusions"])] == [["c", "d", "4"], ["a", "b", "1"]]
    assert len(found["matrix"].cells) == 6
    few = drawn(confusion=counts[:2, :2], classes=["a", "b"])
    assert few["confusions"] is None
    assert few["matrix"] is not None
    assert drawn(confusion=np.eye(61), classes=list(range(61)))["matrix"] is None


def test_undefined_scores_are_a_dash():
    score = {"label": "ill", "n_rows": 0, "recall": np.nan, "precision": 0.5, "auc": np.nan}
    (line,) = texts(drawn(class_scores=[score])["classes"])
    assert line == ["ill", "0", "\u2013", "50.0%", "\u2013"]


@pytest.mark.parametrize(
    ("kind", "width"), [("interval", "no end"), ("set", "no end"), ("quantile", None)]
)
def test_coverage(kind, width):
    part = {
        "kind": kind,
        "asked": 0.9,
        "reached": 0.85,
        "low": 0.8,
        "high": 0.9,
        "size": np.inf,
        "beside": 4.0,
    }
    found = drawn(coverage=[part])
    (line,) = texts(found["coverage"])
    assert line[1:3] == ["85.0%", "80.0% to 90.0%"]
    assert line[3:] == ([] if width is None else [width, "4"])
    assert found["sets"] == (kind == "set")
