"""Ridge regression of a learned kernel on all rows: Cholesky, conjugate gradients or Nystroem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._dask import PartedTable
from kernelweave._types import Floats, Indices
from kernelweave.errors import MemoryBudgetError, warn
from kernelweave.kernels.metric import MetricLaplacian

from .conjugate import UpperKernel, full_bytes, solve_full, stratified_folds
from .landmarks import (
    choose_landmarks,
    nystroem_bytes,
    nystroem_features,
    solve_features,
    solve_nystroem,
)
from .metric import MetricStep
from .parts import Marks, PartedFeatures

_MATRICES = 4  # of n x n numbers that an exact fit holds at once
CANDIDATES = 4  # rows among which landmarks are chosen, in multiples of their number
LANDMARKS = (1000, 4000)  # numbers of landmarks to start with and to end at, where not given
_WORTH = 0.002  # fall of the relative error from half of the landmarks to all that asks for more
_RIDGES = np.geomspace(1e-4, 10.0, 11)  # of Nystroem features; chosen again on all rows
_FULL_RIDGES = np.geomspace(1e-3, 10.0, 9)  # of conjugate gradients, which are slow below


@dataclass(frozen=True)
class RowLimits:
    """Which solver is used for how many rows."""

    # max_exact, max_full, metric_rows: as in `MetricKernelRegressor`
    max_exact: int
    max_full: int
    landmarks: tuple[int, int]  # least and largest number
    metric_rows: int
    memory: float  # limit in bytes

    def solver(self, n: int, n_outputs: int, *, parted: bool = False) -> str:
        """Return the solver for n rows: "cholesky", "conjugate gradients" or "nystroem".

        The rows of a parted table stay where they are, and only landmarks are held here.
        """
        marks = min(self.landmarks[0], n)
        exact = n <= self.max_exact
        part = n if exact else min(n, self.metric_rows)
        self._require(f"{_MATRICES} matrices of {part} rows", _MATRICES * 8.0 * part * part)
        if exact:
            return "cholesky"
        if n <= self.max_full and not parted:
            need = full_bytes(n, marks, n_outputs, len(_FULL_RIDGES))
            if need <= self.memory:
                return "conjugate gradients"
            warn(
                f"memory_limit: the kernel of all {n} rows needs {need / 1e9:.3g} GB, and the "
                f"limit is {self.memory / 1e9:.3g} GB; {marks} Nystroem landmarks stand for them."
            )
        need = nystroem_bytes(0 if parted else n, marks, n_outputs, len(_RIDGES))
        need += 16.0 * len(_RIDGES) * n * n_outputs if parted else 0.0
        self._require(f"{marks} features of {n} rows", need)
        return "nystroem"

    def affordable_landmarks(self, n: int, n_outputs: int) -> tuple[int, int]:
        """Return the least number of landmarks, and the largest one that the memory holds."""
        least, most = self.landmarks
        while most > least and nystroem_bytes(n, most, n_outputs, len(_RIDGES)) > self.memory:
            most //= 2
        return least, max(least, most)

    def _require(self, what: str, need: float) -> None:
        if need > self.memory:
            raise MemoryBudgetError(
                f"memory_limit: {what} need {need / 1e9:.3g} GB, but the limit is "
                f"{self.memory / 1e9:.3g} GB. Hint: lower max_exact, metric_rows or n_landmarks."
            )


@dataclass(frozen=True, eq=False)
class RidgeFunction:
    """The fitted function ``sum_m dual_coef[m] k(x, x_m) + intercept``."""

    support: Indices  # rows that the function is a sum over
    # dual_coef, intercept: coefficients of shape (n_support, n_outputs), and intercepts
    dual_coef: Floats
    intercept: Floats
    # (n_samples, n_outputs): of left-out rows, or of left-out folds where conjugate gradients were
    # used.
    residuals: Floats
    ridge: float
    error: float  # weighted mean of the squared residuals, relative to the variance of the targets
    left_out: float  # share of the trace that landmarks leave out


def fit_all_rows(
    solver: str,
    step: MetricStep,
    kernel: MetricLaplacian,
    rows: Floats,
    Y: Floats,
    weight: Floats,
    landmarks: tuple[int, int],
    random: np.random.RandomState,
) -> RidgeFunction:
    """Fit the function to all encoded rows with the kernel of a step.

    The number of landmarks is doubled, within limits, while it pays.
    """
    n = len(rows)
    if solver == "cholesky":
        found = step.solution
        parts = (found.dual_coef, found.intercept, found.loo_residuals)
        return RidgeFunction(np.arange(n), *parts, step.ridge, step.loo_error, 0.0)

    def block(a: Indices, b: Indices) -> Floats:
        return kernel.block(rows[a], rows[b])

    def draw(n_landmarks: int) -> Indices:
        return np.sort(random.choice(n, min(n, CANDIDATES * n_landmarks), replace=False))

    least, most = landmarks
    if solver == "nystroem":
        marks, half = solve_nystroem(block, Y, weight, draw(least), least, _RIDGES)
        while 2 * least <= most and marks.loo_error < half() - _WORTH:
            least *= 2
            del marks, half  # before the features of more landmarks
            marks, half = solve_nystroem(block, Y, weight, draw(least), least, _RIDGES)
        parts = (marks.dual_coef, marks.intercept, marks.loo_residuals)
        return RidgeFunction(marks.landmarks, *parts, marks.ridge, marks.loo_error, marks.left_out)
    features = nystroem_features(block, n, draw(least), least)[2]
    folds = stratified_folds(Y, random)
    K = UpperKernel.compute(block, n)
    full = solve_full(K, features, Y, weight, _FULL_RIDGES, folds)
    parts = (full.dual_coef, full.intercept, full.residuals)
    return RidgeFunction(np.arange(n), *parts, full.ridge, full.error, 0.0)


def fit_parts(
    X: PartedTable,
    sample: Indices,
    rows: Floats,
    kernel: MetricLaplacian,
    Y: Floats,
    weight: Floats,
    n_landmarks: int,
) -> RidgeFunction:
    """Fit the function to all rows of a Dask table; landmarks are among the sampled rows.

    ``sample`` and ``rows`` are the numbers of the sampled rows, and these rows encoded. The rest is
    as in `fit_all_rows`; weights may be zero.
    """
    places, triangle = choose_landmarks(
        lambda a, b: kernel.block(rows[a], rows[b]), np.arange(len(rows)), n_landmarks
    )
    features = PartedFeatures(X, Marks(kernel, rows[places], triangle))
    found = solve_features(features, Y, weight, sample[places], triangle, _RIDGES)
    parts = (found.dual_coef, found.intercept, found.loo_residuals)
    return RidgeFunction(found.landmarks, *parts, found.ridge, found.loo_error, found.left_out)
