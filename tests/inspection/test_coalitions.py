"""Values of coalitions become Shapley values and interaction indices."""

from itertools import permutations

import numpy as np
import pytest

from kernelweave.inspection.coalitions import (
    Enumeration,
    Permutations,
    all_coalitions,
    pair_weights,
    value_weights,
)

N = 4
GAME = np.random.default_rng(0).normal(size=2**N)


def over_permutations(game, n):
    """Return Shapley values as means of gains over all orders."""
    found = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        present = 0
        for player in order:
            found[player] += game[present | 1 << player] - game[present]
            present |= 1 << player
    return found / len(orders)


def test_coalitions_are_binary_numbers():
    coalitions = all_coalitions(3)
    np.testing.assert_array_equal(coalitions @ [1, 2, 4], np.arange(8))


def test_values_are_means_over_all_orders():
    np.testing.assert_allclose(value_weights(N) @ GAME, over_permutations(GAME, N))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_values_add_up(n):
    whole = np.zeros(2**n)
    whole[[0, -1]] = -1.0, 1.0
    np.testing.assert_allclose(value_weights(n).sum(axis=0), whole, atol=1e-15)


def test_pairs_of_a_product():
    coalitions = all_coalitions(N)
    both = (coalitions[:, 0] & coalitions[:, 2]).astype(float)
    indices = dict(
        zip(zip(*np.triu_indices(N, 1), strict=True), pair_weights(N) @ both, strict=True)
    )
    assert indices.pop((0, 2)) == pytest.approx(1.0)
    np.testing.assert_allclose(list(indices.values()), 0.0, atol=1e-15)
    assert pair_weights(1).shape == (0, 2)


def test_samples_add_up_and_approach_the_values():
    shift = np.array([0.0, 1.0, -2.0])  # the background rows differ where no player is present

    drawn = Permutations.draw(N, 3, 2000, np.random.default_rng(1))
    other, coalitions = drawn.coalitions
    numbers = coalitions @ 2 ** np.arange(N)
    found = drawn.values((GAME[numbers] + shift[other] * (numbers == 0))[:, None])
    assert found.shape == (3, N, 1)
    np.testing.assert_allclose(found.sum(axis=(1, 2)), GAME[-1] - GAME[0] - shift)
    for row, own in zip(found[..., 0], shift, strict=True):
        game = GAME + own * (np.arange(2**N) == 0)
        np.testing.assert_allclose(row, value_weights(N) @ game, atol=0.12)


def test_enumerations_have_values_and_pairs():
    weights, shift = np.array([0.2, 0.5, 0.3]), np.array([0.0, 1.0, -2.0])
    drawn = Enumeration(N, 3)
    other, coalitions = drawn.coalitions
    numbers = coalitions @ 2 ** np.arange(N)
    found = (GAME[numbers] * (1 + shift[other]))[:, None]
    expected = over_permutations(GAME, N) * (1 + shift)[:, None]
    np.testing.assert_allclose(drawn.values(found)[..., 0], expected)
    pairs = drawn.pairs(found, weights)[..., 0]
    mean = pair_weights(N) @ (GAME * (weights @ (1 + shift)))
    np.testing.assert_allclose(pairs[np.triu_indices(N, 1)], mean)
    np.testing.assert_array_equal(pairs, pairs.T)


@pytest.mark.parametrize("n_background", [6, 7])
def test_one_permutation_for_each_background_row(n_background):
    drawn = Permutations.draw_one(N, n_background, np.random.default_rng(0))
    assert drawn.others.tolist() == list(range(n_background))
    last = n_background // 2 * 2
    assert (drawn.ranks[0:last:2] + drawn.ranks[1:last:2] == N - 1).all()
    other, present = drawn.coalitions
    assert len(other) == n_background + 1 + n_background * (N - 1)
    # A sum over the players present: every player gains its own part, in any order.
    parts = np.random.default_rng(1).normal(size=(n_background, N))
    full = np.full(N, 2.0)
    found = np.where(present, full, parts[other]).sum(axis=1, keepdims=True)
    assert np.allclose(drawn.values(found)[..., 0], full - parts, atol=1e-12)
