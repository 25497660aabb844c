"""Structures: how they are written, their canonical form, and their paths against brute force."""

import json
import pickle
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import (
    RBF,
    Group,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
    group,
)
from kernelweave.kernels.network import Network, Node, Path
from quick import examples
from spn_oracles import (
    Paths,
    as_dict,
    brute_paths,
    deep,
    fig1,
    flat,
    leaf,
    nested,
    product,
    spn_instances,
    square,
    tree,
)

KERNELS = [Precomputed(np.eye(2), name=f"k{k}") for k in range(7)]
A, B, C, D, E, F, G = KERNELS
HALF, THIRD, QUARTER = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
STRUCTURES = {
    "fig1": fig1(),
    "flat": flat(5),
    "tree": tree(),
    "square": square(3),
    "deep": deep(),
    "nested": nested(),
    "leaf": leaf(3),
    "product": product([leaf(0), leaf(1), leaf(0)], "P"),
    **{name: instance.structure for name, instance in spn_instances().items()},
}


def as_expression(entry, kernels=KERNELS):
    """Write the tuples of the oracles with groups, sums and products."""
    kind, content = entry[:2]
    if kind == "leaf":
        return kernels[content]
    parts = tuple(as_expression(child, kernels) for child in content)
    if kind == "sum":
        return Sum(parts)
    options = entry[2]
    if len(parts) == 1:
        return Group(parts[0], options["p"], name=options["name"])
    return Product(parts, name=options["name"])


def as_graph(structure, kind=nx.MultiDiGraph):
    entries = as_dict(structure, KERNELS)["nodes"]
    graph = kind()
    for key, entry in entries.items():
        graph.add_node(key, **{k: v for k, v in entry.items() if k != "children"})
    graph.add_edges_from((key, c) for key, e in entries.items() for c in e.get("children", ()))
    return graph


def number(network, place):
    return KERNELS.index(network.nodes[place].kernel)


def fingerprint(paths):
    """Describe (leaves, exponents by node, count) so that names and order do not matter.

    A node is known by the paths through it.
    """
    through = {}
    for leaves, exponents, count in paths:
        for node, a in exponents.items():
            through.setdefault(node, Counter())[leaves, a] += count
    seen = {node: frozenset(met.items()) for node, met in through.items()}
    out = Counter()
    for leaves, exponents, count in paths:
        nodes = Counter((seen[node], a) for node, a in exponents.items())
        out[leaves, frozenset(nodes.items())] += count
    return out


def of_network(network):
    return [
        (tuple(sorted(number(network, i) for i in m.leaves)), dict(m.exponents), m.count)
        for m in network.paths(100_000)
    ]


def of_oracle(paths):
    return [(m.leaves, m.exponents, m.multiplicity) for m in paths.merged]


def assert_same_paths(network, structure):
    wanted = structure if isinstance(structure, Paths) else brute_paths(structure)
    assert network.count_paths() == len(wanted.every)
    assert len(network.paths(100_000)) == len(wanted.merged)
    assert len(network.products) == len(wanted.names)
    assert fingerprint(of_network(network)) == fingerprint(of_oracle(wanted))
    own = {v: p for v, p in zip(wanted.names, wanted.p, strict=True) if p is not None}
    found = {n.name: n.p for n in network.nodes if n.p is not None}
    assert found == own


# Groups


def test_a_group_evaluates_like_its_content():
    X = np.random.default_rng(0).normal(size=(5, 3))
    inner = RBF(0.5, columns=[0]) + Linear()
    T = group(inner, name="T", p=2)
    assert isinstance(T, Group)
    assert T.p == 2.0
    np.testing.assert_array_equal(T(X), inner(X))
    np.testing.assert_array_equal(T.diag(X), inner.diag(X))
    np.testing.assert_array_equal((T * Linear())(X), (inner * Linear())(X))
    np.testing.assert_array_equal(T.on([1])(X), inner.on([1])(X))
    np.testing.assert_array_equal(Group(inner, columns=[2])(X), inner.on([2])(X))
    bound = group(RBF(columns=lambda X: [1, 2])).bound(X)
    assert bound == group(RBF(columns=(1, 2)))
    assert T.view == inner.view


def test_groups_are_values():
    one, other = group(RBF(), Linear(), name="T"), group(RBF() + Linear(), name="T")
    assert one == other
    assert hash(one) == hash(other)
    assert one != group(RBF() + Linear())
    assert one != group(RBF() + Linear(), name="T", p=2)
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(one) == "T"
    assert str(group(RBF(), Linear())) == "group(rbf(width=1) + linear)"
    assert repr(one).startswith("Group(kernel=Sum(")
    assert one.renamed(None) == group(RBF() + Linear())


