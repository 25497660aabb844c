"""Coefficients of power series are powers of sums; factors multiply to kernels."""

from math import prod

import numpy as np

from kernelweave import RBF, MKLRegressor, Polynomial
from kernelweave.inspection.game import Game, Players
from kernelweave.inspection.pieces import make_pieces
from kernelweave.inspection.series import PowerSeries, outside_factors

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(25, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
NEW = RANDOM.normal(size=(4, 3))
PLAYERS = Players(("a", "b", "c"), ((0,), (1,), (2,)))
ALL = slice(None)


def piece_of(kernel):
    (piece,) = make_pieces(MKLRegressor([kernel]).fit(X, Y)._terms(), NEW, X, PLAYERS)
    return piece


def wanted(series, factors):
    """Return the last coefficient of the product of the series of all players."""
    total = np.multiply.outer(series.start, np.ones(factors.shape[2:]))
    for factor in factors:
        product = np.zeros_like(total)
        for left, right, out in series.steps:
            product[out] += total[left] * factor[right]
        total = product
    return series.scale * total[-1]


def test_series_of_a_power_of_a_sum():
    for kernel in (Polynomial(3, 2.0), RBF(1.0) * Polynomial(2, 1.0)):
        piece = piece_of(kernel)
        series = PowerSeries.of(piece)
        powers = [0] * len(piece.products) + [power for _, power in piece.sums]
        expected = prod(
            (bound.atom.part(bound.rows, bound.terms, np.arange(3)) + bound.atom.constant) ** p
            if p
            else bound.atom.whole(bound.rows, bound.terms)
            for bound, p in zip(piece.atoms, powers, strict=True)
        )
        found = wanted(series, series.factors(piece, "rows", ALL, ALL))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_degrees():
    assert PowerSeries.of(piece_of(RBF(1.0))).degree(7) == 7
    series = PowerSeries.of(piece_of(Polynomial(3, 1.0)))
    assert series.degree(7) == 3
    assert series.degree(2) == 2
    assert len(PowerSeries.of(piece_of(RBF(1.0))).exponents) == 1


def test_absent_players():
    piece = piece_of(RBF(1.0))
    series, weights = PowerSeries.of(piece), RANDOM.dirichlet(np.ones(25))
    factors = series.factors(piece, "background", ALL, ALL)

    def outside(value):
        game = Game(NEW, X, weights, 25, 1.0, PLAYERS, value=value)
        return outside_factors(series, piece, game, ALL, ALL)

    np.testing.assert_array_equal(outside("joint"), factors)
    mean = np.tensordot(factors, weights, (2, 0))
    np.testing.assert_allclose(outside("independent"), mean[:, :, None])
    np.testing.assert_array_equal(outside("functional"), np.ones((3, 1, 1, piece.n_terms)))
