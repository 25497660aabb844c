"""How kernels may be added and multiplied: sum-product networks and their paths."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, count, product, zip_longest
from math import isfinite, prod
from typing import Any

from kernelweave.errors import InputError, InputTypeError, warn

from .base import Kernel, is_number
from .discrete import Constant
from .expression import Group, Product, Scaled, Sum
from .plain import from_plain, to_plain

KINDS = ("sum", "product", "leaf")


@dataclass(frozen=True)
class Node:
    """One node of a network.

    Parameters
    ----------
    kind : {"sum", "product", "leaf"}
        A sum adds its children, a product multiplies them and has a weight, a leaf is a kernel.
    children : tuple of int
        Positions in the network; repetition is allowed.
    kernel : Kernel or None
        Of a leaf.
    p : float or None
        Exponent of the weight of a product; None leaves it to the estimator.
    name : str or None
        Of a product, for people.
    """

    kind: str
    children: tuple[int, ...] = ()
    kernel: Kernel | None = None
    p: float | None = None
    name: str | None = None


@dataclass(frozen=True)
class Path:
    """One summand of a network after distributing its products over its sums.

    Parameters
    ----------
    leaves : tuple of int
        Positions of the leaves multiplied, in increasing order, with repetition.
    exponents : tuple of (int, Fraction)
        Positions of the product nodes with the exponents of their weights, which add up to one.
    count : int
        How many equal paths this one stands for.
    """

    leaves: tuple[int, ...]
    exponents: tuple[tuple[int, Fraction], ...]
    count: int = 1


@dataclass(frozen=True)
class Network:
    """A rooted acyclic graph of sums, products and kernels.

    Parameters
    ----------
    nodes : tuple of Node
        In any order.
    root : int
        Where it begins.
    """

    nodes: tuple[Node, ...]
    root: int

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
        if isinstance(structure, list | tuple):
            structure = Sum(tuple(structure))
        if isinstance(structure, Kernel):
            return _from_expression(structure)._canonical()
        if isinstance(structure, Mapping):
            return _from_dict(structure)._canonical()
        if hasattr(structure, "is_directed") and hasattr(structure, "nodes"):
            return _from_graph(structure)._canonical()
        raise InputTypeError(
            "structure: must be a kernel expression such as (a + b) * c, a dict, or a networkx "
            f"graph, got {type(structure).__name__}."
        )

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
        """Write out all paths, equal ones merged.

        Parameters
        ----------
        max_paths : int
            Refuse to write out more.
        """
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
        """Return the network without some leaves, the products that need them, and empty sums.

        Parameters
        ----------
        lost : set of int
            Positions of leaves.
        """
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
        """Return the network as a dict, which `of` reads.

        Parameters
        ----------
        encode : callable
            What stands for each kernel; by default the kernel itself.
        """
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
        _check(list(self.nodes), list(range(len(self.nodes))))
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


def _check(nodes: list[Node], keys: list[Any]) -> None:
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
    _refuse_cycles(nodes, keys)


def _refuse_cycles(nodes: list[Node], keys: list[Any]) -> None:
    state: dict[int, int] = {}  # 1: on the trail, 2: done
    for first in range(len(nodes)):
        trail: list[tuple[int, Iterator[int]]] = []
        if first not in state:
            state[first] = 1
            trail.append((first, iter(nodes[first].children)))
        while trail:
            node, children = trail[-1]
            child = next(children, None)
            if child is None:
                state[node] = 2
                trail.pop()
            elif state.get(child) == 1:
                walk = [i for i, _ in trail]
                cycle = [*walk[walk.index(child) :], child]
                shown = " -> ".join(str(keys[i]) for i in cycle)
                raise InputError(f"structure: has a cycle, {shown}.")
            elif child not in state:
                state[child] = 1
                trail.append((child, iter(nodes[child].children)))


def _exponents(members: tuple[tuple[int, int], ...]) -> tuple[tuple[int, Fraction], ...]:
    """Return the exponents of the weights of the products of a path, given with their layers."""
    sizes = Counter(layer for layer, _ in members)
    out: dict[int, Fraction] = {}
    for layer, node in members:
        out[node] = out.get(node, Fraction(0)) + Fraction(1, len(sizes) * sizes[layer])
    return tuple(sorted(out.items()))


def _from_expression(kernel: Kernel) -> Network:
    nodes: list[Node] = []
    known: dict[Hashable, int] = {}

    def add(node: Node, key: Hashable = None) -> int:
        nodes.append(node)
        if key is not None:
            known[key] = len(nodes) - 1
        return len(nodes) - 1

    def read(kernel: Kernel, factor: float) -> int:
        match kernel:
            case Scaled() if not isinstance(kernel.kernel, Constant):
                return read(kernel.kernel, factor * kernel.factor)
            case Sum():
                return add(Node("sum", tuple(read(part, factor) for part in kernel.parts)))
            case Product():
                parts = [
                    (part.kernel, part.factor)
                    if isinstance(part, Scaled) and isinstance(part.kernel, Sum | Product | Group)
                    else (part, 1.0)
                    for part in kernel.parts
                ]
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
        """Return a leaf that multiplies by a number; groups stay what others share."""
        return () if factor == 1.0 else (read(Scaled(Constant(), factor, name=f"{factor:g}"), 1.0),)

    root = read(kernel, 1.0)
    return Network(tuple(nodes), root)


def _from_dict(structure: Mapping[str, Any]) -> Network:
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
        return _checked(nodes, list(entries), None)
    root = structure["root"]
    if not isinstance(root, Hashable) or root not in place:
        raise InputError(f"structure: the root {root!r} is not among the nodes.")
    return _checked(nodes, list(entries), place[root])


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


def _checked(nodes: list[Node], keys: list[Any], root: int | None) -> Network:
    """Check nodes under the names they were given, and find the root where none is given."""
    if not nodes:
        raise InputError("structure: has no nodes.")
    _check(nodes, keys)
    return Network(tuple(nodes), _only_root(nodes, keys) if root is None else root)


def _from_graph(graph: Any) -> Network:
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
    return _checked(nodes, keys, None)


def _only_root(nodes: list[Node], keys: list[Any]) -> int:
    below = {c for node in nodes for c in node.children}
    roots = [i for i in range(len(nodes)) if i not in below]
    if len(roots) != 1:
        found = ", ".join(repr(keys[i]) for i in roots[:5])
        raise InputError(f"structure: needs exactly one node without parents, found {found}.")
    return roots[0]
