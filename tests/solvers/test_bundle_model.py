"""The model of a bundle step: its quadratic program, and how the optimal value goes on."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelweave.solvers.bundle_model import Curved, minimise_curved, minimise_model


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


@pytest.mark.parametrize("damping", [1.0, 1e85])
def test_a_flat_model_stays_at_its_centre(damping):
    """Also where the quotient of damping and slopes overflows, on which LAPACK may hang."""
    centre = np.array([0.2, 0.8, 0.0])
    x = minimise_model(np.zeros(1), np.zeros((1, 3)), damping * np.eye(3), centre)
    assert_allclose(x, centre, atol=1e-9)


def test_equal_kernels_and_one_kernel():
    slopes = np.full((2, 4), -1.0)
    x = minimise_model(np.zeros(2), slopes, 1e-6 * np.eye(4), np.full(4, 0.25))
    assert_allclose(x, 0.25, atol=1e-9)
    assert minimise_model(np.zeros(1), -np.ones((1, 1)), np.eye(1), np.ones(1)).tolist() == [1]


def squares(seed, k, width, n_rows=40):
    """Least squares with k groups of columns: the optimal value and its derivatives in weights."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n_rows, k * width)) @ rng.normal(size=(k * width, k * width)) / width
    y = rng.normal(size=n_rows)
    owner = np.repeat(np.arange(k), width)

    def at(weights):
        M = np.eye(n_rows) + (F * weights[owner]) @ F.T
        dual_coef = np.linalg.solve(M, y)
        scores = F.T @ dual_coef
        quadratic_forms = np.bincount(owner, scores**2, k)
        products = F @ np.where(owner[:, None] == np.arange(k), scores[:, None], 0.0)
        return 0.5 * y @ dual_coef, quadratic_forms, products.T @ np.linalg.solve(M, products)

    return at


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_curved_model_is_exact_for_kernels_of_one_feature(seed, k):
    at = squares(seed, k, 1)
    rng = np.random.default_rng(seed)
    centre, goal = rng.dirichlet(np.ones(k), size=2)
    centre[rng.random(k) < 0.3] = 0.0
    value, quadratic_forms, hessian = at(centre)
    curved = Curved(quadratic_forms, hessian, centre)
    change, slope, curvature = curved.expand(goal - centre)
    wanted, wanted_forms, wanted_hessian = at(goal)
    # Forms change by orders of magnitude, and what is inverted is as badly conditioned.
    assert value + change == pytest.approx(wanted, rel=1e-6)
    assert curved.change(goal - centre) == pytest.approx(change, rel=1e-12, abs=1e-12)
    assert_allclose(slope, -0.5 * wanted_forms, rtol=1e-4, atol=1e-6 * value)
    assert_allclose(curvature, wanted_hessian, rtol=1e-3, atol=1e-4 * np.abs(wanted_hessian).max())


def test_curved_model_has_the_derivatives_it_was_given():
    centre = np.array([0.4, 0.1, 0.5, 0.0])
    _, quadratic_forms, hessian = squares(3, 4, 5)(centre)
    curved = Curved(quadratic_forms, hessian, centre)
    change, slope, curvature = curved.expand(np.zeros(4))
    assert change == 0.0
    assert_allclose(slope, -0.5 * quadratic_forms, rtol=1e-12)
    assert_allclose(curvature, hessian, rtol=1e-12)
    step, h = np.array([-0.1, 0.2, -0.15, 0.05]), 1e-6
    _, slope, curvature = curved.expand(step)
    for j, unit in enumerate(np.eye(4)):
        ahead, behind = curved.change(step + h * unit), curved.change(step - h * unit)
        assert slope[j] == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)
        change = curved.expand(step + h * unit)[1] - curved.expand(step - h * unit)[1]
        assert_allclose(curvature[j], change / (2 * h), rtol=1e-5)


def test_curvature_too_large_by_rounding_does_not_turn_the_model_back():
    """A hard margin: the value is infinite without any weight, and no smaller on the way there."""
    centre = np.array([0.5, 0.5])
    curved = Curved(np.array([4.0, 4.0]), 8.0 * (1 + 1e-9) * np.eye(2), centre)
    values = [curved.change(t * np.array([-0.5, 0.5])) for t in np.linspace(0, 1, 50)]
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()


def step_from(at, centre):
    value, quadratic_forms, hessian = at(centre)
    cuts, slopes = np.array([value + 0.5 * centre @ quadratic_forms]), -0.5 * quadratic_forms[None]
    return cuts, slopes, hessian, np.full(len(centre), 1e-9), centre


@pytest.mark.parametrize("seed", range(6))
def test_one_step_of_the_curved_model_goes_nearly_all_the_way(seed):
    """Where the model is exact, one step does what takes Newton's method many."""
    at, centre = squares(seed, 5, 1), np.eye(5)[0]
    begin = at(centre)[0]
    given_up = step_from(at, centre)
    x, level = minimise_curved(*given_up)
    reached = at(x)[0]
    assert level == pytest.approx(reached, rel=1e-6)
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1, abs=1e-12)
    best = x
    for _ in range(10):
        best, _ = minimise_curved(*step_from(at, best))
    value, quadratic_forms, _ = at(best)
    assert (
        0.5 * (quadratic_forms.max() - best @ quadratic_forms) <= 1e-6 * value
    )  # the duality gap: this is the end
    assert reached - value <= 0.01 * (begin - value)
    cuts, slopes, hessian, stiff, _ = given_up
    quadratic = minimise_model(cuts, slopes, hessian + np.diag(stiff), centre)
    assert reached < at(quadratic)[0]


@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_curved_model_with_older_cuts_is_never_above_its_centre(seed, k, n_older):
    rng = np.random.default_rng(seed)
    at = squares(seed, k, 3)
    points = rng.dirichlet(np.ones(k), size=n_older + 1)
    known = [at(point) for point in points]
    slopes = np.array([-0.5 * quadratic_forms for _, quadratic_forms, _ in known])
    cuts = np.array([value for value, _, _ in known]) - (slopes * points).sum(axis=1)
    stiff = 0.1 * known[-1][1]
    x, level = minimise_curved(cuts, slopes, known[-1][2], stiff, points[-1])
    assert level <= known[-1][0] * (1 + 1e-12)
    assert level >= (cuts + slopes @ x)[:-1].max(initial=-np.inf)
