"""Lattices of products: what a search finds and bounds, closed forms, and the optimum."""

from itertools import product

import numpy as np
import pytest

from hkl_oracles import closure, solve_dag, sufficient_kernel, sufficient_sum
from kernelweave import (
    RBF,
    Linear,
    ProductLattice,
)
from kernelweave.banks import make_bank
from kernelweave.banks.rules import PackedRows
from kernelweave.candidates import product_graph
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.candidates.product_graph import ProductGraph
from kernelweave.candidates.product_search import _Walk, search_products
from kernelweave.losses import Hinge, Square
from kernelweave.solvers.dag_active_set import dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits
from quick import first


def rbf_ladders(p, rungs=1):
    return [[RBF(2.0 / 2**k, columns=[j]) for k in range(rungs)] for j in range(p)]


def linear_ladders(p):
    return [[Linear(columns=[j])] for j in range(p)]


def graph_of(ladders, X, **options):
    bank = make_bank([k for ladder in ladders for k in ladder], X, normalize="diagonal", tol=1e-9)
    return ProductGraph(bank, [len(ladder) for ladder in ladders], **options)


class Enumerated:
    """All nodes of a small lattice, with Gram matrices and the order among them."""

    def __init__(self, ladders, X, base, max_order=None):
        grams = [
            [np.ones((len(X), len(X))), *(k(X) / np.mean(np.diag(k(X))) for k in ladder)]
            for ladder in ladders
        ]
        most = len(ladders) if max_order is None else max_order
        levels = product(*(range(len(g)) for g in grams))
        levels = [v for v in levels if np.count_nonzero(v) <= most]
        self.nodes = [tuple((j, r) for j, r in enumerate(v) if r) for v in levels]
        chosen = [[g[r] for g, r in zip(grams, v, strict=True)] for v in levels]
        self.grams = [np.prod(factors, axis=0) for factors in chosen]
        self.costs = float(base) ** np.array([sum(v) for v in levels])
        number = {v: k for k, v in enumerate(levels)}
        self.parents = [
            [number[(*v[:j], r - 1, *v[j + 1 :])] for j, r in enumerate(v) if r] for v in levels
        ]
        self.ancestors = closure(self.parents)

    def quadratic_forms(self, V):
        return np.array([np.vdot(V, K @ V) for K in self.grams])

    def features(self):
        out = []
        for K in self.grams:
            values, vectors = np.linalg.eigh(K)
            keep = values > 1e-13 * values[-1]
            out.append(vectors[:, keep] * np.sqrt(values[keep]))
        return out


CASES = {
    "gaussians": (rbf_ladders(6), 2.0, None),
    "linear": (linear_ladders(6), 2.0, None),
    "grid": (rbf_ladders(3, 3), 1.5, None),
    "mixed": ([*rbf_ladders(2, 2), [Linear(columns=[2]), RBF(columns=[2])]], 2.0, 2),
    "short": (linear_ladders(5), 1.2, 3),
    "cheap": (rbf_ladders(5), 0.8, 4),
    "pairs": (rbf_ladders(6), 1.0, 2),
}


@pytest.fixture(params=CASES)
def case(request):
    ladders, base, max_order = CASES[request.param]
    rng = np.random.default_rng(len(request.param))
    X = rng.normal(size=(15, len(ladders)))
    V = rng.normal(size=(15, 2)) * (rng.random((15, 1)) < 0.7)
    graph = graph_of(ladders, X, base=base, max_order=max_order)
    return graph, Enumerated(ladders, X, base, max_order), V


def test_search_finds_what_enumeration_finds(case):
    graph, everything, V = case
    ratios = dict(
        zip(everything.nodes, everything.quadratic_forms(V) / everything.costs**2, strict=True)
    )
    graph.add([node for node in everything.nodes if len(node) == 2][:2])
    outside = {node: r for node, r in ratios.items() if node not in graph.nodes}
    values = np.sort(list(outside.values()))
    middle = len(values) // 2
    for level in (-1.0, values[middle : middle + 2].mean(), values[-2:].mean(), 2 * values[-1]):
        found = graph.price(V, level, 10_000)
        assert found.complete
        assert set(found.ids) == {node for node, r in outside.items() if r > level}
        assert found.prices == pytest.approx([outside[node] for node in found.ids], abs=1e-12)
        assert (np.diff(found.prices) <= 0).all()
    best = graph.price(V, -1.0, 3)
    assert best.complete
    assert best.prices == pytest.approx(values[::-1][:3])


