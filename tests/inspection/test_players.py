"""Groups that the caller names, and sources that names or kernels connect."""

import numpy as np
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection.game import Players
from kernelweave.inspection.players import grouped, sources

NAMES = ["age", "iron", "sugar", "town"]
SINGLE = Players(tuple(NAMES), ((0,), (1,), (2,), (3,)))


def test_columns_in_no_group_are_players():
    found = grouped({"blood": ["sugar", 1], "home": -1}, NAMES)
    assert found == Players(("blood", "home", "age"), ((2, 1), (3,), (0,)))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": ["iron"], "b": [1]}, "column 'iron' is in the groups 'a' and 'b'"),
        ({"age": ["iron"]}, "'age' is the name of a group and of a column in no group"),
        ({"a": []}, "group 'a' has no columns"),
        ({"a": [4]}, "group 'a' has column 4, but there are 4 columns"),
        ({"a": ["irn"]}, "Did you mean 'iron'"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(InputError, match=message):
        grouped(groups, NAMES)


def test_a_group_is_a_list():
    with pytest.raises(InputTypeError, match="group 'a' must be a list of columns, got set"):
        grouped({"a": {"iron"}}, NAMES)
    assert grouped({"a": np.array([1, 2])}, NAMES).columns[0] == (1, 2)


def test_sources_have_the_names_of_views():
    links = [("blood", frozenset({1})), ("home", frozenset({3})), ("blood", frozenset({2, 1}))]
    assert sources(SINGLE, links) == Players(("blood", "home", "age"), ((1, 2), (3,), (0,)))


def test_views_that_share_columns_are_connected():
    links = [("blood", frozenset({1, 2})), ("home", frozenset({2, 3})), ("rest", frozenset({0}))]
    assert sources(SINGLE, links) == Players(("rest", "iron, sugar, town"), ((0,), (1, 2, 3)))


def test_sources_keep_their_names_beside_columns_in_no_view():
    links = [("blood", frozenset({1, 2})), (None, frozenset({0})), (None, frozenset({3}))]
    assert sources(SINGLE, links) == Players(("age", "blood", "town"), ((0,), (1, 2), (3,)))


def test_kernels_connect_columns():
    links = [(None, frozenset({0, 3})), (None, frozenset({1})), (None, frozenset({3}))]
    assert sources(SINGLE, links) == Players(("age, town", "iron", "sugar"), ((0, 3), (1,), (2,)))


def test_one_source_is_refused():
    with pytest.raises(InputError, match="by: 'source' finds one source only"):
        sources(SINGLE, [(None, frozenset({0, 1})), (None, frozenset({1, 2, 3}))])
