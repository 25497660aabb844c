"""The contract of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave.kernels import Kernel, n_rows, take

from .assertions import close, require


def check_kernel(kernel: Kernel, X: Any, *, tol: float = 1e-9) -> None:
    """Check that a kernel is symmetric, positive semi-definite and consistent with itself.

    Parameters
    ----------
    kernel : Kernel
        What to check.
    X : array, sparse matrix or data frame
        Rows that the kernel takes, two or more.
    tol : float
        How far values may be apart, relative to the largest diagonal entry.

    Raises
    ------
    AssertionError
        If a promise of `Kernel` is broken.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> check_kernel(RBF(width=1.0), [[0.0], [1.0], [3.0]])
    """
    rows = kernel.prepare(X)
    n = n_rows(rows)
    require(n >= 2, "check_kernel needs two or more rows.")
    gram = kernel(X)
    require(gram.shape == (n, n), f"kernel(X) has shape {gram.shape} for {n} rows.")
    require(gram.dtype == np.float64, f"kernel(X) has dtype {gram.dtype}, not float64.")
    require(np.isfinite(gram).all(), "kernel(X) is not finite.")
    require(np.array_equal(gram, gram.T), "kernel(X) is not exactly symmetric.")
    diagonal = kernel.diag(X)
    scale = max(float(diagonal.max()), 0.0)
    require((diagonal >= 0).all(), f"kernel.diag(X) has the negative entry {diagonal.min():.6g}.")
    close(diagonal, gram.diagonal(), tol * scale, "kernel.diag(X) against kernel(X)")
    lowest = float(np.linalg.eigvalsh(gram)[0])
    require(
        lowest >= -n * tol * scale,
        f"kernel(X) is not positive semi-definite: its lowest eigenvalue is {lowest:.6g}.",
    )
    left, right = np.arange(0, n, 2), np.arange(n)[::-1][: n // 2 + 1]
    block = kernel.block(take(rows, left), take(rows, right))
    close(block, gram[np.ix_(left, right)], tol * scale, "a block of some rows and columns")
    close(
        kernel.diagonal(take(rows, left)), diagonal[left], tol * scale, "the diagonal of some rows"
    )
    close(kernel.block(rows, take(rows, [0])), gram[:, :1], tol * scale, "one column")
    same = type(kernel).__sklearn_clone__(kernel)
    require(same is kernel, "a kernel must be its own clone; it is an immutable value.")
    require(kernel == kernel and hash(kernel) == hash(kernel), "a kernel must equal itself.")
    require(bool(str(kernel)), "str(kernel) must name the kernel.")
