"""Gaps, dates and row numbers in `TablePreparer`, and in its files."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from kernelweave import MKLClassifier
from kernelweave.errors import InputError
from kernelweave.io import TablePreparer, load, save
from kernelweave.io.dates import FORMATS, find_format, read_dates
from model_files import changed, refused

FRAME = {
    "age": [20.0, None, 40.0, 90.0, float("inf")],
    "town": ["Ulm", None, "Bonn", "Ulm", "Bonn"],
    "born": ["01.01.2000", "02.07.2000", None, "01.01.2001", "31.12.1999"],
    "sick": [True, False, None, True, False],
}
DATES = {"born": "%d.%m.%Y"}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_fill(library):
    frame = library(FRAME)
    if library is pd.DataFrame:
        frame = frame.astype({"sick": "boolean", "town": "string"})
    table = TablePreparer(missing="fill", dates=DATES, standardize=False).fit(frame)
    assert table.numeric_.tolist() == [True, False, True, True]
    out = table.transform(frame)
    assert isinstance(out, library)
    assert list(out["age"]) == [20, 40, 40, 90, 40]  # the median of what is known
    assert list(out["town"]) == ["Ulm", "(missing)", "Bonn", "Ulm", "Bonn"]
    np.testing.assert_allclose(list(out["born"])[:2], [2000, 2000.5], atol=2e-3)
    assert np.isfinite(list(out["born"])).all()
    assert list(out["sick"]) == [1, 0, 0.5, 1, 0]
    scaled = TablePreparer(missing="fill", dates=DATES).fit_transform(frame)
    for name in ("age", "born", "sick"):
        values = np.array(list(scaled[name]))
        np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-9)


def test_keep():
    frame = pd.DataFrame(FRAME).astype({"sick": "boolean"})
    table = TablePreparer(missing="keep", dates=DATES, standardize=False).fit(frame)
    out = table.transform(frame)
    np.testing.assert_array_equal(out["age"], [20, np.nan, 40, 90, np.nan])
    assert out["town"].isna().tolist() == [False, True, False, False, False]
    assert out["sick"].dtype == "boolean"


def test_refuse():
    with pytest.raises(InputError, match="Values are missing"):
        TablePreparer().fit(pd.DataFrame(FRAME))
    with pytest.raises(InputError, match="missing: must be one of 'refuse'"):
        TablePreparer(missing="drop").fit(pd.DataFrame(FRAME))
    table = TablePreparer(missing="fill", dates=DATES).fit(pd.DataFrame(FRAME))
    with pytest.raises(InputError, match=r"'born' must hold dates such as '24.12.2024', but has"):
        table.transform(pd.DataFrame(FRAME | {"born": ["2000-01-01"] * 5}))


def test_columns_of_dates():
    days = pd.to_datetime(["2000-01-01", None, "2001-01-01"])
    frame = pd.DataFrame({"d": days, "z": pd.Series(days).dt.tz_localize("UTC")})
    table = TablePreparer(missing="fill", standardize=False)
    out = table.fit_transform(frame)
    np.testing.assert_allclose(out["d"], [2000, 2000.501, 2001.002], atol=2e-3)
    np.testing.assert_allclose(out["z"], out["d"])


def test_plain_columns_stay_as_they_are():
    frame = pd.DataFrame({"row": [5, 6, 7], "x": [1.0, 2.0, 9.0]})
    out = TablePreparer(plain=("row",)).fit_transform(frame)
    assert out["row"].tolist() == [5, 6, 7]
    assert abs(out["x"].mean()) < 1e-12


@pytest.mark.parametrize("form", FORMATS)
def test_formats_are_found(form):
    moments = [datetime.datetime(2021, 1 + i % 12, 13 + i % 15, 10, 30 + i, 7) for i in range(14)]
    moments = [moment.replace(tzinfo=datetime.UTC) for moment in moments]
    texts = [moment.strftime(form) for moment in moments]
    found = find_format(texts)
    years = read_dates("x", texts, found)
    np.testing.assert_allclose(years, read_dates("x", moments, None), atol=1.01 / 365)


@pytest.mark.parametrize("texts", [[], ["a"], ["12"], ["2024-01-01", "soon"], ["1.5", "2.5"]])
def test_what_is_no_date(texts):
    assert find_format(texts) is None


def test_files(tmp_path):
    """Everything is kept: formats, fillings, and which rows of the file were used."""
    frame = pd.DataFrame(FRAME).set_axis([3, 4, 6, 8, 9])
    y = pd.Series(list("abaab"), name="class")
    model = make_pipeline(TablePreparer(missing="fill", dates=DATES), MKLClassifier())
    model.fit(frame, y)
    path = save(model, tmp_path / "m.kw")
    again = load(path)
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert again[0].get_params() == model[0].get_params()
    assert again[0].rows_.tolist() == [3, 4, 6, 8, 9]
    for place, value, message in (
        ("preprocess/parameters/dict/1/1", "drop", "missing is 'drop'"),
        ("preprocess/parameters/dict/0/1", [1], "must have names"),
        ("preprocess/fitted/rows_", [1], "rows_ must be an array"),
        ("preprocess/fitted/fills_", None, "fills_ is a NoneType"),
    ):
        pairs = again[0].get_params()
        key = list(pairs)
        if "parameters" in place:
            wanted = "missing" if "drop" in message else "plain"
            place = f"preprocess/parameters/dict/{key.index(wanted)}/1"
        refused(tmp_path / "bad.kw", changed(path.read_bytes(), {place: value}), message)
