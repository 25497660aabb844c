"""Rules: text, truth, scores and explanations."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import (
    Proposition,
    Rule,
    describe,
    score_rules,
)
from kernelweave.rules.rule import essential

SIZES = ("S", "M", "L", "XL")


def x(operator, value):
    return Proposition("x", 0, operator, value)


def colour(operator, value):
    return Proposition("colour", 1, operator, value)


def size(operator, value):
    return Proposition("size", 2, operator, value, SIZES)


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([], "always"),
        ([x("<=", 5)], "x <= 5"),
        ([x(">", 2), x("<=", 5)], "2 < x <= 5"),
        ([x("<=", 5), x(">", 2)], "2 < x <= 5"),
        ([x(">", 2), x(">", 3)], "x > 3"),
        ([x("<=", 2), x("<=", 3)], "x <= 2"),
        ([x(">", 2), x("<=", 7), x(">", 3), x("<=", 5)], "3 < x <= 5"),
        ([x(">", 5), x("<=", 2)], "x > 5 and x <= 2"),
        ([x(">", 5), x("<=", 5)], "x > 5 and x <= 5"),
        ([x(">", 2), colour("==", "red"), x("<=", 5)], "2 < x <= 5 and colour == red"),
        ([colour("==", "red"), colour("!=", "blue")], "colour == red"),
        ([colour("!=", "green"), colour("!=", "blue")], "colour != green and colour != blue"),
        ([colour("==", "red"), colour("==", "blue")], "colour == red and colour == blue"),
        ([colour("==", "red"), colour("!=", "red")], "colour == red and colour != red"),
        ([size(">", "S"), size("<=", "L")], "S < size <= L"),
        ([size(">", "S"), size(">", "M")], "size > M"),
        ([colour("==", "red"), colour("==", "red")], "colour == red"),
        (
            [Proposition("old", 0, "==", True), Proposition("ill", 1, "==", False)],
            "old and not ill",
        ),
    ],
)
def test_text(conditions, text):
    rule = Rule(tuple(conditions), 1.0, 0.5)
    assert rule.text == str(rule) == describe(conditions) == text
    assert rule.length == len(conditions)
    assert rule.conditions == tuple(conditions)


conditions = st.lists(
    st.one_of(
        st.builds(x, st.sampled_from(["<=", ">"]), st.integers(0, 4)),
        st.builds(colour, st.sampled_from(["==", "!="]), st.sampled_from("abc")),
        st.builds(size, st.sampled_from(["<=", ">"]), st.sampled_from(SIZES[:-1])),
    ),
    max_size=6,
)
EVERYTHING = pd.DataFrame(
    [
        (a, b, c)
        for a in [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, np.nan]
        for b in ["a", "b", "c", "d", None]
        for c in ["S", "M", "L", "XL", "?", None]
    ],
    columns=["x", "colour", "size"],
)


@given(conditions)
def test_what_is_left_out_of_the_text_is_implied(conditions):
    whole = Rule(tuple(conditions), 1.0, 0.5).holds(EVERYTHING)
    short = Rule(essential(conditions), 1.0, 0.5).holds(EVERYTHING)
    np.testing.assert_array_equal(whole, short)


class TestHolds:
    rule = Rule((x(">", 2), colour("!=", "red")), 0.5, 0.25)
    rows = ([1, "red"], [3, "blue"], [3, "red"], [None, "blue"], [3, None])
    expected = (False, True, False, False, False)

    def test_columns_of_frames_are_found_by_name(self):
        frame = pd.DataFrame(self.rows, columns=["x", "colour"])[["colour", "x"]]
        assert self.rule.holds(frame).tolist() == list(self.expected)
        assert self.rule.holds(pl.from_pandas(frame)).tolist() == list(self.expected)

    def test_columns_of_arrays_are_found_by_position(self):
        assert self.rule.holds(list(self.rows)).tolist() == list(self.expected)
        assert self.rule.holds(np.array(self.rows, dtype=object)).tolist() == list(self.expected)

    def test_frames_whose_names_are_numbers(self):
        rule = Rule((Proposition("column 1", 1, "<=", 2),), 1.0, 0.5)
        assert rule.holds(pd.DataFrame([[0, 1], [0, 3]])).tolist() == [True, False]

    def test_no_conditions(self):
        assert Rule((), 1.0, 1.0).holds(np.zeros((3, 1))).all()

    def test_a_missing_column_is_named(self):
        with pytest.raises(InputError, match=r"'x' is needed, but the columns are \['y'\]. Hint"):
            self.rule.holds(pd.DataFrame({"y": [1]}))
        with pytest.raises(InputError, match="column 1 is needed, but there are only 1 columns"):
            self.rule.holds([[3]])


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "error", "match"),
        [
            ((("x > 2",), 1.0, 0.5), InputTypeError, "item 0 is 'x > 2'"),
            (((), float("nan"), 0.5), InputError, "weight must be a finite number, got nan"),
            (((), "1", 0.5), InputTypeError, "weight must be a finite number, got '1'"),
            (((), None, 0.5), InputTypeError, "weight must be a finite number, got None"),
            (((), (1.0, True), 0.5), InputTypeError, "weight must be a finite number, got True"),
            (((), 1.0, 1.5), InputError, "coverage must be a share from 0 to 1, got 1.5"),
            (((), 1.0, float("inf")), InputError, "coverage must be a finite number"),
        ],
    )
    def test_rules(self, arguments, error, match):
        with pytest.raises(error, match=match):
            Rule(*arguments)

    def test_scores(self):
        rules = [Rule((), 1.0, 1.0), Rule((), (1.0, 2.0), 1.0)]
        with pytest.raises(InputError, match=r"as many weights .* 1, but rule 1 has 2"):
            score_rules(rules, 0.0, [[1]])
        with pytest.raises(InputError, match="intercept must be a finite number, got nan"):
            score_rules([], np.nan, [[1]])
        with pytest.raises(InputError, match=r"intercept must be a number, .* got none"):
            score_rules([], [], [[1]])
        with pytest.raises(InputError, match="expected a 2D array, got a 1D"):
            score_rules([], 0.0, [1])

    def test_weights_become_plain(self):
        rule = Rule((), np.array([1.0, 2.0]), np.float64(0.5))
        assert repr(rule.weight) == "(1.0, 2.0)"
        assert rule.weights == (1.0, 2.0)
        assert Rule((), np.float32(0.5), 1).weights == (0.5,)
