"""Enclosing balls: the compiled loop and `enclosing_ball`, against an independent solver."""

import faulthandler
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelweave import _core, enclosing_ball
from kernelweave._threads import threads
from kernelweave.errors import InputError
from radius_oracles import ball_oracle

CONVERGED, PAUSED, NEEDS_ROWS, STALLED = range(4)
MANY = 10_000_000


@pytest.fixture(autouse=True)
def no_hang():
    """End the run, with the place, if something does not come back."""
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    with threads(1):
        yield
    faulthandler.cancel_dump_traceback_later()


def gaussian(X, rate=0.5):
    return np.exp(-rate * np.square(X[:, None] - X).sum(axis=2))


def normal(seed, n, d):
    return np.random.default_rng(seed).normal(size=(n, d))


def make_solver(K, *, ridge=0.0, kind=_core.BallDouble, beta=None, lend=True):
    """Return a solver that begins from the first point, or from ``beta``."""
    n = len(K)
    diagonal = np.ascontiguousarray(K.diagonal(), dtype=np.float64)
    solver = kind(diagonal, np.broadcast_to(np.float64(ridge), n).copy())
    beta = np.eye(n)[0] if beta is None else beta
    solver.start(beta, K.astype(np.float64) @ beta)
    if lend:
        solver.lend(np.arange(n), np.ascontiguousarray(K))
    return solver


def bounds(K, beta):
    """Return the squared radius of the ball around a centre, and the bound its weights prove."""
    inside = beta @ K @ beta
    return (K.diagonal() - 2 * K @ beta + inside).max(), beta @ K.diagonal() - inside


def check(K, solver, tol, ridge=0.0, drift=1e-13):
    """Check a solver that has converged; return the squared radius."""
    K, beta = K.astype(np.float64), solver.beta
    size = np.abs(K).max()
    assert (beta >= 0).all()
    assert beta.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(solver.fitted, K @ beta, atol=drift * size)
    upper, lower = bounds(K + np.diag(np.broadcast_to(ridge, len(K))), beta)
    assert upper - lower <= tol * lower + 10 * drift * size
    return 0.5 * (upper + lower)


# The compiled loop


@pytest.mark.parametrize("ridge", [0.0, 0.3, "by row"])
@pytest.mark.parametrize(("n", "seed"), [(2, 0), (7, 1), (40, 2)])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_compiled_ball(kernel, n, seed, ridge):
    X = normal(seed, n, 3)
    K = X @ X.T if kernel == "linear" else gaussian(X)
    ridge = np.random.default_rng(seed).uniform(0, 2, n) if ridge == "by row" else ridge
    expected, _ = ball_oracle(K + np.diag(np.broadcast_to(ridge, n)))
    solver = make_solver(K, ridge=ridge)
    assert solver.run(1e-9, MANY) == CONVERGED
    assert check(K, solver, 1e-9, ridge) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_compiled_ball_of_float32_rows(ridge):
    # Clearly positive definite, so that it stays so when it is rounded.
    K = (gaussian(normal(3, 50, 2)) + 0.01 * np.eye(50)).astype(np.float32)
    solver = make_solver(K, ridge=ridge, kind=_core.BallFloat)
    assert solver.run(1e-8, MANY) == CONVERGED
    expected, _ = ball_oracle(K.astype(np.float64) + ridge * np.eye(50))
    assert check(K, solver, 1e-8, ridge) == pytest.approx(expected, rel=1e-7)


