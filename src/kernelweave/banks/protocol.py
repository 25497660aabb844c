"""The interfaces that solvers rely on: a bank of kernels, and a weighted sum of them.

A bank holds all kernels of a fit over the training rows. A solver asks it for quadratic forms,
products and weighted sums, and never which bank it got: where kernels are held as Nystroem
features, the weighted sum offers its `Features`, and functions are weights of the bank's columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._types import Bools, Floats, Indices, Stored
from kernelweave.kernels import Kernel

from .views import Views
from .workspace import Workspace as Workspace

if TYPE_CHECKING:
    from .nystroem.landmarks import LandmarkFunction


class Features(ABC):
    """Features ``Z`` of the rows with ``K = Z Z'``, for inner problems solved in the primal.

    Those of a bank are some of its columns, weighted. The methods from `scores` on translate
    between both; their defaults are for features that belong to no bank.
    """

    n_samples: int

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features."""

    @abstractmethod
    def times(self, w: Floats) -> Floats:
        """Return ``Z w``."""

    @abstractmethod
    def sums(self, V: Floats) -> Floats:
        """Return ``Z' V``."""

    @abstractmethod
    def rows(self, index: Indices) -> Floats:
        """Return some rows of ``Z``."""

    @abstractmethod
    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        """Return ``Z' diag(q) Z`` and ``Z' q``; rows with ``q = 0`` cost nothing."""

    def scores(self, V: Floats) -> Floats:
        """Return ``F' V`` of all columns F of the bank that are read in the same pass."""
        return self.sums(V)

    def pick(self, scores: Floats) -> Floats:
        """Return ``Z' V`` from `scores`."""
        return scores

    def to_bank(self, w: Floats) -> Floats | None:
        """Return the function ``Z w`` as weights of all columns of the bank; None without one."""
        return None

    def from_bank(self, function: Floats) -> tuple[Floats, bool]:
        """Return w for a function of the bank, and whether ``Z w`` is all of it."""
        raise NotImplementedError

    def descend(
        self,
        target: Floats,
        lower: Floats,
        upper: Floats,
        ridge: Floats,
        *,
        dead_zone: float,
        intercept: bool,
        epochs: int,
    ) -> Floats | None:
        """Return rough dual coefficients of one output by coordinate descent, or None."""
        return None

    def moments(
        self, V: Floats, output: int, which: Indices, q: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what the Hessian in the weights of the kernels ``which`` needs, over rows q.

        Of the values U of these kernels (``K_j v`` with v a column of V, then a one) and the
        columns F of these kernels, normalised: ``U' diag(q) U``, ``F' diag(q) U``,
        ``F' diag(q) F``, and the weight of the kernel of each column.
        """
        raise NotImplementedError


class KernelOperator(ABC):
    """A positive semi-definite matrix over the training rows, with rows computed on demand."""

    n_samples: int
    dtype: Any  # of rows

    @property
    def workspace(self) -> Workspace | None:
        """Memory for parts of the matrix, where inner solvers must not form all of it.

        They work with `fill_square` and `product_at` then, and nothing is kept.
        """
        return None

    def fill_square(self, index: Indices, known: int, out: Stored) -> None:
        """Write the block of some rows and the same columns into ``out``, in the type of the rows.

        That of the first ``known`` rows is there already.
        """
        out[known:] = self.rows(index[known:])[:, index]
        out[:known, known:] = out[known:, :known].T

    def product_at(self, rows: Indices, V: Floats) -> Floats:
        """Return some rows of the product with ``V``."""
        return (self @ V)[rows]

    @property
    @abstractmethod
    def blocks(self) -> list[tuple[Indices, Stored]]:
        """The rows computed so far, as (row numbers, rows)."""

    @abstractmethod
    def fetch(self, index: Indices) -> None:
        """Compute the rows that are missing; all of them if that is cheaper."""

    @abstractmethod
    def dense(self) -> Stored:
        """Return the whole matrix; do not write to it."""

    @abstractmethod
    def rows(self, index: Indices) -> Stored:
        """Return some rows."""

    @abstractmethod
    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block, in float64."""

    @abstractmethod
    def diag(self) -> Floats:
        """Return the diagonal."""

    @abstractmethod
    def __matmul__(self, V: Floats) -> Floats:
        """Multiply, in float64 whatever the storage."""

    def exact_product(self, V: Floats) -> Floats:
        """Multiply by the exact kernels, whatever their storage leaves out."""
        return self @ V

    def rough_product(self, V: Floats, *, single: bool) -> Floats:
        """Multiply again and again, as steps need it, where kernels are computed on demand.

        ``single`` allows the arithmetic of the stored type.
        """
        return self @ V

    @abstractmethod
    def scaled(self, factor: float) -> KernelOperator:
        """Return a multiple."""

    def columns(self) -> Floats | None:
        """Return ``Z`` with ``K = Z Z'``, where the matrix is held as a factor; None elsewhere."""
        return None

    def features(self) -> Features | None:
        """Return features if inner problems are cheaper with these than with rows of the matrix."""
        return None

    def factor(self) -> Floats | None:
        """Return ``Z`` with ``Z' Z`` equal to the kernel, or None if its rank is not low."""
        return None


@dataclass(frozen=True)
class KernelFunction:
    """The function of a solution."""

    fitted: Floats  # (n_samples, n_outputs): its values at the training rows
    norms: Floats  # (n_kernels,): norms of its parts, each in the space of a normalised kernel
    squared_norm: float  # ``sum_j norms_j^2 / weights_j``
    # (n_columns, n_outputs): the function as weights of the columns of a Nystroem bank.
    columns: Floats | None = None


@dataclass(frozen=True)
class Predictor:
    """What a model keeps to predict: support rows by kernel, or the function of a Nystroem fit."""

    support: Views | None = None
    function: LandmarkFunction | None = None


class WeightedSum(KernelOperator):
    """``sum_j weights_j K_j`` of the normalised kernels of a bank."""

    bank: Bank
    weights: Floats

    @abstractmethod
    def start_values(self, dual_coef: Floats) -> Floats:
        """Return the fitted values that an inner solver starts from.

        Zeros where it computes them itself, from `features`.
        """

    @abstractmethod
    def moved_values(
        self,
        dual_coef: Floats,
        fitted: Floats,
        weights: Floats,
        products: Callable[[Indices], Floats],
    ) -> Floats:
        """Return the values to start from at a solution that was found with other weights.

        Parameters
        ----------
        dual_coef, fitted : ndarray of shape (n_samples, n_outputs)
            The solution.
        weights : ndarray of shape (n_kernels,)
            Weights that it was found with.
        products : callable
            Returns ``K_j @ dual_coef`` of some kernels.
        """

    @abstractmethod
    def function(
        self,
        dual_coef: Floats,
        fitted: Floats,
        which: Indices,
        quadratic_forms: Floats,
        columns: Floats | None = None,
    ) -> KernelFunction:
        """Return the function of a solution, with upper bounds of its norms.

        Parameters
        ----------
        dual_coef, fitted : ndarray of shape (n_samples, n_outputs)
            The solution.
        which : ndarray of int
            Kernels, those with a weight among them.
        quadratic_forms : ndarray of shape (len(which),)
            Theirs.
        columns : ndarray of shape (n_columns, n_outputs), optional
            The function as weights of the columns of a Nystroem bank, whose values are ``fitted``.
        """

    def remember(self, dual_coef: Floats, scores: Floats) -> None:
        """Keep what an inner solver computed for the quadratic forms of its solution."""


class KernelCollection(ABC):
    """Kernels over the training rows, as every bank offers them.

    Searches over products, conjunctions and paths rely on these methods alone; their kernels are
    exact, and have neither scales nor matrices of their own.
    """

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_kernels(self) -> int:
        """Number of kernels."""

    @abstractmethod
    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        """Return ``tr(V' K_j V)`` of some kernels, all by default; never negative."""

    @abstractmethod
    def diagonal_sums(self, shares: Floats) -> Floats:
        """Return ``sum_i shares_i K_j[i, i]`` of every kernel."""

    @abstractmethod
    def combine(self, weights: Floats) -> KernelOperator:
        """Return the weighted sum of the kernels."""


class Bank(KernelCollection):
    """All kernels of a fit over the training rows, multiplied by normalising `scales`.

    All methods refer to the normalised kernels.

    **Approximation.** Kernels may be held approximately: ``K_j = held_j + E_j`` with ``E_j``
    positive semi-definite up to rounding. `residual_forms` bounds what storage leaves out and
    belongs into every bound. `form_errors` bounds the rest (single precision, landmarks), which is
    small: it is added once to the final bounds, and replaced by `exact_forms` where it matters.
    """

    kernels: Sequence[Kernel]
    scales: Floats  # a normalised kernel is scales_j * K_j
    dtype: Any  # of storage

    # Share of the tolerance that is reserved for the correction by `form_errors` after the last
    # step; zero where bounds are corrected whenever the tolerance is met.
    correction_share: float = 0.0
    workspace: Workspace | None = None  # as that of `KernelOperator`

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return len(self.kernels)

    @property
    def n_features(self) -> int | None:
        """Number of Nystroem features per row; None where kernels are held exactly."""
        return None

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory or disk space that the kernels take."""

    @abstractmethod
    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        """Return ``K_j[rows] V``, of shape (len(which), n_rows, n_outputs); all rows by default."""

    def rough_products(self, V: Floats, which: Indices, rows: Indices) -> Floats:
        """Return `products` for a step that proves nothing, in single precision where cheaper."""
        return self.products(V, which, rows)

    @abstractmethod
    def traces(self, *, centred: bool = False) -> Floats:
        """Return the traces of the normalised kernels."""

    def trace_bounds(self, *, centred: bool) -> Floats:
        """Bound the traces, of the centred kernels where these are known."""
        return self.traces(centred=centred)

    @property
    @abstractmethod
    def is_constant(self) -> Bools:
        """Which kernels are known to be constant, so that an intercept leaves nothing of them."""

    @abstractmethod
    def combine(self, weights: Floats, *, coarse: bool = False) -> WeightedSum:
        """Return the weighted sum of the normalised kernels, evaluated lazily.

        Where ``coarse``, factors keep only the leading columns, which hold 95 % of their traces:
        enough for a first guess of the coefficients, at a fraction of the cost.
        """

    @abstractmethod
    def take(self, rows: Indices) -> Bank:
        """Return the same kernels, with the same scales, over some of the rows."""

    @abstractmethod
    def subset(self, which: Indices) -> Bank:
        """Return some of the kernels, sharing memory."""

    @property
    @abstractmethod
    def leaves_out(self) -> bool:
        """Whether `residual_forms` are positive."""

    @abstractmethod
    def residual_forms(self, V: Floats) -> Floats:
        """Bound ``tr(V' E_j V)`` of what the storage of kernel j leaves out."""

    @property
    def rounded(self) -> Bools:
        """Which kernels `exact_product` evaluates because storage rounds them."""
        return np.zeros(self.n_kernels, dtype=bool)

    @abstractmethod
    def form_errors(self, V: Floats, quadratic_forms: Floats) -> Floats:
        """Bound how far `quadratic_forms` are from those of `exact_forms`, at no cost."""

    @property
    def complete(self) -> Bools:
        """Which kernels have `exact_forms` that are exact to rounding."""
        return np.ones(self.n_kernels, dtype=bool)

    @abstractmethod
    def exact_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        """Return `quadratic_forms` from the kernels themselves, or bounds of them from above."""

    @abstractmethod
    def exact_product(
        self, weights: Floats, V: Floats, quadratic_forms: Floats | None = None
    ) -> Floats:
        """Return ``sum_j weights_j K_j V`` from the kernels themselves.

        The array ``quadratic_forms`` receives those of the weighted kernels that are `rounded`, at
        no extra cost.
        """

    @property
    @abstractmethod
    def refinement(self) -> float | None:
        """Factor by which a smaller tolerance would make the bank exact; None if none does."""

    @abstractmethod
    def summary(self) -> list[dict[str, Any]]:
        """Describe every kernel: name, storage form, rank, relative trace left out."""

    def values(self, columns: Floats) -> Floats:
        """Return the values at the rows of a function given by weights of Nystroem columns."""
        raise NotImplementedError

    def value_rounding(self, columns: Floats, slopes: Floats) -> float:
        """Bound ``sum_i slopes_i |f_i - g_i|``, g the values of f that storage rounded."""
        raise NotImplementedError

    @abstractmethod
    def predictor(
        self, support: Indices, which: Indices, columns: Floats | None = None
    ) -> Predictor:
        """Return what predicts: the support rows for the kernels ``which``, or a function.

        Parameters
        ----------
        support : ndarray of int
            Rows with dual coefficients.
        which : ndarray of int
            Kernels with a weight.
        columns : ndarray of shape (n_columns, n_outputs), optional
            The function as weights of the columns of a Nystroem bank.
        """
