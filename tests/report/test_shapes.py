"""Bars of importance and charts of shape functions."""

import numpy as np
import pytest

from kernelweave.report.charts import linear
from kernelweave.report.shapes import _dates, _with_error, draw_importance, draw_shape

AXIS = linear(-1.0, 1.0)


def test_bars_are_means_with_standard_errors():
    large, small = draw_importance(["b", "a"], [4.0, 2.0], [0.0, 1.0])
    assert (large.name, large.length, large.low, large.high) == ("b", 1.0, 1.0, 1.0)
    assert (small.name, small.length) == ("a", 0.5)
    assert (small.low, small.high) == pytest.approx((0.25, 0.75))
    assert small.text == "2.0 \u00b1 1.0"


def test_errors_of_nothing():
    (bar,) = draw_importance(["a"], [0.0], [0.0])
    assert (bar.length, bar.low, bar.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (12345.6, 123.0, "12,346 \u00b1 123"),
        (0.5, 0.012, "0.500 \u00b1 0.012"),
        (1e-9, 2e-10, "1e-09 \u00b1 2e-10"),
    ],
)
def test_digits_are_those_of_the_error(mean, error, text):
    assert _with_error(mean, error) == text


def test_a_curve_has_a_band_and_marks_of_rows():
    points, values = np.array([0.0, 5.0, 10.0]), np.array([-1.0, 0.0, 1.0])
    rows = np.array([-3.0, 2.0, 2.0, 7.0, np.nan, 11.0])
    chart = draw_shape("age", points, values, np.full(3, 0.1), AXIS, rows=rows, output="ill")
    assert chart.heading == "age, for ill"
    np.testing.assert_allclose(chart.band[1], values - 0.1)
    np.testing.assert_array_equal(chart.rug, [2.0, 7.0])
    assert (chart.x.low, chart.x.high) == (0.0, 10.0)
    assert chart.y is AXIS
    assert "from -1 to 1" in chart.label


def test_numbers_below_a_small_chart_do_not_touch():
    points = np.linspace(21, 204, 5)
    chart = draw_shape("age", points, points, np.zeros(5), AXIS)
    assert [text for _, text in chart.x.ticks] == ["50", "150"]


def test_categories_are_lines():
    values = np.linspace(-0.8, 0.8, 8)
    chart = draw_shape(
        "town",
        np.array(list("abcdefgh"), dtype=object),
        values,
        np.full(8, 0.1),
        AXIS,
        kind="category",
    )
    assert [item.name for item in chart.intervals] == list("abcdef")
    assert chart.intervals[0].low == pytest.approx(-0.9)
    assert chart.caption == "2 rarer values are not shown."
    assert 0.0 in [tick for tick, _ in chart.x.ticks]


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ("2001-03-01", "2023-01-01", "2001"),
        ("2020-11-05", "2021-03-20", "2020-11"),
        ("2020-01-30", "2020-02-03", "2020-01-30"),
    ],
)
def test_dates_are_years_months_or_days(first, last, text):
    low, high = (float(np.datetime64(day).astype(int)) for day in (first, last))
    ticks = _dates(low, high)
    assert ticks[0][1] == text
    assert len(ticks) <= 4
    days = np.array([tick for tick, _ in ticks])
    assert (np.diff(days) > 0).all()
    assert str(np.datetime64(int(days[-1]), "D")).startswith(ticks[-1][1])