def test_closed_forms():
    two = np.array([[5.0, 2.0], [2.0, 3.0]])
    solver = make_solver(two)
    assert solver.run(1e-14, MANY) == CONVERGED
    assert check(two, solver, 1e-14) == pytest.approx(1.0, rel=1e-13)
    np.testing.assert_allclose(solver.beta, 0.5, atol=1e-13)
    for n in (2, 5, 30):
        solver = make_solver(np.eye(n))
        assert solver.run(1e-10, MANY) == CONVERGED
        assert check(np.eye(n), solver, 1e-10) == pytest.approx(1 - 1 / n, rel=1e-10)
    # A ridge alone is a simplex of points at right angles: two of them are the ends of a diameter.
    solver = make_solver(np.zeros((2, 2)), ridge=np.array([1.0, 3.0]))
    assert solver.run(1e-12, MANY) == CONVERGED
    assert check(np.zeros((2, 2)), solver, 1e-12, [1.0, 3.0]) == pytest.approx(1.0, rel=1e-12)
    for K in (np.zeros((4, 4)), np.full((4, 4), 2.0), np.array([[7.0]])):
        solver = make_solver(K)
        assert solver.run(1e-10, MANY) == CONVERGED
        assert solver.updates == 0


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_warm_start(ridge):
    K = gaussian(normal(4, 60, 2))
    cold = make_solver(K, ridge=ridge)
    assert cold.run(1e-8, MANY) == CONVERGED
    again = make_solver(K, ridge=ridge, beta=cold.beta)
    assert again.run(1e-7, MANY) == CONVERGED
    assert again.updates == 0
    other = K + 0.001 * gaussian(normal(4, 60, 2), 2.0)
    near = make_solver(other, ridge=ridge, beta=cold.beta)
    assert near.run(1e-8, MANY) == CONVERGED
    far = make_solver(other, ridge=ridge)
    far.run(1e-8, MANY)
    assert near.updates < far.updates
    assert check(other, near, 1e-8, ridge) == pytest.approx(check(other, far, 1e-8, ridge), 2e-8)


def test_pauses_change_nothing():
    K = gaussian(normal(5, 40, 3))
    whole, paused = make_solver(K), make_solver(K)
    assert whole.run(1e-8, MANY) == CONVERGED
    steps = 0
    while paused.run(1e-8, 1) == PAUSED:
        steps += 1
    assert steps == whole.updates == paused.updates > 10
    np.testing.assert_array_equal(paused.beta, whole.beta)
    np.testing.assert_array_equal(paused.fitted, whole.fitted)


@pytest.mark.parametrize("batch", [0, 1, 3, 100])
@pytest.mark.parametrize("kind", [_core.BallDouble, _core.BallFloat])
def test_rows_on_demand(kind, batch):
    dtype = np.float64 if kind is _core.BallDouble else np.float32
    # Few points decide about the ball, so that most rows need not be there.
    K = (lambda X: X @ X.T)(normal(6, 200, 2)).astype(dtype)
    whole, solver = make_solver(K, kind=kind), make_solver(K, kind=kind, lend=False)
    assert whole.run(1e-6, MANY) == CONVERGED
    lent = set()
    while (state := solver.run(1e-6, MANY)) == NEEDS_ROWS:
        wanted = solver.wanted(batch)
        assert 1 <= len(wanted) <= batch + 1
        assert len(set(wanted)) == len(wanted)
        assert not lent & set(wanted)
        lent |= set(wanted)
        solver.lend(wanted, np.ascontiguousarray(K[wanted]))
    assert state == CONVERGED
    np.testing.assert_array_equal(solver.beta, whole.beta)
    np.testing.assert_array_equal(solver.fitted, whole.fitted)
    if batch < 100:
        assert len(lent) < 100


def test_wanted_rows_are_the_far_ones():
    X = np.array([[0.0], [1.0], [-9.0], [2.0], [10.0]])
    K = X @ X.T
    solver = make_solver(K, lend=False, beta=np.full(5, 0.2))
    assert solver.run(1e-6, MANY) == NEEDS_ROWS
    assert solver.wanted(1).tolist() == [2, 4]  # farthest from the mean 0.8, then the next
    assert solver.wanted(0).tolist() == [2]
    solver.lend(np.array([2]), K[[2]])
    assert solver.run(1e-6, MANY) == NEEDS_ROWS
    assert 2 not in solver.wanted(100)


