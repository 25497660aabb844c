"""Sum-product networks as they are written: kernel expressions, dicts, networkx graphs.

Every form is read into a list of nodes and the position of the root, and checked under the names
that the caller gave to the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import isfinite, prod
from typing import Any, TypeAlias

from kernelweave.errors import InputError, InputTypeError

from .base import Kernel, is_number
from .discrete import Constant
from .expression import Group, Product, Scaled, Sum
from .plain import from_plain

KINDS = ("sum", "product", "leaf")


@dataclass(frozen=True)
class Node:
    """One node of a network."""

    # {"sum", "product", "leaf"}: a sum adds its children, a product multiplies them and has a
    # weight, a leaf is a kernel.
    kind: str
    children: tuple[int, ...] = ()  # positions in the network; repetition is allowed
    kernel: Kernel | None = None  # of a leaf
    p: float | None = None  # exponent of the weight of a product; None leaves it to the estimator
    name: str | None = None  # of a product, for people


Written: TypeAlias = tuple[list[Node], int]
"""Nodes, and the position of the root."""


def read_structure(structure: Any) -> Written:
    """Read a kernel, a list of kernels (their sum), a dict or a networkx graph."""
    if isinstance(structure, list | tuple):
        structure = Sum(tuple(structure))
    if isinstance(structure, Kernel):
        return _from_expression(structure)
    if isinstance(structure, Mapping):
        return _from_dict(structure)
    if hasattr(structure, "is_directed") and hasattr(structure, "nodes"):
        return _from_graph(structure)
    raise InputTypeError(
        "structure: must be a kernel expression such as (a + b) * c, a dict, or a networkx "
        f"graph, got {type(structure).__name__}."
    )


def check_nodes(nodes: Sequence[Node], keys: Sequence[Any]) -> None:
    """Refuse what is not a network, naming nodes by their keys."""
    for key, node in zip(keys, nodes, strict=True):
        who = f"structure: node {key if node.name is None else node.name!r}"
        if node.kind not in KINDS:
            raise InputError(f"{who}: kind must be one of {', '.join(KINDS)}, got {node.kind!r}.")
        if node.kind == "leaf":
            if node.children:
                raise InputError(f"{who}: a leaf cannot have children.")
            if not isinstance(node.kernel, Kernel):
                raise InputError(f"{who}: a leaf needs a kernel, got {node.kernel!r}.")
        elif not node.children:
            raise InputError(f"{who}: a {node.kind} needs one child or more.")
        elif node.kernel is not None:
            raise InputError(f"{who}: only leaves have a kernel.")
        if node.kind != "product" and node.p is not None:
            raise InputError(f"{who}: only products have a weight, and so an exponent p.")
        if node.p is not None and not (is_number(node.p) and isfinite(node.p) and node.p > 0):
            raise InputError(f"{who}: p must be a finite number > 0, got {node.p!r}.")
    named = Counter(node.name for node in nodes if node.name is not None)
    if twice := [name for name, times in named.items() if times > 1]:
        raise InputError(f"structure: two nodes have the name {twice[0]!r}.")
    try:
        TopologicalSorter({i: node.children for i, node in enumerate(nodes)}).prepare()
    except CycleError as error:
        cycle = error.args[1][:0:-1]  # from parents to children, without the repeated end
        first = cycle.index(min(cycle))
        shown = " -> ".join(str(keys[i]) for i in (*cycle[first:], *cycle[: first + 1]))
        raise InputError(f"structure: has a cycle, {shown}.") from None


def _from_expression(kernel: Kernel) -> Written:
    nodes: list[Node] = []
    known: dict[Hashable, int] = {}

    def add(node: Node, key: Hashable = None) -> int:
        nodes.append(node)
        if key is not None:
            known[key] = len(nodes) - 1
        return len(nodes) - 1

    def read(kernel: Kernel, factor: float) -> int:
        match kernel:
            case Scaled(kernel=inner, factor=own) if not isinstance(inner, Constant):
                return read(inner, factor * own)
            case Sum():
                return add(Node("sum", tuple(read(part, factor) for part in kernel.parts)))
            case Product():
                parts = [_split(part) for part in kernel.parts]
                children = tuple(read(part, 1.0) for part, _ in parts)
                number = factor * prod(own for _, own in parts)
                return add(Node("product", children + fixed(number), name=kernel.name))
            case Group():
                if kernel not in known:
                    child = read(kernel.kernel, 1.0)
                    add(Node("product", (child,), p=kernel.p, name=kernel.name), kernel)
                same = known[kernel]
                return same if factor == 1.0 else add(Node("product", (same, *fixed(factor))))
            case _:
                leaf = kernel if factor == 1.0 else Scaled(kernel, factor)
                return known[leaf] if leaf in known else add(Node("leaf", kernel=leaf), leaf)

    def fixed(factor: float) -> tuple[int, ...]:
        """Return a leaf that multiplies by a number, so that shared groups stay shared."""
        return () if factor == 1.0 else (read(Scaled(Constant(), factor, name=f"{factor:g}"), 1.0),)

    return nodes, read(kernel, 1.0)


def _split(part: Kernel) -> tuple[Kernel, float]:
    """Take the number off a scaled sum, product or group."""
    match part:
        case Scaled(kernel=Sum() | Product() | Group() as inner, factor=own):
            return inner, own
    return part, 1.0


def _from_dict(structure: Mapping[str, Any]) -> Written:
    if "nodes" not in structure or not isinstance(structure["nodes"], Mapping):
        raise InputError("structure: a dict needs the key 'nodes', a dict of nodes by id.")
    if structure.get("version", 1) != 1:
        raise InputError(f"structure: version {structure['version']!r} is not known, only 1 is.")
    entries = structure["nodes"]
    place = {key: i for i, key in enumerate(entries)}
    nodes = []
    for key, entry in entries.items():
        if not isinstance(entry, Mapping):
            raise InputError(f"structure: node {key!r} must be a dict, got {type(entry).__name__}.")
        if unknown := set(entry) - {"kind", "children", "kernel", "p", "name"}:
            raise InputError(f"structure: node {key!r} has the unknown key {min(unknown)!r}.")
        nodes.append(_node(key, entry, place))
    if "root" not in structure:
        return _with_root(nodes, list(entries))
    root = structure["root"]
    if not isinstance(root, Hashable) or root not in place:
        raise InputError(f"structure: the root {root!r} is not among the nodes.")
    check_nodes(nodes, list(entries))
    return nodes, place[root]


def _node(key: Any, entry: Mapping[str, Any], place: dict[Any, int]) -> Node:
    """Read one node of a dict or graph."""
    children = entry.get("children", ())
    if not isinstance(children, list | tuple):
        raise InputError(f"structure: node {key!r}: children must be a list, got {children!r}.")
    for child in children:
        if not isinstance(child, Hashable) or child not in place:
            raise InputError(f"structure: node {key!r} has the unknown child {child!r}.")
    name = entry.get("name")
    if name is not None and (not isinstance(name, str) or not name):
        raise InputError(f"structure: node {key!r}: name must be a string, got {name!r}.")
    below = tuple(place[c] for c in children)
    kernel = entry.get("kernel")
    if isinstance(kernel, Mapping):
        kernel = from_plain(kernel, f"structure: node {key!r}")
    return Node(entry.get("kind", ""), below, kernel, entry.get("p"), name)


def _from_graph(graph: Any) -> Written:
    if not graph.is_directed():
        raise InputError("structure: the graph must be directed, from parents to children.")
    keys = list(graph.nodes)
    place = {key: i for i, key in enumerate(keys)}
    nodes = []
    for key in keys:
        data = dict(graph.nodes[key])
        if unknown := set(data) - {"kind", "kernel", "p", "name"}:
            raise InputError(f"structure: node {key!r} has the unknown attribute {min(unknown)!r}.")
        edges = sorted(graph.out_edges(key, data="place"), key=lambda edge: edge[2] or 0)
        entry = data | {"children": [child for _, child, _ in edges]}
        nodes.append(_node(key, entry, place))
    return _with_root(nodes, keys)


def _with_root(nodes: list[Node], keys: list[Any]) -> Written:
    """Check nodes, and find the only one without parents."""
    if not nodes:
        raise InputError("structure: has no nodes.")
    check_nodes(nodes, keys)
    below = {c for node in nodes for c in node.children}
    roots = [i for i in range(len(nodes)) if i not in below]
    if len(roots) != 1:
        found = ", ".join(repr(keys[i]) for i in roots[:5])
        raise InputError(f"structure: needs exactly one node without parents, found {found}.")
    return nodes, roots[0]
