"""Structures that are refused, with the names that were given to their nodes."""

import networkx as nx
import numpy as np
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import Precomputed, group
from kernelweave.kernels.network import Network

A, B = (Precomputed(np.eye(2), name=f"k{k}") for k in range(2))


def refused(structure, match, error=InputError):
    with pytest.raises(error, match=match):
        Network.of(structure)


def nodes(**entries):
    return {"root": "s", "nodes": {"a": {"kind": "leaf", "kernel": A}, **entries}}


def plain(kind, *children, **more):
    return {"kind": kind, "children": list(children), **more}


def test_cycles_are_refused():
    s = plain("sum", "p", "a")
    refused(
        nodes(s=s, p=plain("product", "q"), q=plain("sum", "p")),
        r"structure: has a cycle, .* -> .* -> ",
    )
    refused(nodes(s=plain("sum", "s")), "structure: has a cycle")
    graph = nx.DiGraph([("s", "p"), ("p", "q"), ("q", "p"), ("p", "a")])
    nx.set_node_attributes(graph, {"s": "sum", "p": "product", "q": "sum", "a": "leaf"}, "kind")
    graph.nodes["a"]["kernel"] = A
    refused(graph, "structure: has a cycle")
    # Also where the root does not lead.
    refused(nodes(s=plain("sum", "a"), p=plain("product", "p")), "structure: has a cycle")


@pytest.mark.parametrize(
    ("structure", "match"),
    [
        (
            nodes(s=plain("sum", "p"), p=plain("product", "q"), q=plain("sum", "p")),
            "cycle, p -> q -> p",
        ),
        (nodes(s=plain("sum", "a", "p"), p=plain("product")), "node 'p': a product needs"),
        (nodes(s=plain("sum", "a"), a={"kind": "leaf"}), "node 'a': a leaf needs a kernel"),
    ],
    ids=["cycle", "no children", "no kernel"],
)
def test_refusals_tell_the_ids_that_were_given(structure, match):
    refused(structure, match)


def test_one_root_is_needed():
    two = nodes(s=plain("sum", "a"), t=plain("product", "a"))
    del two["root"]
    refused(two, "needs exactly one node without parents, found 's', 't'")
    ring = {"nodes": {"s": plain("sum", "p"), "p": plain("product", "s")}}
    refused(ring, "has a cycle, s -> p -> s")
    graph = nx.DiGraph()
    graph.add_node("a", kind="leaf", kernel=A)
    graph.add_node("b", kind="leaf", kernel=B)
    refused(graph, "needs exactly one node without parents, found 'a', 'b'")
    refused(nodes(s=plain("sum", "a")) | {"root": "r"}, "the root 'r' is not among the nodes")


def test_sums_and_products_need_children():
    refused(nodes(s=plain("sum")), "a sum needs one child or more")
    refused(nodes(s=plain("sum", "p"), p={"kind": "product"}), "a product needs one child or more")
    refused(nodes(s=plain("product")), "a product needs one child or more")


def test_leaves_have_a_kernel_and_nothing_below():
    refused(nodes(s=plain("sum", "b"), b=plain("leaf", "a", kernel=B)), "a leaf cannot have child")
    refused(nodes(s=plain("sum", "b"), b={"kind": "leaf"}), "a leaf needs a kernel, got None")
    refused(
        nodes(s=plain("sum", "b"), b={"kind": "leaf", "kernel": "rbf"}),
        "a leaf needs a kernel, got 'rbf'",
    )
    refused(nodes(s=plain("sum", "a", kernel=B)), "only leaves have a kernel")


def test_unknown_ids_kinds_and_keys():
    refused(nodes(s=plain("sum", "a", "x")), "node 's' has the unknown child 'x'")
    refused(nodes(s=plain("mean", "a")), "kind must be one of sum, product, leaf, got 'mean'")
    refused(nodes(s={"children": ["a"]}), "kind must be one of sum, product, leaf, got ''")
    refused(nodes(s=plain("sum", "a", weight=2.0)), "node 's' has the unknown key 'weight'")
    refused(nodes(s=["a"]), "node 's' must be a dict, got list")
    refused({"root": "a"}, "a dict needs the key 'nodes'")
    refused({"nodes": ["a"]}, "a dict needs the key 'nodes'")
    refused(nodes(s=plain("sum", "a")) | {"version": 2}, "version 2 is not known, only 1 is")
    graph = nx.DiGraph()
    graph.add_node("a", kind="leaf", kernel=A, weight=1.0)
    refused(graph, "node 'a' has the unknown attribute 'weight'")


@pytest.mark.parametrize("p", [0, -2.0, np.nan, np.inf, "1", True])
def test_exponents_must_be_positive(p):
    structure = nodes(s=plain("sum", "P"), P=plain("product", "a", p=p, name="P"))
    refused(structure, "structure: node 'P': p must be a finite number > 0, got ")


def test_only_products_have_weights():
    sentence = "only products have a weight, and so an exponent p"
    refused(nodes(s=plain("sum", "a", p=1.0)), sentence)
    refused(nodes(s=plain("sum", "a"), a={"kind": "leaf", "kernel": A, "p": 1.0}), sentence)
    graph = nx.DiGraph()
    graph.add_node("a", kind="leaf", kernel=A, p=2.0)
    refused(graph, sentence)


def test_names_are_given_once():
    refused(group(A, name="T") + group(B, name="T"), "structure: two nodes have the name 'T'")
    twice = plain("product", "a", name="T")
    refused(nodes(s=plain("sum", "p", "q"), p=twice, q=twice), "two nodes have the name 'T'")
    refused(group(A, name="T") + group(A, name="T", p=2), "two nodes have the name 'T'")


def test_other_structures_are_refused():
    for wrong in (3, "rbf", np.eye(2), None):
        refused(wrong, "structure: must be a kernel expression such as", InputTypeError)
    refused([A, 3], r"Sum: parts\[1\] must be a kernel, got int", InputTypeError)
    refused([], "Sum: parts must not be empty")
    refused(nx.DiGraph(), "structure: has no nodes")
    refused({"nodes": {}}, "structure: has no nodes")
    refused(nx.Graph([(0, 1)]), "the graph must be directed")


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "sum", "children": None},
        {"kind": "sum", "children": [["a"]]},
        {"kind": "product", "children": ["a"], "name": 5},
    ],
    ids=["no list", "list as id", "number as name"],
)
def test_malformed_entries_are_refused(entry):
    with pytest.raises((InputError, InputTypeError), match="node 's'"):
        print(Network.of(nodes(s=entry)).names)  # noqa: T201
