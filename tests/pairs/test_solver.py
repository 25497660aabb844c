"""Weights from pairs: the optimum, and that it is found whatever the scale."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.sparse import csr_array

from kernelweave import PairwiseKernelLearner
from kernelweave.errors import InputError
from kernelweave.pairs.solver import PairProblem, _Search, solve_pairs
from pair_oracles import solve_weights


def make_problem(seed, *, kind="dense", bias=False, prior=0.0, lam=1e-2, n=120, m=9):
    random = np.random.default_rng(seed)
    F = random.random((n, m))
    if kind in ("sparse", "tiny"):
        F *= random.random((n, m)) < 0.3
    if kind == "signed":
        F = random.standard_normal((n, m))
    if kind == "scaled":
        F *= 10.0 ** random.uniform(-3, 3, m)
    if kind == "tiny":
        F *= 1e-4
        lam *= 1e-8
    true = np.where(random.random(m) < 0.5, random.random(m), 0.0) / np.maximum(F.std(axis=0), 1e-9)
    score = F @ true
    s = np.where(score + random.standard_normal(n) * score.std() > np.median(score), 1.0, -1.0)
    c = random.random(n) + 0.5
    c /= c.sum()
    balance = float(c @ s) if bias else None
    return PairProblem(F, c, F.T @ (c * s), lam, prior=prior, balance=balance)


def as_sparse(problem):
    return PairProblem(
        csr_array(problem.F),
        problem.weight,
        problem.statistic,
        problem.lam,
        problem.prior,
        problem.balance,
    )


def value_and_slopes(problem, w, b=0.0):
    F = problem.F.toarray() if hasattr(problem.F, "toarray") else problem.F
    c, g = problem.weight, problem.statistic
    u = F @ w + b
    h = 0.0 if problem.balance is None else problem.balance
    value = c @ np.logaddexp(u / 2, -u / 2) - w @ g / 2 - b * h / 2
    value += problem.lam / 2 * np.sum((w - problem.prior) ** 2)
    pull = c * np.tanh(u / 2) / 2
    return value, F.T @ pull - g / 2 + problem.lam * (w - problem.prior), pull.sum() - h / 2


CASES = [
    (seed, kind, bias, prior)
    for seed, (kind, bias, prior) in enumerate(
        (kind, bias, prior)
        for kind in ("dense", "sparse", "signed", "scaled", "tiny")
        for bias in (False, True)
        for prior in (0.0, 0.3)
    )
] + [(50 + i, kind, False, 0.0) for i, kind in enumerate(("sparse", "signed", "scaled", "dense"))]


@pytest.mark.parametrize(("seed", "kind", "bias", "prior"), CASES)
def test_weights_are_those_of_an_independent_solver(seed, kind, bias, prior):
    problem = make_problem(seed, kind=kind, bias=bias, prior=prior)
    if kind in ("sparse", "tiny"):
        problem = as_sparse(problem)
    result = solve_pairs(problem, tol=1e-11)
    F = problem.F.toarray() if hasattr(problem.F, "toarray") else problem.F
    w, b = solve_weights(
        F, problem.weight, problem.statistic, problem.lam, prior=prior, balance=problem.balance
    )
    assert result.converged
    assert (result.weights >= 0).all()
    # The conic solver is less accurate: its objective is no smaller, and what it is larger by
    # bounds its distance from the optimum, as the problem is strongly convex.
    ours, other = (
        value_and_slopes(problem, *x)[0] for x in ((result.weights, result.bias), (w, b))
    )
    assert result.objective == pytest.approx(ours, rel=1e-12)
    assert other >= ours - 1e-12 * abs(ours)
    assert other == pytest.approx(ours, rel=1e-7, abs=1e-12)
    lost = max(other - ours, 0.0) + 1e-14 * abs(ours)
    assert np.linalg.norm(result.weights - w) <= np.sqrt(2 * lost / problem.lam)
    # Columns of very different sizes are compared by what they add to the scores.
    size = np.abs(F).max(axis=0)
    scale = max(1e-12, np.abs(w * size).max())
    np.testing.assert_allclose(result.weights * size, w * size, rtol=0, atol=1e-4 * scale)
    assert result.bias == pytest.approx(b, rel=1e-4, abs=1e-6 * scale)


@pytest.mark.parametrize("kind", ["dense", "signed", "scaled"])
@pytest.mark.parametrize("bias", [False, True])
def test_conditions_of_the_optimum_hold(kind, bias):
    problem = make_problem(7, kind=kind, bias=bias, lam=1e-4)
    result = solve_pairs(problem, tol=1e-10)
    value, slopes, slope = value_and_slopes(problem, result.weights, result.bias)
    limit = 1e-9 * np.abs(problem.statistic).max()
    assert result.objective == pytest.approx(value, rel=1e-12)
    assert np.abs(slopes[result.weights > 0]).max(initial=0) <= limit
    assert slopes.min() >= -limit
    if bias:
        assert abs(slope) <= limit


@pytest.mark.parametrize("kind", ["dense", "sparse", "signed"])
def test_slopes_are_finite_differences_of_the_value(kind):
    problem = make_problem(3, kind=kind, bias=True, prior=0.2)
    if kind == "sparse":
        problem = as_sparse(problem)
    random = np.random.default_rng(0)

    def look(x):
        return _Search(problem, np.arange(9), x[:-1], x[-1])

    for _ in range(3):
        x = random.random(10)
        here = look(x)
        error = check_grad(
            lambda x: look(x).value, lambda x: np.append(look(x).grad, look(x).grad_b), x
        )
        assert error < 1e-6
        assert here.value == pytest.approx(value_and_slopes(problem, x[:-1], x[-1])[0], rel=1e-13)
        step = 1e-3 * random.standard_normal(10)
        moved = x + step
        change = look(moved).value - here.value
        assert here._change(moved[:-1], moved[-1]) == pytest.approx(change, rel=1e-9)


def test_agrees_with_a_quasi_newton_method_on_wide_sparse_pairs():
    random = np.random.default_rng(5)
    F = csr_array((random.random((400, 60)) < 0.05).astype(float))
    s = np.where(random.random(400) < 0.6, 1.0, -1.0)
    c = np.full(400, 1 / 400)
    problem = PairProblem(F, c, F.T @ (c * s), 1e-3, prior=0.5, balance=float(s.mean()))
    result = solve_pairs(problem, tol=1e-10)
    dense = PairProblem(F.toarray(), c, problem.statistic, 1e-3, 0.5, problem.balance)
    other = minimize(
        lambda x: (
            value_and_slopes(dense, x[:-1], x[-1])[0],
            np.append(*value_and_slopes(dense, x[:-1], x[-1])[1:]),
        ),
        np.zeros(61),
        jac=True,
        bounds=[(0, None)] * 60 + [(None, None)],
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 5000},
    )
    np.testing.assert_allclose(result.weights, other.x[:-1], atol=2e-6)
    assert result.objective <= other.fun + 1e-14


@pytest.mark.parametrize("seed", range(6))
def test_screening_changes_nothing(seed):
    problem = make_problem(seed, kind="sparse", lam=1e-4, m=30)
    assert problem.screened().any()
    kept = solve_pairs(problem, tol=1e-11, screen=False)
    screened = solve_pairs(problem, tol=1e-11)
    np.testing.assert_allclose(screened.weights, kept.weights, atol=1e-9 * kept.weights.max())
    assert not kept.weights[problem.screened()].any()


def test_screening_is_left_out_where_it_would_be_wrong():
    assert not make_problem(0, kind="signed").screened().any()
    assert not make_problem(0, bias=True).screened().any()
    assert not make_problem(0, prior=1.0).screened().any()


def test_no_kernel_that_helps_gives_zero_weights():
    problem = make_problem(0)
    lost = PairProblem(problem.F, problem.weight, -np.abs(problem.statistic), 1e-3)
    for screen in (True, False):
        result = solve_pairs(lost, screen=screen)
        assert not result.weights.any()
        assert result.converged


def test_a_column_of_zeros_gets_no_weight():
    problem = make_problem(1)
    F = np.column_stack([problem.F, np.zeros(len(problem.F))])
    more = PairProblem(F, problem.weight, np.append(problem.statistic, 0.0), problem.lam)
    result = solve_pairs(more, tol=1e-10)
    assert result.weights[-1] == 0
    np.testing.assert_allclose(result.weights[:-1], solve_pairs(problem, tol=1e-10).weights)


@pytest.mark.parametrize("sparse", [False, True])
def test_pairs_given_twice_change_nothing(sparse):
    problem = make_problem(2, kind="sparse", bias=True)
    twice = PairProblem(
        np.concatenate([problem.F] * 2),
        np.concatenate([problem.weight] * 2) / 2,
        problem.statistic,
        problem.lam,
        balance=problem.balance,
    )
    once = solve_pairs(as_sparse(problem) if sparse else problem, tol=1e-11)
    again = solve_pairs(as_sparse(twice) if sparse else twice, tol=1e-11)
    np.testing.assert_allclose(again.weights, once.weights, rtol=1e-7, atol=1e-10)
    assert again.bias == pytest.approx(once.bias, rel=1e-7)


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1e-6])
def test_scale_of_the_kernels_only_scales_the_weights(alpha, bias, lam):
    problem = make_problem(4, kind="sparse", bias=bias, lam=lam, m=30)
    larger = PairProblem(
        problem.F * alpha,
        problem.weight,
        problem.statistic * alpha,
        lam * alpha**2,
        balance=problem.balance,
    )
    one, other = (solve_pairs(p, tol=1e-10) for p in (problem, larger))
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(other.weights * alpha, one.weights, atol=1e-7 * one.weights.max())


@pytest.mark.parametrize("lam", [1e-4, 1e-6, 1e-8])
def test_small_penalties_converge(lam):
    problem = make_problem(9, kind="sparse", lam=lam, n=300, m=80)
    assert solve_pairs(problem).converged


@pytest.mark.parametrize("seed", range(12))
def test_large_terms_that_cancel_do_not_stall_the_line_search(seed):
    # Labels without errors and hardly a penalty: scores are in the thousands, and losses and the
    # statistic nearly cancel, so that the difference of two values has no correct digit left.
    random = np.random.default_rng(seed)
    F = random.standard_normal((2000, 15))
    true = random.random(15) * (random.random(15) < 0.7)
    c = np.full(2000, 1 / 2000)
    result = solve_pairs(PairProblem(F, c, F.T @ (c * np.sign(F @ true)), 1e-8), tol=1e-10)
    assert np.abs(F @ result.weights).max() > 500
    assert result.converged
    assert result.n_iter < 40


@pytest.mark.parametrize("seed", range(12))
def test_changes_below_rounding_do_not_stall_the_line_search(seed):
    random = np.random.default_rng(seed)
    n, m, each, size = 2000, 100, 4, 1e-3
    rows, columns = np.repeat(np.arange(n), each), (random.random(each * n) ** 2 * m).astype(int)
    F = csr_array((np.full(each * n, size), (rows, columns)), shape=(n, m))
    often = F[:, : m // 2].sum(axis=1) > size * each / 2
    s = np.where(random.random(n) < 0.4 + 0.6 * often, 1.0, -1.0)
    c = np.full(n, 1 / n)
    result = solve_pairs(PairProblem(F, c, F.T @ (c * s), 1e-2 * size**2), tol=1e-11)
    assert result.converged
    assert result.n_iter < 20


def test_the_flag_of_convergence_is_honest():
    problem = make_problem(6, lam=1e-6, m=30, n=300)
    short = solve_pairs(problem, max_iter=1)
    assert short.n_iter == 1
    assert not short.converged
    assert short.residual > 1e-8
    _, slopes, _ = value_and_slopes(problem, short.weights)
    projected = np.where(short.weights > 0, slopes, np.minimum(slopes, 0))
    scale = np.abs(problem.statistic).max() / 2
    assert short.residual == pytest.approx(np.abs(projected).max() / scale)
    full = solve_pairs(problem)
    assert full.converged
    assert full.residual <= 1e-8
    assert full.objective < short.objective


def test_a_start_at_the_optimum_ends_at_once():
    problem = make_problem(8, bias=True)
    result = solve_pairs(problem, tol=1e-9)
    again = solve_pairs(problem, start=(result.weights, result.bias), tol=1e-8)
    assert again.n_iter == 0
    assert again.converged
    np.testing.assert_array_equal(again.weights, result.weights)


def test_strong_convexity_bounds_the_distance_from_the_minimum():
    problem = make_problem(5, lam=1e-3)
    best = solve_pairs(problem, tol=1e-12).objective
    for steps in (1, 2, 3):
        result = solve_pairs(problem, max_iter=steps)
        scale = np.abs(problem.statistic).max() / 2
        bound = result.gap(problem.lam, scale, problem.F.shape[1])
        assert 0 <= result.objective - best + 1e-15 <= bound + 1e-14


def test_a_changed_statistic_moves_weights_by_half_its_distance_over_lam():
    random = np.random.default_rng(1)
    for seed in range(8):
        problem = make_problem(seed, kind="signed" if seed % 2 else "dense")
        moved = problem.statistic + 0.1 * random.standard_normal(9)
        other = PairProblem(problem.F, problem.weight, moved, problem.lam)
        a, b = (solve_pairs(p, tol=1e-10).weights for p in (problem, other))
        limit = np.linalg.norm(moved - problem.statistic) / (2 * problem.lam)
        assert np.linalg.norm(a - b) <= limit * (1 + 1e-8)


def test_input_is_not_changed():
    problem = make_problem(0)
    before = problem.F.copy(), problem.weight.copy(), problem.statistic.copy()
    solve_pairs(problem)
    for now, then in zip((problem.F, problem.weight, problem.statistic), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_values_whose_squares_overflow_are_refused():
    X = 1e110 * np.random.default_rng(0).normal(size=(30, 3))
    pairs, signs = np.array([[0, 1], [2, 3], [4, 5], [6, 7]]), np.array([1, -1, 1, -1])
    with pytest.raises(InputError, match="too large to learn weights from"):
        PairwiseKernelLearner(lam=1.0, correction="naive").fit(X, pairs=pairs, labels=signs)
