"""First-order methods for capped losses: prox step, bounds, rates, and the optimum."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from capped_cases import KINDS, setting
from kernelweave._threads import threads
from kernelweave.banks import make_bank
from kernelweave.kernels import Linear
from kernelweave.losses import CVaRHinge
from kernelweave.solvers import Limits, Problem, gradient_play, mirror_prox
from kernelweave.solvers.mirror_prox import Average, Functions, GameOptions, group_shrink
from kernelweave.weights import Simplex
from noisy_oracles import capped_oracle, group_prox_oracle, random_noisy_problem
from quick import first

NORMS = st.one_of(st.sampled_from([0.0, 1.0, 2.0, 3.0]), st.floats(1e-150, 100))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


# The prox step


@settings(max_examples=80, deadline=None)
@given(
    norms=st.lists(NORMS, min_size=1, max_size=10),
    strength=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-3, 1e3)),
)
@example(norms=[3.0, 1.5], strength=1.0)  # the second is exactly at the cut
@example(norms=[2.0, 2.0, 2.0, 0.0], strength=5.0)
@example(norms=[0.0, 0.0], strength=1.0)
@example(norms=[1e-200, 0.0], strength=1.0)
def test_group_shrink(norms, strength):
    norms = np.array(norms)
    factors = group_shrink(norms, strength)
    assert ((factors >= 0) & (factors <= 1)).all()
    wanted = group_prox_oracle(norms, strength)
    assert_allclose(factors * norms, wanted, rtol=0, atol=1e-9 * max(1.0, norms.max()))


@pytest.mark.parametrize("strength", [0.01, 0.5, 20.0])
def test_group_shrink_agrees_with_bisection(strength):
    norms = np.abs(np.random.default_rng(0).normal(size=30)) * 10
    low, high = 0.0, norms.sum()
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.maximum(0, norms - strength * t).sum() > t else (low, t)
    found = group_shrink(norms, strength) * norms
    assert_allclose(found, np.maximum(0, norms - strength * high), rtol=0, atol=1e-9)
    assert found.sum() == pytest.approx(high, abs=1e-9)


# Functions and averages


def test_functions_keep_values_and_norms():
    p = random_noisy_problem(1, n=15, m=3, n_classes=3, spread=0)
    rng = np.random.default_rng(0)
    f, average, history = Functions.zero(3, p.Y.shape), Average(), []
    assert not f.total.any()
    for _ in range(5):
        Z = rng.normal(size=p.Y.shape)
        products = np.einsum("jnk,ko->jno", p.grams, Z)
        f = f.moved(0.3, Z, products).scaled(rng.uniform(0.2, 1.0, 3))
        average.add(f, Z, products)
        history.append((f.dual_coef, Z, products))
    assert_allclose(f.values, np.einsum("jnk,jko->jno", p.grams, f.dual_coef), atol=1e-12)
    squares = np.einsum("jno,jnk,jko->j", f.dual_coef, p.grams, f.dual_coef)
    assert_allclose(f.squares, squares, rtol=1e-12)
    assert_allclose(f.norms, np.sqrt(squares), rtol=1e-12)
    assert_allclose(f.total, f.values.sum(axis=0))
    dual_coef, Z, products = (np.mean(part, axis=0) for part in zip(*history, strict=True))
    mean = average.functions
    assert_allclose(mean.dual_coef, dual_coef, atol=1e-14)
    assert_allclose(average.alpha, Z, atol=1e-14)
    assert_allclose(average.products, products, atol=1e-12)
    assert_allclose(
        mean.squares, np.einsum("jno,jnk,jko->j", dual_coef, p.grams, dual_coef), rtol=1e-10
    )
    f.squares[:] = -1
    f.refresh()
    assert_allclose(f.squares, squares, rtol=1e-12)


# The game


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", [0, 3])
def test_every_pair_brackets_the_optimum(seed, slack, exact):
    """Weak duality at random pairs, and both bounds at the solution."""
    s = setting(seed, slack, exact)
    p, game, oracle = s.problem, s.game(), s.oracle
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.01, 1.0, 30.0):
        dual_coef = size * rng.normal(size=(len(p.grams), *p.Y.shape)) / s.n
        f = Functions(dual_coef, np.einsum("jnk,jko->jno", p.grams, dual_coef), np.empty(0))
        f.refresh()
        alpha = game.project(rng.normal(0.5, 1.0, size=p.Y.shape))
        assert game.primal(f) >= oracle.lower * (1 - 1e-12)
        assert game.dual(alpha, game.products(alpha)) <= oracle.upper * (1 + 1e-12)
    alpha = game.project(oracle.alpha)
    assert_allclose(alpha, oracle.alpha, atol=1e-9)
    assert game.dual(alpha, game.products(alpha)) == pytest.approx(oracle.value, rel=1e-8)
    dual_coef = oracle.weights[:, None, None] * (p.Y * alpha) / (s.n * p.lam)
    f = Functions(dual_coef, np.einsum("jnk,jko->jno", p.grams, dual_coef), np.empty(0))
    f.refresh()
    assert game.primal(f) == pytest.approx(oracle.value, rel=1e-6)
    assert_allclose(game.ascent(f), (1 - p.Y * f.total) / s.n, atol=1e-15)


# The published method


# Restarts


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", first(1, [2, 3]))
def test_restarts_reach_the_optimum(seed, slack, exact):
    s = setting(seed, slack, exact)
    result, oracle, lam = s.run(tol=1e-5, max_iter=3000), s.oracle, s.problem.lam
    assert result.converged
    assert result.history[-1].solves < 3000
    assert lam * result.objective == pytest.approx(oracle.value, rel=2e-5)
    assert lam * result.objective >= oracle.lower * (1 - 1e-12)
    assert lam * result.lower_bound <= oracle.upper * (1 + 1e-12)
    assert result.gap <= 1e-5 * result.size * (1 + 1e-9)
    # What is returned is what was valued.
    p, dual_coef = s.problem, result.dual_coef
    assert result.weights.sum() == pytest.approx(1)
    quadratic_forms = np.einsum("no,jnk,ko->j", dual_coef, p.grams, dual_coef)
    fitted = np.tensordot(result.weights, p.grams, axes=1) @ dual_coef
    loss, _ = s.loss_function.value(fitted, p.Y, s.cost)
    value = Simplex().penalty(result.weights * np.sqrt(quadratic_forms)) + loss
    assert result.objective == pytest.approx(value, rel=1e-10)
    alpha = p.Y * dual_coef * s.n * lam
    assert alpha.min() >= -1e-12
    assert alpha.max() <= (1 + slack) * (1 + 1e-12)


def test_restarts_are_faster_than_the_published_method():
    s = setting(3)
    fast, plain = s.run(max_iter=400), s.run(restarts=False, max_iter=400)
    assert fast.gap < 0.05 * plain.gap


def test_the_largest_eigenvector_may_be_orthogonal_to_the_ones():
    """Centred data, for which a power iteration from the ones finds nothing."""
    x = np.arange(1, 11) * 100.0
    X, n, lam = np.concatenate([x, -x])[:, None], 20, 100.0
    Y = np.where(np.arange(n) % 3 > 0, 1.0, -1.0)[:, None]
    loss_function, bank = CVaRHinge((0.5,), free=0.1), make_bank([Linear()], X, normalize=None)
    cost = np.full_like(Y, 1 / (n * lam))
    task = Problem(bank, Y, cost, loss_function, Simplex())
    result = mirror_prox(task, Limits(1e-4, 2000), GameOptions(lam, n))
    assert result.converged
    wanted = capped_oracle((X @ X.T)[None], Y, lam / 0.9, 0.5, slack=1 / 9, exact=True)
    assert lam * result.objective == pytest.approx(0.9 * wanted.value, rel=1e-4)


def test_report_sees_the_history():
    steps = []
    result = setting(1).run(restarts=False, max_iter=50, callback=steps.append)
    assert tuple(steps) == result.history[:5]
    assert [step.solves for step in steps] == [10, 20, 30, 40, 50]


def test_steps_that_are_no_multiple_of_the_checks_are_judged_too():
    result = setting(1).run(restarts=False, max_iter=7)
    assert result.history[-1].solves == 7
    assert np.isfinite(result.objective)
    assert not result.converged


# Plain subgradient steps


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", [1, 3])
def test_subgradient_steps_agree_within_their_gap(seed, slack, exact):
    s = setting(seed, slack, exact)
    result, oracle, lam = s.run(gradient_play, max_iter=200), s.oracle, s.problem.lam
    assert lam * result.objective >= oracle.lower * (1 - 1e-12)
    assert lam * result.lower_bound <= oracle.upper * (1 + 1e-12)
    own = result.history[:-1]
    assert all(lam * step.lower <= oracle.upper * (1 + 1e-12) for step in own)
    assert all(lam * step.upper >= oracle.lower * (1 - 1e-12) for step in own)
    assert own[-1].upper - own[-1].lower < 0.5 * (own[0].upper - own[0].lower)
    assert lam * result.gap < 0.5 * oracle.value


def test_subgradient_steps_are_slower():
    s = setting(3)
    plays, prox = s.run(gradient_play, max_iter=400), s.run(max_iter=400)
    assert plays.gap > 5 * prox.gap