def test_sums_stop_at_groups():
    assert len((A + group(B + C)).parts) == 2
    assert len((A + (B + C)).parts) == 3
    assert len((A * group(B * C)).parts) == 2
    assert len((A * (B * C)).parts) == 3


def test_powers_repeat_a_factor():
    assert (A + B) ** 3 == (A + B) * (A + B) * (A + B)
    assert (A**1).parts == (A,)
    assert Network.of(A**3).paths(9)[0].leaves == (0, 0, 0)
    assert Network.of((A + B) ** 3).count_paths() == 8
    with pytest.raises(InputError, match=r"k0 \*\* 0: the exponent must be a whole number >= 1"):
        A**0
    for times in (1.5, "2", True):
        with pytest.raises(TypeError, match="unsupported operand"):
            A**times


@pytest.mark.parametrize("p", [0, -1, np.inf, np.nan])
def test_exponents_of_groups_are_positive(p):
    with pytest.raises(InputError, match=r"Group\(p=.*\): p must be a finite number > 0"):
        group(A + B, p=p)


def test_groups_refuse_what_is_no_kernel():
    with pytest.raises(InputTypeError, match=r"Group\(p='2'\): p must be a finite number"):
        group(A, p="2")
    with pytest.raises(InputTypeError, match="Group: kernel must be a kernel, got int"):
        group(3)
    with pytest.raises(InputTypeError, match=r"Sum: parts\[1\] must be a kernel, got int"):
        group(A, 3)
    with pytest.raises(InputError, match="group: at least one kernel is needed"):
        group()


# One structure in all its forms


def figure():
    return group(A + B, name="8") + (C + D) * (E + F + G)


def test_the_first_figure():
    network = Network.of(figure())
    assert network.count_paths() == 8
    paths = network.paths(8)
    assert {m.count for m in paths} == {1}
    assert all(sum(a for _, a in m.exponents) == 1 for m in paths)
    names = network.names
    found = {network.describe(m): {names[v]: a for v, a in m.exponents} for m in paths}
    pair = "(k2 + k3) * (k4 + k5 + k6)"
    wanted = {k: {"8": HALF, k: HALF} for k in ("k0", "k1")}
    for i in ("k2", "k3"):
        for j in ("k4", "k5", "k6"):
            wanted[f"{i} * {j}"] = {pair: HALF, i: QUARTER, j: QUARTER}
    assert found == wanted


@pytest.mark.parametrize("name", STRUCTURES)
def test_paths_of_dicts_and_graphs(name):
    structure = STRUCTURES[name]
    network = Network.of(as_dict(structure, KERNELS))
    assert_same_paths(network, structure)
    assert_same_paths(Network.of(as_graph(structure)), structure)


@pytest.mark.parametrize("name", STRUCTURES)
def test_paths_of_expressions(name):
    structure = STRUCTURES[name]
    if name == "fig1_half":  # an exponent of a product of two sums has no expression
        structure = fig1(None, 4.0)
    assert_same_paths(Network.of(as_expression(structure)), structure)


@st.composite
def dags(draw):
    """Tuples of the oracles with shared nodes, sums under sums and products under products."""
    entries = [leaf(k) for k in range(draw(st.integers(1, 4)))]
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["sum", "product"]))
        picks = draw(st.lists(st.integers(0, len(entries) - 1), min_size=1, max_size=3))
        entries.append((kind, [entries[i] for i in picks], {}))
    return entries[-1]


def count(entry):
    if entry[0] == "leaf":
        return 1
    below = [count(child) for child in entry[1]]
    return sum(below) if entry[0] == "sum" else int(np.prod(below, dtype=object))


@examples(150)
@given(dags())
def test_random_graphs(structure):
    assume(count(structure) <= 200)
    network = Network.of(as_dict(structure, KERNELS))
    assert_same_paths(network, structure)
    assert Network.of(network) == network
    assert Network.of(json_like(network)) == network
    uniform = network.uniform_exponents()
    if uniform is not None:
        for m in network.paths(200):
            assert dict(m.exponents) == {v: uniform[v] for v, _ in m.exponents}
        assert set(uniform) == set(network.products)


