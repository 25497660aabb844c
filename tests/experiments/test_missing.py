"""The comparison of ways to learn from sources that rows lack, on data small enough for a test."""

import json

import numpy as np
import pandas as pd
import pytest

from experiments import missing, missing_data, missing_fresh
from experiments.missing_data import Data, divide, punch
from kernelweave.errors import DataError


def two_moons():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    hidden = rng.normal(size=(80, 2)) + 1.5 * (y == "a")[:, None]
    sources = {"one": hidden, "two": hidden @ rng.normal(size=(2, 3))}
    return sources, y


def absent():
    raise DataError("it is not here")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    data = {
        "toy": Data("toy", two_moons, missing_data.JUDGEMENT),
        "gone": Data("gone", absent, missing_data.DEVELOPMENT),
    }
    monkeypatch.setattr(missing, "DATA", data)
    monkeypatch.setattr(missing_data, "DATA", data)
    monkeypatch.setattr(missing, "CONDITIONS", ((0.0, "random"), (0.5, "random")))


@pytest.mark.parametrize("how", ["random", "not random"])
def test_holes_have_the_share_asked_for_and_leave_each_row_a_source(how):
    sources = {str(k): np.random.default_rng(k).normal(size=(4000, 2)) for k in range(4)}
    for share in (0.0, 0.3, 0.7):
        gone = punch(sources, share, how, 1)
        assert not gone.all(axis=1).any()
        kept_back = share**4 / 4  # rows that would have nothing keep one source
        assert abs(gone.mean() - share) < 0.03 + kept_back
    gone = punch(sources, 0.5, "not random", 1)
    assert not np.array_equal(gone, punch(sources, 0.5, "random", 1))


def test_divisions_hold_holes_of_whole_sources():
    division = divide("toy", 0.5, "random", 0)
    for columns in division.sources.values():
        holes = np.isnan(division.X[:, columns])
        assert (holes.all(axis=1) == holes.any(axis=1)).all()
    assert division.train.sum() == 48


def test_results_are_kept_and_shown(tmp_path, capsys):
    options = ["--output", str(tmp_path), "--splits", "1"]
    assert missing.main(options) == 0
    assert "gone is left out: it is not here." in capsys.readouterr().err
    kept = json.loads((tmp_path / "missing.json").read_text())["records"]
    assert len(kept) == 2 * len(missing.METHODS)
    page = (tmp_path / "missing.md").read_text()
    assert "| 50% random | toy |" in page
    assert (tmp_path / "missing.png").read_bytes().startswith(b"\x89PNG")
    found = missing.accuracies(kept)
    mean, _ = missing.difference(kept, "complete", ("off",), [("toy", 0.5, "random")])
    expected = found["toy", 0.5, "random", "complete"][0] - found["toy", 0.5, "random", "off"][0]
    assert mean == pytest.approx(expected)


def test_nothing_to_report(tmp_path):
    assert missing.main(["--output", str(tmp_path), "--data", "gone"]) == 1


def test_sources_of_the_last_judgement_are_columns_by_name(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a_1": [1.0, 2.0], "b_1": [3.0, 4.0], "id": [0, 1], "a_2": [5.0, 6.0]})
    sources, y = missing_fresh._by_name(frame, ["x", "y"], {"a": "^a_", "b": ""}, ["id"])
    np.testing.assert_array_equal(sources["a"], [[1.0, 5.0], [2.0, 6.0]])
    np.testing.assert_array_equal(sources["b"], [[3.0], [4.0]])
    assert y.tolist() == ["x", "y"]
    path = tmp_path / "satimage.dat"
    path.write_text("@relation r\n@attribute a real\n@data\n1, 2, 3, red\n4, 5, 6, green\n")
    monkeypatch.setattr(missing_fresh, "of_package", lambda *_: path)
    sources, y = missing_fresh._keel("satimage", {"odd": [0, 2], "even": [1]})()
    np.testing.assert_array_equal(sources["odd"], [[1.0, 3.0], [4.0, 6.0]])
    assert y.tolist() == ["red", "green"]


def test_absent_packages_are_named():
    with pytest.raises(DataError, match="the package no-such-package is not installed"):
        missing_fresh.of_package("no-such-package", "x.csv")
    with pytest.raises(DataError, match="the package numpy has no file no-such-file"):
        missing_fresh.of_package("numpy", "no-such-file.csv")


def test_small_judgement_data_are_divided_more_often(monkeypatch):
    assert missing._n_splits("toy") == missing.N_SPLITS_SMALL
    monkeypatch.setattr(missing, "SMALL", 10)
    assert missing._n_splits("toy") == missing.N_SPLITS[missing_data.JUDGEMENT]


def test_axes_of_sensors_are_described():
    rng = np.random.default_rng(0)
    signals = [rng.normal(size=(50, 6)), rng.normal(size=(70, 6))]
    found = missing_fresh._sensors(signals)
    assert found["accelerometer"].shape == found["gyroscope"].shape == (2, 24)
    np.testing.assert_allclose(found["gyroscope"][1, :3], signals[1][:, 3:].mean(axis=0))
    np.testing.assert_allclose(found["accelerometer"][0, 3:6], signals[0][:, :3].std(axis=0))


def test_differences_are_over_divisions_that_both_have():
    base = {"data": "toy", "share": 0.5, "how": "random"}
    records = [
        {**base, "split": split, "method": method, "accuracy": accuracy}
        for method, scores in {"one": [80.0, 90.0, 40.0], "two": [70.0, 60.0]}.items()
        for split, accuracy in enumerate(scores)
    ]
    mean, _ = missing.difference(records, "one", ("two",), [("toy", 0.5, "random")])
    assert mean == 20.0
    assert np.isnan(missing.difference(records, "one", ("three",), [("toy", 0.5, "random")])[0])
