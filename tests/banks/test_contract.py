"""The contracts of kernels and banks catch what is broken, and say what it is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kernelweave._dask import PartedTable
from kernelweave.banks import (
    KernelBank,
    KernelCollection,
    KernelSum,
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
    FromCallable,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Precomputed,
)
from kernelweave.kernels.network import Network
from kernelweave.kernels.vector import VectorKernel
from kernelweave.testing import check_bank, check_collection, check_kernel
from quick import first

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        RBF(width=1.0),
        Laplacian(width=2.0),
        Polynomial(degree=3, coef0=1.0),
        Overlap(),
        FromCallable(lambda A, B: A @ B.T),
        RBF(width=1.0, columns=[0]) * Linear() + 2.0 * Polynomial(degree=2),
    ],
    ids=str,
)
def test_good_kernels(kernel):
    check_kernel(kernel, X)


def test_good_precomputed():
    check_kernel(Precomputed(X @ X.T), np.arange(12)[:, None])


class Crooked(VectorKernel):
    """A kernel that does one thing wrong."""

    def _block(self, A, B):
        return A @ B.T

    def _diagonal(self, A):
        return (A**2).sum(axis=1)


class Asymmetric(Crooked):
    def _block(self, A, B):
        K = A @ B.T
        K[0, -1] += 1e-3
        return K


class WrongDiagonal(Crooked):
    def _diagonal(self, A):
        return 2 * (A**2).sum(axis=1)


class Indefinite(Crooked):
    def _block(self, A, B):
        return 2.0 - np.abs(A[:, :1] - B[:, 0]) ** 4

    def _diagonal(self, A):
        return np.full(len(A), 2.0)


class Forgetful(Crooked):
    """Centres on the rows it is given, so that blocks do not fit together."""

    def _block(self, A, B):
        return (A - A.mean(axis=0)) @ (B - A.mean(axis=0)).T

    def _diagonal(self, A):
        return ((A - A.mean(axis=0)) ** 2).sum(axis=1)


class Rounded(Crooked):
    def block(self, A, B):
        return super().block(A, B).astype(np.float32)


class Misshapen(Crooked):
    def block(self, A, B):
        return super().block(A, B)[:, :1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Asymmetric(), "symmetric"),
        (WrongDiagonal(), "diag"),
        (Indefinite(), "positive semi-definite"),
        (Forgetful(), "some rows"),
        (Rounded(), "float32"),
        (Misshapen(), "shape"),
    ],
)
def test_broken_kernels(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel, X)


@pytest.fixture
def bank():
    kernels = [RBF(width=0.2), Linear(), RBF(width=2.0, columns=[0]), Polynomial(degree=2)]
    return make_bank(kernels, X)


def test_the_intact_bank_passes(bank):
    check_bank(bank, X)


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


@dataclass(frozen=True)
class Broken(KernelBank):
    """A bank whose answer to one question is changed."""

    question: str = ""
    change: object = None

    def _ask(self, question, answer):
        return self.change(answer) if question == self.question else answer

    def quadratic_forms(self, V, which=None):
        return self._ask("forms", super().quadratic_forms(V, which))

    def products(self, V, which, rows=None):
        return self._ask("products", super().products(V, which, rows))

    def traces(self, *, centred=False):
        return self._ask("centred" if centred else "traces", super().traces(centred=centred))

    def residual_forms(self, V):
        return self._ask("residual_forms", super().residual_forms(V))

    def exact_products(self, V, which, chunk=512):
        return self._ask("exact_products", super().exact_products(V, which, chunk))

    def subset(self, which):
        return self._ask("subset", super().subset(which))

    def combine(self, weights, *, coarse=False):
        return self._ask("combine", super().combine(weights, coarse=coarse))

    def summary(self):
        return self._ask("summary", super().summary())


class WrongRows(KernelSum):
    def rows(self, index):
        return 1.001 * super().rows(index)


class WrongDiag(KernelSum):
    def diag(self):
        return super().diag() + 1e-4


class WrongProduct(KernelSum):
    def __matmul__(self, V):
        return super().__matmul__(V)[::-1]


class WrongDense(KernelSum):
    def dense(self):
        return super().dense().copy()


def swap(kind):
    return lambda kernel: kind(kernel.bank, kernel.weights)


@pytest.mark.parametrize(
    ("question", "change", "message"),
    [
        ("forms", lambda q: 1.0001 * q, "above the exact"),
        ("forms", lambda q: 0.9999 * q, "leaves out"),
        ("forms", lambda q: q[::-1].copy(), "forms"),
        ("products", lambda P: P + 1e-4, "products"),
        ("traces", lambda t: t + 1e-3, "traces"),
        ("centred", lambda t: 1.001 * t, "centred"),
        ("residual_forms", lambda e: -1e-12 - e, "negative"),
        ("exact_products", lambda P: 1.001 * P, "exact_products"),
        ("subset", lambda part: replace(part, scales=1.001 * part.scales), "subset"),
        ("combine", lambda k: KernelSum(k.bank, 1.001 * k.weights), "combine"),
        ("combine", swap(WrongRows), "rows"),
        ("combine", swap(WrongDiag), "diag"),
        ("combine", swap(WrongProduct), "@ V"),
        ("combine", swap(WrongDense), "kept"),
        ("summary", lambda rows: rows[:-1], "summary"),
    ],
)
def test_broken_banks(bank, question, change, message):
    fields = {name: getattr(bank, name) for name in bank.__dataclass_fields__}
    broken = Broken(**fields, question=question, change=change)
    with pytest.raises(AssertionError, match=message):
        check_bank(broken, X)


def test_an_understated_remainder():
    rows = np.linspace(0, 9, 60)[:, None]
    rough = make_bank([RBF(width=2.0)], rows, tol=0.9)
    ((part, ids),) = rough.parts
    assert part.roots.max() > 1e-4
    check_bank(rough, rows)
    silent = replace(part, roots=np.zeros_like(part.roots))
    with pytest.raises(AssertionError, match=r"traces|leaves out"):
        check_bank(replace(rough, parts=((silent, ids),)), rows)


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
