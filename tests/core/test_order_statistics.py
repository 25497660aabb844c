"""Order statistics of sorted lists, each moved by a number of its own."""

import numpy as np
import pytest

from kernelweave import _core
from kernelweave._threads import threads

RANDOM = np.random.default_rng(0)


def draw(lengths, ties):
    lists = [np.sort(RANDOM.normal(size=n)) for n in lengths]
    values = np.concatenate(lists).round(1) if ties else np.concatenate(lists)
    weights = RANDOM.integers(0, 3, len(values)).astype(float)
    shifts = RANDOM.normal(size=(600, len(lengths))).round(1)
    return values, weights, np.cumsum(lengths), shifts


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("lengths", [[40], [1, 0, 7, 200], [30, 30, 30, 30, 30], [0, 3]])
def test_they_are_those_of_sorting(lengths, ties):
    values, weights, ends, shifts = draw(lengths, ties)
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    moved = shifts[:, list_of] + values
    order = np.argsort(moved, axis=1, kind="stable")
    sums = np.cumsum(weights[order], axis=1)
    for rank in (0.5, 0.3 * weights.sum(), weights.sum()):
        place = order[np.arange(600), (sums >= rank).argmax(axis=1)]
        found = _core.order_statistics(values, weights, ends, shifts, rank)
        np.testing.assert_array_equal(found, moved[np.arange(600), place])
        with threads(3):
            again = _core.order_statistics(values, weights, ends, shifts, rank)
        np.testing.assert_array_equal(found, again)
    beyond = _core.order_statistics(values, weights, ends, shifts, weights.sum() + 1.0)
    assert np.isinf(beyond).all()


def test_numbers_that_are_none_end_the_search():
    found = _core.order_statistics(
        np.zeros(4), np.ones(4), np.array([2, 4]), np.full((1, 2), np.nan), 1.0
    )
    assert np.isinf(found).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.ones(3)}, "one entry per value"),
        ({"weights": -np.ones(4)}, "not negative"),
        ({"ends": np.array([2, 3])}, "last list"),
        ({"ends": np.array([4, 2, 4])}, "decrease"),
        ({"ends": np.array([9, 4])}, "range"),
        ({"shifts": np.zeros((1, 3))}, "one column per list"),
        ({"rank": 0.0}, "rank"),
    ],
)
def test_bad_input(changes, message):
    good = {
        "values": np.zeros(4),
        "weights": np.ones(4),
        "ends": np.array([2, 4]),
        "shifts": np.zeros((1, 2)),
        "rank": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        _core.order_statistics(**(good | changes))
