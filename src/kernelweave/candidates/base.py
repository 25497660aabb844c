"""Kernels that are not in play yet, and what they could still contribute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from kernelweave._types import Floats, Indices


@dataclass(frozen=True)
class Priced:
    """Which kernels stand out for the present coefficients.

    Parameters
    ----------
    ids : ndarray of int
        Kernels whose form exceeds the level asked about, largest first.
    forms : ndarray
        Their forms.
    bound : float
        No kernel, read or not, has a larger form.
    complete : bool
        Whether `bound` really covers every kernel; False forbids certifying.
    """

    ids: Indices
    forms: Floats
    bound: float
    complete: bool = True


class Candidates(ABC):
    """A source of kernels, asked which of them deserve a weight."""

    @abstractmethod
    def price(self, V: Floats, level: float) -> Priced:
        """Find the kernels with ``tr(V' K_j V) > level``."""
