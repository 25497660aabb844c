"""Statements about one column: truth, missing values, text, refusals."""

import dataclasses
import decimal
import enum
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import Proposition

SIZES = ("small", "medium", "large")
NUMBERS = [1, 2.5, None, 3, float("nan")]
WORDS = ["red", "blue", None, "green", float("nan")]


def columns(values, **types):
    """Return the same column in every form that may hold it."""
    plain = [None if isinstance(v, float) and v != v else v for v in values]
    return {
        "list": values,
        "object array": np.array(values, dtype=object),
        "pandas object": pd.Series(values, dtype=object),
        "polars": pl.Series(plain, dtype=types.get("polars")),
        "pandas": pd.Series(plain, dtype=types.get("pandas")),
    }


def truth(operator, value, column, **more):
    return Proposition("x", 0, operator, value, **more).holds(column).tolist()


@pytest.mark.parametrize("form", columns([]))
def test_numbers(form):
    column = columns(NUMBERS, pandas="Float64", polars=pl.Float64)[form]
    assert truth("<=", 2.5, column) == [True, True, False, False, False]
    assert truth(">", 2.5, column) == [False, False, False, True, False]
    assert truth("==", 3, column) == [False, False, False, True, False]
    assert truth("!=", 3, column) == [True, True, False, False, False]


@pytest.mark.parametrize("form", [*columns([]), "category", "polars category", "polars enum"])
def test_words(form):
    known = ["red", "blue", None, "green", None]
    column = {
        **columns(WORDS, pandas="str", polars=pl.String),
        "category": pd.Series(pd.Categorical(known)),
        "polars category": pl.Series(known, dtype=pl.Categorical),
        "polars enum": pl.Series(known, dtype=pl.Enum(["green", "blue", "red"])),
    }[form]
    assert truth("==", "red", column) == [True, False, False, False, False]
    assert truth("!=", "red", column) == [False, True, False, True, False]
    # A value the column does not have: nothing is equal, all that is known is different.
    assert truth("==", "pink", column) == [False] * 5
    assert truth("!=", "pink", column) == [True, True, False, True, False]


@pytest.mark.parametrize("form", columns([]))
def test_truth_values(form):
    column = columns([True, False, None], pandas="boolean", polars=pl.Boolean)[form]
    assert truth("==", True, column) == [True, False, False]
    assert truth("==", False, column) == [False, True, False]
    assert truth("!=", True, column) == [False, True, False]


def test_truth_values_as_zero_and_one():
    assert truth("==", True, [1, 0, 1]) == [True, False, True]
    assert truth("==", False, np.array([1.0, 0.0, np.nan])) == [False, True, False]


def test_order():
    values = ["large", "small", None, "medium", "huge"]
    assert truth("<=", "medium", values, levels=SIZES) == [False, True, False, True, False]
    assert truth(">", "medium", values, levels=SIZES) == [True, False, False, False, False]
    typed = pd.Series(pd.Categorical(values, (*SIZES, "huge"), ordered=True))
    assert truth(">", "small", typed, levels=SIZES) == [True, False, False, True, False]
    assert truth(">", "small", [None, "small"], levels=SIZES) == [False, False]


def test_types_of_numpy_and_decimals():
    assert truth("<=", 2.5, np.array([1, 3], dtype=np.uint8)) == [True, False]
    assert truth("<=", 0.1, np.array([0.1], dtype=np.float32)) == [False]
    assert truth("<=", 0.5, [decimal.Decimal("0.25"), decimal.Decimal("NaN")]) == [True, False]
    assert truth("==", "a", np.array(["a", "b"])) == [True, False]
    assert truth("==", 2**60 + 1, np.array([2**60, 2**60 + 1])) == [False, True]
    assert truth("==", 1, []) == []
    assert truth("<=", 1, []) == []


@pytest.mark.parametrize(
    ("operator", "value", "text"),
    [
        ("<=", 41.5, "x <= 41.5"),
        (">", 3.0, "x > 3"),
        (">", 1e300, "x > 1e+300"),
        ("<=", -0.1, "x <= -0.1"),
        ("==", "red", "x == red"),
        ("!=", ">50_1", "x != >50_1"),
        ("==", "light red", "x == 'light red'"),
        ("==", "", "x == ''"),
        ("==", "it's", 'x == "it\'s"'),
        ("==", "a\nb", r"x == 'a\nb'"),
        ("==", 4, "x == 4"),
        ("==", True, "x"),
        ("==", False, "not x"),
        ("!=", True, "not x"),
        ("!=", False, "x"),
    ],
)
def test_text(operator, value, text):
    proposition = Proposition("x", 0, operator, value)
    assert proposition.text == str(proposition) == text