def test_tolerance_zero_ends_at_the_limit_of_the_arithmetic():
    for K in (gaussian(normal(7, 50, 2)), gaussian(normal(8, 30, 1), 0.01), np.eye(20)):
        solver = make_solver(K)
        assert solver.run(0.0, MANY) in (CONVERGED, STALLED)
        check(K, solver, 1e-7, drift=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_rows_that_are_not_numbers_end_the_run(bad):
    for K in (np.full((5, 5), bad), np.eye(5) + np.diag([0, 0, 0, bad], 1)):
        solver = make_solver(np.eye(5), lend=False)
        solver.lend(np.arange(5), np.ascontiguousarray(K))
        for _ in range(3):
            assert solver.run(1e-6, 1000) in (CONVERGED, PAUSED, STALLED)


ONE, INDEX = np.ones(4), np.arange(4)


def small(kind=_core.BallDouble, diagonal=ONE, ridge=ONE):
    return kind(diagonal, ridge)


TYPE_ERRORS = {
    "single diagonal": lambda: small(diagonal=ONE.astype(np.float32)),
    "integers": lambda: small(diagonal=np.ones(4, dtype=int)),
    "list": lambda: small(diagonal=[1.0] * 4),
    "table": lambda: small(diagonal=np.eye(4)),
    "no ridge": lambda: small(ridge=None),
    "strided": lambda: small(diagonal=np.ones(8)[::2]),
    "single start": lambda: small().start(ONE.astype(np.float32), ONE),
    "float index": lambda: small().lend(INDEX * 1.0, np.eye(4)),
    "single rows": lambda: small().lend(INDEX, np.eye(4, dtype=np.float32)),
    "double rows": lambda: small(_core.BallFloat).lend(INDEX, np.eye(4)),
    "Fortran order": lambda: small().lend(INDEX[:3], np.asfortranarray(np.ones((3, 4)))),
    "rows of text": lambda: small().lend(INDEX, "rows"),
    "no rows": lambda: small().lend(INDEX, None),
    "negative count": lambda: small().wanted(-1),
    "text for a tolerance": lambda: small().run("tight", 10),
    "half an update": lambda: small().run(1e-3, 1.5),
}


@pytest.mark.parametrize("call", TYPE_ERRORS.values(), ids=TYPE_ERRORS)
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call()


VALUE_ERRORS = {
    "short ridge": (lambda: small(ridge=ONE[:2]), "one entry per row"),
    "long ridge": (lambda: small(ridge=np.ones(9)), "one entry per row"),
    "no points": (lambda: small(diagonal=ONE[:0], ridge=ONE[:0]), "at least one row"),
    "negative diagonal": (lambda: small(diagonal=-ONE), "not negative"),
    "diagonal not a number": (lambda: small(diagonal=np.nan * ONE), "finite"),
    "infinite ridge": (lambda: small(ridge=np.inf * ONE), "finite"),
    "negative ridge": (lambda: small(ridge=-ONE), "not negative"),
    "short start": (lambda: small().start(ONE[:2] / 2, ONE), "one entry per row"),
    "long fitted": (lambda: small().start(ONE / 4, np.ones(9)), "one entry per row"),
    "start off the simplex": (lambda: small().start(ONE, ONE), "sum to one"),
    "negative start": (lambda: small().start(np.array([2.0, -1, 0, 0]), ONE), "not negative"),
    "start not a number": (lambda: small().start(np.nan * ONE, ONE), "finite"),
    "fitted not a number": (lambda: small().start(ONE / 4, np.nan * ONE), "finite"),
    "rows of another length": (lambda: small().lend(INDEX, np.eye(5)), "wrong shape"),
    "more rows than numbers": (lambda: small().lend(INDEX[:2], np.eye(4)), "wrong shape"),
    "row 4 of 4": (lambda: small().lend(np.array([4]), np.ones((1, 4))), "in range"),
    "row -1": (lambda: small().lend(np.array([-1]), np.ones((1, 4))), "in range"),
    "negative tolerance": (lambda: small().run(-1e-3, 10), "tol"),
    "tolerance not a number": (lambda: small().run(np.nan, 10), "tol"),
}


@pytest.mark.parametrize(("call", "message"), VALUE_ERRORS.values(), ids=VALUE_ERRORS)
def test_wrong_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# enclosing_ball


def random_gram(seed):
    """Draw a Gram matrix: of low rank, smooth or of very different lengths, some rows twice."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 35)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    if seed % 4 == 0:
        X[n // 2 :] = X[: n - n // 2]
    kinds = [X @ X.T, gaussian(X, rng.uniform(0.01, 3)), (X @ X.T + 1) ** 3, np.eye(n) + X @ X.T]
    return kinds[seed % 3 if seed < 21 else 3] * 10 ** rng.uniform(-10, 10)


def check_ball(ball, K, rounding=1e-12):
    """Check what a ball says about itself."""
    K = np.asarray(K, dtype=float)
    size = np.abs(K).max()
    beta = ball.centre
    assert beta.shape == (len(K),)
    assert (beta >= 0).all()
    assert beta.sum() == pytest.approx(1, abs=1e-12)
    upper, lower = bounds(K, beta)
    slack = rounding * size
    assert ball.squared_radius >= upper - slack  # every point lies within
    assert ball.squared_radius - ball.gap <= lower + slack  # and no ball is smaller than that
    assert ball.squared_radius == pytest.approx(upper, abs=slack)
    assert ball.gap >= 0
    assert ball.radius == np.sqrt(ball.squared_radius)
    np.testing.assert_allclose(ball.fitted, K @ beta, atol=slack)


@pytest.mark.parametrize("seed", range(26))
def test_random_grams(seed):
    K = random_gram(seed)
    expected, _ = ball_oracle(K)
    ball = enclosing_ball(K, tol=1e-9)
    check_ball(ball, K)
    assert ball.squared_radius == pytest.approx(expected, rel=1e-8)
    assert enclosing_ball(K).gap <= 1e-8 * expected * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [{"tol": 0.3}, {"tol": 1e-2}, {"max_iter": 1}, {"max_iter": 4}])
def test_a_ball_cut_short_never_understates_its_gap(seed, limits):
    K = random_gram(seed)
    expected, _ = ball_oracle(K)
    ball = enclosing_ball(K, **limits)
    check_ball(ball, K)
    assert ball.squared_radius >= expected * (1 - 1e-9)
    assert ball.squared_radius - ball.gap <= expected * (1 + 1e-9)
    if "tol" in limits:
        assert ball.gap <= limits["tol"] * ball.squared_radius


def test_many_points():
    X = normal(9, 1000, 3)
    ball = enclosing_ball(X @ X.T)
    assert ball.gap <= 1e-8 * ball.squared_radius
    check_ball(ball, X @ X.T)
    # Four points hold a ball in three dimensions; all others keep no weight.
    assert 2 <= (ball.centre > 1e-6).sum() <= 4
    centre = ball.centre @ X
    assert np.linalg.norm(X - centre, axis=1).max() == pytest.approx(ball.radius, rel=1e-7)


def test_points_that_nearly_lie_in_a_plane():
    # Four points in use, which nearly depend on each other.
    X = np.random.default_rng(31).normal(size=(60, 6))
    X[:, 3] = np.round(X[:, 3])
    sizes = np.square(np.ptp(X, axis=0)[[0, 2, 3]] / 2)
    for weights in ([1.132, 0.0013, 0.5502], [1.132, 1e-5, 0.5502], [1.132, 1e-8, 0.5502]):
        P = X[:, [0, 2, 3]] * np.sqrt(weights / sizes)
        ball = enclosing_ball(P @ P.T, tol=1e-9, max_iter=300_000)
        assert ball.gap <= 1e-9 * ball.squared_radius
        check_ball(ball, P @ P.T)


def test_known_balls():
    for n in (1, 2, 9):
        ball = enclosing_ball(np.eye(n))
        assert ball.squared_radius == pytest.approx(1 - 1 / n, abs=1e-8)
        np.testing.assert_allclose(ball.centre, 1 / n, atol=1e-4)
    for K in (np.zeros((3, 3)), np.full((5, 5), 4.0), [[0.0]], [[7.0]]):
        ball = enclosing_ball(K)
        assert ball.squared_radius == ball.gap == ball.radius == 0
        check_ball(ball, K)
    X = np.array([[0, 0], [6, 0], [2, 1], [6, 0], [3, 3]], dtype=float)  # one twice, one on the rim
    assert enclosing_ball(X @ X.T).squared_radius == pytest.approx(9, rel=1e-8)
    triangle = np.array([[0, 0], [4, 0], [2, 2 * np.sqrt(3)]])
    assert enclosing_ball(triangle @ triangle.T).squared_radius == pytest.approx(16 / 3, rel=1e-8)


@pytest.mark.parametrize("offset", [1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_a_common_offset_costs_no_digits(seed, offset):
    # Whole numbers, so that the sums themselves are exact.
    X = np.random.default_rng(seed).integers(-20, 20, size=(15, 3)).astype(float)
    K = X @ X.T
    expected, _ = ball_oracle(K)
    shifted = K + offset  # translated along an axis of its own
    assert enclosing_ball(shifted).squared_radius == pytest.approx(expected, rel=1e-8)
    moved = (X + np.sqrt(offset).round()) @ (X + np.sqrt(offset).round()).T
    assert enclosing_ball(moved).squared_radius == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300])
def test_scale(scale):
    K = random_gram(7)
    K /= K.max()
    plain, scaled = enclosing_ball(K), enclosing_ball(scale * K)
    assert scaled.squared_radius / scale == pytest.approx(plain.squared_radius, rel=1e-8)
    assert scaled.radius == pytest.approx(np.sqrt(scale) * plain.radius, rel=1e-8)
    assert scaled.gap / scale <= 1.1e-8 * plain.squared_radius


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    X=st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-30, 30).map(float))
    ),
    order=st.randoms(use_true_random=False),
)
def test_between_half_a_diameter_and_its_bound(X, order):
    K = X @ X.T
    n = len(X)
    ball = enclosing_ball(K)
    check_ball(ball, K)
    apart = np.square(X[:, None] - X).sum(axis=2).max()
    tol = 1e-8 * max(apart, 1)
    assert apart / 4 - tol <= ball.squared_radius <= apart / 2 + tol  # Jung, in any dimension
    assert ball.squared_radius >= K.trace() / n - K.sum() / n**2 - tol  # the centred trace
    rows = list(range(n))
    order.shuffle(rows)
    other = enclosing_ball(K[np.ix_(rows, rows)])
    assert other.squared_radius == pytest.approx(ball.squared_radius, rel=3e-8, abs=tol)
    more = np.vstack([X, X[:1], X.mean(axis=0)])  # a copy and a point inside change nothing
    grown = enclosing_ball(more @ more.T)
    assert grown.squared_radius == pytest.approx(ball.squared_radius, rel=3e-8, abs=tol)


def test_input_of_any_kind_is_left_alone():
    K = random_gram(2)
    before = K.copy()
    ball = enclosing_ball(K)
    np.testing.assert_array_equal(K, before)
    ints = np.array([[2, 1], [1, 3]])
    same = [
        ints,
        ints.tolist(),
        ints.astype(np.float32),
        pd.DataFrame(ints),
        np.asfortranarray(ints),
    ]
    for gram in same:
        assert enclosing_ball(gram).squared_radius == pytest.approx(0.75, rel=1e-7)
        assert enclosing_ball(gram).fitted.dtype == np.float64
    K[0, 1] += 1e-10 * np.abs(K).max()  # rounding of a product of matrices
    assert enclosing_ball(K).squared_radius == pytest.approx(ball.squared_radius, rel=1e-7)


REFUSED = {
    "vector": ([1.0, 2.0], {}, "square matrix"),
    "not square": (np.ones((2, 3)), {}, "square matrix"),
    "three dimensions": (np.ones((2, 2, 2)), {}, "square matrix"),
    "no rows": (np.empty((0, 0)), {}, "at least one row"),
    "ragged": ([[1.0, 2.0], [3.0]], {}, "square matrix"),
    "None": (None, {}, "square matrix"),
    "text": ("gram", {}, "square matrix"),
    "words": ([["a", "b"], ["c", "d"]], {}, "of real numbers"),
    "numbers as text": ([["1", "0"], ["0", "1"]], {}, "of real numbers"),
    "complex": (np.eye(2) * 1j, {}, "of real numbers"),
    "dates": (np.zeros((2, 2), dtype="datetime64[s]"), {}, "of real numbers"),
    "sparse": (sp.eye(3), {}, "square matrix"),
    "nan": ([[1.0, np.nan], [np.nan, 1.0]], {}, "every entry must be finite"),
    "inf": ([[np.inf, 0.0], [0.0, 1.0]], {}, "every entry must be finite"),
    "asymmetric": ([[1.0, 0.5], [0.4, 1.0]], {}, "must be symmetric"),
    "slightly asymmetric": ([[1.0, 0.5], [0.5 + 1e-7, 1.0]], {}, "must be symmetric"),
    "negative diagonal": ([[1.0, 0.0], [0.0, -1.0]], {}, "diagonal.*not negative"),
    "indefinite": ([[1.0, 5.0], [5.0, 1.0]], {}, "semi-definite.*points 0 and 1"),
    "indefinite without a diagonal": ([[0.0, 1.0], [1.0, 0.0]], {}, "semi-definite"),
    "indefinite in part": ([[1.0, 0, 3], [0, 1, 0], [3, 0, 1]], {}, "points 0 and 2"),
    "tol of zero": (np.eye(2), {"tol": 0}, "tol.*got 0"),
    "negative tol": (np.eye(2), {"tol": -1.0}, "tol.*got -1"),
    "tol not a number": (np.eye(2), {"tol": np.nan}, "tol.*got nan"),
    "infinite tol": (np.eye(2), {"tol": np.inf}, "tol.*got inf"),
    "text for a tol": (np.eye(2), {"tol": "tight"}, "tol.*got 'tight'"),
    "no tol": (np.eye(2), {"tol": None}, "tol.*got None"),
    "no moves": (np.eye(2), {"max_iter": 0}, "max_iter.*got 0"),
    "negative moves": (np.eye(2), {"max_iter": -1}, "max_iter.*got -1"),
    "half a move": (np.eye(2), {"max_iter": 2.5}, "max_iter.*got 2.5"),
    "text for moves": (np.eye(2), {"max_iter": "many"}, "max_iter.*got 'many'"),
    "moves not a number": (np.eye(2), {"max_iter": np.nan}, "max_iter.*got nan"),
    "infinite moves": (np.eye(2), {"max_iter": np.inf}, "max_iter.*got inf"),
}


@pytest.mark.parametrize(("K", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_one_sentence(K, options, message):
    with pytest.raises((InputError, TypeError), match=message) as caught:
        enclosing_ball(K, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert 10 < len(text) < 200


def test_the_largest_numbers():
    ball = enclosing_ball(1.5e308 * np.eye(3))
    assert ball.squared_radius / 1.5e308 == pytest.approx(2 / 3, rel=1e-8)


def test_a_tight_tolerance_is_met():
    K = gaussian(normal(1, 31, 1), 0.1)
    ball = enclosing_ball(K, tol=1e-11)
    assert ball.gap <= 1e-11 * ball.squared_radius
