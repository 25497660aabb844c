"""Newton systems of rules: counts of rows in place of products."""

import numpy as np
import pytest

from kernelweave import _core
from kernelweave._threads import threads
from kernelweave.banks.rules import PackedRows, RuleBank, RuleFeatures, pack_mask, unpack


def features(n, p, seed=0):
    rng = np.random.default_rng(seed)
    bank = RuleBank(PackedRows.of(rng.random((n, p)) < 0.4))
    bank.add([(), *[(c,) for c in range(p)], (0, 1), (1, 2)])
    kernel = RuleFeatures(bank.bits, np.sqrt(rng.random(bank.n_kernels)), n)
    return kernel, unpack(bank.bits, n).T * kernel.roots


@pytest.mark.parametrize("values", [1, 2, 5, None])
@pytest.mark.parametrize("n", [65, 3000, 40_001])
def test_counts_equal_products(n, values):
    """Whether rows share few values or have one each, the system is the same."""
    kernel, Z = features(n, 9)
    rng = np.random.default_rng(1)
    q = rng.random(n) if values is None else rng.choice(rng.random(values) + 0.1, size=n)
    q[rng.random(n) < 0.5] = 0.0
    gram, edge = kernel.gram(q)
    np.testing.assert_allclose(gram, (Z.T * q) @ Z, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_allclose(edge, Z.T @ q, rtol=1e-12, atol=1e-12 * n)


def test_counts_follow_the_rows_that_change():
    """Steps that change few rows, many, all and none give bitwise what a fresh count gives."""
    n = 5000
    kernel, _ = features(n, 7)
    rng = np.random.default_rng(2)
    rows = rng.random(n) < 0.5
    for share in (0.0, 0.01, 0.2, 0.9, 1.0, 0.0, 0.05):
        rows = rows ^ (rng.random(n) < share)
        fresh = RuleFeatures(kernel.bits, kernel.roots, n)
        for found, wanted in zip(kernel.gram(0.3 * rows), fresh.gram(0.3 * rows), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("n", "p"), [(1, 1), (63, 3), (64, 8), (65, 9), (20_000, 21)])
def test_counts_of_pairs(n, p):
    rng = np.random.default_rng(n)
    P, rows = rng.random((n, p)) < 0.5, rng.random(n) < 0.7
    wanted = P[rows].T.astype(float) @ P[rows]
    for count in (1, 3):
        with threads(count):
            found = _core.bit_counts(_core.pack_bits(P), pack_mask(rows))
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="as many words"):
        _core.bit_counts(_core.pack_bits(P), np.zeros(n // 64 + 2, dtype=np.uint64))
