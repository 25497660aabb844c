"""The quadratic program of a bundle step, against its optimality conditions."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelweave.solvers.bundle_model import minimise_model


def draw(seed, k, n_cuts, rank):
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(k))
    centre[rng.random(k) < 0.4] = 0.0
    centre = centre / centre.sum() if centre.any() else np.eye(k)[0]
    root = rng.normal(size=(k, rank))
    M = root @ root.T + np.diag(rng.uniform(0.01, 0.1, k))
    return rng.normal(size=n_cuts), -rng.uniform(0.0, 3.0, size=(n_cuts, k)), M, centre


def value(cuts, slopes, M, centre, x):
    step = x - centre
    return float((cuts + slopes @ x).max() + 0.5 * step @ M @ step)


def check(cuts, slopes, M, centre, x, tol=1e-8):
    """The point is feasible, and no feasible point is better than it by more than the tolerance."""
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1, abs=1e-12)
    # A lower bound from multipliers of the active cuts: the dual function of the linear pieces.
    heights = cuts + slopes @ x
    active = np.flatnonzero(heights >= heights.max() - 1e-7 * (1 + np.abs(heights).max()))
    share = cp.Variable(len(active), nonneg=True)
    gradient = slopes[active].T @ share + M @ (x - centre)
    reduced = gradient - cp.min(gradient)
    slack = cp.sum(cp.multiply(x, reduced))  # zero at the solution
    problem = cp.Problem(cp.Minimize(slack), [cp.sum(share) == 1])
    problem.solve(solver=cp.CLARABEL)
    size = np.abs(slopes).max() + np.abs(M).max()
    assert problem.value <= tol * size


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 6), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_optimality_conditions(seed, k, n_cuts, rank):
    cuts, slopes, M, centre = draw(seed, k, n_cuts, rank)
    check(cuts, slopes, M, centre, minimise_model(cuts, slopes, M, centre))


@pytest.mark.parametrize("seed", range(4))
def test_conic_programming(seed):
    cuts, slopes, M, centre = draw(seed, 8, 4, 3)
    x, t = cp.Variable(8, nonneg=True), cp.Variable()
    objective = t + 0.5 * cp.quad_form(x - centre, cp.psd_wrap(M))
    constraints = [t >= cuts + slopes @ x, cp.sum(x) == 1]
    best = cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    found = minimise_model(cuts, slopes, M, centre)
    assert value(cuts, slopes, M, centre, found) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e9])
def test_scale_does_not_matter(scale):
    cuts, slopes, M, centre = draw(5, 8, 4, 3)
    plain = minimise_model(cuts, slopes, M, centre)
    scaled = minimise_model(scale * cuts, scale * slopes, scale * M, centre)
    assert_allclose(scaled, plain, atol=1e-9)


@pytest.mark.parametrize("seed", range(16))
def test_one_cut_is_solved_to_rounding(seed):
    """With one active cut the conditions are linear equations; the answer must satisfy them."""
    cuts, slopes, M, centre = draw(seed, 10, 1, 10)
    x = minimise_model(cuts, slopes, M, centre)
    gradient = slopes[0] + M @ (x - centre)
    used = x > 0
    assert np.ptp(gradient[used]) <= 1e-12
    assert (gradient[~used] >= gradient[used].min() - 1e-12).all()


def test_a_flat_model_stays_at_its_centre():
    centre = np.array([0.2, 0.8, 0.0])
    x = minimise_model(np.zeros(1), np.zeros((1, 3)), np.eye(3), centre)
    assert_allclose(x, centre, atol=1e-9)


def test_equal_kernels_and_one_kernel():
    slopes = np.full((2, 4), -1.0)
    x = minimise_model(np.zeros(2), slopes, 1e-6 * np.eye(4), np.full(4, 0.25))
    assert_allclose(x, 0.25, atol=1e-9)
    assert minimise_model(np.zeros(1), -np.ones((1, 1)), np.eye(1), np.ones(1)).tolist() == [1]
