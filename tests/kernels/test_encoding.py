import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kernelweave.errors import InputError
from kernelweave.kernels.encoding import (
    CategoryEncoding,
    DateEncoding,
    NumberEncoding,
    TableEncoding,
)

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RANDOM.normal(10, 3, 40),
        "town": RANDOM.choice(["Ulm", "Bonn", "Kiel"], 40),
        "paid": RANDOM.random(40) < 0.5,
        "day": pd.date_range("2024-01-01", periods=40, freq="31h"),
        "unit": "kg",
        "name": [f"person {i}" for i in range(40)],
    }
)
FRAME.loc[3, "size"] = np.nan
FRAME.loc[5, "town"] = None


def columns_of(encoding, source):
    return [j for j, column in enumerate(encoding.columns) if column.source == source]


def test_kinds_of_columns():
    encoding = TableEncoding.learn(FRAME)
    kinds = dict(zip(encoding.keys, map(type, encoding.encodings), strict=True))
    assert kinds == {
        "size": NumberEncoding,
        "town": CategoryEncoding,
        "paid": CategoryEncoding,
        "day": DateEncoding,
    }  # the constant and the names are left out
    names = [column.name for column in encoding.columns]
    assert names[:6] == ["size", "size?", "town=Bonn", "town=Kiel", "town=Ulm", "town=(missing)"]
    groups = [column.group for column in encoding.columns]
    assert len({groups[j] for j in columns_of(encoding, "town")}) == 1
    assert groups[0] != groups[1]


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda f: pl.from_pandas(f).to_arrow()])
def test_frames_of_any_library_are_encoded_alike(convert):
    expected = TableEncoding.learn(FRAME).encode(FRAME)
    frame = convert(FRAME)
    np.testing.assert_array_equal(TableEncoding.learn(frame).encode(frame), expected)


@pytest.mark.filterwarnings("ignore:X. column")
def test_numbers_have_unit_spread_whatever_their_tails():
    X = np.column_stack([RANDOM.standard_cauchy(500) ** 3, RANDOM.normal(1e9, 1, 500)])
    encoded = TableEncoding.learn(X).encode(X)
    assert np.abs(encoded).max() <= 8
    np.testing.assert_allclose(encoded.std(axis=0), 1, atol=0.1)
    assert (np.diff(encoded[np.argsort(X[:, 0]), 0]) >= 0).all()


def test_shift_and_scale_of_a_column_change_nothing():
    X = RANDOM.normal(size=(60, 2))
    moved = 1e3 * X + 7
    first, second = (TableEncoding.learn(T).encode(T) for T in (X, moved))
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_a_column_constant_to_rounding_is_left_out():
    X = np.column_stack([np.full(30, 0.1), RANDOM.normal(size=30)])
    X[::2, 0] = 0.3 - 0.2  # differs in the last digit
    assert TableEncoding.learn(X).keys == (1,)


def test_gaps_are_the_median_with_an_indicator():
    X = np.array([[1.0], [2.0], [np.nan], [4.0], [np.inf], [9.0]])
    encoded = TableEncoding.learn(X).encode(X)
    middle = TableEncoding.learn(X).encode([[3.0]])  # median of 1, 2, 4, 9
    np.testing.assert_array_equal(encoded[[2, 4], 0], middle[0, 0])
    np.testing.assert_array_equal(encoded[:, 1], [0, 0, 1, 0, 1, 0])


def test_weights_count_like_repeated_rows():
    X = RANDOM.normal(size=(20, 1))
    weight = RANDOM.integers(1, 4, 20).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    weighted = TableEncoding.learn(X, sample_weight=weight).encode(X)
    np.testing.assert_allclose(weighted, TableEncoding.learn(repeated).encode(X), atol=1e-12)


def test_levels_that_training_did_not_have_match_none():
    encoding = TableEncoding.learn(FRAME[["town"]])
    new = pd.DataFrame({"town": ["Ulm", "Paris"]})
    with pytest.warns(
        UserWarning, match="1 values of column .* are levels that no training row had"
    ):
        encoded = encoding.encode(new)
    assert encoded[0].any()
    assert not encoded[1].any()


def test_names_of_levels_do_not_matter():
    renamed = FRAME[["town"]].replace({"Ulm": "A", "Bonn": "Z"})
    first = TableEncoding.learn(FRAME[["town"]]).encode(FRAME)
    second = TableEncoding.learn(renamed).encode(renamed)
    np.testing.assert_array_equal(first @ first.T, second @ second.T)


def test_dates_have_a_number_and_cycles():
    encoding = TableEncoding.learn(FRAME[["day"]])
    assert encoding.encodings[0].cycles == ("year", "week", "day")
    whole = TableEncoding.learn(pd.DataFrame({"day": pd.date_range("2024-01-01", periods=30)}))
    assert whole.encodings[0].cycles == ("year", "week")


MOMENTS = pd.date_range("2023-01-01", periods=60, freq="31h")


@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).to_arrow()]
)
@pytest.mark.parametrize(
    "values",
    [
        MOMENTS.tz_localize("Europe/Berlin"),  # the hours of its clock, not those of Greenwich
        pd.Series(list(MOMENTS), dtype=object),
        MOMENTS.astype("datetime64[s]"),
    ],
    ids=["zone", "objects", "seconds"],
)
def test_dates_of_any_kind_are_the_same(values, convert):
    expected = TableEncoding.learn(pd.DataFrame({"day": MOMENTS})).encode(
        pd.DataFrame({"day": MOMENTS})
    )
    frame = convert(pd.DataFrame({"day": values}))
    encoding = TableEncoding.learn(frame)
    assert type(encoding.encodings[0]) is DateEncoding
    np.testing.assert_array_equal(encoding.encode(frame), expected)


def test_gaps_of_dates_have_an_indicator_and_no_place_in_a_cycle():
    days = [moment.date() for moment in MOMENTS]
    days[4] = None
    frame = pd.DataFrame({"day": days})
    encoding = TableEncoding.learn(frame)
    encoded = encoding.encode(frame)
    names = [column.name for column in encoding.columns]
    assert names[:3] == ["day", "day?", "day: cos of the year"]
    assert encoded[:, 1].tolist() == [float(day is None) for day in days]
    assert not encoded[4, 2:].any()
    assert [column.group for column in encoding.columns] == [0, 1, 2, 2, 3, 3]
    alone = encoding.encode(pd.DataFrame({"day": [None]}))
    np.testing.assert_array_equal(alone[0], encoded[4])


def test_durations_are_numbers():
    steps = np.arange(60) % 9
    frame = pd.DataFrame({"stay": pd.to_timedelta(steps, unit="D")})
    expected = TableEncoding.learn(steps[:, None].astype(float)).encode(steps[:, None])
    for table in (frame, pl.from_pandas(frame), frame.to_numpy()):
        np.testing.assert_array_equal(TableEncoding.learn(table).encode(table), expected)


def test_bad_tables_get_a_sentence():
    with pytest.raises(InputError, match="no column to learn from"):
        TableEncoding.learn(FRAME[["unit", "name"]])
    with pytest.raises(InputError, match="sparse tables are not supported"):
        TableEncoding.learn(sp.eye_array(5).tocsr())
    encoding = TableEncoding.learn(FRAME[["size"]])
    with pytest.raises(InputError, match="column 'size' held numbers in training, but now 'large'"):
        encoding.encode(pd.DataFrame({"size": ["large", "small"]}))
    with pytest.raises(InputError, match="no column 'size'"):
        encoding.encode(FRAME[["town"]])
