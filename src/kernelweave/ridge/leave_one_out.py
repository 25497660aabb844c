"""Ridge regression with every kernel and every ridge, averaged by leave-one-out errors.

With the centred kernel ``K = U diag(d) U'`` the hat matrix of ridge regression with an intercept is
``H = 1 1'/n + U diag(s) U'`` with ``s = d / (d + ridge)``, and the prediction for row i without
row i is ``((H y)_i - H_ii y_i) / (1 - H_ii)``: one eigendecomposition serves all ridges and
targets. Models are averaged with weights that fall with their leave-one-out errors.

References
----------
Allen (1974), The relationship between variable selection and data augmentation and a method for
prediction, Technometrics 16 (the PRESS statistic).
Craven and Wahba (1979), Smoothing noisy data with spline functions, Numerische Mathematik 31.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelBank, check_memory

from .spectrum import (
    DENSE_ROWS,
    MAX_RANK,
    Directions,
    Spectrum,
    distinct_kernels,
    kernel_spectrum,
    varied_kernels,
)

LEVERAGE_GAP = 1e-10  # a row may determine its own fitted value up to this


def default_ridges(n_samples: int) -> Floats:
    """Return the ridges that are tried: from nearly none to one that leaves the mean only.

    Parameters
    ----------
    n_samples : int
        Number of rows, to which the eigenvalues of a kernel of unit mean diagonal sum.
    """
    return np.geomspace(1e-2, 1e3 if n_samples <= 2000 else float(n_samples), 16)


def inverse(values: Floats, ridges: Floats, power: int) -> Floats:
    """Return the factors, of shape (n_ridges, rank), from targets to dual coefficients.

    For eigenvalues d. ``power=1``: ``1 / (d + ridge)``, ridge regression with the kernel.
    ``power=2``: ``d / (d^2 + ridge^2)``, ridge regression on columns that hold the kernel's values
    with every training row; it keeps more of the leading directions and less of the others, where
    wrong labels are fitted. Times d, a factor is the share of the targets that is fitted.
    """
    columns = ridges[:, None]
    return np.asarray(values ** (power - 1) / (values**power + columns**power))


def loo_values(spectrum: Spectrum, Y: Floats, ridges: Floats, power: int = 1) -> Floats:
    """Return the leave-one-out predictions, of shape (n_ridges, n_samples, n_outputs).

    With ``power=2`` the columns stay as they are when a row is left out: they depend on the row,
    but not on its target.
    """
    U, means = spectrum.vectors, Y.mean(axis=0)
    shrink = spectrum.values * inverse(spectrum.values, ridges, power)
    return left_out(U, shrink, U.T @ (Y - means), means, Y, len(Y))


def left_out(
    T: Floats, factors: Floats, along: Floats, means: Floats, Y: Floats, n_samples: int
) -> Floats:
    """Return leave-one-out values of some rows, for hat matrices ``1/n + T diag(factors) T'``.

    ``T`` and ``Y`` are these rows; ``along = T' (Y - means)``, ``means`` and ``n_samples`` are of
    all rows; ``factors`` has a row for every ridge.
    """
    leverages = (1.0 / n_samples + (T * T) @ factors.T).T[:, :, None]
    columns = factors.T[:, :, None] * along[:, None]  # one product for all ridges and outputs
    fitted = T @ columns.reshape(T.shape[1], -1)
    out = means + fitted.reshape(len(T), len(factors), -1).transpose(1, 0, 2)
    out -= leverages * Y
    out /= np.maximum(1.0 - leverages, LEVERAGE_GAP)
    return np.asarray(out)


def means_of_others(Y: Floats) -> Floats:
    """Return for each row the means of all other rows."""
    return np.asarray((Y.sum(axis=0) - Y) / max(len(Y) - 1, 1))


def averaging_weights(errors: Floats, n_samples: int, temperature: float, floor: float) -> Floats:
    """Return the weight of each (kernel, ridge) for leave-one-out errors e; they sum to one.

    A share ``floor`` is divided equally among the kernels, each at its best ridge; the rest is
    proportional to ``(e_min / e)^(n / (2 temperature))``, a tempered likelihood of the residuals.
    """
    logs = np.log(np.maximum(errors, 1e-300))
    soft = np.exp(-(n_samples / (2.0 * temperature)) * (logs - logs.min()))
    weights: Floats = (1.0 - floor) * soft / soft.sum()
    n_kernels = len(errors)
    weights[np.arange(n_kernels), errors.argmin(axis=1)] += floor / n_kernels
    return weights


class Eigen(Protocol):
    """Eigendecompositions: one per distinct kernel, or a single one of their mean."""

    @property
    def spectra(self) -> Sequence[Directions]: ...

    def loo(self, Y: Floats, weights: Floats, ridges: Floats, power: int) -> Floats:
        """Return leave-one-out values, averaged with a weight for each spectrum and ridge."""

    def errors(self, Y: Floats, ridges: Floats, power: int) -> Floats:
        """Return the leave-one-out errors, summed over outputs, of each spectrum and ridge."""

    def coordinates(self, V: Floats) -> Sequence[Floats]:
        """Return ``U' V`` of every spectrum."""

    def loo_map(self, weights: Floats, ridges: Floats, power: int) -> Callable[[Floats], Floats]:
        """Return the linear function from targets to averaged leave-one-out values.

        They are less the means of the other rows: these fall where the row's own target rises, so
        they would give it away.
        """


