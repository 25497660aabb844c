"""The search of a product lattice; what it finds is compared with enumeration in its graph."""

import numpy as np

from kernelweave.candidates.product_search import Factors, search_products


def test_factors_are_numbered_ladder_by_ladder():
    factors = Factors.of([2, 1, 3])
    assert factors.count == 6
    assert factors.number((2, 3)) == 5
    assert factors.node((1, 2, 4)) == ((0, 2), (1, 1), (2, 2))


def search(leaves, weights, **options):
    options = {"base": 1.0, "max_order": 2, "max_visited": 100, "known": (), "level": 0.0} | options
    return search_products(leaves, weights, Factors.of([1] * len(leaves)), limit=10, **options)


def test_prices_are_weighted_sums_of_products():
    leaves, weights = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 0.5]]), np.array([1.0, 2.0])
    found = search(leaves, weights)
    expected = {((0, 1),): 5.0, ((1, 1),): 5.0, ((2, 1),): 1.5}
    expected |= {((0, 1), (1, 1)): 7.0, ((0, 1), (2, 1)): 2.5, ((1, 1), (2, 1)): 2.5}
    assert dict(zip(found.ids, found.prices.tolist(), strict=True)) == expected
    assert found.complete
    assert found.bound == 7.0
    halved = search(leaves, weights, base=2.0)
    assert halved.prices.max() == 5.0 / 4.0


def test_known_nodes_and_low_prices_are_left_out():
    leaves, weights = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([1.0, 2.0])
    found = search(leaves, weights, known={((0, 1), (1, 1))}, level=4.0)
    assert found.ids == [((0, 1),), ((1, 1),)]
    nothing = search(leaves, weights, level=100.0)
    assert not nothing.ids
    assert nothing.bound == 100.0


def test_a_search_is_cut_at_its_limit_and_empty_without_coefficients():
    assert not search(np.ones((5, 2)), np.ones(2), max_visited=6).complete
    empty = search(np.ones((5, 0)), np.ones(0))
    assert empty.complete
    assert not empty.ids
