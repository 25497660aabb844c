"""The record of a fit: scores, curves of rows left out, and rows known again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import fit_table
from kernelweave.tables.measures import Values
from kernelweave.tables.recording import _curves, count_seen, hash_rows, measured_again, record_fit

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(RANDOM.normal(size=(90, 2)), columns=["a", "b"]).assign(
    town=RANDOM.choice(["Ulm", "Bonn"], 90)
)
FRAME["y"] = np.where(FRAME["a"] + (FRAME["town"] == "Ulm") > 0.5, "yes", "no")


@pytest.fixture(scope="module")
def fit():
    return fit_table(FRAME, "y", method="linear", seconds=1.0)


def test_what_was_compared_is_kept(fit):
    record = record_fit(fit, {"file": "rows.csv"})
    ranking = fit.choice.ranking
    assert [one.scores for one in record.models] == [item.scores for item in ranking]
    assert record.models[0].behind is None
    for one, item in zip(record.models, ranking, strict=True):
        assert one.name == (item.name if item.written else f"{item.name} (reference)")
    assert record.facts == {"file": "rows.csv", "method": "linear"}
    assert record.constant == fit.choice.constant
    assert record.remark.endswith("was then fitted to all 90 rows.")
    shown = record.evaluation
    assert shown["n_rows"] == shown["confusion"].sum() == len(fit.choice.rows)
    assert "thresholds" not in shown["roc"][0]


def test_warnings_are_sentences(fit):
    record = record_fit(replace(fit, warnings=("some rows are copies",)), {})
    assert record.warnings[-1] == "Some rows are copies."
    alone = record_fit(replace(fit, choice=None, left_out=None), {})
    assert alone.models == ()
    assert alone.evaluation is None


def test_rows_of_the_fit_are_known_again(fit):
    known = record_fit(fit, {}).row_hashes
    assert (np.diff(known) >= 0).all()
    X, y = FRAME[["a", "b", "town"]], FRAME["y"]
    assert count_seen(fit.model, known, X, y) == 90
    assert count_seen(fit.model, known, X[::-1], y[::-1]) == 90
    assert count_seen(fit.model, known, X[:10], np.where(y[:10] == "yes", "no", "yes")) == 0
    assert count_seen(fit.model, known, X.assign(a=X["a"] + 1e-3), y) == 0


def test_whole_numbers_are_equal_however_they_were_read(fit):
    X = FRAME[["a", "b", "town"]]
    whole = hash_rows(fit.model, X, np.arange(90))
    np.testing.assert_array_equal(whole, hash_rows(fit.model, X, np.arange(90.0)))
    assert len(np.unique(whole)) == 90


def test_many_residuals_are_a_sample():
    y = RANDOM.normal(size=700)
    kept = _curves(Values(y, y - 1.0))["residuals"]
    assert len(kept["rows"]) == 500
    np.testing.assert_array_equal(kept["actual"], y[kept["rows"]])
    assert kept["mean"] == pytest.approx(1.0)  # of all rows


def test_one_row_is_no_rows():
    assert measured_again(1) == "the model in the file was then fitted to all 1 row."
