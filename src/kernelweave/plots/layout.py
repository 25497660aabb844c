"""Layout of a directed acyclic graph in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

_APART = 0.8  # of the rows of a drawn structure, the least between two nodes of a column


def layered(
    order: Sequence[int], children: Mapping[int, Sequence[int]], *, flush: bool = True
) -> dict[int, tuple[float, float]]:
    """Return a place for each node: columns from left to right, parents amid their children.

    Parameters
    ----------
    order : sequence of int
        Nodes, children before parents.
    children : dict
        Nodes directly below each node.
    flush : bool
        Whether all nodes without children stand in the last column.
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
    # Parents of one node, and of the same nodes, would lie on top of each other.
    columns: dict[int, list[int]] = {}
    for i in sorted(order, key=lambda i: (height[i], i)):
        if children[i]:
            columns.setdefault(depth[i], []).append(i)
    for members in columns.values():
        for before, i in pairwise(members):
            height[i] = max(height[i], height[before] + _APART)
    return {i: (float(depth[i]), height[i]) for i in order}
