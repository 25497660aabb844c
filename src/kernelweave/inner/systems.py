"""Linear systems in the dual coefficients of a smooth loss: ``E = (K + W^-1)^-1``.

``W`` holds the second derivatives of the loss, diagonal or, where outputs are coupled, with one
block ``diag(w) - w w' / sum(w)`` for every row. With an intercept, solutions are projected on
coefficients of every output that sum to zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import strsm
from scipy.linalg.lapack import dpotri, dpotrs

from kernelweave._linalg import all_finite, factor_upper, restore_upper
from kernelweave._types import Floats, Stored
from kernelweave.banks import KernelOperator
from kernelweave.banks.kernel_sum import gram_product

from .smo import MAX_FREE

_TOGETHER = 2**20  # entries of a matrix of few columns up to which copies are multiplied at once
_RAISED = (1e-14, 1e-11, 1e-8, 1e-5)  # shares by which a diagonal is raised in turn


@dataclass(frozen=True)
class IterativeOptions:
    """Tunable numbers of `IterativeSystem`, chosen by hand."""

    least_rows: int = 500  # from which it is quicker than factors of the matrix,
    least_coupled: int = 250  # of which coupled outputs need more, and up to
    most_curved: float = 0.01  # mean of the curvature times the diagonal, in rows; steps grow there
    tol: float = 5e-2  # relative residual, over the mean of the curvature where that exceeds one:
    # a step is the small difference of a residual and of what the system takes from it
    tight: float = 1e-7  # relative residual where a step by that failed
    max_steps: int = 200
    single: float = 1e4  # mean of the curvature times the diagonal, in units of one over n, from
    # which single precision leaves no digit to the small eigenvalues of the preconditioner
    rank: float = (
        0.09  # of the preconditioner, in rows, times the root of the mean of the curvature
    )
    least_rank: int = 100  # of one output,
    least_each: int = 50  # of each of several,
    most_rank: int = 500  # and of all together, unless that is less


_ITERATIVE = IterativeOptions()


def rough_product(K: KernelOperator, V: Floats, *, single: bool = True) -> Floats:
    """Multiply by the matrix as it is stored or, on demand, computed: enough for a step.

    ``single`` allows the arithmetic of the stored type.
    """
    if K.workspace is not None:
        return K.rough_product(V, single=single)
    gram = K.dense()
    flat: Any = V.astype(gram.dtype, copy=False) if single else V
    return gram_product(gram, flat).astype(np.float64, copy=False)


class CurvedSystem(ABC):
    """Solves with ``K + W^-1`` for one W.

    Parameters
    ----------
    K : KernelOperator
        The kernel.
    weights : ndarray of shape (n_samples, n_outputs)
        Second derivatives, as in `Tangent`.
    coupled : bool
        Whether those of a row are a block.
    intercept : bool
        Whether coefficients sum to zero.
    """

    is_exact = True  # up to rounding
    sketch: Stored | None = None  # columns of the preconditioner, if there is one

    def __init__(self, K: KernelOperator, weights: Floats, coupled: bool, intercept: bool) -> None:
        self.K, self.weights, self.coupled, self.intercept = K, weights, coupled, intercept
        self.factor: tuple[Floats, bool]

    @abstractmethod
    def apply(self, V: Floats) -> Floats:
        """Return ``E V`` for ``V`` of shape (n_samples, n_outputs, n_sides)."""

    def apply_and_multiply(self, V: Floats) -> tuple[Floats, Floats]:
        """Return ``E V`` and ``K E V``."""
        out = self.apply(V)
        return out, self._times(out)

    def _times(self, V: Floats) -> Floats:
        return rough_product(self.K, V.reshape(len(V), -1)).reshape(V.shape)

    def _shares(self) -> Floats:
        """Return probabilities: shares of the outputs in the weights of a row."""
        return _shares(self.weights)

    def _times_weights(self, V: Floats) -> Floats:
        """Return ``W V``."""
        out = self.weights[:, :, None] * V
        if self.coupled:
            out -= self._shares()[:, :, None] * out.sum(axis=1, keepdims=True)
        return np.asarray(out)

    def _inner_factor(self, Z: Stored, weights: Floats) -> tuple[Floats, bool]:
        """Factor ``I + Z'W Z``, by output."""
        n_outputs, rank = weights.shape[1], Z.shape[1]
        inner = np.zeros((n_outputs, rank, n_outputs, rank))
        shares, rows = _shares(weights), np.ascontiguousarray(Z.T)
        together = max(1, _TOGETHER // max(1, Z.size))  # pairs whose blocks are small: one product
        for o in range(n_outputs):
            for a in range(0 if self.coupled else o, o + 1, together):
                some = slice(a, min(a + together, o + 1))
                q = np.where(np.arange(o + 1)[some, None] == o, weights[:, o], 0.0)
                if self.coupled:
                    q -= shares.T[some] * weights[:, o]
                sides = (q.astype(Z.dtype, copy=False)[:, None] * rows).reshape(-1, len(Z))
                blocks = (sides @ Z).reshape(-1, rank, rank)
                inner[some, :, o], inner[o, :, some] = blocks, blocks.transpose(1, 0, 2)
        system = inner.reshape(n_outputs * rank, -1)
        system[np.diag_indices_from(system)] += 1.0
        return factor_positive(system)

    def _solve_inner(self, V: Floats) -> Floats:
        """Solve with that factor for sides of shape (rank, n_outputs, n_sides)."""
        rank, n_outputs, n_sides = V.shape
        side = V.transpose(1, 0, 2).reshape(-1, n_sides)
        solved = _solve(self.factor, side)
        return np.asarray(solved.reshape(n_outputs, rank, n_sides).transpose(1, 0, 2))

    def _and_ones(self, V: Floats) -> Floats:
        """Return sides with one more for each output, of ones there."""
        n, k = self.weights.shape
        return np.concatenate([V, np.broadcast_to(np.eye(k), (n, k, k))], axis=2)

    def _inverse_total(self, across: Floats) -> Floats:
        """Return the inverse of ``1'E 1`` for ``E 1``."""
        total = across.sum(axis=0)
        if self.coupled:
            # Singular along the sum of all outputs, and exactly so after this.
            total = total - total.mean(axis=0)
            total = total - total.mean(axis=1, keepdims=True)
        inverse = np.linalg.pinv(0.5 * (total + total.T), rcond=1e-12, hermitian=True)
        return np.asarray(inverse)

    def projected(self, V: Floats) -> Floats:
        """Return ``E V``, projected on coefficients that sum to zero where there is a bias."""
        if not self.intercept:
            return self.apply(V)
        both = self.apply(self._and_ones(V))
        out, across = np.split(both, [V.shape[2]], axis=2)
        return np.asarray(out - across @ (self._inverse_total(across) @ out.sum(axis=0)))

    def direction(self, r: Floats, Kr: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return the Newton step from ``a`` and its product, with those of its residual ``r``.

        Where iterations overflow, it is not finite.
        """
        sides = Kr[:, :, None]
        out, values = self.apply_and_multiply(self._and_ones(sides) if self.intercept else sides)
        d, Kd = r - out[:, :, 0], Kr - values[:, :, 0]
        if self.intercept:
            across = out[:, :, 1:]
            if not all_finite(across):
                return np.full_like(d, np.nan), Kd
            move = self._inverse_total(across) @ (d + a).sum(axis=0)
            d, Kd = d - across @ move, Kd - values[:, :, 1:] @ move
        return d, Kd


class DenseSystem(CurvedSystem):
    """By Cholesky factors, one per output, and one more where they are coupled."""

    def __init__(self, K: KernelOperator, weights: Floats, coupled: bool, intercept: bool) -> None:
        super().__init__(K, weights, coupled, intercept)
        gram = K.dense()
        self.roots = np.sqrt(weights)
        self.factors = [self._factor(gram, s) for s in self.roots.T]
        if coupled:
            # E of coupled outputs: E_k - E_k (sum_k E_k)^-1 E_l (Rasmussen and Williams, 3.5).
            total = np.zeros((len(weights), len(weights)))
            for s, factor in zip(self.roots.T, self.factors, strict=True):
                inverse = dpotri(factor[0], lower=1)[0].T  # its upper triangle
                inverse *= s
                inverse *= s[:, None]
                total += inverse
            absent = ~weights.any(axis=1)
            total[absent, absent] = 1.0  # rows without cost: any number will do
            self.total = factor_positive(total)

    @staticmethod
    def _factor(gram: Stored, s: Floats) -> tuple[Floats, bool]:
        B = np.multiply(gram, s, dtype=np.float64)  # I + S K S has no eigenvalue below one
        B *= s[:, None]
        B[np.diag_indices_from(B)] += 1.0
        return factor_positive(B)

    def _separate(self, V: Floats) -> Floats:
        out = np.empty_like(V)
        for o, (s, factor) in enumerate(zip(self.roots.T, self.factors, strict=True)):
            out[:, o] = s[:, None] * _solve(factor, s[:, None] * V[:, o])
        return out

    def apply(self, V: Floats) -> Floats:
        out = self._separate(V)
        if not self.coupled:
            return out
        common = _solve(self.total, out.sum(axis=1))
        spread = np.broadcast_to(common[:, None], V.shape)
        return out - self._separate(spread)


class LowRankSystem(CurvedSystem):
    """By ``E = W - W Z T^-1 Z'W`` with ``K = Z Z'`` of few columns and ``T = I + Z'W Z``."""

    def __init__(
        self, K: KernelOperator, weights: Floats, coupled: bool, intercept: bool, Z: Stored
    ) -> None:
        super().__init__(K, weights, coupled, intercept)
        self.Z = Z
        self.factor = self._inner_factor(Z, weights)

    def apply(self, V: Floats) -> Floats:
        out = self._times_weights(V)
        inward = np.tensordot(self.Z, out.astype(self.Z.dtype, copy=False), axes=(0, 0))
        solved = self._solve_inner(inward.astype(np.float64, copy=False))
        back = np.tensordot(self.Z, solved.astype(self.Z.dtype, copy=False), axes=(1, 0))
        return out - self._times_weights(back.astype(np.float64, copy=False))


class IterativeSystem(CurvedSystem):
    """By conjugate gradients on ``B = I + L'K L`` with ``W = L L'``, for steps on many rows.

    The preconditioner is the same matrix with ``Z Z' + D`` for K: its Nystroem approximation by
    evenly spaced rows, which has its largest eigenvalues, and the diagonal that is missing there.
    """

    is_exact = False

    def __init__(
        self,
        K: KernelOperator,
        weights: Floats,
        coupled: bool,
        intercept: bool,
        Z: Stored | None = None,
        options: IterativeOptions = _ITERATIVE,
        tight: bool = False,
    ) -> None:
        super().__init__(K, weights, coupled, intercept)
        self.options = options
        self.sketch = sketch(K, weights, options) if Z is None else Z
        curvature = _mean_curvature(K, weights)
        self.tol = options.tight if tight else max(options.tol / max(1.0, curvature), options.tight)
        precise = len(weights) * curvature > options.single
        self.Z: Any = self.sketch.astype(np.float64) if precise else self.sketch
        # With D, W becomes (W^-1 + D)^-1, which has the form of W also where outputs are coupled.
        missing = K.diag() - np.einsum("ij,ij->i", self.sketch, self.sketch, dtype=np.float64)
        self.raised = 1.0 + weights * np.maximum(missing, 0.0)[:, None]
        self.factor = self._inner_factor(self.Z, weights / self.raised)

    def apply(self, V: Floats) -> Floats:
        return self.apply_and_multiply(V)[0]

    def apply_and_multiply(self, V: Floats) -> tuple[Floats, Floats]:
        options = self.options
        x, values = np.zeros(V.shape), np.zeros(V.shape)  # values: K L x, which costs nothing
        r = self._root(V, transposed=True)
        z = self._precondition(r)
        p, rho = z, (r * z).sum(axis=(0, 1))
        first = rho
        for _ in range(options.max_steps):
            if not (np.isfinite(rho).all() and (rho > 0.0).any()):
                break  # the residual is rounding
            Kp = self._times(self._root(p))
            Bp = p + self._root(Kp, transposed=True)
            alpha = rho / np.maximum((p * Bp).sum(axis=(0, 1)), 1e-300)
            x += alpha * p
            values += alpha * Kp
            r = r - alpha * Bp
            z = self._precondition(r)
            new = (r * z).sum(axis=(0, 1))
            if (new <= self.tol**2 * first).all():
                break
            p, rho = z + (new / np.maximum(rho, 1e-300)) * p, new
        return self._root(x), values

    def _precondition(self, V: Floats) -> Floats:
        outer = self._precondition_rows(V)
        Z, own = self.Z, self._root(outer).astype(self.Z.dtype)
        solved = self._solve_inner(np.tensordot(Z, own, axes=(0, 0)).astype(np.float64))
        back = np.tensordot(Z, solved.astype(Z.dtype), axes=(1, 0)).astype(np.float64)
        return outer - self._precondition_rows(self._root(back, transposed=True))

    def _precondition_rows(self, V: Floats) -> Floats:
        """Solve with ``I + L'D L``, a block for each row, on the range of ``L'``."""
        out = V / self.raised[:, :, None]
        if self.coupled:  # orthogonal to s, where L is singular
            s = np.sqrt(self.weights)
            along = s / self.raised
            total = np.maximum((s * along).sum(axis=1), 1e-300)[:, None]
            share = np.einsum("io,iov->iv", s, out) / total
            out -= along[:, :, None] * share[:, None, :]
        return np.asarray(out)

    def _root(self, V: Floats, *, transposed: bool = False) -> Floats:
        """Return ``L V`` or ``L'V``; of coupled outputs ``L = diag(s) - w s' / sum(w)``."""
        s = np.sqrt(self.weights)[:, :, None]
        if not self.coupled:
            return np.asarray(s * V)
        shares = self._shares()[:, :, None]
        if transposed:
            return np.asarray(s * (V - (shares * V).sum(axis=1, keepdims=True)))
        return np.asarray(s * V - shares * (s * V).sum(axis=1, keepdims=True))


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def sketch(K: KernelOperator, weights: Floats, options: IterativeOptions = _ITERATIVE) -> Stored:
    """Return columns ``Z`` with ``Z Z'`` near K: its Nystroem approximation by some rows."""
    n, n_outputs = weights.shape
    wanted = int(options.rank * n * np.sqrt(_mean_curvature(K, weights)))
    least = options.least_rank if n_outputs == 1 else options.least_each
    rank = min(n, max(least, min(wanted, options.most_rank // n_outputs)))
    some = np.linspace(0, K.n_samples - 1, rank, dtype=np.intp)
    corner = K.block(some, some)
    size = float(np.trace(corner)) / rank or 1.0  # a unit in which single precision has the range
    corner /= size
    corner[np.diag_indices_from(corner)] += 1e-6
    root = factor_positive(corner)[0].astype(np.float32)
    rows = (K.rows(some) / size).astype(np.float32, copy=False)
    scale = np.sqrt(size)
    return np.asarray(strsm(scale, root, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1))


def sample_rows(q: Floats, n_least: int, share: float) -> Floats:
    """Return second derivatives of evenly spaced rows only, with the same sum, of many rows.

    Every row has curvature where the loss is smooth, and a model needs it to a few per cent.
    """
    n_some = max(n_least, int(np.ceil(share * len(q))))
    if n_some >= len(q):
        return q
    some = np.linspace(0, len(q) - 1, n_some, dtype=np.intp)
    out = np.zeros_like(q)
    out[some] = q[some] * (q.sum() / max(float(q[some].sum()), 1e-300))
    return out


def factor_positive(M: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a matrix that is positive definite up to rounding.

    The matrix is overwritten. Where the factorisation fails, its diagonal is raised.
    """
    diagonal = M.diagonal().copy()
    for share in (0.0, *_RAISED):
        if share:
            restore_upper(M, (1.0 + share) * diagonal)
        with suppress(np.linalg.LinAlgError):
            return factor_upper(M)
    # Overflow: a step along the slopes.
    return np.diag(np.sqrt(np.where(diagonal > 0, diagonal, 1.0))), True


def _solve(factor: tuple[Floats, bool], sides: Floats) -> Floats:
    """Solve with a Cholesky factor; scipy's own function takes longer than a small system."""
    return np.asarray(dpotrs(factor[0], sides, lower=factor[1])[0])


def make_system(
    K: KernelOperator,
    weights: Floats,
    coupled: bool,
    intercept: bool,
    *,
    sketched: Stored | None = None,
    exact: bool = False,
) -> CurvedSystem:
    """Return the cheapest system for a kernel: few columns, factors of its matrix, or iterations.

    Parameters
    ----------
    K, weights, coupled, intercept
        As in `CurvedSystem`.
    sketched : ndarray, optional
        What `sketch` returned for the same kernel.
    exact : bool
        Whether iterations are for more than `MAX_FREE` rows only, and tight.
    """
    n, k = weights.shape
    Z = K.columns()
    if Z is not None:
        rank = Z.shape[1]
        # Multiplications: of the Gram matrices and a factor; and of the factors of `DenseSystem`.
        low = (k * (k + 1) / 2 if coupled else k) * n * rank**2 + (k * rank) ** 3 / 6
        if low < (k * n**3 / 2 if coupled else k * n**3 / 6):
            return LowRankSystem(K, weights, coupled, intercept, Z)
    if n > MAX_FREE or (not exact and _is_easy(K, weights, coupled)):
        return IterativeSystem(K, weights, coupled, intercept, sketched, tight=exact)
    return DenseSystem(K, weights, coupled, intercept)


def _is_easy(K: KernelOperator, weights: Floats, coupled: bool) -> bool:
    """Whether conjugate gradients take few steps: the weights are small for so many rows."""
    n = len(weights)
    least = _ITERATIVE.least_coupled if coupled else _ITERATIVE.least_rows
    return n >= least and _mean_curvature(K, weights) <= _ITERATIVE.most_curved * n


def _mean_curvature(K: KernelOperator, weights: Floats) -> float:
    return float(weights.mean()) * float(K.diag().mean())
