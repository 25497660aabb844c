"""Section on the graph of kernels: sum-product structures and active nodes of hierarchies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.plots.structure import layered

from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, meter, number, text_column

_MOST = 60  # nodes that can be distinguished in a drawing
_MOST_PRODUCTS = 400  # of the table
_SHEET, _TALL = 700.0, 62.0  # pixels of a wide page, and between rows
_LETTERS = 34
_NAMED = 16


@dataclass(frozen=True)
class Node:
    """A node of the drawing: kind, name, share of the largest weight, and nodes below it."""

    kind: str
    name: str
    share: float | None
    children: tuple[int, ...]
    meaning: str = ""  # shown when the mouse rests on it
    weight: str = ""

    @property
    def radius(self) -> float:
        """Radius of its circle; the area grows with the share."""
        return 5 + 11 * float(np.sqrt(max(self.share or 0.0, 0.0)))


@dataclass(frozen=True)
class Graph:
    """Positions of nodes and edges; ``room`` is how many letters fit between two columns."""

    nodes: list[tuple[Node, float, float]]
    edges: list[tuple[float, float, float, float, bool]]
    width: float
    height: float
    room: int
    caption: str


def section(subject: Subject) -> Section:
    """Return a drawing of the structure and a table of its weights."""
    model = subject.estimator
    values = _network(model) if model._declaration.learns == "paths" else _hierarchy(model)
    return Section("structure", "Structure", {"network": False, "n_dropped": 0, **values})


def _network(model: Any) -> dict[str, Any]:
    network, weights = model.network_, model.node_weights_
    top = max(weights.values()) or 1.0
    by_node = dict(zip(network.products, weights.values(), strict=True))
    nodes = {}
    for i in network.order:
        node = network.nodes[i]
        name = str(node.kernel) if node.kind == "leaf" else node.name or ""
        weight = by_node.get(i)
        share, shown = (None, "") if weight is None else (weight / top, f"{weight:.2g}")
        nodes[i] = Node(node.kind, name, share, node.children, weight=shown)
    caption = (
        "Squares are sums, circles are products, larger the heavier they are, names at the end are "
        "kernels. Dotted lines lead to weights of zero."
    )
    rows = [
        [name, meter(value / top, f"{value:.3g}")]
        for name, value in sorted(weights.items(), key=lambda item: -item[1])[:_MOST_PRODUCTS]
    ]
    columns = [text_column("product"), Column("weight", sorted="descending")]
    return {
        "network": True,
        "n_weights": len(weights),
        "n_paths": network.count_paths(),
        "n_drawn": len(nodes),
        "graph": _layout(nodes, list(network.order), caption, flush=True),
        "weights": Table("products", columns, rows, len(weights)),
    }


def _hierarchy(model: Any) -> dict[str, Any]:
    nodes, shares = model.active_nodes_, model.contributions_
    top = float(shares.max()) or 1.0
    # Nodes of a lattice are pairs of numbers, so their kernels are named instead.
    names = [
        str(kernel) if isinstance(node, tuple | int) else str(node)
        for node, kernel in zip(nodes, model.kernels_, strict=True)
    ]
    kept = [int(k) for k in np.argsort(-shares, kind="stable")[:_MOST]]
    children = _children(model, kept)
    numbers = {k: f"{rank + 1}" for rank, k in enumerate(kept)}
    named = len(kept) <= _NAMED  # few nodes have room for their names
    shown: Any = names if named else numbers
    order = _children_first(children)
    drawn = {
        k: Node("node", shown[k], float(shares[k]) / top, tuple(children[k]), names[k])
        for k in order
    }
    known = "" if named else ", with their numbers in the table"
    caption = (
        f"Circles are kernels, larger the more they contribute{known}; lines lead from parents to "
        "children, dotted where one of the two contributes nothing."
    )
    columns = [] if named else [text_column("no.")]
    columns += [text_column("node"), Column("contribution", sorted="descending"), Column("norm")]
    rows = [
        [
            *([] if named else [Cell(numbers[k], float(numbers[k]))]),
            names[k],
            meter(float(shares[k]) / top, f"{shares[k]:.1%}"),
            number(model.block_norms_[k]),
        ]
        for k in kept
    ]
    connected = any(children.values())
    return {
        "n_active": len(nodes),
        "n_nodes": int(model.n_nodes_),
        "n_dropped": len(nodes) - len(kept),
        "n_drawn": len(drawn) if connected else 0,
        "graph": _layout(drawn, order, caption, flush=False) if connected else None,
        "weights": Table("nodes", columns, rows, len(nodes)),
    }


def _children(model: Any, kept: list[int]) -> dict[int, list[int]]:
    """Return the drawn nodes directly below each drawn node."""
    nodes, given = model.active_nodes_, model._plain_parameters()
    lattice = not isinstance(given["kernels"], Mapping)
    parents = given["parents"] or {}
    place = {node: k for k, node in enumerate(nodes)}
    children: dict[int, list[int]] = {k: [] for k in kept}
    for k in kept:
        above = _lattice_parents(nodes[k]) if lattice else parents.get(nodes[k], [])
        for parent in above:
            if place.get(parent) in children:
                children[place[parent]].append(k)
    return children


def _lattice_parents(node: Any) -> list[Any]:
    """Return the nodes of a product lattice with one rung less in one ladder."""
    rungs = dict(node)
    lower = ({**rungs, ladder: rung - 1} for ladder, rung in node)
    return [tuple((j, r) for j, r in sorted(each.items()) if r) for each in lower]


def _children_first(children: dict[int, list[int]]) -> list[int]:
    """Return nodes with children before parents."""
    order: dict[int, None] = {}

    def visit(k: int) -> None:
        for c in children[k]:
            if c not in order:
                visit(c)
        order[k] = None

    for k in children:
        if k not in order:
            visit(k)
    return list(order)


def _layout(nodes: dict[int, Node], order: list[int], caption: str, *, flush: bool) -> Graph | None:
    """Return the drawing, None where it would have too many nodes."""
    if len(nodes) > 3 * _MOST:
        return None
    places = layered(order, {i: nodes[i].children for i in order}, flush=flush)
    low = min(y for _, y in places.values())
    high = max(y for _, y in places.values())
    right = max(x for x, _ in places.values())
    names = 20 + 7 * min(_LETTERS, max(len(nodes[i].name) for i in order))  # room for the last ones
    spoken = any(n.kind == "node" and n.children and not n.name.isdigit() for n in nodes.values())
    between = names if spoken else 90.0  # names of nodes are on the way to their children
    wide = min(max((_SHEET - names) / (right or 1.0), between), max(160.0, between))
    xy = {i: (24 + wide * x, 40 + _TALL * (high - y)) for i, (x, y) in places.items()}
    edges = [
        (*xy[i], *xy[c], _is_empty(nodes[i]) or _is_empty(nodes[c]))
        for i in order
        for c in nodes[i].children
    ]
    return Graph(
        [(nodes[i], *xy[i]) for i in order],
        edges,
        24 + wide * right + names,
        40 + _TALL * (high - low) + 40,
        int(wide / 5),
        caption,
    )


def _is_empty(node: Node) -> bool:
    return node.share is not None and node.share < 1e-6
