"""Cuts part the values they stand between, whatever the floats."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.rules.cuts import count_values, cut_between, cut_values

finite = st.floats(allow_nan=False, allow_infinity=False)


def place_cuts(numbers, n_cuts, strategy):
    return cut_values(*count_values(numbers, None), n_cuts, strategy)


@given(finite, finite)
def test_a_cut_parts_its_neighbours(a, b):
    low, high = sorted((a, b))
    if low == high:
        return
    cut = cut_between(low, high)
    assert low <= cut < high
    if math.nextafter(low, math.inf) < high:
        assert low < cut
        gap = high / 2 - low / 2  # half of it: the whole may overflow
        assert abs(cut / 2 - (low / 4 + high / 4)) <= 0.01 * gap + 5e-324


@given(st.floats(-1e300, 1e300))
def test_neighbouring_floats_are_parted(low):
    high = math.nextafter(low, math.inf)
    assert low <= cut_between(low, high) < high
    middle = cut_between(low, math.nextafter(high, math.inf))
    assert middle == high


@pytest.mark.parametrize(
    ("low", "high", "cut"),
    [
        (41, 42, 41.5),
        (0.1, 0.2, 0.15),
        (1, 2.5, 1.75),
        (-1.0, 1.0, 0.0),
        (0, 1000, 500),
        (1.0, math.nextafter(1.0, 2), 1.0),
        (0.0, 5e-324, 0.0),
        (-1.7e308, 1.7e308, 0.0),
    ],
)
def test_cuts_are_short_and_in_the_middle(low, high, cut):
    assert cut_between(low, high) == cut


@given(
    st.lists(st.one_of(finite, st.just(math.nan), st.integers(-3, 3).map(float)), max_size=40),
    st.integers(1, 6),
    st.sampled_from(["quantile", "uniform"]),
)
def test_as_many_cuts_as_promised_and_all_of_them_differ(values, n_cuts, strategy):
    numbers = np.array(values, dtype=float)
    distinct = np.unique(numbers[~np.isnan(numbers)])
    cuts = place_cuts(numbers, n_cuts, strategy)
    assert len(cuts) == min(n_cuts, max(len(distinct) - 1, 0))
    assert cuts == sorted(cuts)
    # Every cut parts the data in another way.
    sides = {int((distinct <= cut).sum()) for cut in cuts}
    assert len(sides) == len(cuts)
    assert not sides & {0, len(distinct)}


def test_quantiles_and_equal_steps():
    values = np.array([0.0] * 5 + [1, 2, 3, 4, 100])
    assert place_cuts(values, 2, "quantile") == [0.5, 2.5]  # 5 and 7 of 10 rows lie below
    assert place_cuts(values, 1, "uniform") == [52]
    assert place_cuts(np.arange(101.0), 4, "quantile") == [19.5, 39.5, 60.5, 80.5]
    assert place_cuts(np.arange(101.0), 4, "uniform") == [19.5, 39.5, 59.5, 79.5]


def test_a_place_that_is_taken_goes_to_the_next_free_one():
    values = np.array([0.0] * 97 + [1, 2, 3, 4, 5])
    assert place_cuts(values, 4, "quantile") == [0.5, 1.5, 2.5, 3.5]
    values = np.array([-5.0, -4, -3, -2, -1] + [0.0] * 97)
    assert place_cuts(values, 3, "quantile") == [-2.5, -1.5, -0.5]


def test_numbers_near_the_largest_float():
    values = np.array([-1.7e308, -1e308, 0, 1e308, 1.7e308, 1.75e308])
    cuts = place_cuts(values, 2, "quantile")
    assert len(cuts) == 2
    assert all(math.isfinite(cut) for cut in cuts)
