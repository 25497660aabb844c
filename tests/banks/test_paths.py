"""Sums over paths without matrices of paths, against Hadamard products written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import kernelweave.banks.paths as module
from kernelweave._threads import threads
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.paths import ExplicitForms, FactoredBank, PathBank, PathTable, arrange
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import Precomputed, group
from kernelweave.kernels.network import Network
from quick import examples
from spn_oracles import brute_paths, path_weights, spn_instances

KERNELS = [Precomputed(np.eye(2), name=f"k{k}") for k in range(7)]
A, B, C, D, E, F, G = KERNELS
T = group(A + B + C, name="T")
NETWORKS = {
    "figure": group(A + B) + (C + D) * (E + F + G),
    "flat": A + B + C,
    "one": A * B,
    "tree": group(A + B) + group(C + D + E),
    "power": A**2 * (B + C) ** 2,
    "nested": group(group(A * B) * C) * D + E,
    "three layers": group((A + B) * (C + D)) + group(group(E + F) + group(G + A)),
    "square": T + T * T,
    "uneven": group(A + B * (C + D)) * (E + F),
}
FACTORED = [k for k, e in NETWORKS.items() if Network.of(e).uniform_exponents() is not None]


def grams(m, n=9, seed=0):
    """Positive definite matrices, some with negative entries."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(m, n, 3))
    return W @ W.transpose(0, 2, 1) + 0.1 * np.eye(n)


