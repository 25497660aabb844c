"""A list of kernels with upper bounds of their quadratic forms, read only where needed."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import Bank

from .base import Candidates, Priced


class Listed(Candidates):
    """All kernels of a bank, priced lazily.

    ``sqrt(q_j)`` is a seminorm of the coefficients, so after a reading at ``V0``
    ``sqrt q_j(V) <= sqrt q_j(V0) + sqrt(trace_j) |V - V0|``: only kernels whose bound exceeds the
    level are read again, and the certificate stays exact.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    centred : bool
        Whether coefficients sum to zero, so that the smaller trace of the centred Gram serves where
        the bank knows it.
    """

    def __init__(self, bank: Bank, *, centred: bool) -> None:
        self.bank = bank
        self.roots = np.sqrt(bank.trace_bounds(centred=centred))
        self.quadratic_forms = np.full(bank.n_kernels, np.inf)  # last reading
        self.places: list[Floats] = []  # coefficients at which something was read
        self.place = np.zeros(bank.n_kernels, dtype=np.intp)
        self.n_passes = 0.0  # in passes over the whole bank

    def read(self, V: Floats, which: Indices | None = None) -> Floats:
        """Read kernels (all by default) and remember."""
        quadratic_forms = self.bank.quadratic_forms(V, which)
        self.note(V, np.arange(self.bank.n_kernels) if which is None else which, quadratic_forms)
        self.n_passes += len(quadratic_forms) / self.bank.n_kernels
        return quadratic_forms

    def note(self, V: Floats, which: Indices, quadratic_forms: Floats) -> None:
        """Store quadratic forms computed by the caller."""
        self.quadratic_forms[which] = quadratic_forms
        self.place[which] = len(self.places)
        self.places.append(V)

    def bounds(self, V: Floats) -> Floats:
        """Bound every form at ``V`` from the last readings."""
        if not self.places:
            return self.quadratic_forms
        moved = np.zeros(len(self.places))
        for k in np.unique(self.place):
            moved[k] = np.linalg.norm(V - self.places[k])
        away = moved[self.place]
        bounds = (np.sqrt(self.quadratic_forms) + self.roots * away) ** 2
        return np.where(
            away > 0, bounds, self.quadratic_forms
        )  # where read, without another rounding

    def price(self, V: Floats, level: float) -> Priced:
        bounds = self.bounds(V).copy()
        doubtful = np.flatnonzero(bounds > level)
        if len(doubtful):
            bounds[doubtful] = self.read(V, doubtful)
        ids = doubtful[bounds[doubtful] > level]
        ids = ids[np.argsort(-bounds[ids], kind="stable")]
        # What was left unread is below the level by its bound.
        return Priced(ids, bounds[ids], float(max(level, bounds.max(initial=0.0))))