def json_like(network):
    """Round trip through text, with kernels by number."""
    text = json.dumps(network.to_dict(KERNELS.index))
    read = json.loads(text)
    for entry in read["nodes"].values():
        if "kernel" in entry:
            entry["kernel"] = KERNELS[entry["kernel"]]
    return read


@pytest.mark.parametrize("name", STRUCTURES)
def test_round_trips_are_exact(name):
    network = Network.of(as_dict(STRUCTURES[name], KERNELS))
    assert Network.of(network.to_dict()) == network
    assert Network.of(json_like(network)) == network
    assert network.to_dict() == Network.of(network.to_dict()).to_dict()
    assert Network.of(network.to_graph()) == network
    assert pickle.loads(pickle.dumps(network)).count_paths() == network.count_paths()


def test_round_trip_of_a_graph_keeps_the_order_of_factors():
    network = Network.of(A * B * A)
    assert Network.of(network.to_graph()) == network


def test_the_forms_agree():
    wanted = Network.of(as_expression(fig1()))
    assert Network.of(as_dict(fig1(), KERNELS)) == wanted
    assert Network.of(as_graph(fig1())) == wanted
    assert Network.of(as_graph(fig1(), nx.DiGraph)) == wanted
    assert Network.of([A, B * C, group(D + E)]) == Network.of(A + B * C + group(D + E))
    assert Network.of((A, B)) == Network.of(A + B)
    free = as_dict(fig1(), KERNELS)
    del free["root"], free["version"]
    assert Network.of(free) == wanted


def test_only_a_multigraph_holds_a_factor_twice():
    network = Network.of(as_graph(product([leaf(0), leaf(0)], "P")))
    assert network.paths(1)[0].leaves == (0, 0)
    simple = Network.of(as_graph(product([leaf(0), leaf(0)], "P"), nx.DiGraph))
    assert simple.paths(1)[0].leaves == (0,)


def test_to_dict_says_what_there_is():
    stored = Network.of(group(A, name="T", p=2)).to_dict(str)
    assert stored == {
        "version": 1,
        "root": "2",
        "nodes": {
            "0": {"kind": "leaf", "kernel": "k0"},
            "1": {"kind": "product", "children": ["0"], "p": 2.0, "name": "T"},
            "2": {"kind": "sum", "children": ["1"]},
        },
    }
    graph = Network.of(A**2).to_graph()
    assert dict(graph.nodes[0]) == {"kind": "leaf", "kernel": A}
    assert graph.number_of_edges(1, 0) == 2


# Canonical form


def test_rule_1_the_root_is_a_sum():
    assert Network.of(A * B) == Network(
        (
            Node("leaf", kernel=A),
            Node("leaf", kernel=B),
            Node("product", (0, 1)),
            Node("sum", (2,)),
        ),
        3,
    )
    assert Network.of(group(A + B)).nodes[-1].kind == "sum"


def test_rule_2_a_sum_in_a_sum_is_merged():
    structure = ("sum", [("sum", [leaf(0), ("sum", [leaf(1)])]), leaf(2)])
    assert Network.of(as_dict(structure, KERNELS)) == Network.of(A + B + C)


def test_rule_3_every_summand_has_a_weight():
    network = Network.of(A)
    assert network == Network((Node("leaf", kernel=A), Node("product", (0,)), Node("sum", (1,))), 2)
    # A leaf in two sums has a weight in each, over one leaf.
    network = Network.of(A * (B + C) + B)
    assert len(network.leaves) == 3
    assert len(network.products) == 4
    names = sorted(network.names[i] for i in network.products)
    assert names == ["k0 * (k1 + k2)", "k1", "k1 #2", "k2"]


def test_rules_2_and_3_in_this_order():
    S = ("sum", [leaf(0), leaf(3)])
    structure = ("sum", [S, ("product", [S, S], {"name": "P"})])
    network = Network.of(as_dict(structure, KERNELS))
    assert len(network.products) == 5  # merged first: the root does not share with S
    assert_same_paths(network, structure)
    assert len(brute_paths(structure, insert_first=True).names) == 3


def test_rule_4_products_in_products():
    one = Network.of(A * B * C)
    assert [n.children for n in one.nodes if n.kind == "product"] == [(0, 1, 2)]
    inner = product([leaf(0), leaf(1)], "inner")
    structure = product([inner, leaf(2)], "outer")
    for two in (
        Network.of(as_dict(structure, KERNELS)),
        Network.of(Product((Product((A, B), name="inner"), C), name="outer")),
    ):
        (path,) = two.paths(1)
        assert {two.names[v]: a for v, a in path.exponents} == {"inner": HALF, "outer": HALF}
    assert len(Network.of(group(A * B) * C).products) == 3  # a group has a weight of its own