@dataclass(frozen=True)
class HeldSpectra:
    """Spectra with their eigenvectors in memory."""

    spectra: tuple[Spectrum, ...]

    def loo(self, Y: Floats, weights: Floats, ridges: Floats, power: int) -> Floats:
        parts = run_each(
            lambda pair: np.tensordot(pair[1], loo_values(pair[0], Y, ridges, power), axes=1),
            zip(self.spectra, weights, strict=True),
        )
        return np.asarray(np.sum(parts, axis=0))

    def errors(self, Y: Floats, ridges: Floats, power: int) -> Floats:
        found = run_each(lambda one: loo_values(one, Y, ridges, power), self.spectra)
        return _errors(Y, found)

    def coordinates(self, V: Floats) -> list[Floats]:
        return [spectrum.vectors.T @ V for spectrum in self.spectra]

    def loo_map(self, weights: Floats, ridges: Floats, power: int) -> Callable[[Floats], Floats]:
        """Hold the map as a matrix: its diagonal is exactly zero, and it serves many targets."""
        total: Floats | None = None
        for spectrum, row in zip(self.spectra, weights, strict=True):
            U, n = spectrum.vectors, len(spectrum.vectors)
            shrink = spectrum.values * inverse(spectrum.values, ridges, power)
            leverages = 1.0 / n + (U * U) @ shrink.T
            factors = row / np.maximum(1.0 - leverages, LEVERAGE_GAP)  # (n, n_ridges)
            part = (U * (factors @ shrink)) @ U.T
            part += factors.sum(axis=1, keepdims=True) / n
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        total -= 1.0 / max(len(total) - 1, 1)
        np.fill_diagonal(total, 0.0)
        held = total
        return lambda Y: np.asarray(held @ Y)


