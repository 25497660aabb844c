"""Graphs of kernels as users write them: a dict, a list, or a graph of networkx."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.candidates.dag import depths
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import Kernel, expand_kernels
from kernelweave.kernels.base import is_number
from kernelweave.kernels.given import with_missing


@dataclass(frozen=True)
class KernelGraph:
    """Kernels, and which stand above which."""

    kernels: dict[Any, Kernel]  # kernel of each node
    parents: dict[Any, list[Any]]  # nodes directly above each node that has any

    @classmethod
    def of(
        cls,
        kernels: Any,
        parents: Any,
        X: Any,
        weight: Floats | None,
        missing: str | None = None,
    ) -> KernelGraph:
        """Read what an estimator was given; the nodes of a list are its positions.

        ``missing`` is the rule for missing values of kernels that have none.
        """
        if is_graph(kernels):
            if parents is not None:
                raise InputError("parents: a graph has its own edges, so parents must be None.")
            kernels, parents = read_networkx(kernels)
        if not isinstance(kernels, Mapping):
            kernels = dict(enumerate(expand_kernels(kernels, X, weight)))
        if not kernels:
            raise InputError("kernels: the graph is empty; None gives a lattice of all columns.")
        for node, kernel in kernels.items():
            if not isinstance(kernel, Kernel):
                ready = isinstance(kernel, np.ndarray)
                hint = "; write Precomputed(gram) for a ready matrix" if ready else ""
                raise InputTypeError(
                    f"kernels[{node!r}]: must be a kernel, got {type(kernel).__name__}{hint}."
                )
        kernels = with_missing(dict(kernels), missing)
        bound = {node: kernel.bound(X, weight) for node, kernel in kernels.items()}
        return cls(bound, _read_parents(parents, bound))

    def costs(self, node_cost: Any) -> Floats:
        """Return the cost of each node, ``2**depth`` unless told otherwise."""
        nodes = list(self.kernels)
        if node_cost is None or is_number(node_cost):
            base = check_cost("node_cost", 2.0 if node_cost is None else node_cost)
            return np.asarray(base ** depths(self.parents, nodes))
        return np.array(list(cost_table(node_cost, nodes).values()))


def is_graph(value: Any) -> bool:
    """Tell a graph of networkx from everything else."""
    return hasattr(value, "is_directed") and hasattr(value, "predecessors")


def read_networkx(graph: Any) -> tuple[dict[Any, Any], dict[Any, list[Any]]]:
    """Return the kernels of the nodes of a directed graph, and their parents."""
    kernels = {}
    for node, attributes in graph.nodes(data=True):
        if "kernel" not in attributes:
            raise InputError(
                f"kernels: the node {node!r} of the graph has no kernel; add it with "
                f"add_node({node!r}, kernel=...)."
            )
        kernels[node] = attributes["kernel"]
    return kernels, {node: list(graph.predecessors(node)) for node in graph}


def cost_table(node_cost: Any, nodes: list[Any]) -> dict[Any, float]:
    """Return the cost of each node from a dict or a function."""
    if not isinstance(node_cost, Mapping) and not callable(node_cost):
        raise InputTypeError(
            "node_cost: must be a number, a dict of nodes and costs, or a function of a node, "
            f"got {type(node_cost).__name__}."
        )
    out = {}
    for node in nodes:
        if isinstance(node_cost, Mapping):
            if node not in node_cost:
                raise InputError(f"node_cost: there is no cost for the node {node!r}.")
            value = node_cost[node]
        else:
            value = node_cost(node)
        out[node] = check_cost(f"node_cost of {node!r}", value)
    return out


def check_cost(what: str, value: Any) -> float:
    """Return a cost as a float, or say that it cannot be one."""
    if not is_number(value) or not 0 < value < np.inf:
        raise InputError(f"{what}: must be a finite number > 0, got {value!r}.")
    return float(value)


def _read_parents(parents: Any, kernels: Mapping[Any, Kernel]) -> dict[Any, list[Any]]:
    if parents is None:
        return {}
    if not isinstance(parents, Mapping):
        raise InputTypeError(
            "parents: must be a dict of nodes and lists of the nodes above them, "
            f"got {type(parents).__name__}."
        )
    out = {}
    for node, above in parents.items():
        _refuse_unknown("parents", node, kernels)
        if isinstance(above, str) or not isinstance(above, list | tuple | set | frozenset):
            raise InputTypeError(f"parents[{node!r}]: must be a list of nodes, got {above!r}.")
        for parent in above:
            _refuse_unknown(f"parents[{node!r}]", parent, kernels)
        out[node] = list(above)
    return out


def _refuse_unknown(what: str, node: Hashable, kernels: Mapping[Any, Kernel]) -> None:
    if node not in kernels:
        known = ", ".join(repr(name) for name in list(kernels)[:8])
        raise InputError(f"{what}: there is no node {node!r} in kernels; the first are {known}.")
