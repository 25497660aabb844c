"""Capped losses solved by the bundle: optimum, carried-over solutions, starts."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave._threads import threads
from kernelweave.banks import make_bank
from kernelweave.kernels import Linear, Precomputed
from kernelweave.losses import CVaRHinge
from kernelweave.solvers import Limits, Problem, WarmStart, cvar_by_rescaling
from kernelweave.weights import Simplex
from noisy_oracles import capped_oracle, least_mean_hinge, random_noisy_problem, structure_oracle
from quick import first


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


class Setting:
    """One problem with everything that the solver takes."""

    def __init__(self, seed, **changes):
        p = self.problem = random_noisy_problem(seed, **changes)
        self.bank = make_bank(
            [Precomputed(gram) for gram in p.grams], np.arange(len(p.Y))[:, None], normalize=None
        )
        self.loss_function = CVaRHinge((p.cap,) * p.Y.shape[1])
        self.box = np.full_like(p.Y, 1 / len(p.Y))

    def run(self, *, lam=None, tol=1e-6, max_iter=500, start=None, callback=None):
        lam = self.problem.lam if lam is None else lam
        task = Problem(self.bank, self.problem.Y, self.box / lam, self.loss_function, Simplex())
        return cvar_by_rescaling(task, Limits(tol, max_iter, callback), start)

    def fitted(self, result):
        return np.tensordot(result.weights, self.problem.grams, axes=1) @ result.dual_coef


@cache
def setting(seed, **changes):
    return Setting(seed, **changes)


@cache
def path_of(seed):
    s = setting(seed, n=24, m=3, n_classes=2, spread=0, cap=0.4)
    p = s.problem
    return s, structure_oracle(p.grams, p.Y, p.lam, p.cap)


def check(s, result, lam, tol):
    """The result is feasible, and what it says of itself is true."""
    p, n = s.problem, len(s.problem.Y)
    assert result.weights.min() >= 0
    assert result.weights.sum() == pytest.approx(1)
    alpha = n * lam * p.Y * result.dual_coef
    assert alpha.min() >= -1e-12
    assert alpha.max() <= 1 + 1e-12
    assert (alpha.sum(axis=0) <= n * p.cap * (1 + 1e-12)).all()
    quadratic_forms = np.einsum("no,jnk,ko->j", result.dual_coef, p.grams, result.dual_coef)
    omega = result.weights @ np.sqrt(np.maximum(quadratic_forms, 0))
    loss, _ = s.loss_function.value(s.fitted(result), p.Y, s.box / lam)
    assert result.objective == pytest.approx(0.5 * omega**2 + loss, rel=1e-10)
    assert result.lower_bound <= result.objective
    assert result.gap <= tol * result.size * (1 + 1e-9)
    assert result.size <= result.objective * (1 + 1e-12)
    last = result.history[-1]
    assert last.upper == pytest.approx(result.objective, rel=1e-12)
    assert not result.intercept.any()


@pytest.mark.parametrize("seed", range(6))
def test_optimum(seed):
    s, tol = setting(seed), 1e-6
    p, result = s.problem, s.run()
    assert result.converged
    check(s, result, p.lam, tol)
    oracle = capped_oracle(p.grams, p.Y, p.lam, p.cap)
    assert p.lam * result.objective == pytest.approx(oracle.value, rel=2e-6)
    assert p.lam * result.objective >= oracle.lower * (1 - 1e-12)
    assert p.lam * result.lower_bound <= oracle.upper * (1 + 1e-12)


@pytest.mark.parametrize("factor", [1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("seed", first(1, [1, 3, 7]))
def test_the_classifier_is_that_of_the_plain_path(seed, factor):
    """A cap that binds hides a plain problem at a smaller lam, however small its part is."""
    s, path = path_of(seed)
    p = s.problem
    lam = factor * p.lam
    assert path.gamma < 1
    result = s.run(lam=lam, tol=1e-6)
    check(s, result, lam, 1e-6)
    fitted = factor * s.fitted(result)[:, 0]
    assert_allclose(fitted, path.f, rtol=0, atol=2e-3 * np.abs(path.f).max())
    gamma = 1 - s.loss_function.thresholds(s.fitted(result), p.Y, s.box / lam)[0]
    assert factor * gamma == pytest.approx(path.gamma, rel=2e-3)
    # The cap is reached.
    assert (lam * np.abs(result.dual_coef)).sum() == pytest.approx(p.cap, rel=1e-9)


def test_starting_from_the_solution_is_done_at_once():
    for seed, changes in ((1, {}), (3, {"n_classes": 2}), (5, {"n_classes": 3, "cap": 0.3})):
        s = setting(seed, **changes)
        cold = s.run(tol=1e-4)
        warm = s.run(tol=1e-4, start=WarmStart(cold.weights, cold.dual_coef))
        assert warm.converged
        check(s, warm, s.problem.lam, 1e-4)
        assert warm.history[-1].solves <= 2 < cold.history[-1].solves


def test_a_start_that_is_not_feasible_is_made_so():
    s = setting(3, n_classes=2)
    cold = s.run()
    rng = np.random.default_rng(0)
    wild = WarmStart(
        rng.dirichlet(np.ones(s.bank.n_kernels)), 10 * rng.normal(size=cold.dual_coef.shape)
    )
    found = s.run(start=wild)
    check(s, found, s.problem.lam, 1e-6)
    assert found.objective == pytest.approx(cold.objective, rel=2e-6)


def test_limit_on_solves():
    s = setting(3, n_classes=2, spread=0, cap=0.4)
    result = s.run(lam=1e3, tol=1e-8, max_iter=4)
    assert not result.converged
    assert result.history[-1].solves <= 6
    oracle = capped_oracle(s.problem.grams, s.problem.Y, 1e3, s.problem.cap)
    assert 1e3 * result.objective >= oracle.lower * (1 - 1e-12)
    assert 1e3 * result.lower_bound <= oracle.upper * (1 + 1e-12)


def test_report_is_called():
    s, steps = setting(3, n_classes=2, spread=0, cap=0.4), []
    result = s.run(callback=steps.append)
    assert steps[-1].solves <= result.history[-1].solves
    assert len(steps) >= 2


@pytest.mark.parametrize("below", [0.5, 0.9])
def test_zero_is_best_under_a_cap_below_the_least_loss(below):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], size=(30, 1))
    kernels = [Linear(columns=0), Linear(columns=1)]
    grams = np.stack([np.outer(x, x) for x in X.T])
    cap = below * least_mean_hinge(grams, Y)
    bank = make_bank(kernels, X, normalize=None)
    task = Problem(bank, Y, np.full_like(Y, 1 / 3), CVaRHinge((cap,)), Simplex())
    result = cvar_by_rescaling(task, Limits(1e-3, 100))
    assert 0.1 * result.objective == pytest.approx(cap, rel=1e-9)
    assert 0.1 * result.lower_bound == pytest.approx(cap, rel=1e-6)
    assert result.converged
    assert result.history[-1].solves < 100
    fitted = np.tensordot(result.weights, grams, axes=1) @ result.dual_coef
    assert np.abs(fitted).max() < 1e-6
