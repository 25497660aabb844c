"""The contract of banks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import (
    Bank,
    KernelCollection,
    KernelOperator,
    Views,
    WeightedSum,
    exact_bank,
)
from kernelweave.testing.assertions import close, require, unchanged


def check_bank(bank: Bank, X: Any, *, tol: float | None = None, random_state: int = 0) -> None:
    """Check a bank against the Gram matrices that its kernels give for ``X``.

    A bank may leave out a positive semi-definite remainder ``E_j`` of a kernel; everything must
    then agree up to what `Bank.residual_forms` and `Bank.form_errors` state about it.

    Parameters
    ----------
    bank : Bank
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
        tol = 1e-9 if np.dtype(bank.dtype) == np.float64 else 1e-5
    grams = np.array(
        [scale * kernel(X) for scale, kernel in zip(bank.scales, bank.kernels, strict=True)]
    )
    require(grams.shape == (m, n, n), "the kernels and the bank count rows differently.")
    traces = np.trace(grams, axis1=1, axis2=2)
    rounding = tol * np.maximum(traces, 0.0)
    close(bank.traces(), traces, rounding, "traces()")
    centred = traces - grams.sum(axis=(1, 2)) / n
    left_out = _left_out(bank, np.full((n, 1), n**-0.5))
    close(bank.traces(centred=True), centred, rounding + left_out, "traces(centred=True)")
    bounds = bank.trace_bounds(centred=True) + rounding + left_out
    require((bounds >= centred).all(), "trace_bounds(centred=True) are below the traces.")
    roots = np.sqrt([np.maximum(_left_out(bank, unit[:, None]), 0.0) for unit in np.eye(n)]).T
    shares = rng.dirichlet(np.ones(n))
    sums = np.einsum("n,jnn->j", shares, grams)
    close(bank.diagonal_sums(shares), sums, rounding + shares @ roots.T**2, "diagonal_sums")
    for what, V in _vectors(n, rng):
        _check_forms(bank, grams, V, rounding * np.vdot(V, V), roots, what)
    _check_subset(bank, rng, rounding)
    _check_take(bank, rng, rounding)
    for weights in (np.ones(m), rng.dirichlet(np.ones(m)), np.eye(m)[m // 2], np.zeros(m)):
        _check_combined(bank, grams, weights, tol, roots, rng)
    _check_predictor(bank, X, rng, tol)
    rows = bank.summary()
    require(len(rows) == m, f"summary() describes {len(rows)} of {m} kernels.")
    require(bank.nbytes >= 0, "nbytes is negative.")


def _left_out(bank: Bank, V: Floats) -> Floats:
    """Return the bound of the bank on what its quadratic forms leave out."""
    return bank.residual_forms(V) + bank.form_errors(V, bank.quadratic_forms(V))


def _vectors(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    yield "one vector", rng.normal(size=(n, 1))
    yield "three vectors", rng.normal(size=(n, 3))
    centred = rng.normal(size=(n, 2))
    yield "vectors that sum to zero", centred - centred.mean(axis=0)
    some = np.zeros((n, 2))
    some[::3] = rng.normal(size=some[::3].shape)
    yield "vectors with rows of zeros", some
    yield "zero", np.zeros((n, 1))


def _check_forms(
    bank: Bank, grams: Floats, V: Floats, rounding: Floats, roots: Floats, what: str
) -> None:
    everything = np.arange(bank.n_kernels)
    exact = np.einsum("no,jnk,ko->j", V, grams, V)
    quadratic_forms = unchanged(V, lambda: bank.quadratic_forms(V), "quadratic_forms")
    residual = unchanged(V, lambda: bank.residual_forms(V), "residual_forms")
    errors = unchanged(V, lambda: bank.form_errors(V, quadratic_forms), "form_errors")
    bound = residual + errors
    require((quadratic_forms >= 0).all(), f"quadratic_forms ({what}): one is negative.")
    require((residual >= 0).all(), f"residual_forms ({what}): a bound is negative.")
    require((errors >= 0).all(), f"form_errors ({what}): a bound is negative.")
    require(bank.leaves_out or not residual.any(), "residual_forms, but nothing is left out.")
    for j in everything:
        require(
            quadratic_forms[j] <= exact[j] + errors[j] + rounding[j],
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
        f"quadratic_forms of some kernels ({what})",
    )
    support = np.flatnonzero(V.any(axis=1))
    products = bank.products(V, everything)
    inside = np.einsum("no,jno->j", V[support], products[:, support])
    close(quadratic_forms, np.maximum(inside, 0.0), rounding, f"forms against products ({what})")
    entry = rounding[:, None] / max(np.sqrt(np.vdot(V, V)), 1e-300)  # trace * |V|, relatively
    # |(E V)_i| <= sqrt(tr(V' E V) E_ii) for a positive semi-definite remainder E.
    stated = np.sqrt(bound)[:, None] * roots + entry
    exact_products = np.einsum("jnk,ko->jno", grams, V)
    close(products, exact_products, stated[:, :, None], f"products ({what})")
    rows = np.arange(0, bank.n_samples, 2)
    part = bank.products(V, some, rows)
    close(part, products[some][:, rows], entry[some][:, :, None], f"rows of products ({what})")
    above = bank.exact_forms(V, some) + residual[some] - exact[some]
    require((above >= -rounding[some]).all(), f"exact_forms ({what}): one is too small.")
    within = (above <= residual[some] + rounding[some]) | ~bank.complete[some]
    require(within.all(), f"exact_forms ({what}): one is too large.")
    if bank.n_features is None:
        close(
            exact_bank(bank).exact_products(V, some),
            exact_products[some],
            entry[some][:, :, None],
            f"exact_products ({what})",
        )


def _check_subset(bank: Bank, rng: np.random.Generator, rounding: Floats) -> None:
    which = rng.permutation(bank.n_kernels)[: max(1, bank.n_kernels - 1)]
    part = bank.subset(which)
    V = rng.normal(size=(bank.n_samples, 2))
    allowed = (rounding * np.vdot(V, V))[which]
    require(
        tuple(part.kernels) == tuple(bank.kernels[j] for j in which),
        "subset: the kernels differ.",
    )
    close(part.quadratic_forms(V), bank.quadratic_forms(V)[which], allowed, "subset: forms")
    close(part.traces(), bank.traces()[which], rounding[which], "subset: traces")
    close(
        part.traces(centred=True),
        bank.traces(centred=True)[which],
        rounding[which],
        "subset: centred traces",
    )
    close(_left_out(part, V), _left_out(bank, V)[which], allowed, "subset: residual_forms")
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


def _check_take(bank: Bank, rng: np.random.Generator, rounding: Floats) -> None:
    rows = rng.permutation(bank.n_samples)[: max(1, bank.n_samples // 2)]
    part, V = bank.take(rows), np.zeros((bank.n_samples, 2))
    V[rows] = rng.normal(size=(len(rows), 2))
    require(part.n_samples == len(rows), "take: the number of rows is wrong.")
    # A part of Nystroem features is held in single precision.
    allowed = np.maximum(rounding, 1e-6 * bank.traces()) * np.vdot(V, V)
    close(part.quadratic_forms(V[rows]), bank.quadratic_forms(V), allowed, "take: forms")


def _check_combined(
    bank: Bank,
    grams: Floats,
    weights: Floats,
    tol: float,
    roots: Floats,
    rng: np.random.Generator,
) -> None:
    n = bank.n_samples
    active = np.flatnonzero(weights)
    exact = np.tensordot(weights, grams, axes=1)
    rounding = tol * float(exact.diagonal().max(initial=0.0))
    left_out = np.einsum("j,jn,jk->nk", weights[active], roots[active], roots[active])
    dense = bank.combine(weights).dense()
    close(dense, exact, left_out + rounding, "combine().dense()")
    require(np.array_equal(dense, dense.T), "combine().dense() is not exactly symmetric.")
    coarse = bank.combine(weights, coarse=True).dense()
    lowest = float(np.linalg.eigvalsh(np.asarray(dense - coarse, dtype=np.float64))[0])
    require(lowest >= -n * rounding, "combine(coarse=True) exceeds the whole kernel.")
    index = rng.permutation(n)[: max(1, n // 3)]
    columns = rng.permutation(n)[: max(1, n // 2)]
    V = rng.normal(size=(n, 2))
    V[::3] = 0.0
    allowed = n * rounding * np.abs(V).max()
    found = unchanged(V, lambda: bank.exact_product(weights, V), "exact_product")
    missing = left_out @ np.abs(V) if bank.n_features else 0.0  # exact banks evaluate the kernels
    close(found, exact @ V, missing + allowed, "exact_product")
    partly = bank.combine(weights)
    partly.fetch(index[: max(1, n // 10)])
    states = {"fresh": bank.combine(weights), "partly": partly, "dense": _made_dense(bank, weights)}
    for state, kernel in states.items():
        what = f"combine() ({state})"
        _check_operator(kernel, dense, V, index, columns, rounding, what)
        _check_function(kernel, V, dense.astype(np.float64) @ V, active, allowed)


def _check_operator(
    kernel: KernelOperator,
    dense: Stored,
    V: Floats,
    index: Indices,
    columns: Indices,
    rounding: float,
    what: str,
) -> None:
    """Compare a weighted sum with its matrix; entries may differ by rounding."""
    n = len(dense)
    allowed = n * rounding * np.abs(V).max()
    require(kernel.n_samples == n, f"{what}: n_samples is wrong.")
    close(kernel.rows(index), dense[index], rounding, f"{what}.rows")
    for other, shape in ((columns, "block"), (index, "block (square)")):
        close(kernel.block(index, other), dense[np.ix_(index, other)], rounding, f"{what}.{shape}")
    close(kernel.diag(), dense.diagonal(), rounding, f"{what}.diag")
    product = dense.astype(np.float64) @ V
    close(kernel @ V, product, allowed, f"{what} @ V")
    close(kernel.scaled(2.0) @ V, 2.0 * product, 2.0 * allowed, f"{what}.scaled")
    kernel.fetch(index)
    known = np.concatenate([rows for rows, _ in kernel.blocks])
    require(np.isin(index, known).all(), f"{what}.fetch: a row is missing in blocks.")
    factor, features = kernel.factor(), kernel.features()
    if factor is not None:
        close(factor.T @ factor, dense, rounding, f"{what}.factor")
    if features is None:
        return
    Z = features.rows(np.arange(features.n_samples))
    w, q = features.sums(V), np.abs(V[:, 0])
    size = n * allowed * np.abs(V).max()
    close(Z @ Z.T @ V, product, allowed, f"{what}.features().rows")
    close(features.times(w), product, allowed, f"{what}.features().times")
    inner, edge = features.gram(q)
    close(inner, (Z.T * q) @ Z, size, f"{what}.features().gram")
    close(edge, Z.T @ q, size, f"{what}.features().gram, the sums")


def check_collection(
    collection: KernelCollection, grams: Floats, *, tol: float = 1e-9, random_state: int = 0
) -> None:
    """Check what every bank offers against the Gram matrices of its kernels.

    Parameters
    ----------
    collection : KernelCollection
        What to check; its kernels are exact.
    grams : ndarray of shape (n_kernels, n_samples, n_samples)
        Their Gram matrices.
    tol : float
        Relative rounding allowed.
    random_state : int
        Seed of the vectors tried.

    Raises
    ------
    AssertionError
        If an answer contradicts the matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks.rules import PackedRows, RuleBank
    >>> truth = np.array([[True, False], [True, True], [False, True]])
    >>> bank = RuleBank(PackedRows.of(truth))
    >>> bank.add([(0,), (0, 1)])
    >>> phi = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    >>> check_collection(bank, np.einsum("jn,jk->jnk", phi, phi))
    """
    rng = np.random.default_rng(random_state)
    m, n, _ = grams.shape
    require(collection.n_samples == n, f"n_samples is {collection.n_samples}, not {n}.")
    require(collection.n_kernels == m, f"n_kernels is {collection.n_kernels}, not {m}.")
    rounding = tol * np.trace(grams, axis1=1, axis2=2)
    shares, some = rng.dirichlet(np.ones(n)), np.arange(m)[::-2]
    sums = np.einsum("n,jnn->j", shares, grams)
    close(collection.diagonal_sums(shares), sums, rounding, "diagonal_sums")
    for what, V in _vectors(n, rng):
        exact, allowed = np.einsum("no,jnk,ko->j", V, grams, V), rounding * np.vdot(V, V)
        found = unchanged(V, partial(collection.quadratic_forms, V), "quadratic_forms")
        require((found >= 0).all(), f"quadratic_forms ({what}): one is negative.")
        close(found, exact, allowed, f"quadratic_forms ({what})")
        close(
            collection.quadratic_forms(V, some),
            exact[some],
            allowed[some],
            f"quadratic_forms of some kernels ({what})",
        )
    index, columns = (rng.permutation(n)[: max(1, n // k)] for k in (3, 2))
    V = rng.normal(size=(n, 2))
    V[::3] = 0.0
    for weights in (np.ones(m), rng.dirichlet(np.ones(m)), np.eye(m)[m // 2]):
        dense = np.tensordot(weights, grams, axes=1)
        kernel = collection.combine(weights)
        allowed = tol * float(dense.diagonal().max(initial=0.0))
        close(kernel.dense(), dense, allowed, "combine().dense()")
        _check_operator(kernel, dense, V, index, columns, allowed, "combine()")
        close(kernel.exact_product(V), dense @ V, n * allowed * np.abs(V).max(), "exact_product")


def _check_function(
    kernel: WeightedSum, V: Floats, product: Floats, active: Indices, allowed: float
) -> None:
    """Check the function of dual coefficients V, and features where there are some."""
    weights, forms = kernel.weights[active], kernel.bank.quadratic_forms(V, active)
    function = kernel.function(V, kernel @ V, active, forms)
    size = len(V) * allowed * np.abs(V).max()
    close(function.fitted, product, allowed, "function().fitted")
    close(function.squared_norm, weights @ forms, size, "function().squared_norm")
    norms = function.norms[active] ** 2
    require((norms >= weights**2 * forms - weights * size).all(), "function(): norms too small.")
    features = kernel.features()
    if features is None:
        return
    w = features.sums(V)
    columns = features.to_bank(w)
    assert columns is not None, "features().to_bank gives no function."
    own, whole = features.from_bank(columns)
    require(whole, "features().from_bank loses a part of its own function.")
    close(own, w, size, "features().from_bank")
    close(kernel.bank.values(columns), product, allowed, "values of a function")


def _check_predictor(bank: Bank, X: Any, rng: np.random.Generator, tol: float) -> None:
    support, every = np.arange(0, bank.n_samples, 2), np.arange(bank.n_kernels)
    if bank.n_features is None:
        rows = bank.predictor(support, every).support
        assert rows is not None, "predictor() of exact kernels has no support rows."
        require(rows.n_samples == len(support), "predictor() has other rows than the support.")
        return
    columns = rng.normal(size=(bank.n_features, 2))
    found = bank.predictor(support, every, columns).function
    assert found is not None, "predictor() of Nystroem features has no function."
    used = [bank.kernels[j] for j in found.which]
    values, expected = found.values(used, Views.of(used, X)), bank.values(columns)
    close(values, expected, 1e3 * tol * np.abs(expected).max(), "predictor()")


def _made_dense(bank: Bank, weights: Floats) -> WeightedSum:
    kernel = bank.combine(weights)
    first = kernel.dense()
    require(kernel.dense() is first, "combine().dense() is not kept for the second call.")
    return kernel
