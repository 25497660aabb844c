"""Column generation for the exponent one, against conic programming over all conjunctions."""

from dataclasses import replace
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.banks.rules import PackedRows, RuleBank
from kernelweave.losses import Logistic, Square
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.sparse_lattice import (
    ColumnKeys,
    SparseProblem,
    SparseStart,
    _Generation,
    sparse_lattice,
)

TOL = 1e-6


def propositions(n=60, p=5, seed=0):
    return np.random.default_rng(seed).random((n, p)) < 0.55


def targets(P, seed=0, n_outputs=1):
    rng = np.random.default_rng(100 + seed)
    score = 1.5 * (P[:, 0] & P[:, 1]) - (P[:, 2] & ~P[:, 3]) - 0.3
    return score[:, None] + rng.normal(size=(len(P), n_outputs))


def lattice_columns(P, max_length):
    nodes = [c for k in range(1, max_length + 1) for c in combinations(range(P.shape[1]), k)]
    return nodes, np.column_stack([P[:, list(node)].all(axis=1) for node in nodes]).astype(float)


def optimum(P, Y, cost, loss, base=2.0, max_length=5, signs=None, L=None):
    """Return the smallest objective, by a solver that shares nothing with the library."""
    nodes, Z = lattice_columns(P, max_length)
    if L is not None:  # columns of numbers cost as much as one proposition
        nodes += [(P.shape[1] + c,) for c in range(L.shape[1])]
        Z = np.column_stack([Z, L])
    d = np.array([(1.0 + base) ** len(node) for node in nodes])
    f, b = cp.Variable((len(nodes), Y.shape[1])), cp.Variable(Y.shape[1])
    fitted = Z @ f + np.ones((len(P), 1)) @ cp.reshape(b, (1, Y.shape[1]), order="C")
    if isinstance(loss, Logistic):
        total = cp.sum(cp.multiply(cost, cp.logistic(-cp.multiply(Y, fitted))))
    else:
        total = 0.5 * cp.sum(cp.multiply(cost, cp.square(Y - fitted)))
    constraints = [] if loss.fit_intercept else [b == 0]
    if signs is not None:
        for k, node in enumerate(nodes):
            own = {signs[c] for c in node} - {0}
            if own == {1}:
                constraints.append(f[k] >= 0)
            elif own == {-1}:
                constraints.append(f[k] <= 0)
            elif own:
                constraints.append(f[k] == 0)
    norm = d @ cp.norm(f, 2, axis=1)
    problem = cp.Problem(cp.Minimize(0.5 * cp.square(norm) + total), constraints)
    return float(problem.solve(solver=cp.CLARABEL))


def solve(
    P, Y, cost, loss, *, base=2.0, max_length=5, signs=None, L=None, start=None, tol=TOL, **limits
):
    bank = RuleBank(replace(PackedRows.of(P), linear=L))
    problem = SparseProblem(bank, Y, cost, loss, base, max_length, signs)
    limits = {"max_iter": 1000} | limits
    return sparse_lattice(problem, Limits(tol, **limits), max_nodes=500, start=start)


def objective(P, Y, cost, loss, result, base=2.0, L=None):
    def column(node):
        return L[:, node[0] - P.shape[1]] if node[0] >= P.shape[1] else P[:, list(node)].all(axis=1)

    fitted = sum(
        column(node)[:, None] * value
        for node, value in zip(result.nodes, result.values, strict=True)
    ) + np.zeros_like(Y)
    lengths = np.array([len(node) for node in result.nodes])
    omega = float(((1.0 + base) ** lengths) @ np.linalg.norm(result.values, axis=1))
    return 0.5 * omega**2 + loss.value(fitted, Y, cost)[0]


@pytest.mark.parametrize("C", [0.05, 1.0, 8.0])
@pytest.mark.parametrize(("loss", "n_outputs"), [("logistic", 1), ("square", 1), ("logistic", 3)])
def test_the_optimum_lies_between_the_bounds(C, loss, n_outputs):
    P = propositions()
    Y = targets(P, n_outputs=n_outputs)
    loss, Y = (Logistic(), np.where(Y > 0, 1.0, -1.0)) if loss == "logistic" else (Square(), Y)
    cost = C * np.random.default_rng(1).uniform(0.5, 2.0, size=Y.shape)
    result = solve(P, Y, cost, loss)
    best = optimum(P, Y, cost, loss)
    assert result.converged
    assert result.gap <= TOL * result.size * (1 + 1e-9)
    assert result.lower_bound <= best * (1 + 1e-7)
    assert result.objective >= best * (1 - 1e-7)
    assert objective(P, Y, cost, loss, result) == pytest.approx(result.objective, rel=1e-10)


