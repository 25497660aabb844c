"""Kernels that are not active, and their price (as in column generation)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats, Indices


@dataclass(frozen=True)
class Priced:
    """Which kernels stand out for the present coefficients.

    Parameters
    ----------
    ids : ndarray of int
        Kernels whose form exceeds the level asked about, largest first.
    quadratic_forms : ndarray
        Their forms.
    bound : float
        No kernel, read or not, has a larger form.
    complete : bool
        Whether `bound` really covers every kernel; False forbids certifying.
    """

    ids: Indices
    quadratic_forms: Floats
    bound: float
    complete: bool = True


class Candidates(ABC):
    """A source of kernels, asked which of them deserve a weight."""

    @abstractmethod
    def price(self, V: Floats, level: float) -> Priced:
        """Find the kernels with ``tr(V' K_j V) > level``."""


@dataclass(frozen=True)
class Grown:
    """Nodes of a graph that are not active and stand out for the present coefficients.

    Parameters
    ----------
    nodes : sequence
        Nodes whose ratio exceeds the level asked about, largest first; perhaps only the largest.
    ratios : ndarray
        Their forms divided by their squared costs.
    visited : int
        Nodes looked at.
    complete : bool
        Whether no other node has a larger ratio than the first; False forbids certifying.
    """

    nodes: Sequence[Any]
    ratios: Floats
    visited: int
    complete: bool = True


class Growing(ABC):
    """A graph of kernels of which a part, closed under ancestors, is active."""

    nodes: list[Any]

    @property
    def is_exact(self) -> bool:
        """Whether quadratic forms and weighted sums are exact up to rounding."""
        return True

    @property
    @abstractmethod
    def costs(self) -> Floats:
        """Cost of every active node."""

    @property
    @abstractmethod
    def ancestors(self) -> csr_array[np.float64]:
        """Ones at ``[w, v]`` where ``v`` is ``w`` or an ancestor of it."""

    @abstractmethod
    def combine(self, weights: Floats, n_related: int = 1) -> Any:
        """Return the weighted sum of the active kernels, for so many related outputs."""

    @abstractmethod
    def quadratic_forms(self, V: Floats) -> Floats:
        """Return ``tr(V' K_w V)`` of the active kernels."""

    def form_bounds(self, V: Floats) -> Floats:
        """Bound ``tr(V' K_w V)`` of the exact active kernels, their rounding apart."""
        return self.quadratic_forms(V)

    @abstractmethod
    def diagonal_sums(self, shares: Floats) -> Floats:
        """Return ``sum_i shares_i K_w[i, i]`` of the active kernels."""

    def outside_sum(self, shares: Floats) -> float:
        """Bound ``sum_i shares_i K_w[i, i] / cost_w^2`` of nodes not active.

        Zero by default: it is no larger than that of the active nodes.
        """
        return 0.0

    @abstractmethod
    def search(self, V: Floats, level: float, most: int, effort: float = 1.0) -> Grown:
        """Find nodes not active whose ``tr(V' K_w V) / cost_w^2`` exceeds the level.

        Where a limit says how many nodes are looked at, ``effort`` is the share of it to use.
        """

    @abstractmethod
    def sufficient(self, V: Floats, level: float, most: int) -> Grown:
        """Find nodes not active, with all parents active, by the published condition.

        The ratio of such a node ``u`` is the sum of ``tr(V' K_w V) / (sum of costs between u and
        w)^2`` over all ``w`` below it, equation (15) of [1]_. None above the level proves as much
        as an empty `search`, but these ratios are far larger.

        References
        ----------
        .. [1] P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel
               learning", JMLR 16, 2015.
        """

    @abstractmethod
    def add(self, nodes: Iterable[Any], most: int | None = None) -> int:
        """Activate nodes with all their ancestors; return how many came in.

        At most ``most`` of them come in, ancestors first.
        """

    @abstractmethod
    def is_source(self, node: Any) -> bool:
        """Tell whether all parents of a node are active."""
