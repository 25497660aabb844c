"""Intervals of scores: resamples of the rows, and exact ones of shares."""

import numpy as np
import pytest
from scipy import stats

from kernelweave.tables.measures import MEASURES, Values
from kernelweave.tables.resampling import (
    draw,
    exact_interval,
    percentiles,
    resamples,
    share_interval,
)


def test_resamples():
    """Counts sum to the rows, within classes where these are given, and depend on the seed."""
    strata = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 5, 1]))
    block = np.concatenate(list(resamples(56, 1, strata, 0)))
    assert block.shape == (1000, 56)
    for k, size in enumerate((50, 5, 1)):
        assert (block[:, strata == k].sum(axis=1) == size).all()
    plain = np.concatenate(list(resamples(56, 1, None, 0)))
    assert (plain.sum(axis=1) == 56).all()
    assert plain[:, strata == 0].sum(axis=1).std() > 1
    assert np.array_equal(plain, np.concatenate(list(resamples(56, 1, None, 0))))
    assert not np.array_equal(plain, np.concatenate(list(resamples(56, 1, None, 1))))
    mean, spread = plain.mean(), plain.std()
    assert mean == pytest.approx(1.0)
    assert spread == pytest.approx(np.sqrt(1 - 1 / 56), rel=0.02)


def test_bootstrap_interval():
    """The interval of a mean is that of its standard error."""
    random = np.random.default_rng(0)
    found = Values(random.normal(size=400), np.zeros(400))
    wanted = {"m": (MEASURES["mean_absolute_error"], found.evaluators()["mean_absolute_error"])}
    drawn = draw(wanted, 1, None, np.ones(400), 0)["m"]
    low, high = percentiles(drawn.resampled)
    half = 1.96 * np.abs(found.y).std() / 20
    assert high - drawn.value == pytest.approx(half, rel=0.15)
    assert drawn.value - low == pytest.approx(half, rel=0.15)
    assert percentiles(np.array([np.nan, np.nan, 1.0])) is None
    assert percentiles(np.ones(10)) is None


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (970, 1000)])
def test_exact_interval(hits, n):
    """Both ends of Clopper and Pearson, from the binomial distribution itself."""
    low, high = exact_interval(hits, n)
    if hits:
        assert stats.binom.sf(hits - 1, n, low) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0
    if hits < n:
        assert stats.binom.cdf(hits, n, high) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1.0


def test_weighted_shares():
    """Equal weights are rows; of unequal ones fewer count."""
    hits = np.array([True] * 3 + [False] * 7)
    assert share_interval(hits, np.full(10, 2.5)) == (pytest.approx(0.3), exact_interval(3, 10))
    weight = np.linspace(0.1, 2.0, 10)
    share, (low, high) = share_interval(hits, weight)
    assert share == pytest.approx(weight[:3].sum() / weight.sum())
    ends = exact_interval(10 * share, 10)
    assert low < ends[0] < share < ends[1] < high
