"""The number of nodes: the bound holds, and few are enough."""

import numpy as np
import pytest

from kernelweave import _core
from kernelweave.inspection.nodes import N_BINS, enough_nodes, node_bounds, quadrature

PLAIN = (np.ones(1), np.zeros((1, 3), dtype=np.int64))


def gaussian_games(d, width, n=100, seed=0):
    """Return factors of terms for one row and one background row, of standard normal columns."""
    random = np.random.default_rng(seed)
    terms, x, z = random.standard_normal((n, d)), *random.standard_normal((2, d))
    rate = 0.5 / (width**2 * d)
    inside, outside = (np.exp(-rate * (terms - row) ** 2).T[:, None, None] for row in (x, z))
    return (
        np.ascontiguousarray(inside),
        np.ascontiguousarray(outside),
        random.standard_normal((n, 1)),
    )


def range_of_predictions(d, width, coef, seed=0):
    """Return the range of the function of `gaussian_games` over a background."""
    random = np.random.default_rng(seed)
    terms, rows = random.standard_normal((len(coef), d)), random.standard_normal((100, d))
    squares = ((rows[:, None] - terms) ** 2).sum(axis=2)
    return np.ptp(np.exp(-0.5 / (width**2 * d) * squares) @ coef)


def values(inside, outside, coef, n_nodes):
    out = np.zeros((1, 1, len(inside), 1))
    _core.product_games(inside, outside, coef, *PLAIN, quadrature(n_nodes), out)
    return out[0, 0, :, 0]


@pytest.mark.parametrize("d", [10, 30, 100, 300])
@pytest.mark.parametrize("width", [0.25, 0.5, 1.0, 2.0])
def test_the_bound_is_above_the_error(d, width):
    inside, outside, coef = gaussian_games(d, width)
    exact = values(inside, outside, coef, (d + 1) // 2)
    spreads = np.zeros((1, N_BINS))
    _core.product_game_spreads(inside, outside, np.ones(1), np.abs(coef[:, 0]), spreads)
    bounds = spreads @ node_bounds(d).T
    for k, bound in enumerate(bounds[0]):
        error = np.abs(values(inside, outside, coef, k + 1) - exact).sum()
        assert error <= bound + 1e-15 * np.abs(coef).sum()
    tol = 1e-10 * range_of_predictions(d, width, coef)
    n_nodes, found = enough_nodes(d, spreads, tol)
    if width >= 0.5:
        assert n_nodes <= 8
    assert found[0] <= tol


def test_two_hundred_columns_are_accurate():
    inside, outside, coef = gaussian_games(200, 1.0)
    found = values(inside, outside, coef, 100)
    u, w = (side[:, 0, 0].astype(np.longdouble) for side in (inside, outside))
    tau, weights = (part.astype(np.longdouble) for part in quadrature(100))
    exact = np.zeros(200, dtype=np.longdouble)
    for node, weight in zip(tau, weights, strict=True):
        factors = w + node * (u - w)
        exact += weight * ((factors.prod(axis=0) / factors * (u - w)) @ coef[:, 0])
    assert np.abs(found - exact).max() <= 1e-13 * np.abs(exact).max()


def test_spreads_of_equal_and_of_vanishing_factors():
    """Equal rows have the spread of rounding; a term of zeros only counts nothing."""
    inside, outside, coef = gaussian_games(20, 1.0, n=3)
    spreads = np.zeros((1, N_BINS))
    _core.product_game_spreads(inside, inside, np.ones(1), np.ones(3), spreads)
    assert enough_nodes(20, spreads, 1e-14)[0] == 1
    inside[4, 0, 0] = outside[4, 0, 0] = 0.0
    spreads[:] = 0.0
    _core.product_game_spreads(inside, outside, np.ones(1), np.ones(3), spreads)
    assert not spreads.any()
    assert not values(inside, outside, coef, 10).any()