def upper(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def setting(expression, n=9, seed=0):
    network = Network.of(expression)
    matrices = grams(len(network.leaves), n, seed)
    return network, matrices, PathBank(Triangles(upper(matrices), n), network, network.paths(1000))


def written_out(network, matrices):
    """Counts times the Hadamard products of all paths, and their exponents."""
    leaf = {i: k for k, i in enumerate(network.leaves)}
    node = {i: k for k, i in enumerate(network.products)}
    paths = network.paths(1000)
    K = [m.count * np.prod(matrices[[leaf[i] for i in m.leaves]], axis=0) for m in paths]
    exponents = np.zeros((len(paths), len(node)))
    for row, m in zip(exponents, paths, strict=True):
        for v, a in m.exponents:
            row[node[v]] = a
    return np.array(K), exponents


def drawn(system, n_outputs=2, seed=1, zeros=0):
    rng = np.random.default_rng(seed)
    u, V = rng.normal(size=system.n_nodes), rng.normal(size=(system.n_samples, n_outputs))
    V[:zeros] = 0.0
    return u, V


# The table of paths


@st.composite
def tables(draw):
    n_leaves = draw(st.integers(1, 4))
    path = st.lists(st.integers(0, n_leaves - 1), min_size=1, max_size=4).map(sorted).map(tuple)
    paths = draw(st.lists(path, min_size=1, max_size=12))
    n_entries = draw(st.integers(1, 300))
    seed = draw(st.integers(0, 2**31))
    zeros = draw(st.sampled_from(["none", "some", "all"]))
    return n_leaves, paths, n_entries, seed, zeros


@examples(150)
@given(tables())
def test_tables_are_hadamard_products(drawn_table):
    n_leaves, paths, n_entries, seed, zeros = drawn_table
    rng = np.random.default_rng(seed)
    leaves = rng.normal(size=(n_leaves, n_entries))
    weights, g = rng.normal(size=n_entries), rng.normal(size=len(paths))
    if zeros != "none":
        weights[rng.random(n_entries) < (0.5 if zeros == "some" else 2.0)] = 0.0
        g[rng.random(len(paths)) < (0.5 if zeros == "some" else 2.0)] = 0.0
    table = PathTable.of(paths, n_leaves)
    products = np.array([np.prod(leaves[list(path)], axis=0) for path in paths])
    assert table.n_paths == len(paths)
    size = np.abs(products) @ np.abs(weights)
    assert np.all(
        np.abs(table.quadratic_forms(leaves, weights) - products @ weights) <= 1e-12 * (1 + size)
    )
    size = np.abs(g) @ np.abs(products)
    assert np.all(np.abs(table.combine(leaves, g) - g @ products) <= 1e-12 * (1 + size))


def test_common_products_are_formed_once():
    paths = [(0, 1, k) for k in range(2, 5)] + [(0, 1, 2, 2), (3,)]
    table = PathTable.of(paths, 5)
    assert len(table.parents) == 1 + 3  # nothing, k0, k0 k1, k0 k1 k2
    assert_array_equal(table.products, [2, 2, 2, 3, 0])
    assert_array_equal(table.lasts, [2, 3, 4, 2, 3])


def test_equal_paths_of_a_table_add_up():
    table = PathTable.of([(0, 1), (0, 1), (1,)], 2)
    leaves = np.array([[2.0, 3.0], [5.0, 7.0]])
    assert_array_equal(table.combine(leaves, np.array([1.0, 10.0, 0.5])), [112.5, 234.5])
    assert_array_equal(table.quadratic_forms(leaves, np.array([1.0, -1.0])), [-11.0, -11.0, -2.0])


def test_pieces_add_up(monkeypatch):
    rng = np.random.default_rng(0)
    leaves, weights, g = rng.normal(size=(3, 2000)), rng.normal(size=2000), rng.normal(size=4)
    table = PathTable.of([(0, 1), (1, 2), (0, 0, 2), (2,)], 3)
    whole = table.quadratic_forms(leaves, weights), table.combine(leaves, g)
    monkeypatch.setattr(module, "_PIECE_BYTES", 1.0)
    assert table.piece == 256
    for jobs in (1, 2):
        with threads(jobs):
            parts = table.quadratic_forms(leaves, weights), table.combine(leaves, g)
        assert_allclose(parts[0], whole[0], rtol=1e-11)
        assert_allclose(parts[1], whole[1], rtol=1e-12, atol=1e-12)


# Systems


@pytest.mark.parametrize("name", NETWORKS)
def test_path_systems(name):
    network, matrices, system = setting(NETWORKS[name])
    K, exponents = written_out(network, matrices)
    counts = np.array([m.count for m in network.paths(1000)])
    assert_allclose(system.path_counts, counts @ exponents, rtol=1e-14)
    assert system.n_nodes == len(network.products)
    u, V = drawn(system)
    g = np.exp(exponents @ u)
    assert_allclose(system.path_weights(u), counts * g, rtol=1e-13)
    combined = system.gram(u)
    assert_allclose(combined, np.tensordot(g, K, axes=1), rtol=1e-11, atol=1e-11)
    assert_array_equal(combined, combined.T)
    quadratic_forms = np.einsum("io,mij,jo->m", V, K, V)
    total, nodes = system.path_forms(V).sums(u)
    assert total == pytest.approx(g @ quadratic_forms, rel=1e-11)
    assert_allclose(nodes, exponents.T @ (g * quadratic_forms), rtol=1e-10)


@pytest.mark.parametrize("zeros", [1, 4, 7])
@pytest.mark.parametrize("name", ["figure", "square"])
def test_rows_of_zeros_are_skipped(name, zeros):
    network, matrices, system = setting(NETWORKS[name])
    K, _ = written_out(network, matrices)
    _, V = drawn(system, zeros=zeros)
    forms = system.path_forms(V)
    assert_allclose(
        forms.quadratic_forms, np.einsum("io,mij,jo->m", V, K, V), rtol=1e-10, atol=1e-12
    )
    _, one = drawn(system, n_outputs=1, zeros=0)
    one[::2] = 0.0
    found = system.path_forms(one).quadratic_forms
    assert_allclose(found, np.einsum("io,mij,jo->m", one, K, one), rtol=1e-10, atol=1e-12)


def test_no_coefficients_have_no_forms():
    _, _, system = setting(NETWORKS["figure"])
    u, V = drawn(system)
    total, nodes = system.path_forms(0 * V).sums(u)
    assert total == 0.0
    assert not nodes.any()


def test_forms_are_never_negative():
    network = Network.of(A + B)
    low = np.array([[1.0, 0.0, 1.0], [1.0, 1.0 + 1e-9, 1.0]])  # the second has a negative root
    system = PathBank(Triangles(low, 2), network, network.paths(2))
    assert system.path_forms(np.array([[1.0], [-1.0]])).quadratic_forms.min() == 0.0


@pytest.mark.parametrize("name", NETWORKS)
def test_penalty_of_paths(name):
    network, matrices, system = setting(NETWORKS[name])
    K, exponents = written_out(network, matrices)
    u, V = drawn(system)
    old = drawn(system, seed=5)[0]
    quadratic_forms = np.einsum("io,mij,jo->m", V, K, V)
    value, gradient, hessian = system.path_forms(V).half_norm(old, u)
    terms = 0.5 * np.exp(2 * exponents @ old - exponents @ u) * quadratic_forms
    assert value == pytest.approx(terms.sum(), rel=1e-11)
    assert_allclose(gradient, -exponents.T @ terms, rtol=1e-10)
    assert_allclose(hessian, exponents.T @ (terms[:, None] * exponents), rtol=1e-10, atol=1e-13)


def differences(function, u, step=1e-5):
    eye = step * np.eye(len(u))
    return np.array([(function(u + e) - function(u - e)) / (2 * step) for e in eye])


@pytest.mark.parametrize("name", FACTORED)
def test_gradients_by_differences(name):
    network, matrices, system = setting(NETWORKS[name])
    u, V = drawn(system)
    old = drawn(system, seed=5)[0]
    for one in (system, FactoredBank(Triangles(upper(matrices), len(matrices[0])), network)):
        forms = one.path_forms(V)
        value, gradient, hessian = forms.half_norm(old, u)
        slopes = differences(lambda v, forms=forms: forms.half_norm(old, v)[0], u)
        assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8 * value)
        if hessian is not None:
            bends = differences(lambda v, forms=forms: forms.half_norm(old, v)[1], u)
            assert_allclose(hessian, bends, rtol=1e-6, atol=1e-8 * value)
        total, nodes = forms.sums(u)
        slopes = differences(lambda v, forms=forms: forms.sums(v)[0], u)
        assert_allclose(nodes, slopes, rtol=1e-6, atol=1e-8 * total)


