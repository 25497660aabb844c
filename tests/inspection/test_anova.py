"""Functional ANOVA against the full grid of the background's values."""

from itertools import combinations, product

import numpy as np
import pytest

from kernelweave.inspection import anova
from kernelweave.inspection.anova import (
    Products,
    Separable,
    conditional_curves,
    factor_means,
    pair_surface,
    variances,
)


def gaussians(n_terms, columns, n_outputs, seed):
    """Return products of Gaussians on some columns, one of them of two columns only."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.normal(size=(n_terms, max(columns) + 1)), rng.uniform(0.5, 2.0, 9)

    def factor(q):
        return lambda X: np.exp(-((centres[:, [q]] - X[:, q]) ** 2) / (2 * widths[q] ** 2))

    return Products(rng.normal(size=(n_terms, n_outputs)), {q: factor(q) for q in columns})


def model_of(n_outputs=2):
    slopes = np.array([[1.5, -0.5], [0.3, 2.0]])[:, :n_outputs]
    return Separable(
        np.arange(1.0, 1.0 + n_outputs),
        [gaussians(12, [0, 1, 2, 3], n_outputs, 0), gaussians(7, [1, 3], n_outputs, 1)],
        {
            0: [lambda X: X[:, [0]] * slopes[0]],
            3: [lambda X: X[:, [3]] ** 3 * slopes[1], lambda X: np.sin(X[:, [3]]) * slopes[0]],
        },
    )


def predict(model, X):
    total = model.constant + np.zeros((len(X), 1))
    for player in range(4):
        total = total + model.own(player, X, len(X))
    for part in model.products:
        block = np.ones((len(part.coef), len(X)))
        for factor in part.factors.values():
            block = block * factor(X)
        total = total + block.T @ part.coef
    return total


def terms_on_grid(model, Z, shares):
    """Return the orthogonal terms on the full grid, by inclusion and exclusion of means."""
    m, d = Z.shape
    index = np.array([*product(range(m), repeat=d)])
    values = predict(model, np.column_stack([Z[index[:, q], q] for q in range(d)]))
    cube = values.reshape(*[m] * d, -1)
    weights = np.ones(1)
    for _ in range(d):
        weights = np.multiply.outer(weights, shares)
    weights = weights.reshape([m] * d)

    def mean_given(T):
        out = cube
        for q in range(d):
            if q not in T:
                out = np.broadcast_to(
                    np.tensordot(shares, np.moveaxis(out, q, 0), 1)[None],
                    (m, *out.shape[:q], *out.shape[q + 1 :]),
                )
                out = np.moveaxis(out, 0, q)
        return out

    found = {}
    for size in range(d + 1):
        for T in combinations(range(d), size):
            term = mean_given(T).copy()
            for smaller in range(size):
                for S in combinations(T, smaller):
                    term -= found[S]
            found[T] = term
    squares = {T: np.einsum("abcd,abcdt->t", weights, term**2) for T, term in found.items()}
    return found, squares


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(6, 4))
    shares = rng.uniform(0.5, 1.5, 6)
    shares /= shares.sum()
    model = model_of()
    return model, Z, shares, *terms_on_grid(model, Z, shares)


def test_variances_equal_those_of_the_full_grid(case):
    model, Z, shares, _, squares = case
    found = variances(model, Z, shares, range(4), pairs=True)
    size = sum(squares[T] for T in squares if T)
    assert np.abs(found.variance / size - 1).max() < 1e-13
    for q in range(4):
        assert np.abs(found.first_order[q] - squares[(q,)]).max() <= 1e-13 * size.max()
        with_q = [T for T in squares if q in T]
        assert np.abs(found.total[q] - sum(squares[T] for T in with_q)).max() <= 1e-13 * size.max()
        equal = sum(squares[T] / len(T) for T in with_q)
        assert np.abs(found.shapley[q] - equal).max() <= 1e-13 * size.max()
    for pair in combinations(range(4), 2):
        assert np.abs(found.pairs[pair] - squares[pair]).max() <= 1e-13 * size.max()
        assert np.array_equal(found.pairs[pair], found.pairs[pair[::-1]])


def test_effects_are_ordered_and_add_up(case):
    model, Z, shares, *_ = case
    found = variances(model, Z, shares, range(4), pairs=False)
    assert (found.first_order <= found.shapley + 1e-12).all()
    assert (found.shapley <= found.total + 1e-12).all()
    assert np.allclose(found.shapley.sum(axis=0), found.variance, rtol=1e-13)
    assert found.pairs is None


def test_blocks_of_pairs_change_nothing(case, monkeypatch):
    model, Z, shares, *_ = case
    whole = variances(model, Z, shares, range(4), pairs=True)
    monkeypatch.setattr(anova, "_BLOCK", 500.0)  # one or two rows at a time
    parts = variances(model, Z, shares, range(4), pairs=True)
    for name in ("first_order", "variance", "total", "shapley", "pairs"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=1e-12)


def test_many_terms_have_first_order_effects_only(case, monkeypatch):
    model, Z, shares, *_ = case
    every = variances(model, Z, shares, range(4), pairs=True)
    monkeypatch.setattr(anova, "MOST_TERMS", 10)
    found = variances(model, Z, shares, range(4), pairs=True)
    assert np.allclose(found.first_order, every.first_order, rtol=1e-12)
    assert found.variance is found.total is found.shapley is found.pairs is None


def test_surfaces_equal_those_of_the_full_grid(case):
    model, Z, shares, terms, _ = case
    means = factor_means(model, Z, shares)
    for pair in combinations(range(4), 2):
        surface = pair_surface(model, means, pair, [Z, Z])
        other = tuple(0 if q not in pair else slice(None) for q in range(4))
        assert np.allclose(surface, terms[pair][other], atol=1e-13)


def test_conditional_curves_equal_predictions_of_mixed_rows(case):
    model, Z, *_ = case
    grids = []
    for q in (3, 0, 2):
        grid = np.full((9, 4), np.nan)
        grid[:, q] = np.linspace(-2, 2, 9)
        grids.append(grid)
    found = conditional_curves(model, Z, [3, 0, 2], grids)
    assert np.allclose(found.predictions, predict(model, Z), atol=1e-13)
    for q, grid, curve in zip((3, 0, 2), grids, found.curves, strict=True):
        for g, value in enumerate(grid[:, q]):
            mixed = Z.copy()
            mixed[:, q] = value
            assert np.allclose(curve[:, g], predict(model, mixed), atol=1e-13)


def test_a_sum_of_functions_of_one_column_is_additive():
    assert not model_of().is_additive
    assert Separable(np.zeros(1), [gaussians(3, [2], 1, 0)], {0: [lambda X: X[:, :1]]}).is_additive