def test_bounds_hold_for_all_that_lies_below(case):
    graph, everything, V = case
    leaves, weights = graph.bank.pairs(V)
    walk = _Walk(leaves[1:], weights, graph.factors, graph.base)
    ratios = dict(
        zip(everything.nodes, everything.quadratic_forms(V) / everything.costs**2, strict=True)
    )
    for node in everything.nodes:
        rest = graph.max_order - len(node) - 1
        if rest < 1:
            continue
        numbers = tuple(graph.factors.number(pair) for pair in node)
        own, bounds = walk.successors([numbers], rest)
        for f in np.flatnonzero(graph.factors.ladder > walk.last(numbers)):
            child = graph.factors.node((*numbers, f))
            assert own[0, f] == pytest.approx(ratios[child], abs=1e-12)
            below = [r for w, r in ratios.items() if w[: len(child)] == child and w != child]
            assert max(below, default=0.0) <= bounds[0, f] * (1 + 1e-12) + 1e-12


def test_a_search_that_is_cut_does_not_certify(case):
    graph, _, V = case
    graph.max_visited = len(graph.factors.ladder)  # the single kernels and no more
    found = graph.price(V, 0.0, 10)
    assert not found.complete
    assert graph.cut_after == graph.max_visited


def test_forms_and_sums_of_the_products_in_play(case):
    graph, everything, V = case
    graph.add(everything.nodes)
    assert sorted(graph.nodes) == sorted(everything.nodes)
    place = [everything.nodes.index(node) for node in graph.nodes]
    assert graph.quadratic_forms(V) == pytest.approx(
        everything.quadratic_forms(V)[place], abs=1e-10
    )
    assert graph.costs == pytest.approx(everything.costs[place])
    assert (graph.ancestors.toarray() == everything.ancestors[np.ix_(place, place)].T).all()
    weights = np.random.default_rng(0).random(len(place))
    expected = sum(w * everything.grams[k] for w, k in zip(weights, place, strict=True))
    assert graph.combine(weights).dense() == pytest.approx(expected)
    kernels, scales = graph.describe(graph.nodes)
    assert len(kernels) == len(scales) == len(graph.nodes)


def test_sums_of_the_published_condition(case):
    graph, everything, V = case
    whole = graph.max_order == len(graph.factors.ladders)
    found = graph.price_sources(V, -1.0, 10_000)
    number = {node: k for k, node in enumerate(everything.nodes)}
    missing = [node for node in everything.nodes if node not in graph.nodes]
    assert set(found.ids) == {node for node in missing if graph.is_source(node)}
    quadratic_forms = everything.quadratic_forms(V)
    for u, value in zip(found.ids, found.prices, strict=True):
        exact = sufficient_sum(quadratic_forms, everything.ancestors, everything.costs, number[u])
        if whole:
            assert value == pytest.approx(exact)
        else:  # products that are too long are counted too
            assert value >= exact * (1 - 1e-12)


@pytest.mark.parametrize("base", [0.5, 1.0, 2.0])
def test_the_published_kernel_in_closed_form(base):
    rng = np.random.default_rng(3)
    X, V = rng.normal(size=(10, 4)), rng.normal(size=(10, 2))
    graph = graph_of(rbf_ladders(4), X, base=base)
    grams = np.array([ladder[0](X) for ladder in rbf_ladders(4)])
    found = graph.price_sources(V, -1.0, 100)
    assert len(found.ids) == 6
    for node, value in zip(found.ids, found.prices, strict=True):
        K = sufficient_kernel(grams, [j for j, _ in node], base)
        assert value == pytest.approx(np.vdot(V, K @ V))
    P = rng.random((12, 5)) < 0.6
    V = rng.normal(size=(12, 2))
    lattice = ConjunctionLattice(PackedRows.of(P), base=base)
    lattice.add([(0, 1, 2)])
    found = lattice.price_sources(V, -1.0, 100)
    assert (0, 1) not in found.ids
    assert len(found.ids) == 7
    for node, value in zip(found.ids, found.prices, strict=True):
        K = sufficient_kernel(P, node, base)
        assert value == pytest.approx(np.vdot(V, K @ V))


