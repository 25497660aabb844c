"""The comparison of ways to learn from sources that rows lack, on data small enough for a test."""

import json

import numpy as np
import pytest

from experiments import missing, missing_data
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
