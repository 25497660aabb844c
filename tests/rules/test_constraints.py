"""Constraints on rules: names and positions of columns, directions, strongest columns."""

import numpy as np
import pytest

from kernelweave.errors import InputError
from kernelweave.rules import Proposition
from kernelweave.rules.constraints import (
    find_column,
    find_columns,
    proposition_signs,
    read_directions,
    strongest_columns,
)

AGE = [Proposition("age", 0, op, 30.0) for op in ("<=", ">")]
CITY = [Proposition("city", 1, "==", "rome"), Proposition("city", 1, "!=", "rome")]
NAMES = ["age", "city"]


def test_columns_by_name_and_position():
    assert find_column("city", NAMES, 2, "forbidden") == 1
    assert find_columns(["age", 1], NAMES, 2, "forbidden") == {0, 1}
    assert find_columns(None, NAMES, 2, "forbidden") == set()
    assert find_columns(np.array([1]), None, 2, "forbidden") == {1}


@pytest.mark.parametrize("item", ["town", 2, -1, 1.5, True])
def test_unknown_columns(item):
    with pytest.raises(InputError, match=r"required: must hold names of columns .* got"):
        find_columns([item], NAMES, 2, "required")
    with pytest.raises(InputError, match="required: must hold positions below 2"):
        find_columns([item], None, 2, "required")


def test_one_name_is_not_a_list():
    with pytest.raises(InputError, match="must be a list of columns, got the text 'age'"):
        find_columns("age", NAMES, 2, "forbidden")


def test_directions_and_signs():
    assert read_directions({"age": -1, 1: 0}, NAMES, 2) == {0: -1}
    assert read_directions(None, NAMES, 2) == {}
    assert proposition_signs([*AGE, *CITY], {0: 1}).tolist() == [-1, 1, 0, 0]
    assert proposition_signs([*AGE, *CITY], {0: -1}).tolist() == [1, -1, 0, 0]
    assert proposition_signs(AGE, {}) is None


@pytest.mark.parametrize("direction", [2, True, "up", 0.5])
def test_bad_directions(direction):
    with pytest.raises(InputError, match="monotone: the direction of 'age' must be 1"):
        read_directions({"age": direction}, NAMES, 2)


def test_categories_have_no_direction():
    with pytest.raises(InputError, match="monotone: 'city' has categories without an order"):
        proposition_signs([*AGE, *CITY], {1: 1})


def test_strongest_columns():
    rules = [AGE[:1], CITY[:1], [AGE[1], CITY[1]]]
    assert strongest_columns(rules, [1.0, 2.0, 0.5], 1) == {1}
    assert strongest_columns(rules, [1.0, 2.0, 0.5], 5) == {0, 1}
    assert strongest_columns([], [], 3) == set()