def test_rule_5_what_is_not_reached_is_left_out():
    structure = as_dict(fig1(), KERNELS)
    structure["nodes"] |= {
        "lost": {"kind": "product", "children": ["n3", "alone"]},
        "alone": {"kind": "leaf", "kernel": Linear()},
    }
    with pytest.warns(UserWarning, match=r"structure: 2 of \d+ nodes are not reached") as caught:
        network = Network.of(structure)
    assert network == Network.of(as_dict(fig1(), KERNELS))
    assert caught[0].filename == __file__


def test_canonical_form_is_canonical():
    for structure in STRUCTURES.values():
        network = Network.of(as_dict(structure, KERNELS))
        kinds = [node.kind for node in network.nodes]
        assert kinds[network.root] == "sum"
        assert network.order == tuple(range(len(kinds)))
        for node in network.nodes:
            below = {kinds[c] for c in node.children}
            assert node.kind != "sum" or below == {"product"}
        assert Network.of(network) == network


# Shared groups, multiples


def test_equal_groups_are_one_node():
    T = group(A + B + C, name="T", p=2)
    network = Network.of(T + T * T)
    assert network.count_paths() == 12
    paths = network.paths(12)
    assert sorted(m.count for m in paths) == [1] * 6 + [2] * 3
    assert len(network.products) == 5
    assert [n.p for n in network.nodes if n.name == "T"] == [2.0]
    cross = next(m for m in paths if m.count == 2)
    exponents = {network.names[v]: a for v, a in cross.exponents}
    assert exponents["T"] == THIRD  # twice in a layer of three products
    assert sum(exponents.values()) == 1
    unnamed = Network.of(group(A + B) + group(A + B) * C)
    assert len(unnamed.products) == 4
    other = Network.of(group(A + B) + group(B + A) * C)
    assert len(other.products) == 7


def test_sums_that_are_not_grouped_share_nothing():
    network = Network.of((A + B) * (A + B))
    assert len(network.products) == 5
    assert len(network.leaves) == 2
    assert [m.count for m in network.paths(4)] == [1] * 4


def leaves_of(network):
    return [str(network.nodes[i].kernel) for i in network.leaves]


def test_multiples_of_kernels_go_to_leaves():
    assert leaves_of(Network.of(2 * A * (B + C) + 0.5 * (D + E))) == [
        "2 * k0",
        "k1",
        "k2",
        "0.5 * k3",
        "0.5 * k4",
    ]
    assert Network.of(2 * (3 * A)).nodes[0].kernel == Scaled(A, 6)
    assert Network.of(A + 2 * A).count_paths() == 2


def test_multiples_of_products_are_factors_of_their_own():
    network = Network.of(3.0 * (D * E))
    assert leaves_of(network) == ["k3", "k4", "3"]
    assert len(network.products) == 1


def test_multiples_are_fixed():
    """With all weights one a network is the expression itself."""
    X = np.random.default_rng(0).normal(size=(4, 2))
    T = group(Linear() + RBF())
    expression = 2 * RBF() * (Linear() + Polynomial(2)) + 3 * (RBF(2.0) ** 2 + 0.5 * Linear())
    expression = expression + 0.5 * (T * T) + 0.25 * T
    network = Network.of(expression)
    total = sum(
        m.count * np.prod([network.nodes[i].kernel(X) for i in m.leaves], axis=0)
        for m in network.paths(20)
    )
    np.testing.assert_allclose(total, expression(X), rtol=1e-12)


@pytest.mark.parametrize("name", [None, "T"])
def test_multiples_keep_groups_shared(name):
    T = group(A + B, name=name)
    network = Network.of(T + 0.5 * (T * T))
    wanted = Network.of(T + T * T)
    assert len(network.products) == len(wanted.products)
    found, expected = network.paths(9), wanted.paths(9)
    shares = [[sorted(a for _, a in m.exponents) for m in some] for some in (found, expected)]
    assert shares[0] == shares[1]
    assert [m.count for m in found] == [m.count for m in expected]
    assert sum(n.name == "T" for n in Network.of(T + 2 * T).nodes) == (name == "T")


def test_multiples_do_not_depend_on_parentheses():
    T = group(A + B, name="T")
    assert len(Network.of(0.5 * T * T).products) == len(Network.of(0.5 * (T * T)).products)


# Counting before writing out


