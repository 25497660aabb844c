"""Projections, against their optimality conditions and conic programming."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from kernelweave import _core
from quick import examples

vectors = arrays(
    np.float64,
    st.integers(1, 15),
    elements=st.floats(-10, 10, allow_subnormal=False).map(lambda x: round(x, 4)),
)
radii = st.sampled_from([1e-3, 0.5, 1.0, 3.0, 100.0])


def nearest(x, constraints_of):
    """Project by conic programming."""
    z = cp.Variable(len(x))
    cp.Problem(cp.Minimize(cp.sum_squares(z - x)), constraints_of(z)).solve(solver=cp.CLARABEL)
    return z.value


class TestSimplex:
    @given(vectors, radii)
    @examples(150)
    def test_optimality_conditions(self, x, radius):
        found = _core.project_simplex(x, radius)
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(radius, rel=1e-9)
        # x - found is one number on the support, and no larger elsewhere x - 0 than that number.
        shift = x - found
        top = shift[found > 0]
        scale = np.abs(x).max() + radius
        assert np.ptp(top) <= 1e-12 * scale
        assert (x[found == 0] <= top.max() + 1e-12 * scale).all()

    @pytest.mark.parametrize("seed", range(3))
    def test_conic_programming(self, seed):
        x = np.random.default_rng(seed).normal(size=8)
        expected = nearest(x, lambda z: [z >= 0, cp.sum(z) == 1])
        assert_allclose(_core.project_simplex(x), expected, atol=1e-6)

    def test_points_of_the_simplex_stay(self):
        x = np.array([0.25, 0.0, 0.75])
        assert_allclose(_core.project_simplex(x), x, atol=1e-15)

    def test_one_coordinate(self):
        assert _core.project_simplex(np.array([-7.0]), 2.0) == pytest.approx([2])

    def test_ties(self):
        assert_allclose(_core.project_simplex(np.full(4, 9.0)), np.full(4, 0.25))

    def test_input_is_not_changed(self):
        x = np.array([3.0, -1.0])
        _core.project_simplex(x)
        assert x.tolist() == [3, -1]

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_extreme_scales(self, scale):
        x = np.array([3.0, 1.0, -2.0])
        found = _core.project_simplex(scale * x, scale)
        assert_allclose(found / scale, _core.project_simplex(x), atol=1e-14)


class TestCappedBox:
    @given(vectors, radii, st.data())
    @examples(150)
    def test_optimality_conditions(self, x, cap, data):
        upper = data.draw(
            arrays(np.float64, len(x), elements=st.sampled_from([0.0, 0.3, 1.0, 5.0, np.inf]))
        )
        found = _core.project_capped_box(x, upper, cap)
        size, rounding = np.abs(found), 1e-13 * (np.abs(x).sum() + cap)
        assert (size <= upper).all()
        assert size.sum() <= cap + rounding
        assert (found * x >= 0).all()
        plain = np.minimum(np.abs(x), upper)
        if plain.sum() <= cap:
            assert np.array_equal(size, plain)
            return
        assert size.sum() == pytest.approx(cap, abs=rounding)
        # One shift for all inside the box; at most that much is taken from the others.
        shift = np.abs(x) - size
        inside = (size > 0) & (size < upper)
        if inside.any():
            level = shift[inside].mean()
            assert np.ptp(shift[inside]) <= rounding
            assert (shift[(size == upper) & (upper > 0)] >= level - rounding).all()
            assert (np.abs(x)[(size == 0) & (upper > 0)] <= level + rounding).all()

    @pytest.mark.parametrize("seed", range(3))
    def test_conic_programming(self, seed):
        rng = np.random.default_rng(seed)
        x, upper = rng.normal(size=8), rng.uniform(0, 1, 8)
        expected = nearest(x, lambda z: [cp.abs(z) <= upper, cp.norm1(z) <= 1.3])
        assert_allclose(_core.project_capped_box(x, upper, 1.3), expected, atol=1e-5)

    def test_zero_cap_and_empty(self):
        assert not _core.project_capped_box(np.ones(3), np.ones(3), 0.0).any()
        assert _core.project_capped_box(np.empty(0), np.empty(0), 1.0).shape == (0,)

    def test_infinite_cap_clips(self):
        x = np.array([3.0, -4.0, 0.1])
        assert _core.project_capped_box(x, np.ones(3), np.inf).tolist() == [1, -1, 0.1]

    def test_ties(self):
        assert_allclose(_core.project_capped_box(np.full(4, 2.0), np.full(4, 1.0), 2.0), 0.5)


EXPONENTS = [1.0, 1.01, 1.3, 1.5, 2.0, 3.0, 10.0, 101.0]


class TestLpBall:
    @given(vectors, radii, st.sampled_from(EXPONENTS))
    @examples(200)
    def test_nearest_point(self, x, radius, p):
        found = _core.project_lp_ball(x, p, radius)
        assert np.isfinite(found).all()
        norm = np.linalg.norm(found, p)
        assert norm <= radius * (1 + 1e-9)
        assert (found * x >= 0).all()
        if np.linalg.norm(x, p) <= radius:
            assert np.array_equal(found, x)
            return
        assert norm == pytest.approx(radius, rel=1e-8)
        # No point of the ball lies on the other side of the supporting plane at `found`:
        # max over the ball of (x - found) . z is its dual norm times the radius.
        normal = x - found
        dual = np.inf if p == 1 else p / (p - 1)
        reach = radius * np.linalg.norm(normal, dual)
        assert reach <= normal @ found + 1e-6 * (reach + 1e-300)

    @pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0])
    def test_conic_programming(self, p):
        x = np.random.default_rng(1).normal(size=7) * 2
        expected = nearest(x, lambda z: [cp.pnorm(z, p) <= 1.2])
        assert_allclose(_core.project_lp_ball(x, p, 1.2), expected, atol=1e-4)

    def test_euclidean_ball_is_scaling(self):
        x = np.array([3.0, -4.0])
        assert_allclose(_core.project_lp_ball(x, 2.0, 1.0), x / 5, rtol=1e-9)

    def test_p_one_is_the_capped_box(self):
        x = np.random.default_rng(2).normal(size=20)
        free = np.full(20, np.inf)
        assert_allclose(
            _core.project_lp_ball(x, 1.0, 2.0), _core.project_capped_box(x, free, 2.0), atol=1e-15
        )

    @pytest.mark.parametrize("p", EXPONENTS)
    def test_zero_radius_zero_vector_and_empty(self, p):
        assert not _core.project_lp_ball(np.array([1.0, -2.0]), p, 0.0).any()
        assert not _core.project_lp_ball(np.zeros(3), p, 1.0).any()
        assert _core.project_lp_ball(np.empty(0), p).shape == (0,)

    @pytest.mark.parametrize("p", [1.0, 1.3, 2.0, 7.0])
    @pytest.mark.parametrize("scale", [1e-120, 1e120])
    def test_extreme_scales(self, scale, p):
        x = np.array([3.0, 1.0, -2.0, 0.0])
        found = _core.project_lp_ball(scale * x, p, scale)
        assert_allclose(found / scale, _core.project_lp_ball(x, p, 1.0), atol=1e-9)


@given(vectors, vectors)
@examples(100)
def test_projections_never_spread_points(a, b):
    n = min(len(a), len(b))
    a, b = a[:n].copy(), b[:n].copy()
    for project in (
        lambda x: _core.project_simplex(x, 1.0),
        lambda x: _core.project_capped_box(x, np.full(n, 0.7), 1.1),
        lambda x: _core.project_lp_ball(x, 1.7, 1.0),
    ):
        assert np.linalg.norm(project(a) - project(b)) <= np.linalg.norm(a - b) + 1e-8
