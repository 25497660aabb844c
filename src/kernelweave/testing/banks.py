"""The contract of banks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank, KernelSum

from .assertions import close, require, unchanged


def check_bank(
    bank: KernelBank, X: Any, *, tol: float | None = None, random_state: int = 0
) -> None:
    """Check a bank against the Gram matrices that its kernels give for ``X``.

    A form may leave out a positive semi-definite remainder ``E_j``; everything must then agree up
    to what `KernelBank.residual_forms` and `KernelBank.residual_roots` state about it.

    Parameters
    ----------
    bank : KernelBank
        What to check.
    X : array, sparse matrix or data frame
        The rows the bank was made of.
    tol : float, optional
        Relative rounding allowed; 1e-9, or 1e-5 where the bank stores single precision.
    random_state : int
        Seed of the vectors tried.

    Raises
    ------
    AssertionError
        If two answers of the bank contradict each other or the kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> check_bank(make_bank([Linear(), RBF(width=2.0)], X), X)
    """
    rng = np.random.default_rng(random_state)
    n, m = bank.n_samples, bank.n_kernels
    if tol is None:
        tol = 1e-9 if bank.dtype == np.float64 else 1e-5
    grams = np.array(
        [scale * kernel(X) for scale, kernel in zip(bank.scales, bank.kernels, strict=True)]
    )
    require(grams.shape == (m, n, n), "the kernels and the bank count rows differently.")
    traces = np.trace(grams, axis1=1, axis2=2)
    rounding = tol * np.maximum(traces, 0.0)
    close(bank.traces(), traces, rounding, "traces()")
    centred = traces - grams.sum(axis=(1, 2)) / n
    left_out = bank.residual_forms(np.full((n, 1), n**-0.5))
    close(bank.traces(centred=True), centred, rounding + left_out, "traces(centred=True)")
    for what, V in _vectors(n, rng):
        _check_forms(bank, grams, V, rounding * np.vdot(V, V), what)
    _check_subset(bank, rng, rounding)
    for weights in (np.ones(m), rng.dirichlet(np.ones(m)), np.eye(m)[m // 2], np.zeros(m)):
        _check_combined(bank, grams, weights, tol, rng)
    rows = bank.summary()
    require(len(rows) == m, f"summary() describes {len(rows)} of {m} kernels.")
    require(bank.nbytes >= 0, "nbytes is negative.")


def _vectors(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    yield "one vector", rng.normal(size=(n, 1))
    yield "three vectors", rng.normal(size=(n, 3))
    centred = rng.normal(size=(n, 2))
    yield "vectors that sum to zero", centred - centred.mean(axis=0)
    some = np.zeros((n, 2))
    some[::3] = rng.normal(size=some[::3].shape)
    yield "vectors with rows of zeros", some
    yield "zero", np.zeros((n, 1))


def _check_forms(bank: KernelBank, grams: Floats, V: Floats, rounding: Floats, what: str) -> None:
    everything = np.arange(bank.n_kernels)
    exact = np.einsum("no,jnk,ko->j", V, grams, V)
    quadratic_forms = unchanged(V, lambda: bank.quadratic_forms(V), "forms")
    bound = unchanged(V, lambda: bank.residual_forms(V), "residual_forms")
    require((quadratic_forms >= 0).all(), f"forms ({what}): a form is negative.")
    require((bound >= 0).all(), f"residual_forms ({what}): a bound is negative.")
    for j in everything:
        require(
            quadratic_forms[j] <= exact[j] + rounding[j],
            f"quadratic_forms ({what}): kernel {j} gives {quadratic_forms[j]:.12g}, "
            f"above the exact {exact[j]:.12g}.",
        )
        left = exact[j] - quadratic_forms[j]
        require(
            left <= bound[j] + rounding[j],
            f"residual_forms ({what}): kernel {j} leaves out {left:.6g}, bound {bound[j]:.6g}.",
        )
    some = everything[::-2]
    close(
        bank.quadratic_forms(V, some),
        quadratic_forms[some],
        rounding[some],
        f"forms of some kernels ({what})",
    )
    support = np.flatnonzero(V.any(axis=1))
    products = bank.products(V, everything)
    inside = np.einsum("no,jno->j", V[support], products[:, support])
    close(quadratic_forms, np.maximum(inside, 0.0), rounding, f"forms against products ({what})")
    exact_products = np.einsum("jnk,ko->jno", grams, V)
    entry = rounding[:, None] / max(np.sqrt(np.vdot(V, V)), 1e-300)  # trace * |V|, relatively
    roots = bank.residual_roots(everything)
    stated = np.sqrt(bound)[:, None] * roots + entry
    close(products, exact_products, stated[:, :, None], f"products ({what})")
    rows = np.arange(0, bank.n_samples, 2)
    part = bank.products(V, some, rows)
    close(part, products[some][:, rows], entry[some][:, :, None], f"rows of products ({what})")
    close(
        bank.exact_products(V, some),
        exact_products[some],
        entry[some][:, :, None],
        f"exact_products ({what})",
    )


def _check_exact(
    bank: KernelBank, grams: Floats, weights: Floats, rounding: float, rng: np.random.Generator
) -> None:
    V = rng.normal(size=(bank.n_samples, 2))
    V[::3] = 0.0
    found = unchanged(V, lambda: bank.exact_product(weights, V), "exact_product")
    expected = np.tensordot(weights, grams, axes=1) @ V
    close(found, expected, bank.n_samples * rounding * np.abs(V).max(), "exact_product")


def _check_subset(bank: KernelBank, rng: np.random.Generator, rounding: Floats) -> None:
    which = rng.permutation(bank.n_kernels)[: max(1, bank.n_kernels - 1)]
    part = bank.subset(which)
    V = rng.normal(size=(bank.n_samples, 2))
    allowed = (rounding * np.vdot(V, V))[which]
    require(part.kernels == tuple(bank.kernels[j] for j in which), "subset: the kernels differ.")
    close(part.quadratic_forms(V), bank.quadratic_forms(V)[which], allowed, "subset: forms")
    close(part.traces(), bank.traces()[which], rounding[which], "subset: traces")
    close(
        part.traces(centred=True),
        bank.traces(centred=True)[which],
        rounding[which],
        "subset: centred traces",
    )
    close(part.residual_forms(V), bank.residual_forms(V)[which], allowed, "subset: residual_forms")
    order = np.arange(len(which))[::-1]
    close(
        part.products(V, order),
        bank.products(V, which[order]),
        allowed[order][:, None, None],
        "subset: products",
    )
    weights = rng.dirichlet(np.ones(len(which)))
    spread = np.zeros(bank.n_kernels)
    spread[which] = weights
    close(
        part.combine(weights).dense(),
        bank.combine(spread).dense(),
        rounding.max(),
        "subset: combine",
    )


def _check_combined(
    bank: KernelBank, grams: Floats, weights: Floats, tol: float, rng: np.random.Generator
) -> None:
    n = bank.n_samples
    active = np.flatnonzero(weights)
    exact = np.tensordot(weights, grams, axes=1)
    rounding = tol * float(exact.diagonal().max(initial=0.0))
    roots = bank.residual_roots(active)
    left_out = np.einsum("j,jn,jk->nk", weights[active], roots, roots)
    dense = bank.combine(weights).dense()
    close(dense, exact, left_out + rounding, "combine().dense()")
    require(np.array_equal(dense, dense.T), "combine().dense() is not exactly symmetric.")
    coarse = bank.combine(weights, coarse=True).dense()
    lowest = float(np.linalg.eigvalsh(np.asarray(dense - coarse, dtype=np.float64))[0])
    require(lowest >= -n * rounding, "combine(coarse=True) exceeds the whole kernel.")
    _check_exact(bank, grams, weights, rounding, rng)
    index = rng.permutation(n)[: max(1, n // 3)]
    columns = rng.permutation(n)[: max(1, n // 2)]
    V = rng.normal(size=(n, 2))
    partly = bank.combine(weights)
    partly.fetch(index[: max(1, n // 10)])
    states = {"fresh": bank.combine(weights), "partly": partly, "dense": _made_dense(bank, weights)}
    for state, kernel in states.items():
        what = f"combine() ({state})"
        require(kernel.n_samples == n, f"{what}: n_samples is wrong.")
        close(kernel.rows(index), dense[index], rounding, f"{what}.rows")
        close(
            kernel.block(index, columns), dense[np.ix_(index, columns)], rounding, f"{what}.block"
        )
        close(kernel.diag(), dense.diagonal(), rounding, f"{what}.diag")
        product = dense.astype(np.float64) @ V
        allowed = n * rounding * np.abs(V).max()
        close(kernel @ V, product, allowed, f"{what} @ V")
        close(
            kernel.block(index, index),
            dense[np.ix_(index, index)],
            rounding,
            f"{what}.block (square)",
        )
        factor = kernel.factor()
        if factor is not None:
            close(factor.T @ factor, dense, rounding, f"{what}.factor")


def _made_dense(bank: KernelBank, weights: Floats) -> KernelSum:
    kernel = bank.combine(weights)
    first = kernel.dense()
    require(kernel.dense() is first, "combine().dense() is not kept for the second call.")
    return kernel
