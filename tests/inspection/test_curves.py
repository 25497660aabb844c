"""Shape functions: found by name, one output of several, tables and text."""

import numpy as np
import pytest

from kernelweave.errors import InputError
from kernelweave.inspection import Curve, Effects, PairEffect

POINTS = np.array([0.0, 1.0])


def curve(name, values, band=None, kind="number", points=POINTS):
    values = np.asarray(values)
    return Curve(
        name, kind, points, values, 0.1 * values, np.stack([values] * 3), np.zeros(3), band
    )


def effects(**changes):
    """Return effects of two columns on two outputs."""
    first = curve("age", [[-1.0, 2.0], [1.0, -2.0]], np.zeros((2, 2, 2)))
    second = curve("iron", [[0.0, 1.0], [0.5, 1.0]], np.ones((2, 2, 2)))
    values = {
        "curves": (first, second),
        "pairs": (
            PairEffect(("age", "iron"), (POINTS, POINTS), np.ones((2, 2, 2)), np.array([0.1, 0.2])),
        ),
        "base": np.array([3.0, 4.0]),
        "variance": np.array([2.0, 0.0]),
        "first_order": np.array([[1.0, 0.0], [0.5, 0.0]]),
        "shapley": None,
        "total": np.array([[1.5, 0.0], [1.0, 0.0]]),
        "output_names": ("ill", "well"),
        "quantity": "decision",
        "n_background": 3,
        "additive": False,
        "exact": True,
    }
    return Effects(**(values | changes))


def test_curves_by_name_and_place():
    found = effects()
    assert found["iron"] is found[1] is found.curves[1]
    assert [one.name for one in found] == list(found.names) == ["age", "iron"]
    assert len(found) == 2
    with pytest.raises(InputError, match="column: must be 'age' or 'iron', got 'irn'"):
        found["irn"]


def test_one_output():
    one = effects()[..., "well"]
    assert one.output_names == ("well",)
    np.testing.assert_array_equal(one["age"].values, [2.0, -2.0])
    assert one["age"].ice.shape == (3, 2)
    assert one.pairs[0].share == 0.2
    assert (one.base, one.shapley) == (4.0, None)
    assert effects()[..., 0].base == 3.0
    with pytest.raises(InputError, match="output: must be 'ill' or 'well'"):
        effects()[..., "so"]


def test_shares_of_a_constant_output_are_zero():
    np.testing.assert_allclose(effects().main_share, [0.75, 0.0])
    frame = effects().shares()
    assert frame.query("output == 'ill'")["first_order"].tolist() == [0.5, 0.25]
    assert frame.query("output == 'well'")["total"].tolist() == [0.0, 0.0]
    assert frame["shapley"].isna().all()
    assert "output" not in effects()[..., 0].shares()


def test_tables_have_a_line_for_each_point():
    frame = effects().to_frame()
    assert len(frame) == 8
    line = frame.query("column == 'age' and value == 1 and output == 'well'").iloc[0]
    assert (line["effect"], line["low"]) == (-2.0, 0.0)
    assert line["error"] == pytest.approx(-0.2)


def test_places_of_dates_and_categories():
    dates = np.array(["1970-01-01", "1970-01-03"], dtype="datetime64[us]")
    np.testing.assert_array_equal(curve("d", POINTS, kind="date", points=dates).places, [0.0, 2.0])
    towns = np.array(["Ulm", None], dtype=object)
    np.testing.assert_array_equal(curve("t", POINTS, kind="category", points=towns).places, POINTS)


def test_text():
    lines = str(effects()).splitlines()
    assert lines[0] == "ill: decision, mean 3; shape functions, 75% of the variance"
    assert lines[1] == "   50.0%  age: -1 to +1"
    assert lines[3] == "   10.0%  age and iron together"
    assert "adds up exactly" in str(effects(additive=True))
    assert repr(effects()) == "<Effects of 2 columns, 1 pair, 2 outputs>"
