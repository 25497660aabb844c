"""Bounds on Rademacher complexities against all signs of a few rows."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave.errors import InputError
from kernelweave.weights.complexity import group_complexity, largest_norm, structure_complexity

SIGNS = np.array(list(product([-1.0, 1.0], repeat=8)))


def make_kernels(seed, n_kernels, rank):
    features = np.random.default_rng(seed).normal(size=(n_kernels, 8, rank))
    features /= np.linalg.norm(features, axis=2, keepdims=True)
    return features @ features.transpose(0, 2, 1)


def forms(kernels):
    """The squared norms of all signed sums, (n_signs, n_kernels)."""
    return np.einsum("si,mij,sj->sm", SIGNS, kernels, SIGNS)


@pytest.mark.parametrize("n_kernels", [1, 2, 5, 200])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_expected_largest_norm(n_kernels, rank):
    kernels = make_kernels(0, n_kernels, rank)
    exact = np.sqrt(forms(kernels).max(axis=1)).mean()
    bound = largest_norm(np.trace(kernels, axis1=1, axis2=2))
    assert exact <= bound <= 3.6 * exact
    if n_kernels == 1:
        assert bound == pytest.approx(np.sqrt(8.0))


def test_many_kernels_cost_a_logarithm():
    small, large = (largest_norm(np.full(m, 100.0)) for m in (5, 10_000))
    assert small == pytest.approx(10.0 * np.sqrt(5.0))  # the sum of all traces is smaller here
    assert large == pytest.approx(10.0 * (1.0 + np.sqrt(2.0 * np.log(10_000))))
    assert group_complexity(np.full(5, 100.0), 2.0, 100) == pytest.approx(0.02 * small)


# Exponents of the first figure of the draft: nodes 1 to 7 over the leaves, then 8 and 9.
PATHS = [(8, 1), (8, 2), *((9, i, j) for i in (3, 4) for j in (5, 6, 7))]


def exponents():
    A = np.zeros((len(PATHS), 9))
    for m, (top, *below) in enumerate(PATHS):
        A[m, top - 1] = 0.5
        A[m, np.array(below) - 1] = 0.5 / len(below)
    return A


def test_a_network_stays_below_its_bound():
    """The supremum for given signs is level sqrt(phi / 2), phi = max sum g_m q_m with c.d = 1."""
    kernels, A = make_kernels(1, len(PATHS), 3), exponents()
    c = A.sum(axis=0)

    def value(u, q):
        d = np.exp(u) / (c @ np.exp(u))
        terms = q * np.exp(A @ np.log(d))
        return -terms.sum(), terms.sum() * c * d - A.T @ terms

    suprema = []
    for q in forms(kernels)[::4]:
        starts = np.random.default_rng(0).normal(size=(3, 9))
        options = {"method": "L-BFGS-B", "jac": True, "bounds": [(-20, 20)] * 9}
        phi = max(-minimize(value, u, (q,), **options).fun for u in starts)
        assert phi <= q.max() * (1 + 1e-9)
        suprema.append(2.0 * np.sqrt(phi / 2.0) / 8.0)
    bound = structure_complexity(np.trace(kernels, axis1=1, axis2=2), 1.0, 8)
    assert np.mean(suprema) < bound < 4.0 * np.mean(suprema)


def test_a_flat_network_is_a_group_norm():
    """With one node per kernel phi is the largest form, so only the largest norm is bounded."""
    kernels = make_kernels(2, 3, 1)
    exact = np.mean(2.0 * np.sqrt(forms(kernels).max(axis=1) / 2.0)) / 8.0
    assert exact <= structure_complexity(np.full(3, 8.0), 1.0, 8) <= 1.8 * exact


@pytest.mark.parametrize("traces", [[], [-1.0], [np.nan], [np.inf, 1.0]])
def test_bad_traces(traces):
    with pytest.raises(InputError, match="traces: must be finite and not negative"):
        largest_norm(traces)
