"""Paths over leaves that are computed on demand, against those of stored leaves."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks import build, computed_paths, make_bank, on_demand
from kernelweave.banks.computed_paths import ComputedLeaves, ComputedPathBank
from kernelweave.banks.paths import PathBank
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import RBF, Laplacian, Linear
from kernelweave.kernels.network import Network

N = 40
RNG = np.random.default_rng(2)
ROWS = RNG.normal(size=(N, 3))
KERNELS = [RBF(width=0.5), Laplacian(width=1.0), Linear(columns=[1]), RBF(width=2.0, columns=[0])]
A, B, C, D = KERNELS
NETWORK = Network.of((A + B) * (C + D) + A * A)


@pytest.fixture(params=[np.float64, np.float32])
def banks(request, monkeypatch):
    """The same paths over computed and over stored leaves, some of which are constant."""
    monkeypatch.setattr(build, "ON_DEMAND", replace(on_demand.OPTIONS, sample=N))
    monkeypatch.setattr(computed_paths, "_TILE_BYTES", 8.0 * N * len(KERNELS) * 7)
    kernels = [NETWORK.nodes[i].kernel for i in NETWORK.leaves]
    constants = {1: 2.0}
    if request.param is np.float32:
        monkeypatch.setattr(build, "_SMALL", 1)
    found = make_bank(kernels, ROWS, on_demand=True, factored=False, tol=1e-3)
    assert found.dtype == request.param
    which, paths = range(len(kernels)), NETWORK.paths(100)
    computed = ComputedPathBank(ComputedLeaves.of(found, which, constants), NETWORK, paths)
    grams = [s * k(ROWS) for s, k in zip(found.scales, kernels, strict=True)]
    grams[1] = np.full((N, N), 2.0)
    rows, columns = np.triu_indices(N)
    entries = np.array([gram[rows, columns] for gram in grams])
    return computed, PathBank(Triangles(entries, N), NETWORK, paths)


def test_quadratic_forms(banks):
    computed, stored = banks
    V = RNG.normal(size=(N, 2)) * (RNG.random((N, 1)) < 0.6)
    some = np.array([2, 0])
    assert_allclose(computed.quadratic_forms(V), stored.quadratic_forms(V), rtol=1e-9)
    assert_allclose(computed.quadratic_forms(V, some), stored.quadratic_forms(V)[some], rtol=1e-9)
    added = np.where(V.any(axis=1), RNG.random(N), 0.0)
    u = RNG.normal(size=computed.n_nodes)
    for more in (None, added):
        ours, theirs = computed.path_forms(V, more), stored.path_forms(V, more)
        assert_allclose(ours.sums(u)[0], theirs.sums(u)[0], rtol=1e-9)
        assert_allclose(ours.sums(u)[1], theirs.sums(u)[1], rtol=1e-9)
    assert_allclose(computed.diagonal_sums(added), stored.diagonal_sums(added), rtol=1e-9)


def test_the_kernel_of_all_paths(banks):
    computed, stored = banks
    u = RNG.normal(size=computed.n_nodes)
    K, gram = computed.kernel(u), stored.gram(u)
    V = RNG.normal(size=(N, 2)) * (RNG.random((N, 1)) < 0.6)
    rows, columns = np.array([7, 3, 30]), np.array([1, 2, 39, 5])
    assert_allclose(K.diag(), gram.diagonal(), rtol=1e-9)
    near = 1e-9 if K.dtype == np.float64 else 1e-5 * np.abs(gram).max()
    assert_allclose(K.exact_product(V), gram @ V, rtol=1e-9, atol=1e-9)
    assert_allclose(K @ V, gram @ V, atol=near)
    assert_allclose(K.product_at(rows, V), gram[rows] @ V, atol=near)
    assert_allclose(K.block(rows, columns), gram[np.ix_(rows, columns)], rtol=1e-9)
    assert_allclose(K.rows(rows), gram[rows], rtol=1e-9)
    assert_allclose(K.scaled(0.5).diag(), 0.5 * gram.diagonal(), rtol=1e-9)
    assert_allclose(K.product_at(rows, np.zeros((N, 1))), np.zeros((3, 1)))


@pytest.mark.parametrize("known", [0, 6, 19])
def test_squares_grow(banks, known):
    computed, stored = banks
    u = RNG.normal(size=computed.n_nodes)
    index = RNG.permutation(N)[:20]
    exact = stored.gram(u)[np.ix_(index, index)]
    out = np.full((20, 20), np.nan, dtype=computed.leaves.bank.dtype)
    out[:known, :known] = exact[:known, :known]
    computed.kernel(u).fill_square(index, known, out)
    assert_allclose(out, exact, rtol=1e-9 if out.dtype == np.float64 else 2e-5)