OPTIMA = [
    ("gaussians", rbf_ladders(4), 2.0, None, 30.0),
    ("linear", linear_ladders(4), 2.0, None, 10.0),
    ("grid", rbf_ladders(2, 3), 1.5, None, 100.0),
    ("mixed", [*rbf_ladders(2, 2), [Linear(columns=[2])]], 2.0, 2, 30.0),
]


@pytest.mark.parametrize("rho", first(1, [1.5, 2.0, 1.1]))
@pytest.mark.parametrize("number", range(len(OPTIMA)), ids=[o[0] for o in OPTIMA])
def test_optimum_against_the_conic_solver(number, rho):
    _, ladders, base, max_order, C = OPTIMA[number]
    rng = np.random.default_rng([5, number])
    X = rng.normal(size=(14, len(ladders)))
    T = 1 + number % 2
    signal = X[:, [0]] * X[:, [1]] + 0.3 * rng.normal(size=(14, T))
    squared = number == 2
    Y = signal if squared else np.where(signal > np.median(signal, axis=0), 1.0, -1.0)
    B = np.eye(T) + 1.0 if T > 1 else np.eye(1)
    everything = Enumerated(ladders, X, base, max_order)
    cost = np.full(Y.shape, C)
    reference = solve_dag(
        everything.features(),
        Y,
        cost,
        everything.ancestors,
        everything.costs,
        rho,
        B=B,
        loss="square" if squared else "hinge",
    )
    problem = DagProblem(
        graph_of(ladders, X, base=base, max_order=max_order),
        Y,
        cost,
        Square() if squared else Hinge(),
        rho,
        B if T > 1 else None,
    )
    result = dag_active_set(problem, Limits(1e-5, 3000), max_nodes=1000)
    assert result.converged
    assert result.objective == pytest.approx(reference.value, rel=1e-4)
    slack = 1e-9 * reference.upper
    assert result.lower_bound <= reference.upper + slack
    assert result.objective >= reference.lower - slack


@pytest.mark.slow
def test_many_columns_are_searched_without_enumeration():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)[:, None]
    graph = graph_of(ProductLattice().expand(X), X)
    problem = DagProblem(graph, y, np.full((60, 1), 30.0), Hinge(), 1.1)
    result = dag_active_set(problem, Limits(1e-2, 500), max_nodes=2000)
    assert result.converged
    assert ((0, 1), (1, 1)) in graph.nodes
    assert len(graph.nodes) < 1000


def test_no_more_products_come_in_than_asked_for():
    bank = make_bank([RBF(1.0 + k) for k in range(60)], np.eye(3))
    graph = ProductGraph(bank, [2] * 30)
    node = tuple((j, 2) for j in range(30))
    assert graph.add([node, ((0, 1), (29, 2))], 100) == 100
    assert len(graph.nodes) == 131
    assert all(graph.is_source(node) for node in graph.nodes)
    assert graph.add([((0, 1), (29, 2))]) > 0
    assert ((0, 1), (29, 2)) in graph.nodes


def test_a_search_that_need_not_prove_visits_fewer_products_of_more_rows(monkeypatch):
    limits = []

    def search(leaves, weights, factors, **options):
        limits.append(options["max_visited"])
        return search_products(leaves, weights, factors, **options)

    monkeypatch.setattr(product_graph, "search_products", search)
    rng = np.random.default_rng(0)
    for n in (20, 200):
        graph = graph_of(rbf_ladders(3), rng.normal(size=(n, 3)))
        for effort in (1.0, 1 / 16):
            graph.price(np.ones((n, 1)), 0.0, 10, effort)
    most = 150_000_000 // (200 * 201 // 2)
    assert limits == [1_000_000, 62_500, 1_000_000, most]