def test_text_of_an_order():
    assert str(Proposition("size", 0, "<=", "medium", SIZES)) == "size <= medium"


def test_a_value_is_plain_and_frozen():
    class Colour(enum.StrEnum):
        RED = "red"

    class Old(str, enum.Enum):  # noqa: UP042
        RED = "red"

    for value in (Colour.RED, Old.RED, np.str_("red")):
        assert type(Proposition("x", 0, "==", value).value) is str
        assert repr(Proposition("x", 0, "==", value).value) == "'red'"
    made = Proposition(np.str_("x"), np.int64(3), "<=", np.float64(2.0))
    assert (type(made.feature), type(made.position), type(made.value)) == (str, int, float)
    assert made == Proposition("x", 3, "<=", 2.0)
    assert hash(made) == hash(Proposition("x", 3, "<=", 2.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.value = 1


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((3, 3, "<=", 1), InputTypeError, "feature must be the name .* called 'column 3'"),
        (("x", -1, "<=", 1), InputError, "position must be a whole number >= 0, got -1"),
        (("x", True, "<=", 1), InputError, "position must be a whole number >= 0, got True"),
        (("x", 0, "<", 1), InputError, "operator must be one of <=, >, ==, !=, got '<'"),
        (("x", 0, "<=", float("nan")), InputError, "value must be finite, got nan"),
        (("x", 0, "==", float("inf")), InputError, "value must be finite, got inf"),
        (("x", 0, "<=", "red"), InputTypeError, "value must be a number .* give levels"),
        (("x", 0, ">", True), InputTypeError, "value must be a number where the operator is >"),
        (("x", 0, "==", None), InputTypeError, "a truth value or text, got None"),
        (("x", 0, "==", [1]), InputTypeError, r"a truth value or text, got \[1\]"),
        (("x", 0, "<=", "huge", SIZES), InputError, "'small', 'medium', .* got <= 'huge'"),
        (("x", 0, ">", "large", SIZES), InputError, "one of levels but the last"),
        (("x", 0, "==", "small", SIZES), InputError, "operator <= or > where levels are given"),
    ],
)
def test_bad_propositions(arguments, error, match):
    with pytest.raises(error, match=match):
        Proposition(*arguments)


@pytest.mark.parametrize(
    ("value", "column", "error", "match"),
    [
        (1.5, ["a"], InputError, "'x' must hold numbers, as it did in fit, but has 'a'"),
        (1.5, pl.Series(["a"]), InputError, "'x' must hold numbers"),
        (1.5, [1, float("inf")], InputError, "'x' is infinite in row 1. Hint"),
        (1.5, [[1], [2]], InputError, "'x' must be one column, got 2 dimensions"),
        (1.5, np.array(["2020"], dtype="M8[D]"), InputTypeError, r"datetime64\[D\] values"),
        (1.5, pd.Series(pd.to_datetime(["2020"])), InputTypeError, "Datetime.* days since"),
        (1.5, np.array([1j]), InputTypeError, "complex128 values"),
        ("1", [1, 2], InputError, "hold text such as '1', as it did in fit, but has numbers"),
        (1, ["1", "2"], InputError, "hold numbers such as 1, .* but has text such as '1'"),
        ("a", [["a"], "b"], InputTypeError, "cannot be compared, such as lists"),
        ("a", pd.Series([pd.Timestamp("2020"), "b"], dtype=object), InputTypeError, "Timestamp"),
    ],
)
def test_bad_columns(value, column, error, match):
    if isinstance(column, list) and isinstance(column[0], list) and value == "a":
        column = pd.Series(column)
    operator = "<=" if isinstance(value, float) else "=="
    with pytest.raises(error, match=match):
        Proposition("x", 0, operator, value).holds(column)


def test_intervals_get_a_hint():
    column = pd.Series(pd.cut([1, 5, 9], [0, 3, 6, 10]))
    with pytest.raises(InputTypeError, match=r"Interval values.*rename_categories\(str\)"):
        Proposition("x", 0, "==", "a").holds(column)
    named = column.cat.rename_categories(str)
    assert Proposition("x", 0, "==", "(0, 3]").holds(named).tolist() == [True, False, False]


def test_levels_and_ranges_belong_to_thresholds():
    red = Proposition("colour", 0, "==", "red")
    low = Proposition("age", 1, ">", 3)
    assert red.allowed == ()
    assert not red.is_range_with(low)
    assert not low.is_range_with(Proposition("height", 2, "<=", 5))
    assert low.is_range_with(Proposition("age", 1, "<=", 5))


def test_fractions_are_numbers():
    assert Proposition("age", 0, "<=", fractions.Fraction(1, 2)).value == 0.5
