"""Base class of the classifiers that average kernel ridge models by leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._dask import gather
from kernelweave._memory import parse_bytes
from kernelweave._progress import Counter
from kernelweave._types import Floats, Indices
from kernelweave.banks import Views, cross_products, make_bank
from kernelweave.banks.nystroem.landmarks import LandmarkFunction
from kernelweave.banks.protocol import Predictor
from kernelweave.banks.row_source import RowSource
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel, KernelFamily, complete_ladder, mixed_ladder
from kernelweave.kernels.base import take
from kernelweave.kernels.table import Columns, read_table
from kernelweave.ridge import RidgeAverage, average_ridges
from kernelweave.ridge.leave_one_out import spectra_pieces
from kernelweave.ridge.nystroem import average_ridges_nystroem, uses_nystroem

from .base import BlockFunction
from .classifier import BaseClassifier
from .label_quality import LabelQuality
from .targets import finite_floats

_BANK_TOL = 1e-4  # kernels are stored to a hundred-thousandth of it

# Fitted attributes of every average in a model file.
AVERAGE = {
    "dual_coef_": "float[kernels, outputs, support]",
    "ridge_weights_": "float[kernels, ridges]",
    "ridges_": "float[ridges]",
    "label_quality_": "quality[rows]",
    "loo_scores_": "float[rows, outputs?]",
    "loo_error_": "real",
    "_given": "codes[rows]",
    "_suggested": "codes[rows]",
}


@dataclass(frozen=True)
class FittedAverage:
    """An average of ridge models over the training rows."""

    held: Any  # the bank, or the Nystroem ridge: kernels and scales
    average: RidgeAverage
    predictor: Callable[[], Predictor]  # of the coefficients that the estimator has stored


@dataclass(frozen=True)
class WholeTables(KernelFamily):
    """Kernels that see all columns: numbers as they are, mixed columns encoded."""

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``."""
        numbers = all(read_table(X, str(self)).numeric())
        family = complete_ladder() if numbers else mixed_ladder(per_feature=False)
        return family.expand(X, sample_weight)

    def on(self, columns: Columns) -> KernelFamily:  # type: ignore[override]
        """Return `complete_ladder` on other columns."""
        return complete_ladder(columns=columns)

    def with_missing(self, rule: str) -> KernelFamily:
        """Return `complete_ladder` with a rule for missing values."""
        return complete_ladder(missing=rule)


class RidgeAverageClassifier(LabelQuality, BaseClassifier):
    """Base of the classifiers whose models are averages over kernels and ridges.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        Each should be able to classify alone. None: `complete_ladder`; of frames with other columns
        than numbers `mixed_ladder` without kernels on single columns.
    ridges : array of float, optional
        Ridges to average over, in units of eigenvalues of a kernel of unit mean diagonal; 16 from
        0.01 to 1000 (above 2000 rows: to their number).
    temperature : float
        Large values give models with larger leave-one-out errors more weight.
    floor : float
        Between 0 and 1: the share of the average that is divided equally among the kernels.

    Attributes
    ----------
    ridge_weights_ : ndarray of shape (n_kernels, n_ridges)
        Share of every model.
    ridges_ : ndarray of shape (n_ridges,)
        Ridges.
    support_ : ndarray of shape (n_support,)
        Training rows that prediction needs: all of them up to 2000 rows, landmarks from 5000 on.
    loo_error_ : float
        Averaged mean squared leave-one-out error.
    """

    _takes_features = True

    ridges: Any
    temperature: float
    floor: float
    verbose: int

    def _default_kernels(self) -> Any:
        return WholeTables()

    def _read_ridges(self) -> Floats | None:
        if self.ridges is None:
            return None
        ridges = finite_floats(self.ridges)
        if ridges.ndim != 1 or not ridges.size or not (ridges > 0).all():
            raise InputError(
                f"ridges: must be one or more finite numbers > 0, got {self.ridges!r}."
            )
        return ridges

    def _fit_average(
        self,
        kernels: list[Kernel],
        X: Any,
        Y: Floats,
        *,
        dense: bool = False,
        joint: bool = False,
        power: int = 1,
        beside: dict[str, float] | None = None,
    ) -> FittedAverage:
        """Return the average of ridge models with each kernel for targets Y.

        From 5000 rows on (from 2000, where memory is short) each kernel has a Nystroem
        approximation, unless ``dense``. ``beside`` is further memory of the exact computation.
        """
        n, n_spectra = len(Y), 1 if joint else len(kernels)
        memory = parse_bytes(self.memory_limit)
        options: dict[str, Any] = {
            "ridges": self._read_ridges(),
            "temperature": self.temperature,
            "floor": self.floor,
            "joint": joint,
            "power": power,
            "memory": memory,
        }
        dense = dense or any(kernel.is_precomputed for kernel in kernels)
        if not dense and uses_nystroem(n_spectra, n, memory):
            report = Counter(self.verbose, 3, "passes over the rows")
            fitted = average_ridges_nystroem(kernels, X, Y, report=report, **options)
            return FittedAverage(
                fitted,
                fitted.average,
                lambda: Predictor(function=self._function_of(fitted.source)),
            )
        bank = make_bank(
            kernels,
            gather(X),
            tol=_BANK_TOL,
            memory_limit=self.memory_limit,
            beside={**spectra_pieces(n_spectra, n), **(beside or {})},
        )
        report = Counter(self.verbose, bank.n_kernels, "kernels")
        return FittedAverage(
            bank,
            average_ridges(bank, Y, report=report, **options),
            lambda: bank.predictor(self.support_, np.flatnonzero(self.weights_)),
        )

    def _keep_average(self, fitted: FittedAverage, targets: Floats) -> Floats:
        """Store the averaged models of centred targets; return their intercepts."""
        held, average = fitted.held, fitted.average
        self.kernels_: list[Kernel] = list(held.kernels)
        self.scales_ = held.scales
        self.weights_ = average.kernel_weights
        self.ridge_weights_ = average.ridge_weights
        self.ridges_ = average.ridges
        self.loo_error_ = self.objective_ = average.error
        self.duality_gap_ = float("nan")
        self.dual_coef_, shift, spread = average.coefficients(targets)
        self.support_ = average.support()
        self.contributions_ = spread / (spread.sum() or 1.0)
        return shift

    def _function_of(self, source: RowSource) -> LandmarkFunction:
        """Return a function of the landmarks of each kernel, not of those of all kernels."""
        views = source.take(self.support_)
        active = np.flatnonzero(self.weights_)
        own: list[Indices] = [np.flatnonzero(self.dual_coef_[j].any(axis=0)) for j in active]
        pairs = list(zip(active, own, strict=True))
        return LandmarkFunction(
            active,
            tuple(take(views[int(j)], rows) for j, rows in pairs),
            tuple(
                np.ascontiguousarray(self.scales_[j] * self.dual_coef_[j][:, rows].T)
                for j, rows in pairs
            ),
        )

    def _support_coefs(self) -> Floats:
        active = np.flatnonzero(self.weights_)
        return np.asarray(self.dual_coef_[active] * self.scales_[active][:, None, None])

    def _values(self, block: BlockFunction, rows: Views) -> Floats:
        return cross_products(self._active()[0], self._support_coefs(), rows, self._support_views)