def test_what_is_factored():
    assert FACTORED == ["figure", "flat", "one", "tree", "power", "nested", "three layers"]
    with pytest.raises(AssertionError, match="exponents differ between paths"):
        FactoredBank(Triangles(np.ones((4, 1)), 1), Network.of(NETWORKS["uneven"]))


@pytest.mark.parametrize("zeros", [0, 6])
@pytest.mark.parametrize("name", FACTORED)
def test_factored_systems_agree_with_paths(name, zeros):
    network, matrices, system = setting(NETWORKS[name])
    factored = FactoredBank(Triangles(upper(matrices), system.n_samples), network)
    assert factored.n_nodes == system.n_nodes
    assert_allclose(factored.path_counts, system.path_counts, rtol=1e-13)
    u, V = drawn(system, zeros=zeros)
    old = drawn(system, seed=5)[0]
    assert_allclose(factored.gram(u), system.gram(u), rtol=1e-10, atol=1e-10)
    one, other = factored.path_forms(V), system.path_forms(V)
    for found, wanted in zip(one.sums(u), other.sums(u), strict=True):
        assert_allclose(found, wanted, rtol=1e-10)
    found, wanted = one.half_norm(old, u), other.half_norm(old, u)
    assert found[0] == pytest.approx(wanted[0], rel=1e-10)
    assert_allclose(found[1], wanted[1], rtol=1e-10)
    assert found[2] is None


