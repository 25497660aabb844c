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
from kernelweave.kernels.encoding import NothingToEncodeError, TableEncoding
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
        two rungs for each column. None: a Gaussian on every column of numbers or dates, with the
        root mean squared distance between two rows as width, and `Overlap` on every other. Dates
        become a number and places in the year, week and day.
    base : float
        Positive. What a rung multiplies the cost by; the larger, the lower the order of the
        products that are learned, and the fewer of them are looked at.
    max_order : int or None
        Kernels in a product at most; None for any number.
    max_visited : int
        Products that one search looks at before it gives up. What is learned then has no
        certificate.
    missing : {"refuse", "off", "fill", "expected"} or None
        The rule for missing values of kernels that have none; see the guide "Some of my data are
        missing". None: default kernels of a table that is not sparse fill gaps, with an indicator
        beside numbers and dates; other kernels refuse them.

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
    missing: str | None = None

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
        RBF(missing=self.missing or "refuse")  # refuses unknown rules

    @property
    def encodes_gaps(self) -> bool:
        """Whether missing values in its columns are taken."""
        if self.missing is None:
            return encodes_gaps(self.ladders)
        return self.missing != "refuse" or encodes_gaps(self.ladders or ())

    @property
    def takes_sparse(self) -> bool:
        """Whether ``X`` may be a sparse matrix."""
        return self.missing in (None, "refuse", "off") and takes_sparse(self.ladders)

    def with_missing(self, rule: str) -> ProductLattice:
        """Return this lattice with a rule for missing values, unless it has one already."""
        return replace(self, missing=rule) if self.missing in (None, "refuse") else self

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


def _default_ladders(
    X: Any, sample_weight: Floats | None, missing: str | None
) -> list[list[Kernel]]:
    table = read_table(X, "kernels")
    everything = table.positions(None, "kernels")
    encodes = missing is None and not table.is_sparse
    rule = "fill" if encodes else missing or "refuse"
    kernels: dict[Any, Kernel] = {}
    keys = table.keys(everything)
    for key, number in zip(keys, table.numeric(), strict=True):
        if number:
            rows = table.numbers(key, "kernels", gaps=rule != "refuse")
            if not encodes or np.isfinite(rows).all():
                kernels[key] = RBF(typical_distance(rows, sample_weight, [key]), columns=key)
        elif not encodes:
            kernels[key] = Overlap(columns=key)
    if unusual := [key for key in keys if key not in kernels]:
        kernels |= _encoded_kernels(X, unusual, sample_weight, some=bool(kernels))
    ordered = [kernels[key] for key in keys if key in kernels]
    return [[with_missing(kernel, rule).bound(X, sample_weight)] for kernel in ordered]


def _encoded_kernels(
    X: Any, columns: list[Any], sample_weight: Floats | None, *, some: bool
) -> dict[Any, Kernel]:
    """Return a kernel for each of the columns that varies; ``some``: there are others.

    Those of text compare levels, those of dates and of numbers with gaps encoded values.
    """
    try:
        encoding = TableEncoding.learn(X, columns, sample_weight)
    except NothingToEncodeError:
        if some:
            return {}
        raise
    kernels: dict[Any, Kernel] = {}
    for key, part in zip(encoding.keys, encoding.encodings, strict=True):
        if part.is_category:
            kernels[key] = Overlap(columns=key)
        else:
            own = encoding.only([key])
            kernels[key] = RBF(typical_distance(own.encode(X), sample_weight), columns=own)
    return kernels
