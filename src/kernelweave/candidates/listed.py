"""A list of kernels, priced lazily from upper bounds of their quadratic forms.

``sqrt(q_j)`` is a seminorm of the dual coefficients, so after an evaluation at ``V0``
``sqrt q_j(V) <= sqrt q_j(V0) + sqrt(trace_j) |V - V0|``. Only kernels whose bound exceeds the level
are evaluated again, and the certificate stays exact.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import Bank

from .base import Candidates, Priced


class Listed(Candidates):
    """All kernels of a bank, priced lazily.

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
        self.quadratic_forms = np.full(bank.n_kernels, np.inf)  # at the last evaluation
        self.places: list[Floats] = []  # dual coefficients of past evaluations
        self.place = np.zeros(bank.n_kernels, dtype=np.intp)
        self.n_passes = 0.0  # passes over the whole bank

    def read(self, V: Floats, which: Indices | None = None) -> Floats:
        """Evaluate quadratic forms (all by default) and store them."""
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
        """Bound every quadratic form at ``V`` from the last evaluations."""
        if not self.places:
            return self.quadratic_forms
        moved = np.zeros(len(self.places))
        for k in np.unique(self.place):
            moved[k] = np.linalg.norm(V - self.places[k])
        away = moved[self.place]
        bounds = (np.sqrt(self.quadratic_forms) + self.roots * away) ** 2
        # A form evaluated at V itself is exact; its root squared would round once more.
        return np.where(away > 0, bounds, self.quadratic_forms)

    def price(self, V: Floats, level: float) -> Priced:
        bounds = self.bounds(V).copy()
        doubtful = np.flatnonzero(bounds > level)
        if len(doubtful):
            bounds[doubtful] = self.read(V, doubtful)
        ids = doubtful[bounds[doubtful] > level]
        ids = ids[np.argsort(-bounds[ids], kind="stable")]
        # Kernels that were not evaluated are below the level by their bounds.
        return Priced(ids, bounds[ids], float(max(level, bounds.max(initial=0.0))))
