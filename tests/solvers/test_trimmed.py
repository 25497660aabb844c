"""Leaving out the rows that fit worst: alternation, its objective and its end."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from kernelweave._threads import threads
from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed
from kernelweave.losses import Hinge
from kernelweave.solvers import Limits, Problem, newton_bundle, trimmed
from kernelweave.solvers.trimmed import _best_fitted
from kernelweave.weights import Simplex
from noisy_oracles import plain_mkl_oracle, random_noisy_problem
from oracles import solve_mkl
from quick import first


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


@cache
def setting(seed):
    p = random_noisy_problem(seed)
    index = np.arange(len(p.Y))[:, None]
    bank = make_bank([Precomputed(gram) for gram in p.grams], index, normalize=None)
    return p, bank, np.full_like(p.Y, 1 / (len(p.Y) * p.lam))


def run(seed, share, tol=1e-6, max_iter=1000, cost=None, callback=None):
    p, bank, even = setting(seed)
    cost = even if cost is None else cost
    task = Problem(bank, p.Y, cost, Hinge(fit_intercept=False), Simplex())
    return trimmed(task, Limits(tol, max_iter, callback), share)


def losses_of(result, p, cost):
    fitted = np.tensordot(result.weights, p.grams, axes=1) @ result.dual_coef
    return (cost * np.maximum(0, 1 - p.Y * fitted)).sum(axis=1)


def least(losses, sizes, share):
    """Smallest sum of losses when a share of the sizes is kept, by linear programming."""
    bounds = [(0, 1)] * len(losses)
    keep = linprog(losses, A_ub=-sizes[None], b_ub=[-share * sizes.sum()], bounds=bounds)
    return keep.fun


@pytest.mark.parametrize("share", [0.5, 0.77, 0.9])
@pytest.mark.parametrize("seed", first(2, range(4)))
def test_rounds_end_where_neither_step_helps(seed, share):
    p, _, cost = setting(seed)
    result = run(seed, share)
    values = np.array([step.upper for step in result.history])
    assert result.converged
    assert (np.diff(values) <= 1e-6 * values[:-1]).all()
    assert result.objective == values[-1]
    assert result.lower_bound == -np.inf
    # The objective is that of the model with its best choice of rows.
    losses = losses_of(result, p, cost)
    quadratic_forms = np.einsum("no,jnk,ko->j", result.dual_coef, p.grams, result.dual_coef)
    omega = result.weights @ np.sqrt(np.maximum(quadratic_forms, 0))
    chosen = least(losses, cost.sum(axis=1), share)
    assert result.objective == pytest.approx(0.5 * omega**2 + chosen, rel=1e-7)
    # Learning again from the rows kept does not help.
    kept = _best_fitted(losses, cost.sum(axis=1), share)
    again = solve_mkl(p.grams, p.Y, cost * kept[:, None], p=1, loss="hinge", fit_intercept=False)
    assert result.objective <= again.upper * (1 + 1.1e-4)
    # It is never above learning from all rows, and lower where rows are left out.
    plain = plain_mkl_oracle(p.grams, p.Y, p.lam)
    assert p.lam * result.objective < plain.lower


@pytest.mark.parametrize("seed", range(4))
def test_keeping_all_rows_is_plain_learning(seed):
    p, bank, cost = setting(seed)
    result = run(seed, 1.0)
    task = Problem(bank, p.Y, cost, Hinge(fit_intercept=False), Simplex())
    plain = newton_bundle(task, Limits(1e-6, 1000))
    assert result.converged
    assert result.objective == pytest.approx(plain.objective, rel=1e-10)
    assert_allclose(result.dual_coef, plain.dual_coef, rtol=0, atol=1e-6 * cost.max())
    assert p.lam * result.objective == pytest.approx(
        plain_mkl_oracle(p.grams, p.Y, p.lam).value, rel=2e-6
    )


@pytest.mark.parametrize("tol", [1e-3, 1e-2, 0.1, 0.3])
def test_the_best_of_rough_rounds_is_returned(tol):
    for seed in (11, 29):
        p, _, cost = setting(seed)
        result = run(seed, p.cap, tol)
        assert result.objective == min(step.upper for step in result.history)
        losses = losses_of(result, p, cost)
        quadratic_forms = np.einsum("no,jnk,ko->j", result.dual_coef, p.grams, result.dual_coef)
        omega = result.weights @ np.sqrt(np.maximum(quadratic_forms, 0))
        chosen = least(losses, cost.sum(axis=1), p.cap)
        assert result.objective == pytest.approx(0.5 * omega**2 + chosen, rel=1e-7)


def test_rough_rounds_do_not_raise_the_objective():
    p = setting(11)[0]
    values = [step.upper for step in run(11, p.cap, 0.1).history]
    assert (np.diff(values) <= 0).all()


def test_limit_on_solves():
    result = run(1, 0.6, max_iter=3)
    assert not result.converged
    assert result.history[-1].solves <= 5
    assert np.isfinite(result.objective)


def test_report_sees_every_round():
    steps = []
    result = run(1, 0.6, callback=steps.append)
    assert tuple(steps) == result.history
    assert len(steps) > 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.71, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_choice_of_rows(seed, share):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.0, 0.5, 1.0, 3.0], size=9)
    sizes[0] = 1.0
    losses = sizes * np.round(rng.exponential(size=9), 1)  # ties
    kept = _best_fitted(losses, sizes, share)
    assert kept.min() >= 0
    assert kept.max() <= 1
    assert kept @ sizes == pytest.approx(share * sizes.sum())
    assert kept @ losses == pytest.approx(least(losses, sizes, share), abs=1e-9)
    assert ((kept > 0) & (kept < 1)).sum() <= 1


def test_unequal_costs():
    p, _, cost = setting(1)
    rng = np.random.default_rng(0)
    cost = cost * rng.uniform(0.2, 2.0, size=(len(cost), 1))
    cost[3] = 0.0
    result = run(1, 0.7, cost=cost)
    losses = losses_of(result, p, cost)
    quadratic_forms = np.einsum("no,jnk,ko->j", result.dual_coef, p.grams, result.dual_coef)
    omega = result.weights @ np.sqrt(np.maximum(quadratic_forms, 0))
    wanted = 0.5 * omega**2 + least(losses, cost.sum(axis=1), 0.7)
    assert result.objective == pytest.approx(wanted, rel=1e-7)
    assert not result.dual_coef[3].any()