def test_factored_systems_in_pieces(monkeypatch):
    network, matrices, _ = setting(NETWORKS["figure"], n=40)
    system = FactoredBank(Triangles(upper(matrices), 40), network)
    u, V = drawn(system)
    whole = system.gram(u), *system.path_forms(V).sums(u)
    monkeypatch.setattr(module, "_PIECE_BYTES", 1.0)
    again = FactoredBank(Triangles(upper(matrices), 40), network)
    assert again.piece == 256
    with threads(2):
        parts = again.gram(u), *again.path_forms(V).sums(u)
    for part, one in zip(parts, whole, strict=True):
        assert_allclose(part, one, rtol=1e-11)


def test_many_paths_are_counted_without_writing_them_out():
    network = Network.of((A + B + C + D) ** 30)
    system = FactoredBank(Triangles(np.ones((4, 1)), 1), network)
    assert network.count_paths() == 4**30
    # The outer product is on all paths, each of its 120 inner ones on a quarter of them.
    assert system.path_counts.sum() == pytest.approx(4.0**30, rel=1e-12)
    assert system.path_counts.max() == pytest.approx(0.5 * 4.0**30, rel=1e-12)
    assert system.path_counts.min() == pytest.approx(4.0**29 / 60, rel=1e-12)


@pytest.mark.parametrize("name", spn_instances())
def test_exponents_and_counts_are_those_of_the_oracle(name):
    """Learned kernels at one weight for all nodes, which does not depend on their order."""
    instance = spn_instances()[name]
    wanted = brute_paths(instance.structure)
    kernels = {}

    def read(entry, nodes):
        kind, content = entry[:2]
        key = f"leaf {content}" if kind == "leaf" else str(id(entry))
        if key not in nodes:
            nodes[key] = {"kind": kind}
            if kind == "leaf":
                gram = Precomputed(instance.grams[content], name=f"k{content}")
                nodes[key]["kernel"] = kernels.setdefault(content, gram)
            else:
                nodes[key]["children"] = [read(child, nodes) for child in content]
        return key

    nodes = {}
    network = Network.of({"root": read(instance.structure, nodes), "nodes": nodes})
    table, exponents, counts = arrange(network, network.paths(1000))
    assert table.n_paths == len(wanted.merged)
    assert_allclose(sorted(exponents.T @ counts), sorted(wanted.c), rtol=1e-13)
    n = len(instance.Y)
    leaves = upper(np.array([network.nodes[i].kernel.gram for i in network.leaves]))
    system = PathBank(Triangles(leaves, n), network, network.paths(1000))
    K = np.tensordot(
        wanted.mu * path_weights(wanted.A, np.full(len(wanted.names), 0.3)),
        wanted.kernels(instance.grams),
        axes=1,
    )
    assert_allclose(system.gram(np.full(system.n_nodes, np.log(0.3))), K, rtol=1e-10, atol=1e-12)


# A matrix in place of a combined kernel


def test_gram_kernels():
    K = grams(1, 600)[0]
    kernel = GramKernel(K)
    V = np.random.default_rng(0).normal(size=(600, 2))
    assert_allclose(kernel @ V, K @ V, rtol=1e-10, atol=1e-10)
    with threads(2):
        assert_array_equal(kernel @ V, GramKernel(K) @ V)
    assert_array_equal(kernel.diag(), np.diagonal(K))
    assert_array_equal(kernel.dense(), K)
    assert_array_equal(kernel.block(np.array([3, 1]), np.array([2])), K[[3, 1]][:, [2]])
    ((rows, values),) = kernel.blocks
    assert_array_equal(values, K[rows])
    assert kernel.dtype == np.float64


def test_readings_need_only_forms_and_exponents():
    import scipy.sparse as sp

    forms = ExplicitForms(np.array([4.0, 9.0]), sp.csr_array([[0.5, 0.5], [1.0, 0.0]]))
    total, nodes = forms.sums(np.log([4.0, 9.0]))
    assert total == pytest.approx(4 * 6 + 9 * 4)
    assert_allclose(nodes, [12 + 36, 12])
