"""The conditional value at risk of the hinge loss as an SMO problem with a slack row.

References
----------
R. T. Rockafellar, S. Uryasev (2000), Optimization of conditional value-at-risk, Journal of Risk 2.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import KernelOperator, Workspace
from kernelweave.losses.cvar_hinge import CVaRHinge, append_row
from kernelweave.losses.hinge import Hinge

from .parts import solve_by_parts
from .smo import solve_smo
from .solution import Solution, unsolved


def solve_cvar(
    loss: CVaRHinge,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
    enough: float = np.inf,
) -> Solution:
    """Solve one output after the other, so that one signed copy of the kernel is held."""
    assert loss.free == 0.0, "pair updates know one cap on all coefficients only"
    n_outputs = Y.shape[1]
    solve = solve_smo if K.workspace is None else solve_by_parts
    if start is None and K.workspace is None:
        K.dense()
    parts = []
    for o in range(n_outputs):
        target, room = loss.with_slack(Y, cost, o)
        begin = None
        if start is not None:
            alpha = Y[:, o] * start.dual_coef[:, o]
            slack_coef = append_row(alpha, -float(alpha.sum()))
            begin = unsolved(slack_coef, append_row(Y[:, o] * start.fitted[:, o], 0.0))
        parts.append(
            solve(
                Hinge(fit_intercept=True),
                SignedKernel(K, Y[:, o]),  # type: ignore[arg-type]
                target,
                room,
                tol=tol,
                floor=floor / n_outputs,
                start=begin,
                enough=enough if n_outputs == 1 else np.inf,
            )
        )
    return Solution(
        dual_coef=np.column_stack([Y[:, o] * p.dual_coef[:-1, 0] for o, p in enumerate(parts)]),
        intercept=np.zeros(n_outputs),
        fitted=np.column_stack([Y[:, o] * p.fitted[:-1, 0] for o, p in enumerate(parts)]),
        primal=sum(p.primal for p in parts),
        dual=sum(p.dual for p in parts),
        work=sum(p.work for p in parts),
    )


class SignedKernel:
    """``y_i y_k K_ik`` with a last row and column of zeros, computed on demand.

    Parameters
    ----------
    kernel : KernelOperator
        The kernel.
    signs : ndarray of shape (n_samples,)
        Minus or plus one.
    """

    def __init__(self, kernel: KernelOperator, signs: Floats) -> None:
        self.kernel = kernel
        self.signs = signs
        self.n_samples, self.dtype = len(signs) + 1, kernel.dtype
        self._blocks: list[tuple[Indices, Stored]] = []
        self._copied = 0

    @property
    def workspace(self) -> Workspace | None:
        """Memory for parts of the matrix, where the kernel is computed on demand."""
        return self.kernel.workspace

    def fill_square(self, index: Indices, known: int, out: Stored) -> None:
        """Write the block of some rows and the same columns, but not of the ``known`` first."""
        slack = index == len(self.signs)
        self.kernel.fill_square(np.where(slack, 0, index), known, out)
        signs = np.append(self.signs, 0.0)[index].astype(out.dtype)
        for rows, columns in (
            (slice(known, None), slice(None)),
            (slice(known), slice(known, None)),
        ):
            out[rows, columns] *= signs[rows, None]
            out[rows, columns] *= signs[columns]

    def product_at(self, rows: Indices, V: Floats) -> Floats:
        """Return some rows of the product."""
        inside = np.flatnonzero(rows < len(self.signs))
        signs, out = self.signs[:, None], np.zeros((len(rows), V.shape[1]))
        out[inside] = signs[rows[inside]] * self.kernel.product_at(rows[inside], signs * V[:-1])
        return out

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        """The rows computed so far, as (row numbers, rows)."""
        for index, rows in self.kernel.blocks[self._copied :]:
            n = len(self.signs)
            signed = np.zeros((len(index), n + 1), dtype=rows.dtype)
            np.multiply(rows, self.signs.astype(rows.dtype), out=signed[:, :n])
            signed *= self.signs[index, None].astype(rows.dtype)
            self._blocks.append((index, signed))
            self._copied += 1
        return self._blocks

    def dense(self) -> None:
        """Compute all rows."""
        self.fetch(np.arange(len(self.signs) + 1))

    def fetch(self, index: Indices) -> None:
        """Compute those of the rows that are not there yet."""
        n = len(self.signs)
        if len(index) and index[-1] == n:  # callers give increasing rows
            slack = np.zeros((1, n + 1), dtype=self.dtype)
            self._blocks.append((np.array([n]), slack))
            index = index[:-1]
        if len(index) == n:
            self.kernel.dense()
        elif len(index):
            self.kernel.fetch(index)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the matrix; callers ask for the same rows and columns."""
        n = len(self.signs)
        inside = rows[rows < n]
        signs = self.signs[inside]
        block = self.kernel.block(inside, inside)
        block *= signs[:, None]
        block *= signs
        if len(inside) == len(rows):
            return block
        out = np.zeros((len(rows), len(rows)))
        out[: len(inside), : len(inside)] = block
        return out

    def diag(self) -> Floats:
        """Return the diagonal."""
        return np.append(self.kernel.diag(), 0.0)

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply a matrix whose last row belongs to the slack."""
        signs = self.signs[:, None]
        return np.vstack([signs * (self.kernel @ (signs * V[:-1])), np.zeros((1, V.shape[1]))])
