"""Ancestors and active nodes of a lattice."""

from itertools import combinations

import numpy as np

from kernelweave.banks.rules import PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from lattice_cases import problem


def test_nodes_come_with_all_their_parts():
    P, V = problem()
    lattice = ConjunctionLattice(PackedRows.of(P))
    assert lattice.add([(0, 2, 4), (1, 3)]) == 5  # (0,2) (0,4) (2,4) (0,2,4) (1,3)
    assert lattice.add([(0, 2)]) == 0
    assert lattice.add([]) == 0
    known = set(lattice.nodes)
    for node in known:
        assert all(part in known for k in range(len(node)) for part in combinations(node, k))
    sizes = [len(node) for node in lattice.nodes[7:]]
    assert sizes == sorted(sizes)
    support = np.stack([P[:, list(node)].all(axis=1) for node in lattice.nodes])
    np.testing.assert_allclose(lattice.quadratic_forms(V), (support @ V)[:, 0] ** 2)
    np.testing.assert_array_equal(lattice.costs, [2.0 ** len(node) for node in lattice.nodes])


def test_ancestors_are_all_subsets():
    P, _ = problem()
    lattice = ConjunctionLattice(PackedRows.of(P))
    lattice.add([(0, 1, 2), (3, 5), (0, 5)])
    lattice.add([(0, 3, 5)])
    dense = lattice.ancestors.toarray()
    for w, node in enumerate(lattice.nodes):
        for v, other in enumerate(lattice.nodes):
            assert dense[w, v] == float(set(other) <= set(node))


def test_no_more_nodes_come_in_than_asked_for():
    lattice = ConjunctionLattice(PackedRows.of(np.ones((3, 40), dtype=bool)))
    node = tuple(range(1, 31))  # has a thousand million ancestors
    assert lattice.add([node, (0, 39)], 50) == 50
    assert len(lattice.nodes) == 91
    assert all(lattice.is_source(node) for node in lattice.nodes if node)
    assert lattice.add([(0, 39)], 0) == 0
    assert lattice.add([(0, 39)]) == 1
