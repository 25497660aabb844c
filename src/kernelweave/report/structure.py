"""The graph that kernels stand in, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave.plots.layout import layered

from .html import (
    Cell,
    Column,
    Markup,
    Section,
    figure,
    join,
    meter,
    note,
    number,
    paragraph,
    table,
    tag,
)
from .subject import Subject

_MOST = 60  # nodes that can be told apart in a drawing
_SHEET, _TALL = 700.0, 62.0  # pixels of a wide page, and between rows
_LETTERS = 34
_NAMED = 16


@dataclass(frozen=True)
class Dot:
    """A node as it is drawn: its kind, its name, its share of the largest, what is below it."""

    kind: str
    name: str
    share: float | None
    children: tuple[int, ...]
    meaning: str = ""  # shown when the mouse rests on it
    weight: str = ""


def section(subject: Subject) -> Section | None:
    """Return a drawing of the structure and a table of the weights in it."""
    model = subject.estimator
    if hasattr(model, "network_"):
        return _network(model)
    if hasattr(model, "active_nodes_"):
        return _graph(model)
    return None


def _network(model: Any) -> Section:
    network, weights = model.network_, model.node_weights_
    top = max(weights.values()) or 1.0
    by_node = dict(zip(network.products, weights.values(), strict=True))
    dots = {}
    for i in network.order:
        node = network.nodes[i]
        name = str(node.kernel) if node.kind == "leaf" else node.name or ""
        share = by_node[i] / top if i in by_node else None
        weight = "" if share is None else f"{by_node[i]:.2g}"
        dots[i] = Dot(node.kind, name, share, node.children, weight=weight)
    n_paths = network.count_paths()
    words = (
        f"The structure has {count(len(weights), 'weight')}, one for each product, and writes out "
        f"to {count(n_paths, 'path')}, each a product of kernels."
    )
    caption = (
        "Squares are sums, circles are products, larger the heavier they are, names at the end are "
        "kernels. Dotted lines lead to weights of zero."
    )
    rows = [
        [name, meter(value / top, f"{value:.3g}")]
        for name, value in sorted(weights.items(), key=lambda item: -item[1])[:400]
    ]
    columns = [Column("product", number=False), Column("weight", sorted="descending")]
    body = [
        paragraph(words),
        _drawn(dots, list(network.order), caption, flush=True),
        table("products", columns, rows, n_all=len(weights)),
    ]
    return Section("structure", "Structure", join(body))


def _graph(model: Any) -> Section:
    nodes, shares = model.active_nodes_, model.contributions_
    top = float(shares.max()) or 1.0
    names = [_node_name(node, kernel) for node, kernel in zip(nodes, model.kernels_, strict=True)]
    kept = [int(k) for k in np.argsort(-shares, kind="stable")[:_MOST]]
    above = _parents(model)
    children: dict[int, list[int]] = {k: [] for k in kept}
    place = {node: k for k, node in enumerate(nodes)}
    for k in kept:
        for parent in above(nodes[k]):
            if place.get(parent) in children:
                children[place[parent]].append(k)
    order = _below_first(children)
    numbers = {k: f"{rank + 1}" for rank, k in enumerate(kept)}
    # Few nodes have room for their names.
    shown = names if len(kept) <= _NAMED else numbers
    dots = {
        k: Dot("node", shown[k], float(shares[k]) / top, tuple(children[k]), names[k])
        for k in order
    }
    words = (
        f"{count(len(nodes), 'node')} of the graph of kernels are in use, of "
        f"{count(int(model.n_nodes_), 'node')} that were activated. A kernel can be learned only "
        "where its parents in the graph are paid for."
    )
    known = "" if shown is names else ", with their numbers in the table"
    caption = (
        f"Circles are kernels, larger the more they contribute{known}; lines lead from parents to "
        "children, dotted where one of the two contributes nothing."
    )
    left_out = len(nodes) - len(kept)
    less = f"{count(left_out, 'node')} that contribute least are not drawn."
    columns = [] if shown is names else [Column("no.", number=False)]
    columns += [Column("node", number=False), Column("contribution", sorted="descending")]
    columns.append(Column("norm"))
    rows = [
        [
            *([] if shown is names else [Cell(numbers[k], float(numbers[k]))]),
            names[k],
            meter(float(shares[k]) / top, f"{shares[k]:.1%}"),
            number(model.block_norms_[k]),
        ]
        for k in kept
    ]
    drawn = _drawn(dots, order, caption, flush=False)
    if not any(children.values()):
        drawn = note("None of them stands above another one in use, so there is nothing to draw.")
    body = [
        paragraph(words),
        drawn,
        note(less) if left_out else None,
        table("nodes", columns, rows, n_all=len(nodes)),
    ]
    return Section("structure", "Structure", join(body))


def _node_name(node: Any, kernel: Any) -> str:
    # Nodes of a lattice are numbers of ladders and rungs, which say nothing to people.
    return str(kernel) if isinstance(node, tuple | int) else str(node)


def _parents(model: Any) -> Any:
    """Return a function that names the nodes directly above a node."""
    given = model._plain_parameters()
    if given["kernels"] is None or hasattr(given["kernels"], "max_order"):
        return _lattice_parents
    listed = given["parents"] or {}
    return lambda node: listed.get(node, [])


def _lattice_parents(node: Any) -> list[Any]:
    rungs = dict(node)
    out = []
    for ladder, rung in node:
        lower = {**rungs, ladder: rung - 1}
        out.append(tuple((j, r) for j, r in sorted(lower.items()) if r))
    return out


def _below_first(children: dict[int, list[int]]) -> list[int]:
    """Return nodes with children before parents."""
    order: list[int] = []
    seen: set[int] = set()

    def visit(k: int) -> None:
        if k not in seen:
            seen.add(k)
            for c in children[k]:
                visit(c)
            order.append(k)

    for k in children:
        visit(k)
    return order


def _drawn(dots: dict[int, Dot], order: list[int], caption: str, *, flush: bool) -> Markup:
    if len(dots) > 3 * _MOST:
        return note(f"The drawing is left out, since it would have {count(len(dots), 'node')}.")
    places = layered(order, {i: dots[i].children for i in order}, flush=flush)
    low = min(y for _, y in places.values())
    high = max(y for _, y in places.values())
    right = max(x for x, _ in places.values())
    names = 20 + 7 * min(_LETTERS, max(len(dots[i].name) for i in order))  # room for the last ones
    spoken = any(d.kind == "node" and d.children and not d.name.isdigit() for d in dots.values())
    between = names if spoken else 90.0  # names of nodes stand on the way to their children
    wide = min(max((_SHEET - names) / (right or 1.0), between), max(160.0, between))
    xy = {i: (24 + wide * x, 40 + _TALL * (high - y)) for i, (x, y) in places.items()}
    width = 24 + wide * right + names
    height = 40 + _TALL * (high - low) + 40
    edges, marks = [], []
    for i in order:
        (x, y), dot = xy[i], dots[i]
        for c in dot.children:
            empty = any(d.share is not None and d.share < 1e-6 for d in (dot, dots[c]))
            a, b = xy[c]
            middle = 0.5 * (x + a)
            curve = f"M{x:.1f},{y:.1f} C{middle:.1f},{y:.1f} {middle:.1f},{b:.1f} {a:.1f},{b:.1f}"
            edges.append(tag("path", d=curve, class_="edge empty" if empty else "edge"))
        marks.append(_mark(dot, x, y, int(wide / 5)))
    words = f"A graph of {count(len(dots), 'node')}; the table below lists its weights."
    drawing = tag(
        "svg",
        tag("title", words),
        edges,
        marks,
        class_="graph",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
    )
    box = tag("div", drawing, class_="scroll", tabindex=0, role="region", aria_label="Structure")
    return figure(box, caption)


def _mark(dot: Dot, x: float, y: float, room: int) -> Markup:
    """Return a node with its name; ``room`` is how many letters fit before the next column."""
    name, full = clip(dot.name, _LETTERS), tag("title", dot.meaning or dot.name)
    across, down = f"{x:.1f}", f"{y:.1f}"
    if dot.kind == "leaf":
        words = tag("text", full, name, x=f"{x + 10:.1f}", y=f"{y + 4:.1f}", class_="name")
        return join([tag("circle", cx=across, cy=down, r=3, class_="leaf"), words])
    if dot.kind == "sum":
        corner = {"x": f"{x - 9:.1f}", "y": f"{y - 9:.1f}"}
        box = tag("rect", **corner, width=18, height=18, rx=3, class_="sum")
        plus = tag("text", "+", x=across, y=f"{y + 5:.1f}", class_="plus", text_anchor="middle")
        return join([box, plus])
    radius = 5 + 11 * float(np.sqrt(max(dot.share or 0.0, 0.0)))
    circle = tag("circle", full, cx=across, cy=down, r=f"{radius:.1f}", class_="product")
    if dot.kind == "node":
        words = tag("text", name, x=f"{x + radius + 4:.1f}", y=f"{y + 4:.1f}", class_="name")
    else:
        above = f"{y - radius - 5:.1f}"
        name = f"{clip(dot.name, room)} {dot.weight}".strip()
        words = tag("text", name, x=f"{max(x - 16, 4):.1f}", y=above, class_="name")
    return join([circle, words])
