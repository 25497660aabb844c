"""Players, means over the background, the layout of pairs, and refusals."""

import numpy as np
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection.game import (
    Game,
    Players,
    attribute,
    layout,
    linked,
    listed_names,
    mean_and_error,
)

PLAYERS = Players(("blood", "age"), ((2, 0), (3,)))


def game_of(weights, n, correction=1.0):
    return Game(None, None, np.asarray(weights), n, correction, PLAYERS)


def test_owners_of_columns():
    assert len(PLAYERS) == 2
    np.testing.assert_array_equal(PLAYERS.owner(5), [0, -1, 0, 1, -1])


def test_merged_rows_count_as_often_as_they_occurred():
    values = np.array([1.0, 4.0, 4.0, 7.0])
    mean, error = mean_and_error(values, game_of(np.full(4, 0.25), 4))
    assert mean == pytest.approx(4.0)
    assert error == pytest.approx(values.std(ddof=1) / 2)
    merged = mean_and_error(np.array([1.0, 4.0, 7.0]), game_of([0.25, 0.5, 0.25], 4))
    np.testing.assert_allclose(merged, (mean, error))


def test_errors_of_a_drawn_background():
    parts, game = np.array([[0.0, 2.0]]), game_of([0.5, 0.5], 2, correction=0.5)
    assert mean_and_error(parts, game, axis=1)[1] == pytest.approx(0.5)
    assert mean_and_error(parts, game, axis=1, drawn=9)[1] == pytest.approx(1.0)
    mean, error = mean_and_error(np.array([3.0]), game_of([1.0], 1))
    assert mean == 3.0
    assert np.isnan(error)


def test_pairs_sum_to_values():
    random = np.random.default_rng(0)
    values, half = random.normal(size=(2, 3, 1)), random.normal(size=(2, 3, 3, 1))
    index = half + half.swapaxes(1, 2)
    index[:, range(3), range(3)] = 0.0
    found = layout(values, index.copy())
    np.testing.assert_allclose(found.sum(axis=2), values)
    np.testing.assert_allclose(found[:, 0, 1], index[:, 0, 1] / 2)


def test_unknown_terms():
    with pytest.raises(InputTypeError, match="model: dict cannot be explained"):
        attribute({}, game_of([1.0], 1))
    with pytest.raises(InputError, match="by: 'source' is not known for this model"):
        linked({}, game_of([1.0], 1))


def test_listed_names():
    assert listed_names(["a", "b", "c"]) == "a, b, c"
    assert listed_names(["a", "b", "c", "d"]) == "a, b, c, ..."
