"""Pairs from graphs."""

import os

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from kernelweave import constraints_from_graph
from kernelweave.datasets import load_dataset
from kernelweave.errors import InputError
from kernelweave.pairs.graphs import adjacency, read_links, sample_unlinked, walk_pairs

EDGES = np.array([[0, 1], [1, 0], [2, 2], [4, 1], [1, 2], [0, 1]])
LINKS = [[0, 1], [1, 2], [1, 4]]


def some_links(seed=0, n=40, count=60):
    random = np.random.default_rng(seed)
    links, _ = read_links(random.integers(n, size=(count, 2)), n)
    return links


def as_graphs():
    ones = np.ones(len(EDGES))
    table = coo_array((ones, (EDGES[:, 0], EDGES[:, 1])), shape=(6, 6))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(6))
    graph.add_edges_from(EDGES.tolist())
    return {
        "edges": EDGES,
        "list": EDGES.tolist(),
        "coo": table,
        "csr": csr_array(table),
        "matrix": csr_matrix(table),
        "networkx": graph,
    }


@pytest.mark.parametrize("kind", as_graphs())
def test_links_are_unordered_distinct_and_not_to_oneself(kind):
    links, size = read_links(as_graphs()[kind], 6)
    assert links.tolist() == LINKS
    assert size == 6


def test_the_number_of_rows_follows_from_the_graph():
    assert read_links(EDGES)[1] == 5
    assert read_links(as_graphs()["csr"])[1] == 6
    assert read_links(as_graphs()["networkx"])[1] == 6


def test_nodes_with_names_are_numbered_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("b", "c")
    assert read_links(graph)[0].tolist() == [[0, 2]]


def test_stored_zeros_are_no_links():
    table = csr_array(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert read_links(table)[0].tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("graph", "n", "sentence"),
    [
        ([[0, 7]], 5, "graph: links must join rows 0 to 4, found 7"),
        ([[0, -1]], 5, "graph: links must join rows 0 to 4, found -1"),
        ([[0.5, 1.0]], None, "graph: must be an array of row numbers"),
        ([0, 1], None, "graph: must be an array of row numbers"),
        ("links", None, "graph: must be an array of row numbers"),
        (csr_array(np.ones((2, 3))), None, "graph: a matrix must be square"),
    ],
)
def test_bad_graphs(graph, n, sentence):
    with pytest.raises(InputError, match=sentence):
        read_links(graph, n)


def test_constraints_are_balanced_and_say_what_is_linked():
    found = constraints_from_graph(some_links(), n_samples=40, random_state=0)
    up = found.labels > 0
    assert up.sum() == (~up).sum() == len(some_links())
    assert found.pairs[up].tolist() == some_links().tolist()
    assert found.n_samples == 40
    fewer = constraints_from_graph(some_links(), n_samples=40, n_negatives=5, random_state=0)
    assert (fewer.labels < 0).sum() == 5


def test_constraints_need_a_link():
    with pytest.raises(InputError, match="graph: it has no link between two different rows"):
        constraints_from_graph([[1, 1]], n_samples=3)


@pytest.mark.parametrize("count", [5, 100, 400, "all"])
def test_negatives_are_never_linked_and_never_repeated(count):
    links = some_links()
    free = 40 * 39 // 2 - len(links)
    count = free if count == "all" else count
    found = sample_unlinked(links, 40, count, 0)
    assert found.shape == (count, 2)
    assert (found[:, 0] < found[:, 1]).all()
    keys = {tuple(pair) for pair in found.tolist()}
    assert len(keys) == count
    assert not keys & {tuple(pair) for pair in links.tolist()}
    np.testing.assert_array_equal(found, sample_unlinked(links, 40, count, 0))
    with pytest.raises(InputError, match=r"n_negatives: .* pairs without a link are wanted"):
        sample_unlinked(links, 40, free + 1, 0)


def test_negatives_are_uniform():
    links = np.array([[0, 1]])
    counts = np.zeros((6, 6))
    for seed in range(1500):
        left, right = sample_unlinked(links, 6, 2, seed).T
        counts[left, right] += 1
    drawn = counts[np.triu_indices(6, 1)]
    assert drawn[0] == 0
    assert abs(drawn[1:] - 3000 / 14).max() < 5 * np.sqrt(3000 / 14)


@pytest.mark.parametrize("stop", [0.1, 0.5, 1.0])
def test_walks_stay_in_their_component_and_leave_their_origin(stop):
    links = some_links(1, n=60, count=40)
    found = walk_pairs(links, 60, 500, stop, 0)
    assert found.shape == (500, 2)
    assert (found[:, 0] < found[:, 1]).all()
    _, place = connected_components(adjacency(links, 60), directed=False)
    assert (place[found[:, 0]] == place[found[:, 1]]).all()
    np.testing.assert_array_equal(found, walk_pairs(links, 60, 500, stop, 0))


def test_walks_of_one_step_are_links_and_longer_ones_are_not_only():
    links = some_links(2)
    known = {tuple(pair) for pair in links.tolist()}
    assert {tuple(p) for p in walk_pairs(links, 40, 800, 1.0, 0).tolist()} <= known
    assert not {tuple(p) for p in walk_pairs(links, 40, 800, 0.2, 0).tolist()} <= known


def test_adjacency_is_symmetric_without_a_diagonal():
    A = adjacency(some_links(), 40).toarray()
    np.testing.assert_array_equal(A, A.T)
    assert not A.diagonal().any()
    assert A.sum() == 2 * len(some_links())


@pytest.mark.skipif(not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA is not set")
@pytest.mark.parametrize(("name", "count"), [("cora", 5278), ("citeseer", 4536)])
def test_links_of_real_citations(name, count):
    data = load_dataset(name)
    found = constraints_from_graph(data.edges, n_samples=data.X.shape[0], random_state=0)
    assert (found.labels > 0).sum() == (found.labels < 0).sum() == count
