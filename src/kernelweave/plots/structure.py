"""A learned structure as a graph, and the layout of directed acyclic graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import declared
from kernelweave.errors import InputError

from .drawing import DARK, GREY, LIGHT, new_axes, wrap

_APART = 0.8  # least distance of two nodes of a column, in rows of the drawing


def plot_structure(model: Any, ax: Any = None) -> Any:
    """Draw a learned structure from its root on the left to its kernels on the right.

    Products are circles with their weights, larger the heavier they are; sums are squares.

    Parameters
    ----------
    model : fitted SumProductMKLClassifier
        Has ``network_`` and ``node_weights_``.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import RBF, Linear, SumProductMKLClassifier
    >>> from kernelweave.plots import plot_structure
    >>> model = SumProductMKLClassifier(RBF() * Linear() + Linear())
    >>> ax = plot_structure(model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    >>> ax.get_title(loc="left")
    '2 paths, 2 weights'
    """
    check_is_fitted(model)
    if (declaration := declared(model)) is None or declaration.learns != "paths":
        raise InputError(f"model: {type(model).__name__} has no structure; draw plot_weights.")
    network = model.network_
    weights = dict(zip(network.products, model.node_weights_.values(), strict=True))
    largest = max(weights.values()) or 1.0
    children = {i: network.nodes[i].children for i in network.order}
    places = layered(network.order, children)
    right = max(x for x, _ in places.values())
    ax = new_axes((3.2 + 1.4 * right, 1.2 + 0.42 * len(network.leaves))) if ax is None else ax
    for i, node in enumerate(network.nodes):
        x, y = places[i]
        for c in node.children:
            dead = any(weights.get(k, 1.0) < 1e-6 * largest for k in (i, c))
            line = ":" if dead else "-"
            ax.plot(
                [x, places[c][0]], [y, places[c][1]], line, color=LIGHT, linewidth=1.2, zorder=1
            )
        if node.kind == "leaf":
            ax.text(x + 0.06, y, wrap(node.kernel), va="center", fontsize=8)
        elif node.kind == "sum":
            ax.scatter([x], [y], marker="s", s=130, color=GREY, zorder=2)
            ax.text(x, y, "+", ha="center", va="center", color="white", fontsize=10, zorder=3)
        else:
            area = 60 + 260 * (weights[i] / largest) ** 0.5
            ax.scatter([x], [y], s=area, color=DARK, zorder=2)
            text = f"{weights[i]:.2g}" if weights[i] > 1e-6 * largest else "0"
            text = f"{wrap(node.name, 46)}: {text}" if node.name else text
            ax.annotate(
                text,
                (x, y),
                (0, 3 + 0.55 * area**0.5),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    ax.set_xlim(-0.3, right + 1.6)
    ax.margins(y=0.08)
    ax.set_axis_off()
    title = f"{network.count_paths()} paths, {len(weights)} weights"
    ax.set_title(title, loc="left", fontsize=11)
    return ax


def layered(
    order: Sequence[int], children: Mapping[int, Sequence[int]], *, flush: bool = True
) -> dict[int, tuple[float, float]]:
    """Return a position for each node: columns from left to right, parents amid their children.

    ``order`` has children before parents; ``flush`` puts all leaves into the last column.
    """
    depth = dict.fromkeys(order, 0)
    for i in reversed(order):
        for c in children[i]:
            depth[c] = max(depth[c], depth[i] + 1)
    last = max(depth.values())
    if flush:
        depth |= {i: last for i in order if not children[i]}
    height: dict[int, float] = {}
    rows = {i: k for k, i in enumerate(j for j in order if not children[j])}
    for i in order:
        below = [height[c] for c in children[i]]
        height[i] = float(np.mean(below)) if below else -float(rows[i])
    # Parents of one node, and of the same nodes, would overlap.
    columns: dict[int, list[int]] = {}
    for i in sorted(order, key=lambda i: (height[i], i)):
        if children[i]:
            columns.setdefault(depth[i], []).append(i)
    for members in columns.values():
        for before, i in pairwise(members):
            height[i] = max(height[i], height[before] + _APART)
    return {i: (float(depth[i]), height[i]) for i in order}
