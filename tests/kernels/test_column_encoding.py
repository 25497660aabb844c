"""Encodings of one column: numbers, categories and dates."""

import dataclasses
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from encoding_frame import FRAME, RANDOM
from kernelweave.errors import InputError
from kernelweave.kernels.column_encoding import CategoryEncoding, DateEncoding, NumberEncoding
from kernelweave.kernels.encoding import TableEncoding


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


def test_levels_that_training_did_not_have_match_none():
    encoding = TableEncoding.learn(FRAME[["town"]])
    new = pd.DataFrame({"town": ["Ulm", "Paris"]})
    with pytest.warns(
        UserWarning, match="1 values of column .* are levels that no training row had"
    ):
        encoded = encoding.encode(new)
    assert encoded[0].any()
    assert not encoded[1].any()


@pytest.mark.parametrize(
    ("levels", "other"),
    [
        ([True, False, True, True], [1, 0, 1, 1]),
        ([True, False, True, True], [1.0, 0.0, 1.0, None]),
        ([True, False, True, True], ["true", "false", "TRUE", "True"]),
        ([3, 1, 2, 2], [3.0, 1.0, None, 2.0]),
        ([3, 1, 2, 2], ["3", "1", "2", "2"]),
        ([3.0, 1.0, 2.5, 2.5], [3, 1, None, 2.5]),
    ],
)
def test_levels_are_found_by_their_value_where_the_type_of_a_column_changed(levels, other):
    train = pd.DataFrame({"level": pd.Categorical(4 * levels), "x": RANDOM.normal(size=16)})
    encoding = TableEncoding.learn(train)
    assert any("level=" in column.name for column in encoding.columns)
    plain = encoding.encode(train)
    changed = encoding.encode(train.assign(level=pd.Series(4 * other)))
    known = [value is not None for value in 4 * other]
    np.testing.assert_array_equal(changed[known], plain[known])


@pytest.mark.parametrize("change", [bool, str, Decimal])
def test_numbers_are_read_from_other_types(change):
    train = pd.DataFrame({"x": [0.0, 1.0, 1.0, 0.0], "z": RANDOM.normal(size=4)})
    encoding = TableEncoding.learn(train)
    other = train.assign(x=pd.Series([change(value) for value in train["x"]], dtype=object))
    np.testing.assert_array_equal(encoding.encode(other), encoding.encode(train))
    with pytest.raises(InputError, match="column 'x' held numbers in training, but now 'low'"):
        encoding.encode(train.assign(x=["1", "low", None, "0"]))


def test_decimals_are_numbers():
    values = [0.25, 1.5, 0.125, 4.0]
    frames = [pd.DataFrame({"x": values}), pd.DataFrame({"x": [Decimal(v) for v in values]})]
    one, other = (TableEncoding.learn(frame).encode(frame) for frame in frames)
    np.testing.assert_array_equal(one, other)


def test_levels_that_are_one_number_are_not_found_by_it():
    encoding = CategoryEncoding(("01", "1.0", "2", "ten", "1_0"))
    values = np.array(["1", "2.0", "1.0", "10", "nan", None], dtype=object)
    assert encoding.codes(values).tolist() == [-1, 2, 1, -1, -1, -1]


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


NUMBER = NumberEncoding.learn(np.array([0.0, 1.0, 2.0, 5.0, np.nan]), np.ones(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0.0}, "numbers of an encoded column must be finite"),
        ({"mean": np.inf}, "numbers of an encoded column must be finite"),
        ({"deviation": 0.0}, "deviation of an encoded column must be positive"),
        ({"scores": np.full(4, np.nan)}, "scores of an encoded column must be finite"),
        ({"scores": np.zeros(3)}, "a score for each of its values"),
        ({"knots": NUMBER.knots[::-1].copy()}, "values of an encoded column must increase"),
        ({"gaps": 1}, "values of an encoded column must increase"),
    ],
)
def test_numbers_that_no_column_has(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(NUMBER, **change)


def test_columns_without_values_have_no_encoding():
    assert NumberEncoding.learn(np.full(3, np.nan), np.ones(3)) is None
    assert NumberEncoding.learn(np.array([1.0, 2.0]), np.zeros(2)) is None
    assert DateEncoding.learn(np.full(3, np.nan), np.ones(3)) is None


def test_levels_and_dates_that_no_column_has():
    for levels in ((), ("a", "a"), ("a", 1), ["a", "b"]):
        with pytest.raises(ValueError, match="must be different texts"):
            CategoryEncoding(levels)
    for number, cycles in ((None, ()), (NUMBER, ("month",)), (NUMBER, ["day"])):
        with pytest.raises(ValueError, match="dates is not complete"):
            DateEncoding(number, cycles)
