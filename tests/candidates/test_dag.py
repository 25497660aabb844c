"""Graphs of kernels written down: order, search, the optimum, and both certificates."""

import numpy as np
import pytest

from dag_cases import INSTANCES, NAMES, brackets, fit, graph_of, oracle
from hkl_oracles import (
    closure,
    dual_norm,
    sufficient_sum,
)
from kernelweave import RBF
from kernelweave.banks import make_bank
from kernelweave.candidates.dag import ExplicitDag, depths
from kernelweave.errors import InputError
from kernelweave.weights.dag import Hierarchy
from quick import every


@pytest.mark.parametrize("number", every(3, range(len(INSTANCES))), ids=NAMES)
def test_optimum_and_certificate(number):
    graph, result = fit(INSTANCES[number], 1e-5)
    assert result.converged
    assert result.objective == pytest.approx(oracle(number).value, rel=1e-4)
    assert brackets(result, oracle(number))
    ancestors = closure(INSTANCES[number]["parents"])
    assert all(set(np.flatnonzero(ancestors[:, w])) <= set(graph.nodes) for w in graph.nodes)


@pytest.fixture(params=range(4))
def half_active(request):
    """A random graph some nodes of which are active, with vectors."""
    rng = np.random.default_rng(request.param)
    parents = [[v for v in range(w) if rng.random() < 0.4] for w in range(9)]
    features = [rng.normal(size=(12, 2)) for _ in parents]
    graph = graph_of(features, parents, rng.uniform(0.5, 2.0, size=9))
    graph.add([int(rng.integers(2, 9))])
    return graph, features, closure(parents), rng.normal(size=(12, 2))


def forms_of(features, V):
    return np.array([np.linalg.norm(phi.T @ V) ** 2 for phi in features])


def test_search_finds_what_enumeration_finds(half_active):
    graph, features, _, V = half_active
    quadratic_forms = forms_of(features, V)
    outside = [w for w in range(9) if w not in graph.nodes]
    ratios = {w: quadratic_forms[w] / graph.all_costs[w] ** 2 for w in outside}
    for level in (0.0, np.median(list(ratios.values())), np.inf):
        found = graph.price(V, level, 100)
        expected = sorted((w for w in outside if ratios[w] > level), key=lambda w: -ratios[w])
        assert list(found.ids) == expected
        assert found.prices == pytest.approx([ratios[w] for w in expected])
        assert found.complete
    assert len(graph.price(V, 0.0, 2).ids) == min(2, len(outside))


def test_sums_of_the_published_condition(half_active):
    graph, features, ancestors, V = half_active
    quadratic_forms = forms_of(features, V)
    found = graph.price_sources(V, -1.0, 100)
    above = {w: set(np.flatnonzero(ancestors[:, w])) - {w} for w in range(9)}
    sources = {w for w in range(9) if w not in graph.nodes and above[w] <= set(graph.nodes)}
    assert set(found.ids) == sources
    for u, value in zip(found.ids, found.prices, strict=True):
        assert value == pytest.approx(
            sufficient_sum(quadratic_forms, ancestors, graph.all_costs, u)
        )


@pytest.mark.parametrize("rho", [2.0, 1.5, 1.1])
def test_both_certificates_bound_the_dual_norm(half_active, rho):
    graph, features, ancestors, V = half_active
    true = dual_norm(np.sqrt(forms_of(features, V)), ancestors, graph.all_costs, rho).lower ** 2
    active = Hierarchy(graph.ancestors, graph.costs, rho)
    own = active.squared_dual_norm(
        graph.quadratic_forms(V), np.full(len(graph.nodes), 1 / len(graph.nodes))
    )
    for search in (graph.price, graph.price_sources):
        assert max(own, search(V, 0.0, 100).prices.max(initial=0.0)) >= true * (1 - 1e-9)


def test_nodes_come_with_their_ancestors():
    features = [np.ones((2, 1))] * 4
    graph = graph_of(features, [[], [0], [1], []], np.ones(4))
    assert graph.nodes == [0, 3]
    assert graph.is_source(1)
    assert not graph.is_source(2)
    assert graph.add([2]) == 2
    assert graph.add([1, 2]) == 0
    assert graph.ancestors.toarray().sum() == 1 + 1 + 2 + 3
    assert depths({1: [0], 2: [1, 3]}, range(4)).tolist() == [0, 1, 2, 0]


def test_a_cycle_is_refused_with_its_nodes():
    with pytest.raises(InputError, match=r"has a cycle, (1 -> 2 -> 1|2 -> 1 -> 2); no node"):
        graph_of([np.ones((2, 1))] * 3, [[], [2], [1]], np.ones(3))


def test_no_more_nodes_come_in_than_asked_for():
    bank = make_bank([RBF(1.0 + k) for k in range(5)], np.eye(3))
    graph = ExplicitDag(bank, "edcba", {"b": "a", "c": "b", "d": "c", "e": "d"}, np.ones(5))
    assert graph.add("e", 2) == 2
    assert set(graph.nodes) == set("abc")
    assert graph.add("e") == 2
