"""The contracts of kernels and banks catch what is broken, and say what it is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bank_contract import check_bank
from kernelweave.banks import (
    KernelBank,
    KernelSum,
    make_bank,
)
from kernelweave.kernels import (
    RBF,
    Linear,
    Polynomial,
)

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.fixture
def bank():
    kernels = [RBF(width=0.2), Linear(), RBF(width=2.0, columns=[0]), Polynomial(degree=2)]
    return make_bank(kernels, X)


def test_the_intact_bank_passes(bank):
    check_bank(bank, X)


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
