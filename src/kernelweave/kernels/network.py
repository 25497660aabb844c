"""Sum-product networks of kernels and their paths.

Base kernels are leaves, sums add, products multiply and have a weight each. Distributing products
over sums writes a network as a sum of paths; the weight of a path is a geometric mean of the
weights of its products, whose exponents add up to one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, count, product, zip_longest
from math import prod
from typing import Any

from kernelweave.errors import InputError, warn

from .base import Kernel
from .network_input import Node, check_nodes, read_structure
from .plain import to_plain

__all__ = ["Network", "Node", "Path"]


@dataclass(frozen=True)
class Path:
    """One summand of a network after distributing its products over its sums."""

    # Positions of the leaves multiplied, in increasing order, with repetition.
    leaves: tuple[int, ...]
    # Positions of the product nodes with the exponents of their weights, which add up to one.
    exponents: tuple[tuple[int, Fraction], ...]
    count: int = 1  # how many equal paths this one stands for


@dataclass(frozen=True)
class Network:
    """A rooted acyclic graph of sums, products and kernels."""

    nodes: tuple[Node, ...]  # in any order
    root: int  # where it begins

    @classmethod
    def of(cls, structure: Any) -> Network:
        """Read a structure, in any of its forms, and bring it to canonical form.

        Parameters
        ----------
        structure : Kernel, list of Kernel, dict, networkx graph or Network
            An expression of kernels, a list (their sum), what `to_dict` returns or ``json.loads``
            makes of `to_json`, or a graph with edges from parents to children and the node
            attributes ``kind``, ``kernel``, ``p`` and ``name``.
        """
        if isinstance(structure, Network):
            return structure._canonical()
        nodes, root = read_structure(structure)
        return cls(tuple(nodes), root)._canonical()

    @cached_property
    def products(self) -> tuple[int, ...]:
        """Positions of the product nodes, which have weights."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind == "product")

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Positions of the leaves."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind == "leaf")

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions, children before parents."""
        seen: set[int] = set()
        order: list[int] = []
        stack = [(self.root, iter(self.nodes[self.root].children))]
        while stack:
            node, children = stack[-1]
            child = next((c for c in children if c not in seen), None)
            if child is not None:
                stack.append((child, iter(self.nodes[child].children)))
            else:
                stack.pop()
                if node not in seen:
                    seen.add(node)
                    order.append(node)
        return tuple(order)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A readable name of every node, different for different products."""
        texts: list[str] = [""] * len(self.nodes)
        out: list[str] = [""] * len(self.nodes)
        used = {node.name for node in self.nodes if node.name is not None}
        for i in self.order:
            node = self.nodes[i]
            inside = [texts[c] for c in node.children]
            if node.kind == "leaf":
                texts[i] = str(node.kernel)
            elif node.kind == "sum":
                texts[i] = " + ".join(inside)
            else:
                kinds = [self.nodes[c].kind for c in node.children]
                marked = [f"({t})" if k == "sum" else t for t, k in zip(inside, kinds, strict=True)]
                alone = len(marked) == 1 and kinds[0] == "sum"
                texts[i] = node.name or (f"group{marked[0]}" if alone else " * ".join(marked))
            out[i] = texts[i]
            if node.kind == "product" and node.name is None:  # names that were given stay
                numbers = (f"{texts[i]} #{k}" for k in count(2))
                out[i] = (
                    texts[i] if texts[i] not in used else next(n for n in numbers if n not in used)
                )
                used.add(out[i])
        return tuple(out)

    def count_paths(self) -> int:
        """Return the number of paths, equal ones counted, without writing them out."""
        counts: dict[int, int] = {}
        for i in self.order:
            node = self.nodes[i]
            below = [counts[c] for c in node.children]
            counts[i] = (
                1 if node.kind == "leaf" else prod(below) if node.kind == "product" else sum(below)
            )
        return counts[self.root]

    def paths(self, max_paths: int) -> list[Path]:
        """Write out all paths, equal ones merged; more than ``max_paths`` are refused."""
        n_paths = self.count_paths()
        if n_paths > max_paths:
            raise InputError(
                f"structure: has {n_paths} paths, more than max_paths={max_paths}. Hint: use fewer "
                "kernels per factor, or raise max_paths."
            )
        merged: Counter[tuple[Any, Any]] = Counter()
        for members, leaves in self._trees(self.root, 0, {}):
            merged[_exponents(members), leaves] += 1
        return [Path(leaves, members, n) for (members, leaves), n in merged.items()]

    def _trees(
        self, i: int, layer: int, known: dict[tuple[int, int], list[Any]]
    ) -> list[tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]:
        """Return ((layer, product) pairs, leaves) of every induced tree below a node."""
        if (i, layer) in known:
            return known[i, layer]
        node = self.nodes[i]
        out: list[Any]
        if node.kind == "leaf":
            out = [((), (i,))]
        elif node.kind == "sum":
            out = [tree for c in node.children for tree in self._trees(c, layer + 1, known)]
        else:
            out = []
            for parts in product(*(self._trees(c, layer, known) for c in node.children)):
                members = ((layer, i), *(pair for part in parts for pair in part[0]))
                leaves = tuple(sorted(leaf for part in parts for leaf in part[1]))
                out.append((members, leaves))
        known[i, layer] = out
        return out

    def uniform_exponents(self) -> dict[int, Fraction] | None:
        """Return the exponent of every product where it is the same on all paths, else None.

        Only networks without shared products are looked at; their evaluation then needs no paths.
        """
        parents = Counter(c for node in self.nodes for c in node.children)
        if any(parents[i] > 1 for i in self.products):
            return None
        if any(parents[i] > 1 and node.kind == "sum" for i, node in enumerate(self.nodes)):
            return None
        shapes: dict[int, tuple[int, ...] | None] = {}  # products in the layers from a node on
        for i in self.order:
            node = self.nodes[i]
            below = [shapes[c] for c in node.children]
            if node.kind == "leaf":
                shapes[i] = ()
            elif node.kind == "sum":
                same = i != self.root and len(set(below)) == 1 and below[0] is not None
                shapes[i] = (0, *(below[0] or ())) if same else None
            elif any(shape is None for shape in below):
                shapes[i] = None
            else:
                layers = zip_longest((1,), *(shape or () for shape in below), fillvalue=0)
                shapes[i] = tuple(sum(layer) for layer in layers)
        out: dict[int, Fraction] = {}
        for top in self.nodes[self.root].children:
            shape = shapes[top]
            if shape is None:
                return None
            for i, layer in self._below(top, 0):
                out[i] = Fraction(1, len(shape) * shape[layer])
        return out

    def _below(self, i: int, layer: int) -> Iterator[tuple[int, int]]:
        """Yield the products at and below a node, with their layers."""
        node = self.nodes[i]
        if node.kind == "product":
            yield i, layer
        for c in node.children:
            if self.nodes[c].kind != "leaf":
                yield from self._below(c, layer + (self.nodes[c].kind == "sum"))

    def without(self, lost: set[int]) -> Network:
        """Return the network without some leaves, the products that need them, and empty sums."""
        gone = set(lost)
        nodes = list(self.nodes)
        for i in self.order:
            node = nodes[i]
            if node.kind == "product" and any(c in gone for c in node.children):
                gone.add(i)
            elif node.kind == "sum":
                nodes[i] = replace(node, children=tuple(c for c in node.children if c not in gone))
                if not nodes[i].children:
                    gone.add(i)
        if self.root in gone:
            raise InputError("structure: every path has a kernel that is zero on all rows.")
        return Network(tuple(nodes), self.root)._compact()

    def describe(self, path: Path) -> str:
        """Return the kernels of a path as text."""
        return " * ".join(str(self.nodes[i].kernel) for i in path.leaves)

    def map_kernels(self, change: Callable[[Kernel], Kernel]) -> Network:
        """Return the same network on other kernels."""
        nodes = (
            node if node.kernel is None else replace(node, kernel=change(node.kernel))
            for node in self.nodes
        )
        return Network(tuple(nodes), self.root)

    def to_dict(self, encode: Callable[[Kernel], Any] = lambda kernel: kernel) -> dict[str, Any]:
        """Return the network as a dict, which `of` reads; ``encode`` is applied to each kernel."""
        nodes: dict[str, Any] = {}
        for i, node in enumerate(self.nodes):
            entry: dict[str, Any] = {"kind": node.kind}
            if node.kind == "leaf":
                assert node.kernel is not None
                entry["kernel"] = encode(node.kernel)
            else:
                entry["children"] = [str(c) for c in node.children]
            entry |= {k: v for k in ("p", "name") if (v := getattr(node, k)) is not None}
            nodes[str(i)] = entry
        return {"version": 1, "root": str(self.root), "nodes": nodes}

    def to_json(self) -> str:
        """Return the network as JSON; kernels that hold a matrix or a function are refused.

        Examples
        --------
        >>> import json
        >>> from kernelweave import RBF, Linear
        >>> network = Network.of(RBF(2.0, columns=[0]) * Linear() + RBF(1.0))
        >>> Network.of(json.loads(network.to_json())) == network
        True
        """
        return json.dumps(self.to_dict(encode=to_plain), indent=1)

    def to_graph(self) -> Any:
        """Return the network as a networkx MultiDiGraph, which `of` reads."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        for i, node in enumerate(self.nodes):
            kept = {k: v for k in ("kernel", "p", "name") if (v := getattr(node, k)) is not None}
            graph.add_node(i, kind=node.kind, **kept)
        for i, node in enumerate(self.nodes):
            for place, c in enumerate(node.children):
                graph.add_edge(i, c, place=place)  # parallel edges come together otherwise
        return graph

    def _canonical(self) -> Network:
        """Return a network whose root is a sum, with a product between any sum and what it adds."""
        check_nodes(self.nodes, range(len(self.nodes)))
        kept = set(self.order)
        if lost := [i for i in range(len(self.nodes)) if i not in kept]:
            warn(
                f"structure: {len(lost)} of {len(self.nodes)} nodes are not reached from the root, "
                "and left out."
            )
        nodes = list(self.nodes)
        root = self.root
        if nodes[root].kind != "sum":
            nodes.append(Node("sum", (root,)))
            root = len(nodes) - 1
        sums = [i for i in dict.fromkeys((*self.order, root)) if nodes[i].kind == "sum"]
        for i in sums:  # children come first, so that theirs are flat already
            merged = (
                nodes[c].children if nodes[c].kind == "sum" else (c,) for c in nodes[i].children
            )
            nodes[i] = replace(nodes[i], children=tuple(chain.from_iterable(merged)))
        for i in sums:  # only now: a sum inside two others leaves each its own weights
            children = []
            for c in nodes[i].children:
                if nodes[c].kind == "leaf":
                    nodes.append(Node("product", (c,)))
                    c = len(nodes) - 1
                children.append(c)
            nodes[i] = replace(nodes[i], children=tuple(children))
        return Network(tuple(nodes), root)._compact()

    def _compact(self) -> Network:
        """Renumber what the root reaches, children first."""
        place = {i: k for k, i in enumerate(self.order)}
        nodes = (
            replace(self.nodes[i], children=tuple(place[c] for c in self.nodes[i].children))
            for i in self.order
        )
        return Network(tuple(nodes), place[self.root])


def _exponents(members: tuple[tuple[int, int], ...]) -> tuple[tuple[int, Fraction], ...]:
    """Return the exponents of the weights of the products of a path, given with their layers."""
    sizes = Counter(layer for layer, _ in members)
    out: dict[int, Fraction] = {}
    for layer, node in members:
        out[node] = out.get(node, Fraction(0)) + Fraction(1, len(sizes) * sizes[layer])
    return tuple(sorted(out.items()))