@dataclass(frozen=True)
class RidgeAverage:
    """An average of ridge models over kernels and ridges."""

    n_kernels: int  # number of kernels of the bank
    # (n_kernels,): for each spectrum the combination of the bank's kernels that it belongs to.
    shares: tuple[Floats, ...]
    eigen: Eigen  # spectra: one per distinct kernel, or a single one of their mean
    ridges: Floats  # (n_ridges,)
    errors: Floats  # (n_spectra, n_ridges): leave-one-out errors, summed over outputs
    weights: Floats  # (n_spectra, n_ridges): weight of each model
    scores: Floats  # (n_samples, n_outputs): averaged leave-one-out values
    # (n_samples, n_outputs): those of power 1 with no share divided equally, which useless kernels
    # do not pull to the mean: their range estimates the share of wrong labels best.
    soft_scores: Floats
    power: int = 1  # of the models, see `inverse`

    @property
    def error(self) -> float:
        """The averaged leave-one-out error of the models."""
        return float((self.weights * self.errors).sum())

    @property
    def kernel_weights(self) -> Floats:
        """Weights of the kernels of the bank, summed over ridges."""
        return np.asarray(self.ridge_weights.sum(axis=1))

    @property
    def ridge_weights(self) -> Floats:
        """Weight of each (kernel of the bank, ridge)."""
        out = np.zeros((self.n_kernels, len(self.ridges)))
        for share, row in zip(self.shares, self.weights, strict=True):
            out += np.outer(share / share.sum(), row)
        return out

    def loo(self, Y: Floats) -> Floats:
        """Return averaged leave-one-out values for other targets, with the same weights."""
        return self.eigen.loo(Y, self.weights, self.ridges, self.power)

    def loo_map(self) -> Callable[[Floats], Floats]:
        """Return the function from targets to `loo` less `means_of_others`; it is linear."""
        return self.eigen.loo_map(self.weights, self.ridges, self.power)

    def weighted_for(self, Y: Floats, temperature: float, floor: float) -> RidgeAverage:
        """Return the average for other targets, with the weights that belong to them.

        `soft_scores` remain those of the first targets.
        """
        errors = self.eigen.errors(Y, self.ridges, self.power)
        weights = averaging_weights(errors, len(Y), temperature, floor)
        scores = self.eigen.loo(Y, weights, self.ridges, self.power)
        return replace(self, errors=errors, weights=weights, scores=scores)

    def support(self) -> Indices:
        """Return the training rows with coefficients."""
        return np.unique(np.concatenate([spectrum.rows for spectrum in self.eigen.spectra]))

    def coefficients(self, V: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the averaged model for centred targets ``V``.

        Returns
        -------
        dual_coef : ndarray of shape (n_kernels, n_outputs, n_support)
            Coefficients of the bank's (normalised) kernels on the rows `support`.
        intercept : ndarray of shape (n_outputs,)
            To add, beside the means of the targets.
        spread : ndarray of shape (n_kernels,)
            Mean square of what each kernel adds on the training rows.
        """
        support = self.support()
        dual_coef = np.zeros((self.n_kernels, V.shape[1], len(support)))
        intercept = np.zeros(V.shape[1])
        spread = np.zeros(self.n_kernels)
        parts = zip(
            self.shares,
            self.eigen.spectra,
            self.eigen.coordinates(V),
            self.weights,
            strict=True,
        )
        for share, spectrum, along, weights in parts:
            mix = weights @ inverse(spectrum.values, self.ridges, self.power)
            g = mix[:, None] * along
            places = np.searchsorted(support, spectrum.rows)
            used = np.flatnonzero(share)
            dual_coef[np.ix_(used, np.arange(V.shape[1]), places)] += (
                share[used][:, None, None] * (spectrum.basis @ g).T
            )
            intercept -= spectrum.offsets @ g
            size = float(((spectrum.values[:, None] * g) ** 2).sum()) / len(V)
            spread += share / share.sum() * size
        return dual_coef, intercept, spread


def average_ridges(
    bank: KernelBank,
    Y: Floats,
    *,
    ridges: Floats | None = None,
    temperature: float = 4.0,
    floor: float = 0.5,
    joint: bool = False,
    power: int = 1,
    drop_copies: bool = True,
    memory: float = np.inf,
    report: Callable[[], None] | None = None,
) -> RidgeAverage:
    """Fit ridge regression with every kernel and every ridge, and average by leave-one-out error.

    Constant kernels and copies of earlier ones get no weight. There is one eigendecomposition per
    kernel, which does not depend on the targets; everything after it is in closed form.

    Parameters
    ----------
    bank : KernelBank
        The kernels; each is brought to unit mean diagonal after centring.
    Y : ndarray of shape (n_samples, n_outputs)
        Targets.
    ridges : ndarray of shape (n_ridges,), optional
        Positive; `default_ridges` by default.
    temperature, floor : float
        See `averaging_weights`.
    joint : bool
        Whether to average the kernels, not the models: a single eigendecomposition.
    power : int
        1 or 2, see `inverse`.
    drop_copies : bool
        Whether to look for copies, which is costly for hundreds of kernels.
    memory : float
        Bytes that the kernels, their eigenvectors and the computation of these may take.
    report : callable, optional
        Called after each kernel.

    Returns
    -------
    average : RidgeAverage
        The models, their weights and leave-one-out values.
    """
    n = bank.n_samples
    ridges = default_ridges(n) if ridges is None else ridges
    kept = distinct_kernels(bank) if drop_copies else varied_kernels(bank)
    sizes = bank.traces(centred=True) / n
    shares = np.zeros((len(kept), bank.n_kernels))
    shares[np.arange(len(kept)), kept] = 1.0 / sizes[kept]
    if joint:
        shares = shares.mean(axis=0, keepdims=True)
    _check_memory(len(shares), n, bank.nbytes, memory)

    def decompose(share: Floats) -> tuple[Spectrum, Floats, Floats]:
        used = np.flatnonzero(share)
        name = f"kernels[{used[0]}] = {bank.kernels[used[0]]}" if len(used) == 1 else "kernels"
        spectrum = kernel_spectrum(bank.combine(share), name)
        plain = loo_values(spectrum, Y, ridges)
        values = plain if power == 1 else loo_values(spectrum, Y, ridges, power)
        if report is not None:
            report()
        return spectrum, values, plain

    spectra, values, plain = zip(*run_each(decompose, shares), strict=True)
    errors = _errors(Y, values)
    weights = averaging_weights(errors, n, temperature, floor)
    soft = averaging_weights(_errors(Y, plain), n, temperature, 0.0)
    return RidgeAverage(
        n_kernels=bank.n_kernels,
        shares=tuple(shares),
        eigen=HeldSpectra(spectra),
        ridges=ridges,
        errors=errors,
        weights=weights,
        scores=_average(weights, values),
        soft_scores=_average(soft, plain),
        power=power,
    )


def _errors(Y: Floats, values: Sequence[Floats]) -> Floats:
    return np.array([((Y - one) ** 2).mean(axis=1).sum(axis=1) for one in values])


def _average(weights: Floats, values: Sequence[Floats]) -> Floats:
    total = np.zeros(values[0].shape[1:])
    for row, one in zip(weights, values, strict=True):
        total += np.tensordot(row, one, axes=1)
    return total


def spectra_bytes(n_spectra: int, n: int) -> float:
    """Return the memory that the eigenvectors of some kernels may need."""
    return 8.0 * n_spectra * n * (n if n <= DENSE_ROWS else min(n, MAX_RANK))


def spectra_pieces(n_spectra: int, n: int) -> dict[str, float]:
    """Return the memory of eigenvectors and of their computation."""
    at_once = min(n_spectra, _core.get_threads())
    return {
        "eigenvectors": spectra_bytes(n_spectra, n),
        # Of a matrix: itself, and twice as much for LAPACK. Of a factor: itself, a centred copy,
        # and singular vectors in LAPACK's order.
        "their computation": 3.0 * at_once * spectra_bytes(1, n),
    }


def _check_memory(n_spectra: int, n: int, held: float, memory: float) -> None:
    check_memory(
        f"The eigenvectors of {n_spectra} kernels over {n} rows need",
        {"the kernels": held, **spectra_pieces(n_spectra, n)},
        memory,
        "use fewer rows or kernels, or average the kernels in place of the models",
    )