def test_counts_before_paths():
    wide = Product(tuple(Sum((A, B, C, D)) for _ in range(40)))
    network = Network.of(wide + E)
    assert network.count_paths() == 4**40 + 1
    with pytest.raises(InputError, match=rf"has {4**40 + 1} paths, more than max_paths=20000\."):
        network.paths(20_000)
    small = Network.of((A + B) ** 3)
    assert len(small.paths(8)) == 8
    with pytest.raises(InputError, match="has 8 paths, more than max_paths=7"):
        small.paths(7)


def test_equal_paths_are_counted_before_merging():
    T = group(A + B)
    assert Network.of(T * T).count_paths() == 4
    with pytest.raises(InputError, match="has 4 paths"):
        Network.of(T * T).paths(3)
    assert sorted(m.count for m in Network.of(T * T).paths(4)) == [1, 1, 2]
    # Two summands of one group are two equal paths each.
    assert [m.count for m in Network.of(T + T).paths(4)] == [2, 2]


@pytest.mark.parametrize("name", STRUCTURES)
def test_uniform_exponents(name):
    """Where they are given they are those of all paths; shared nodes have none."""
    wanted = brute_paths(STRUCTURES[name])
    network = Network.of(as_dict(STRUCTURES[name], KERNELS))
    uniform = network.uniform_exponents()
    expected = wanted.homogeneous() and not name.startswith("square")
    assert (uniform is not None) == expected
    if uniform is not None:
        for m in network.paths(100):
            assert all(uniform[v] == a for v, a in m.exponents)


def test_a_node_used_twice_on_a_path_has_no_uniform_exponent():
    T = group(A, name="T")
    assert Network.of(T * T).uniform_exponents() is None
    assert set(Network.of(A**2 * (B + C)).uniform_exponents().values()) == {HALF}


# Names and texts


def test_names_of_products():
    network = Network.of(group(A + B) + (C + D) * E + group(F, name="mine") + F + F * F)
    names = [network.names[i] for i in network.products]
    assert names == [
        "k0",
        "k1",
        "group(k0 + k1)",
        "k2",
        "k3",
        "(k2 + k3) * k4",
        "mine",
        "k5",
        "k5 * k5",
    ]
    again = Network.of(A * (B + C) + B + B)
    assert [again.names[i] for i in again.products] == [
        "k1",
        "k2",
        "k0 * (k1 + k2)",
        "k1 #2",
        "k1 #3",
    ]


def test_names_of_products_differ():
    network = Network.of(group(B, name="k0 #2") + A + A)
    names = [network.names[i] for i in network.products]
    assert len(set(names)) == len(names)


def test_names_that_are_given_are_kept():
    network = Network.of(group(A + B, name="k0"))
    (place,) = (i for i, node in enumerate(network.nodes) if node.name == "k0")
    assert network.names[place] == "k0"


def test_names_of_kernels_are_not_cut():
    network = Network.of(RBF(name="sensor #3") + Linear())
    assert network.names[network.products[0]] == "sensor #3"


def test_describe():
    network = Network.of(figure())
    texts = [network.describe(m) for m in network.paths(8)]
    assert texts[:3] == ["k0", "k1", "k2 * k4"]
    assert network.describe(Path((0, 0), ())) == "k0 * k0"


def test_map_kernels():
    network = Network.of(figure())
    doubled = network.map_kernels(lambda kernel: 2 * kernel)
    assert [str(doubled.nodes[i].kernel) for i in doubled.leaves][:2] == ["2 * k0", "2 * k1"]
    back = doubled.map_kernels(lambda kernel: kernel.kernel)
    assert back == network


def without(expression, *lost):
    network = Network.of(expression)
    return network.without({i for i in network.leaves if network.nodes[i].kernel in lost})


def test_without():
    assert without(figure(), C, D) == Network.of(group(A + B, name="8"))
    assert without(figure(), A, B) == Network.of((C + D) * (E + F + G))
    assert without(A * B + C, A) == Network.of(as_dict(leaf(2), KERNELS))
    assert without(A + B, ()) == Network.of(A + B)
    one_left = without(figure(), A)
    assert one_left.describe(one_left.paths(9)[0]) == "k1"
    assert one_left.count_paths() == 7
    # The layers stay as they were.
    first = one_left.paths(9)[0]
    assert {one_left.names[v]: a for v, a in first.exponents} == {"8": HALF, "k1": HALF}
    with pytest.raises(InputError, match="every path has a kernel that is zero on all rows"):
        without(A * B + A, A)
