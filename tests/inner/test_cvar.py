"""Solves with the CVaR hinge loss against an oracle."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cvar_cases import CASES, Case, feasible
from gram_banks import bank_of
from kernelweave._threads import threads
from kernelweave.banks import build, make_bank
from kernelweave.inner import Solution, solve_inner
from kernelweave.inner.cvar import SignedKernel
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import CVaRHinge, Hinge
from kernelweave.testing import check_loss
from noisy_oracles import (
    random_noisy_problem,
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


@pytest.mark.parametrize("case", CASES, ids=str)
def test_solves_like_the_oracle(case):
    p, cost, oracle = case.problem, case.cost, case.oracle
    found = solve_inner(case.machine, bank_of([case.gram]).combine(np.ones(1)), p.Y, cost, tol=1e-9)
    assert feasible(case.machine, found.dual_coef, p.Y, cost) <= 1e-12 * cost.sum()
    assert case.lam * found.primal == pytest.approx(oracle.value, rel=1e-8)
    assert case.lam * found.dual == pytest.approx(oracle.value, rel=1e-8)
    assert found.dual <= found.primal * (1 + 1e-12)
    size = np.abs(oracle.f).max()
    assert_allclose(found.fitted, oracle.f, rtol=0, atol=2e-4 * size)
    assert_allclose(found.fitted, case.gram @ found.dual_coef, rtol=0, atol=1e-9 * size)
    assert not found.intercept.any()
    assert_allclose(case.machine.thresholds(found.fitted, p.Y, cost), oracle.th, rtol=0, atol=1e-4)
    # The values are those of the definition.
    quadratic = np.vdot(found.dual_coef, case.gram @ found.dual_coef)
    loss, bias = case.machine.value(found.fitted, p.Y, cost)
    assert found.primal == pytest.approx(0.5 * quadratic + loss, rel=1e-10)
    assert found.dual == pytest.approx(np.vdot(p.Y, found.dual_coef) - 0.5 * quadratic, rel=1e-10)
    assert not bias.any()


def test_cases_have_caps_that_bind_and_that_do_not():
    binding = [bool((case.oracle.th > 1e-6).all()) for case in CASES]
    assert 2 < sum(binding) < len(CASES) - 1


def test_no_cap_is_the_hinge_machine():
    """With a share of one all promises of machines are those of the boxes."""
    for case in (Case(3, 2, 1.0), Case(5, 3, 1.0)):
        check_loss(case.machine, bank_of(case.problem.grams), case.problem.Y, case.cost)
    case = Case(3, 2, 1.0)
    kernel = bank_of([case.gram]).combine(np.ones(1))
    plain = solve_inner(Hinge(fit_intercept=False), kernel, case.problem.Y, case.cost, tol=1e-10)
    found = solve_inner(case.machine, kernel, case.problem.Y, case.cost, tol=1e-10)
    assert found.primal == pytest.approx(plain.primal, rel=1e-9)
    assert_allclose(found.fitted, plain.fitted, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("storage", ["float64", "float32"])
def test_starts_and_rows_that_are_fetched_late(case, storage, monkeypatch):
    """A start asks only for the rows it visits; the answer is that of a cold solve."""
    if storage == "float32":
        monkeypatch.setattr(build, "_SMALL", 10)
    p, cost, machine = case.problem, case.cost, case.machine
    bank = bank_of([case.gram], tol=1e-3)
    assert np.dtype(bank.dtype) == storage
    kernel = bank.combine(np.ones(1))
    cold = solve_inner(machine, kernel, p.Y, cost, tol=1e-7)
    assert case.lam * cold.primal == pytest.approx(case.oracle.value, rel=1e-5)
    rng = np.random.default_rng(0)
    starts = {
        "zero": np.zeros_like(p.Y),
        "solution": cold.dual_coef,
        "near": machine.repair(cold.dual_coef * rng.uniform(0.9, 1.1, p.Y.shape), p.Y, cost),
        "far": machine.repair(p.Y * cost * rng.uniform(0, 1, p.Y.shape), p.Y, cost),
    }
    for name, dual_coef in starts.items():
        fresh = bank.combine(np.ones(1))
        begin = Solution(dual_coef, np.zeros(p.Y.shape[1]), case.gram @ dual_coef, np.inf, -np.inf)
        before = dual_coef.copy()
        warm = solve_inner(machine, fresh, p.Y, cost, tol=1e-7, start=begin)
        assert np.array_equal(dual_coef, before)
        assert feasible(machine, warm.dual_coef, p.Y, cost) <= 1e-12 * cost.sum()
        assert case.lam * warm.primal == pytest.approx(case.oracle.value, rel=1e-5)
        if name == "solution" and storage == "float64":
            assert warm.work <= max(1, cold.work // 10)


def test_a_start_near_the_solution_reads_few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] + 0.2 * rng.normal(size=400) > 0, 1.0, -1.0)[:, None]
    bank = make_bank([RBF(0.5), Linear()], X)
    cost, machine = np.full_like(y, 10.0), CVaRHinge((0.1,))
    here, there = (bank.combine(np.array(w)) for w in ([0.5, 0.5], [0.52, 0.48]))
    first = solve_inner(machine, here, y, cost, tol=1e-6)
    assert machine.thresholds(first.fitted, y, cost)[0] > 0
    start = Solution(first.dual_coef, np.zeros(1), there.product(first.dual_coef), np.inf, -np.inf)
    warm = solve_inner(machine, there, y, cost, tol=1e-6, start=start)
    assert sum(len(index) for index, _ in there.blocks) < 200
    cold = solve_inner(machine, bank.combine(np.array([0.52, 0.48])), y, cost, tol=1e-6)
    assert warm.primal == pytest.approx(cold.primal, rel=2e-6)


def test_floor_and_enough_end_a_solve_early():
    case = Case(0, 2, 0.5)
    p, cost = case.problem, case.cost
    bank = bank_of([case.gram])

    def solve(**options):
        return solve_inner(case.machine, bank.combine(np.ones(1)), p.Y, cost, **options)

    best = solve(tol=1e-9)
    rough = solve(tol=0.0, floor=0.1 * best.primal)
    assert rough.gap <= 0.1 * best.primal
    assert rough.work < best.work
    early = solve(tol=1e-9, enough=0.5 * best.dual)
    assert 0.5 * best.dual <= early.dual
    assert early.work < best.work


def test_signed_kernel():
    p = random_noisy_problem(1, n=20, n_classes=2, spread=0)
    kernel = bank_of(p.grams).combine(np.ones(len(p.grams)))
    y = p.Y[:, 0]
    signed = SignedKernel(kernel, y)
    wanted = np.zeros((21, 21))
    wanted[:20, :20] = y[:, None] * p.grams.sum(axis=0) * y
    assert signed.blocks == []
    signed.fetch(np.array([3, 5, 20]))
    rows = np.zeros((21, 21))
    for index, block in signed.blocks:
        rows[index] = block
    assert_allclose(rows[[3, 5, 20]], wanted[[3, 5, 20]], atol=1e-12)
    signed.dense()
    for index, block in signed.blocks:
        rows[index] = block
    assert_allclose(rows, wanted, atol=1e-12)
    V = np.random.default_rng(0).normal(size=(21, 2))
    assert_allclose(signed @ V, wanted @ V, atol=1e-11)
    assert_allclose(signed.diag(), wanted.diagonal(), atol=1e-12)
    some = np.array([1, 7, 20])
    assert_allclose(signed.block(some, some), wanted[np.ix_(some, some)], atol=1e-12)


@pytest.mark.parametrize("known", [0, 4])
def test_parts_of_the_signed_kernel(known):
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(9, 2)), np.where(rng.random(9) < 0.5, -1.0, 1.0)
    bank = make_bank([RBF(width=1.0)], rows, normalize=None, on_demand=True, factored=False)
    K = SignedKernel(bank.combine(np.ones(1)), signs)
    exact = np.zeros((10, 10))
    exact[:9, :9] = np.outer(signs, signs) * RBF(width=1.0)(rows)
    index = np.array([3, 9, 0, 5, 8, 1])  # with the slack
    for some in (index, index[[0, 2, 3, 4, 5]], index[[0, 2, 3, 4, 5, 1]]):
        block = exact[np.ix_(some, some)]
        out = np.full_like(block, np.nan)
        out[:known, :known] = block[:known, :known]
        K.fill_square(some, known, out)
        assert_allclose(out, block, atol=1e-12)
        V = rng.normal(size=(10, 1))
        assert_allclose(K.product_at(some, V), exact[some] @ V, atol=1e-12)
