"""The lattice of all products of kernels from several ladders, as the user specifies it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import RBF, Kernel, KernelFamily, Overlap
from kernelweave.kernels.base import is_number
from kernelweave.kernels.given import encodes_gaps, takes_sparse, with_missing, with_targets
from kernelweave.kernels.spread import typical_distance
from kernelweave.kernels.table import columns_key, read_table


@dataclass(frozen=True)
class ProductLattice:
    """All products of kernels that take at most one from each of several ladders.

    Ladder j has rungs ``k_j0 = 1, k_j1, k_j2, ...``. The node ``v`` stands for the kernel
    ``prod_j k_(j, v_j)`` and costs ``base**(v_1 + v_2 + ...)``; above it stand all nodes that are
    no higher on any ladder. Ladders of one kernel each give all subsets of these kernels (an
    analysis of variance, if each looks at one column), ladders of powers give polynomials. The
    lattice is searched, never written out.

    Parameters
    ----------
    ladders : list, KernelFamily or None
        Of each ladder a list of its kernels, or one kernel; a family gives one ladder for all its
        kernels on the same columns, so that ``rbf_ladder([4, 1], per_feature=True)`` gives one of
        two rungs for each column. None: a Gaussian on every numeric column, with the root mean
        squared distance between two rows as width, and `Overlap` on every other.
    base : float
        Positive. What a rung multiplies the cost by; the larger, the lower the order of the
        products that are learned, and the fewer of them are looked at.
    max_order : int or None
        Kernels in a product at most; None for any number.
    max_visited : int
        Products that one search looks at before it gives up. What is learned then has no
        certificate.
    missing : {"refuse", "off", "fill", "expected"}
        The rule for missing values of kernels that have none; see the guide "Some of my data are
        missing".

    Examples
    --------
    >>> from kernelweave import RBF, Linear, ProductLattice
    >>> lattice = ProductLattice([RBF(1.0, columns=[0]), [Linear(columns=[1]), RBF(columns=[1])]])
    >>> [[str(kernel) for kernel in ladder] for ladder in lattice.expand([[0.0, 1.0]])]
    [['rbf(width=1) on column 0'], ['linear on column 1', 'rbf(width=1) on column 1']]
    """

    ladders: Any = None
    base: float = 2.0
    max_order: int | None = None
    max_visited: int = 1_000_000
    missing: str = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ladders", _read_ladders(self.ladders))
        if not is_number(self.base) or not 0 < self.base < np.inf:
            raise InputError(
                f"ProductLattice(base={self.base!r}): base must be a finite number > 0."
            )
        whole = is_number(self.max_order, Integral)
        if self.max_order is not None and not (whole and self.max_order >= 1):
            raise InputError(
                f"ProductLattice(max_order={self.max_order!r}): max_order must be a whole number "
                ">= 1, or None for products of any length."
            )
        if not is_number(self.max_visited, Integral) or self.max_visited < 1:
            raise InputError(
                f"ProductLattice(max_visited={self.max_visited!r}): max_visited must be a whole "
                "number >= 1."
            )
        RBF(missing=self.missing)  # refuses unknown rules

    @property
    def encodes_gaps(self) -> bool:
        """Whether missing values in its columns are taken."""
        return self.missing != "refuse" or encodes_gaps(self.ladders or ())

    @property
    def takes_sparse(self) -> bool:
        """Whether ``X`` may be a sparse matrix."""
        return self.missing in ("refuse", "off") and takes_sparse(self.ladders)

    def with_missing(self, rule: str) -> ProductLattice:
        """Return this lattice with a rule for missing values, unless it has one already."""
        return self if self.missing != "refuse" else replace(self, missing=rule)

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[list[Kernel]]:
        """Write out the ladders for ``X``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or nested list
            Families take the number of columns and default widths from it.
        sample_weight : ndarray of shape (n_samples,), optional
            How often each row counts in default widths.

        Returns
        -------
        ladders : list of list of Kernel
            Never empty.
        """
        if self.ladders is None:
            return _default_ladders(X, sample_weight, self.missing)
        out: list[list[Kernel]] = []
        for item in with_missing(self.ladders, self.missing):
            if isinstance(item, list | tuple):
                out.append([kernel.bound(X, sample_weight) for kernel in item])
                continue
            groups: dict[Hashable, list[Kernel]] = {}
            for kernel in item.expand(X, sample_weight):
                bound = kernel.bound(X, sample_weight)
                groups.setdefault(columns_key(kernel.columns), []).append(bound)
            out += groups.values()
        return out

    def with_targets(self, y: Floats) -> ProductLattice:
        """Return this lattice with targets for the kernels that learn from them."""
        ladders = with_targets(self.ladders, y)
        return self if ladders is self.ladders else replace(self, ladders=ladders)

    def __sklearn_clone__(self) -> Self:
        return self


def _read_ladders(ladders: Any) -> tuple[KernelFamily | tuple[Kernel, ...], ...] | None:
    if ladders is None:
        return None
    if isinstance(ladders, Kernel | KernelFamily):
        ladders = [ladders]
    if not isinstance(ladders, list | tuple):
        raise InputTypeError(
            "ProductLattice: ladders must be a list of kernels, of lists of kernels or of families "
            f"such as rbf_ladder(per_feature=True), got {type(ladders).__name__}."
        )
    if not ladders:
        raise InputError("ProductLattice: the list is empty; None gives a default set of kernels.")
    out: list[KernelFamily | tuple[Kernel, ...]] = []
    for j, item in enumerate(ladders):
        if isinstance(item, KernelFamily):
            out.append(item)
            continue
        rungs = item if isinstance(item, list | tuple) else (item,)
        if not rungs:
            raise InputTypeError(
                f"ProductLattice: ladder {j} must be a kernel, a list of kernels or a family, "
                f"got {item!r}."
            )
        for rung in rungs:
            if not isinstance(rung, Kernel):
                raise InputTypeError(
                    f"ProductLattice: ladder {j} holds {rung!r}, which is not a kernel."
                )
        out.append(tuple(rungs))
    return tuple(out)


def _default_ladders(X: Any, sample_weight: Floats | None, missing: str) -> list[list[Kernel]]:
    table = read_table(X, "kernels")
    everything = table.positions(None, "kernels")
    out: list[list[Kernel]] = []
    for key, number in zip(table.keys(everything), table.numeric(), strict=True):
        if number:
            rows = table.numbers(key, "kernels", gaps=missing != "refuse")
            kernel: Kernel = RBF(typical_distance(rows, sample_weight, [key]), columns=key)
        else:
            kernel = Overlap(columns=key)
        out.append([with_missing(kernel, missing).bound(X, sample_weight)])
    return out
