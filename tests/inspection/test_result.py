"""Attributions: slices, tables, text and shap."""

import sys

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, MKLClassifier
from kernelweave.inspection import Attributions, explain

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(RANDOM.standard_normal((60, 3)), columns=["age", "height", "weight"])
FRAME["town"] = np.where(RANDOM.random(60) > 0.5, "Ulm", "Bonn")
Y = np.digitize(FRAME["age"] * FRAME["height"], [-0.3, 0.3])
NAMES = np.array(["ill", "so", "well"])[Y]


@pytest.fixture(scope="module")
def three():
    model = MKLClassifier().fit(FRAME, NAMES)
    return explain(model, FRAME[:12], FRAME)


@pytest.fixture(scope="module")
def two():
    model = MKLClassifier([RBF(columns=["age", "height"])]).fit(FRAME, NAMES == "well")
    return explain(model, FRAME[:12], FRAME, interactions=True)


def test_slices(three, two):
    assert (len(three), len(two), three.is_row) == (12, 12, False)
    row = three[3]
    assert row.is_row
    assert row.values.shape == (4, 3)
    assert row.base_values.shape == (3,)
    assert np.array_equal(row.data, three.data[3])
    some = three[:5]
    assert some.values.shape == (5, 4, 3)
    well = three[..., "well"]
    assert np.array_equal(well.values, three.values[..., 2])
    assert well.output_names == ("well",)
    assert np.array_equal(three[3, "so"].values, three.values[3, :, 1])
    assert np.array_equal(three[[1, 2], 0].values, three.values[[1, 2], :, 0])
    assert two[3].values.shape == (4,)
    assert two[:2].interaction_values.shape == (2, 4, 4)
    assert np.array_equal(two[..., 0].values, two.values)


def test_slices_that_do_not_exist(three):
    with pytest.raises(ValueError, match="Did you mean 'well'"):
        three[..., "wel"]
    with pytest.raises(ValueError, match="there are 3 outputs, got 3"):
        three[..., 3]
    with pytest.raises(ValueError, match="rows and an output"):
        three[0, 1, 2]
    with pytest.raises(TypeError, match="no length"):
        len(three[0])
    with pytest.raises(TypeError, match="no rows to pick"):
        three[0][0]
    with pytest.raises(AttributeError):
        three.values = 0


def test_tables(three, two):
    frame = two.to_frame()
    assert list(frame.columns) == ["row", "prediction", "base", "age", "height", "weight", "town"]
    total = frame[["base", "age", "height", "weight", "town"]].sum(axis=1)
    assert np.allclose(total, frame["prediction"])
    assert len(three.to_frame()) == 36
    assert set(three.to_frame()["output"]) == {"ill", "so", "well"}
    assert len(two[0].to_frame()) == 1
    table = two.importance()
    assert list(table.columns) == ["name", "importance", "error"]
    assert table["importance"].is_monotonic_decreasing
    sizes = np.abs(two.values)
    row = table.set_index("name").loc["age"]
    assert row["importance"] == pytest.approx(sizes[:, 0].mean())
    of_rows, of_background = sizes[:, 0].var(ddof=1) / 12, (two.shared_errors[:, 0] ** 2).sum()
    assert row["error"] == pytest.approx(np.sqrt(of_rows + of_background))
    # The background's part is known for all rows together, and in every output.
    assert two[:12].mean_sizes()[1][0] == pytest.approx(np.sqrt(of_rows))
    means, errors = three.mean_sizes(all_outputs=True)
    whole = np.abs(three.values).mean(axis=2)
    assert np.allclose(means, whole.mean(axis=0))
    shared = (three.shared_errors.mean(axis=2) ** 2).sum(axis=0)
    assert np.allclose(errors**2, whole.var(axis=0, ddof=1) / 12 + shared)
    assert three.importance().columns[0] == "output"
    assert np.isnan(two[0].importance()["error"]).all()


def test_text(two, three):
    lines = str(two[3]).splitlines()
    assert lines[0].startswith("True: decision ")
    assert lines[0].endswith(f"average of 60 rows {two.base_values[0]:.3g}")
    assert any("height = " in line and "(se " in line for line in lines)
    assert two[3].text(top=1).splitlines()[-1].endswith("3 others")
    assert "mean size of the values of 12 rows, compared with 60 rows" in str(two)
    assert str(three[0]).count("decision") == 3
    assert repr(two) == "<Attributions of 12 rows, 4 players, 1 output>"
    assert "town = " in str(three[0])


def test_text_from_data_is_escaped():
    e = Attributions(
        np.zeros((1, 1)),
        np.zeros(1),
        np.array([["\x1b[31m"]], dtype=object),
        ("na\x07me",),
        ("out\x1b",),
    )
    assert "\x1b" not in str(e) + str(e[0])
    assert "\x07" not in str(e) + str(e[0])


def test_shap_draws_the_values(two, three):
    shap = pytest.importorskip("shap")
    import matplotlib

    matplotlib.use("Agg")
    found = two.to_shap()
    assert np.array_equal(found.values, two.values)
    shap.plots.beeswarm(found, show=False)
    shap.plots.waterfall(two[3].to_shap(), show=False)
    shap.plots.bar(three[..., "well"].to_shap(), show=False)


def test_without_shap(two, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="to_shap needs shap; install it with pip install shap"):
        two.to_shap()
