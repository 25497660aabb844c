"""Banks and balls: what the radius criteria read."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernelweave import MKLClassifier, MKLRegressor, enclosing_ball
from kernelweave._threads import threads
from kernelweave.banks import (
    Workspace,
    ball_with_centre,
    build,
    make_bank,
    solve_ball,
    squared_radii,
)
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed
from radius_oracles import ball_oracle

N = 48
X = np.random.default_rng(0).normal(size=(N, 3))
TABLE = np.column_stack([X, np.arange(N)])
KERNELS = [RBF(3.0, columns=0), RBF(0.8, columns=[0, 1, 2]), Linear(columns=[0, 1, 2])]
KERNELS += [1e4 * Polynomial(2, columns=[0, 1, 2]), Laplacian(1.0, columns=[0, 1, 2])]
KERNELS += [Precomputed(1e-3 * RBF(0.5)(X), columns=[3])]
GRAMS = np.stack([kernel(TABLE) for kernel in KERNELS])


@pytest.fixture(autouse=True)
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


def simplex(seed=0, used=N):
    beta = np.zeros(N)
    beta[:used] = np.random.default_rng(seed).dirichlet(np.ones(used))
    return beta


@pytest.fixture(params=["float64", "coarse", "float32"])
def bank(request, monkeypatch):
    if request.param == "float32":
        monkeypatch.setattr(build, "_SMALL", 10)
    tol = 1e-6 if request.param == "float64" else 1e-3
    tol = 3e3 if request.param == "coarse" else tol
    bank = make_bank(KERNELS, TABLE, normalize=None, tol=tol)
    assert (bank.dtype == np.float32) == (request.param == "float32")
    assert {"factor", "distances", "dense"} == {row["form"] for row in bank.summary()}
    return bank


def test_spreads(bank):
    for beta in (simplex(), simplex(1, 5), np.eye(N)[3]):
        exact = np.array([beta @ K.diagonal() - beta @ K @ beta for K in GRAMS])
        # What factors leave out makes them larger, never smaller.
        found, left = bank.spreads(beta), bank.residual_forms(beta[:, None])
        slack = 1e-6 * np.trace(GRAMS, axis1=1, axis2=2) / N
        assert (found - left <= exact + slack).all()
        assert (exact <= found + slack).all()
        some = np.array([4, 1])
        np.testing.assert_allclose(bank.subset(some).spreads(beta), found[some], rtol=1e-9)


def test_exact_diagonal(bank):
    weights = np.array([0.5, 0.0, 2.0, 1e-4, 1.0, 3.0])
    expected = np.tensordot(weights, GRAMS, axes=1).diagonal()
    np.testing.assert_allclose(bank.exact_diagonal(weights), expected, rtol=1e-12)


def test_squared_radii(bank):
    exact = np.array([ball_oracle(K)[0] for K in GRAMS])
    left = bank.residual_forms(np.eye(N)[:, :1]) / exact
    for tol in (1e-2, 1e-5):
        assert (np.abs(squared_radii(bank, tol=tol) / exact - 1) <= tol + 1e-5 + left).all()


@pytest.mark.parametrize("ridge", [None, "by row"])
@pytest.mark.parametrize("start", [None, "somewhere"])
def test_ball_of_a_combination(bank, ridge, start):
    weights = np.array([1.0, 0.5, 0.1, 1e-5, 1.0, 100.0])
    ridge = np.linspace(0, 1, N) if ridge == "by row" else None
    start = 7 * simplex(3) if start == "somewhere" else None
    kernel = bank.combine(weights)
    ball = solve_ball(kernel, tol=1e-6, start=start, ridge=ridge)
    K = np.asarray(kernel.dense(), dtype=float)
    full = K + np.diag(np.zeros(N) if ridge is None else ridge)
    exact = enclosing_ball((full + full.T) / 2, tol=1e-8).squared_radius
    assert ball.squared_radius == pytest.approx(exact, rel=1e-5)
    assert ball.gap <= 1e-6 * ball.squared_radius
    np.testing.assert_allclose(ball.fitted, K @ ball.centre, rtol=1e-4, atol=1e-4)
    again = ball_with_centre(
        ball.centre, K @ ball.centre, K.diagonal(), full.diagonal() - K.diagonal()
    )
    assert again.squared_radius == pytest.approx(ball.squared_radius, rel=1e-5)
    short = solve_ball(kernel, tol=1e-9, start=start, ridge=ridge, max_iter=1)
    assert short.squared_radius >= exact * (1 - 1e-5)
    assert short.squared_radius - short.gap <= exact * (1 + 1e-5)


@pytest.mark.parametrize("learner", [MKLClassifier, MKLRegressor])
def test_kernels_of_unit_radius(learner):
    y = (X[:, 0] > 0).astype(int)
    model = learner(KERNELS, normalize="radius", norm=2.0).fit(TABLE, y)
    for scale, K in zip(model.scales_, GRAMS, strict=True):
        assert scale * ball_oracle(K)[0] == pytest.approx(1, rel=1e-4)
    # The scales belong to the training rows; other rows do not change them.
    np.testing.assert_allclose(model.kernel(TABLE[:5]), model.kernel(TABLE)[:5, :5], rtol=1e-9)


def test_rows_without_weight_and_copies_do_not_count():
    y = (X[:, 0] > 0).astype(int)
    kernels = [RBF(0.8), Linear()]
    far, weight = X.copy(), np.ones(N)
    far[:3] *= 50
    weight[:3] = 0
    expected = MKLClassifier(kernels, normalize="radius").fit(X[3:], y[3:]).scales_
    for table in (far, pd.DataFrame(far, columns=list("abc"))):
        model = MKLClassifier(kernels, normalize="radius").fit(table, y, sample_weight=weight)
        np.testing.assert_allclose(model.scales_, expected, rtol=1e-4)
    # Weights other than zero do not matter to a ball.
    heavy = MKLClassifier(kernels, normalize="radius").fit(X, y, 1 + 5 * (np.arange(N) < 9))
    plain = MKLClassifier(kernels, normalize="radius").fit(X, y)
    np.testing.assert_allclose(heavy.scales_, plain.scales_, rtol=1e-4)


def test_constant_kernels_keep_their_size():
    kernels = [Precomputed(np.ones((N, N))), Precomputed(np.zeros((N, N))), Precomputed(GRAMS[1])]
    bank = make_bank(kernels, np.arange(N)[:, None], normalize="radius")
    assert bank.scales[:2].tolist() == [1.0, 1.0]
    assert bank.centred_traces[:2].tolist() == [0.0, 0.0]
    assert bank.scales[2] == pytest.approx(1 / ball_oracle(GRAMS[1])[0], rel=1e-4)


@pytest.mark.parametrize("room", [20, N])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("width", [0.1, 1.0, 5.0])
def test_parts_of_the_points_find_the_same_ball(room, ridge, width):
    """The narrowest kernel has all points at the surface, many more than there is room for."""
    kernel = RBF(width)
    bank = make_bank([kernel], X, normalize=None, on_demand=True, factored=False)
    held = replace(bank, workspace=Workspace(room, np.float64))
    added = np.full(N, ridge)
    exact = solve_ball(
        make_bank([kernel], X, normalize=None).combine(np.ones(1)), tol=1e-10, ridge=added
    )
    start = np.zeros(N)
    start[:3] = 1.0
    for begin in (None, start):
        ball = solve_ball(held.combine(np.ones(1)), tol=1e-6, ridge=added, start=begin)
        assert ball.gap <= 1e-6 * ball.squared_radius
        assert ball.squared_radius == pytest.approx(exact.squared_radius, rel=2e-6)
        assert ball.centre.sum() == pytest.approx(1.0, rel=1e-12)
        np.testing.assert_allclose(ball.fitted, kernel(X) @ ball.centre, atol=1e-12)


def test_parts_of_points_that_are_one_up_to_rounding():
    """In few of these draws rounding makes the gap of a part negative."""
    for seed in range(300):
        random = np.random.default_rng(seed)
        X, start = random.normal(size=(197, 3)), random.random(197)
        bank = make_bank([RBF(1e12)], X, normalize=None, on_demand=True, factored=False)
        held = replace(bank, workspace=Workspace(16, np.float64))
        ball = solve_ball(held.combine(np.ones(1)), tol=1e-5, start=start)
        assert abs(ball.squared_radius) <= 1e-12