@pytest.mark.parametrize("base", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("max_length", [1, 2])
def test_costs_of_length(base, max_length):
    P = propositions(seed=3)
    Y = targets(P, seed=3)
    cost = np.full_like(Y, 4.0)
    result = solve(P, Y, cost, Square(), base=base, max_length=max_length)
    best = optimum(P, Y, cost, Square(), base, max_length)
    assert result.lower_bound <= best * (1 + 1e-7) <= result.objective * (1 + 1e-6)
    assert max(map(len, result.nodes)) <= max_length


@pytest.mark.parametrize("seed", range(4))
def test_signs(seed):
    """One proposition may only raise the score, one only lower it; mixtures are excluded."""
    P = propositions(seed=seed)
    Y = np.where(targets(P, seed) > 0, 1.0, -1.0)
    signs = np.array([-1, 1, 0, 1, 0], dtype=np.int8)
    cost = np.full_like(Y, 10.0)
    result = solve(P, Y, cost, Logistic(), signs=signs)
    best = optimum(P, Y, cost, Logistic(), signs=signs)
    assert result.converged
    assert result.lower_bound <= best * (1 + 1e-7)
    assert result.objective >= best * (1 - 1e-7)
    for node, value in zip(result.nodes, result.values[:, 0], strict=True):
        own = {int(signs[c]) for c in node} - {0}
        assert len(own) <= 1
        assert all(sign * value >= 0 for sign in own)


def test_mirror_images_and_copies_are_one_column():
    P = propositions(n=80, p=3)
    twins = np.column_stack([P, ~P, P[:, :1]])
    Y = np.where(targets(np.column_stack([P, P[:, :2]])) > 0, 1.0, -1.0)
    cost = np.full_like(Y, 5.0)
    result = solve(twins, Y, cost, Logistic())
    columns = [twins[:, list(node)].all(axis=1) for node in result.nodes]
    canonical = {(c if not c[0] else ~c).tobytes() for c in columns}
    assert len(canonical) == len(columns) > 1
    assert result.lower_bound <= optimum(twins, Y, cost, Logistic()) * (1 + 1e-7)


def test_columns_without_an_intercept_are_not_mirrored():
    P = propositions(n=10, p=2)
    bank = RuleBank(PackedRows.of(np.column_stack([P, ~P[:, 0]])))
    rows = np.ones(10, dtype=bool)
    mirrored, plain = (ColumnKeys(bank, rows, mirrored=m) for m in (True, False))
    first, last = bank.columns_of([(0,), (2,)])
    assert mirrored.keys(np.array([first]))[0] == mirrored.keys(np.array([last]))[0]
    assert plain.keys(np.array([first]))[0] != plain.keys(np.array([last]))[0]


def test_rows_without_cost_are_absent():
    P, half = propositions(n=90), np.arange(90) % 2 == 0
    Y = np.where(targets(P) > 0, 1.0, -1.0)
    some = solve(P, Y, 3.0 * half[:, None], Logistic())
    alone = solve(P[half], Y[half], np.full((45, 1), 3.0), Logistic())
    assert some.objective == pytest.approx(alone.objective, rel=2 * TOL)


def test_a_start_leads_to_the_same_optimum_with_fewer_steps():
    P = propositions(n=200, p=8)
    Y = np.where(targets(P) > 0, 1.0, -1.0)
    cold = solve(P, Y, np.full_like(Y, 10.0), Logistic())
    start = SparseStart(cold.nodes, cold.values)
    warm = solve(P, Y, np.full_like(Y, 10.0), Logistic(), start=start)
    assert warm.objective == pytest.approx(cold.objective, rel=2 * TOL)
    assert warm.history[-1].solves < cold.history[-1].solves


def test_limits_leave_a_true_gap():
    P = propositions(n=200, p=8)
    Y = np.where(targets(P) > 0, 1.0, -1.0)
    result = solve(P, Y, np.full_like(Y, 30.0), Logistic(), max_iter=1)
    assert not result.converged
    assert result.lower_bound <= optimum(P, Y, np.full_like(Y, 30.0), Logistic(), max_length=3)


def test_without_an_intercept_a_rule_of_all_rows_counts():
    P = np.column_stack([propositions(), np.ones(60, dtype=bool)])
    P[50:, -1] = False  # among rows that have no cost
    Y, cost = np.where(targets(P) > -2.0, 1.0, -1.0), np.ones((60, 1))
    cost[50:] = 0.0
    loss = Logistic(fit_intercept=False)
    result = solve(P, Y, cost, loss)
    assert result.converged
    assert (5,) in result.nodes
    assert result.objective == pytest.approx(optimum(P, Y, cost, loss), rel=1e-5)


def numbers(n=60, q=3, seed=0):
    """Columns that a linear model needs, one of them zero."""
    L = 0.4 * np.random.default_rng(200 + seed).normal(size=(n, q))
    L[:, -1] = 0.0
    return L - L.mean(axis=0)


@pytest.mark.parametrize("C", [0.05, 1.0, 8.0])
@pytest.mark.parametrize(("loss", "n_outputs"), [("logistic", 1), ("square", 1), ("logistic", 3)])
def test_columns_of_numbers_are_part_of_the_certified_problem(C, loss, n_outputs):
    P, L = propositions(), numbers()
    Y = targets(P, n_outputs=n_outputs) + 3.0 * L[:, :1] - 1.5 * L[:, 1:2]
    loss, Y = (Logistic(), np.where(Y > 0, 1.0, -1.0)) if loss == "logistic" else (Square(), Y)
    cost = C * np.random.default_rng(1).uniform(0.5, 2.0, size=Y.shape)
    result = solve(P, Y, cost, loss, L=L)
    best = optimum(P, Y, cost, loss, L=L)
    assert result.converged
    assert result.gap <= TOL * result.size * (1 + 1e-9)
    assert result.lower_bound <= best * (1 + 1e-7)
    assert result.objective >= best * (1 - 1e-7)
    assert objective(P, Y, cost, loss, result, L=L) == pytest.approx(result.objective, rel=1e-10)
    if C > 1:
        assert (5,) in result.nodes
        assert min(node[0] for node in result.nodes) < 5
        assert best < 0.98 * optimum(P, Y, cost, loss)  # the columns matter
    assert (7,) not in result.nodes  # the column of zeros


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_signs_of_columns_of_numbers(sign):
    P, L = propositions(), numbers()
    Y = np.where(targets(P) + 4.0 * L[:, :1] > 0, 1.0, -1.0)
    signs = np.array([-1, 1, 0, 1, 0, sign, 0, 0], dtype=np.int8)
    cost = np.full_like(Y, 10.0)
    result = solve(P, Y, cost, Logistic(), signs=signs, L=L)
    best = optimum(P, Y, cost, Logistic(), signs=signs, L=L)
    assert result.converged
    assert result.lower_bound <= best * (1 + 1e-7) <= result.objective * (1 + 1e-6)
    assert ((5,) in result.nodes) == (sign >= 0)


def test_columns_of_numbers_are_never_dropped():
    """The search of the lattice would not find them again."""
    P, L = propositions(), numbers()
    Y = np.where(targets(P) > 0, 1.0, -1.0)
    bank = RuleBank(replace(PackedRows.of(P), linear=L))
    problem = SparseProblem(bank, Y, np.ones_like(Y), Logistic(), 2.0, 5)
    state = _Generation(problem, Limits(TOL, 10).bounds())
    state.add([(0,)])
    for _ in range(6):
        state.drop_unused()
    assert state.columns.nodes == [(5,), (6,), (7,)]


def test_a_start_with_columns_of_numbers():
    P, L = propositions(n=200, p=8), numbers(200, 2)
    Y = np.where(targets(P) + 4.0 * L[:, :1] > 0, 1.0, -1.0)
    cold = solve(P, Y, np.full_like(Y, 10.0), Logistic(), L=L)
    start = SparseStart(cold.nodes, cold.values)
    warm = solve(P, Y, np.full_like(Y, 10.0), Logistic(), L=L, start=start)
    assert (8,) in cold.nodes
    assert warm.objective == pytest.approx(cold.objective, rel=2 * TOL)
    assert warm.history[-1].solves < cold.history[-1].solves


def test_bound_without_steps_counts_columns_of_numbers():
    """The price of a column that has no weight yet is part of the bound."""
    P, L = propositions(), numbers()
    Y = np.where(L[:, :1] > 0, 1.0, -1.0)
    cost = np.full_like(Y, 3.0)
    result = solve(P, Y, cost, Logistic(), L=L, max_iter=1)
    assert result.lower_bound <= optimum(P, Y, cost, Logistic(), L=L) * (1 + 1e-7)
    restricted = SparseProblem(
        RuleBank(replace(PackedRows.of(P), linear=L)).restricted(np.arange(8) != 5),
        Y,
        cost,
        Logistic(),
        2.0,
        5,
    )
    few = sparse_lattice(restricted, Limits(TOL, 1000), max_nodes=500)
    assert few.objective == pytest.approx(optimum(P, Y, cost, Logistic(), L=L[:, 1:]), rel=1e-5)
