"""Every bank keeps the one protocol."""

import numpy as np
import pytest

from bank_contract import check_bank, check_collection
from kernelweave._dask import PartedTable
from kernelweave.banks import (
    KernelCollection,
    build,
    make_bank,
    row_source,
)
from kernelweave.banks.nystroem import build as nystroem
from kernelweave.banks.paths import PathBank
from kernelweave.banks.products import ProductBank
from kernelweave.banks.row_source import LocalRows
from kernelweave.banks.rules import PackedRows, RuleBank, RuleOptions
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import (
    RBF,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
)
from kernelweave.kernels.network import Network
from quick import first

X = np.random.default_rng(0).normal(size=(12, 3))
ROWS = np.random.default_rng(1).normal(size=(45, 3))
LOW_RANK = [RBF(width=2.0, columns=[0]), Linear(), RBF(width=1.5, columns=[1, 2])]
STORAGE = {
    "factor": [RBF(width=2.0, columns=[0]), Linear()],
    "distances": [RBF(width=0.3), RBF(width=0.2), Laplacian(width=0.5)],
    "dense": [Polynomial(degree=4, coef0=0.2), RBF(width=0.2) * Linear(), Overlap()],
}


@pytest.mark.parametrize("tol", [1e-3, 1e-6], ids=["float32", "float64"])
@pytest.mark.parametrize("form", STORAGE)
def test_every_storage_form(monkeypatch, form, tol):
    monkeypatch.setattr(build, "_SMALL", 10)
    bank = make_bank(STORAGE[form], ROWS, tol=tol)
    assert form in {row["form"] for row in bank.summary()}
    check_bank(bank, ROWS)


@pytest.mark.parametrize("tol", first(1, [1e-3, 1e-7]), ids=["float32", "float64"])
@pytest.mark.parametrize("where", ["memory", "file", "dask"])
def test_every_nystroem_bank(monkeypatch, where, tol):
    monkeypatch.setattr(nystroem, "MANY_ROWS", 20)
    monkeypatch.setattr(nystroem, "TOO_MANY_ROWS", 20)
    monkeypatch.setattr(row_source, "_BLOCK_BYTES", 4096)  # several blocks
    X = ROWS
    if where == "dask":
        da = pytest.importorskip("dask.array")
        X = PartedTable.of(da.from_array(ROWS, chunks=(20, 3)))
    if where == "file":
        monkeypatch.setattr(LocalRows, "_must_map", lambda *args: True)
    bank = nystroem.make_feature_bank(LOW_RANK, X, tol=tol)
    assert bank is not None
    check_bank(bank, ROWS)
    check_bank(bank.subset(np.array([2, 0])), ROWS)


def collections():
    """Every bank with exact kernels, beside their Gram matrices."""
    rng = np.random.default_rng(4)
    kernels = [RBF(1.0), Linear(), Polynomial(degree=2)]
    K = np.array([kernel(X) for kernel in kernels])
    bank = make_bank(kernels, X, normalize=None, tol=1e-9)
    yield "kernels", bank, K
    products = ProductBank(bank)
    products.add([(0,), (), (1, 2), (0, 1)])
    yield "products", products, np.array([K[0], np.ones_like(K[0]), K[1] * K[2], K[0] * K[1]])
    network = Network.of(RBF(1.0) * (Linear() + Polynomial(degree=2)))
    place = {i: kernels.index(network.nodes[i].kernel) for i in network.leaves}
    paths = PathBank(Triangles.of(bank, list(place.values())), network, network.paths(10))
    expected = [np.prod([K[place[i]] for i in path.leaves], axis=0) for path in paths.paths]
    yield "paths", paths, np.array(expected)
    truth = rng.random((40, 4)) < 0.5
    rules = RuleBank(PackedRows.of(truth))
    rules.add([(), (0,), (1, 2), (0, 3)])
    phi = np.array([np.ones(40), truth[:, 0], truth[:, [1, 2]].all(1), truth[:, [0, 3]].all(1)])
    yield "rules", rules, np.einsum("jn,jk->jnk", phi, phi)


COLLECTIONS = {name: (bank, grams) for name, bank, grams in collections()}


@pytest.mark.parametrize("name", [*COLLECTIONS, "rules of many rows"])
def test_every_bank_offers_a_collection(name, monkeypatch):
    if name not in COLLECTIONS:  # where rules stay bits
        monkeypatch.setattr("kernelweave.banks.rules.OPTIONS", RuleOptions(few_rows=10))
    bank, grams = COLLECTIONS[name.split()[0]]
    assert isinstance(bank, KernelCollection)
    check_collection(bank, grams)
    for wrong in (grams * np.linspace(1.0, 1.001, len(grams))[:, None, None], grams[:-1]):
        with pytest.raises(AssertionError, match=r"diagonal_sums|n_kernels"):
            check_collection(bank, wrong)
