"""Graphs of kernels as they are given."""

import warnings

import networkx as nx
import pytest
from sklearn.base import clone

from hierarchy_cases import KERNELS, PARENTS, X, learner, y
from kernelweave import (
    HierarchicalMKLClassifier,
)
from kernelweave.errors import InputError


def test_the_graphs_of_networkx():
    graph = nx.DiGraph()
    for node, kernel in KERNELS.items():
        graph.add_node(node, kernel=kernel)
    graph.add_edges_from((parent, node) for node, above in PARENTS.items() for parent in above)
    model = HierarchicalMKLClassifier(graph, C=3.0, tol=1e-4).fit(X, y)
    assert model.objective_ == learner().fit(X, y).objective_
    clone(model).fit(X, y)


def test_nodes_without_a_kernel_are_named():
    graph = nx.DiGraph()
    graph.add_node("a")
    with pytest.raises(InputError, match=r"node 'a' of the graph has no kernel; add it with"):
        HierarchicalMKLClassifier(graph).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner().fit(X, y)
