"""A kernel model as pieces: monomials of kernels over the rows of a term, with their players."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.estimators.terms import KernelTerm, KernelTerms
from kernelweave.kernels.base import Rows, n_rows, take
from kernelweave.kernels.monomials import Atom, Monomial, Monomials, multiply
from kernelweave.kernels.table import is_sparse

from .game import Players

_ENTRIES = 500_000  # of kernel blocks that are formed at a time
_DENSE = 10_000_000  # entries up to which sparse rows are made dense


@dataclass(frozen=True)
class BoundAtom:
    """An atom with the rows it compares.

    Parameters
    ----------
    atom : Atom
        What is compared.
    terms, rows, background : prepared rows
        Support rows or landmarks, rows explained and rows of the background.
    columns : dict
        The columns of every player: of prepared rows, or for an opaque atom those it looks at.
    owner : ndarray
        The player of every such column.
    """

    atom: Atom
    terms: Rows
    rows: Rows
    background: Rows
    columns: dict[int, Indices]
    owner: Indices

    def part(self, side: Rows, player: int, some: slice) -> Floats:
        """Return the part of a player, between rows and some terms; ones where it has none."""
        terms = take(self.terms, some)
        if player not in self.columns:
            neutral = 1.0 if self.atom.kind != "sum" else 0.0
            return np.full((n_rows(side), n_rows(terms)), neutral)
        if self.atom.part is None:
            return self.atom.whole(side, terms)  # all of its columns are this player's
        return self.atom.part(side, terms, self.columns[player])


@dataclass(frozen=True)
class Piece:
    """``sum_i coef_i prod(atoms)``, a sum of product games over terms.

    Parameters
    ----------
    products, opaque : tuple of BoundAtom
        Atoms that are products over players, or anything.
    sums : tuple of (BoundAtom, int)
        Powers of sums over players.
    coef : ndarray of shape (n_terms, n_outputs)
        Coefficients, with the scale of the monomial.
    error : float
        Bound on the error of a value of the kernel, times the sizes of the coefficients.
    vanishes : bool
        Whether most terms are expected to be zero, so that it pays to look for them.
    """

    products: tuple[BoundAtom, ...]
    sums: tuple[tuple[BoundAtom, int], ...]
    opaque: tuple[BoundAtom, ...]
    coef: Floats
    error: float = 0.0
    vanishes: bool = False
    known: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def atoms(self) -> list[BoundAtom]:
        """All atoms."""
        return [*self.products, *(atom for atom, _ in self.sums), *self.opaque]

    @cached_property
    def players(self) -> list[int]:
        """The players whose columns matter."""
        return sorted({player for atom in self.atoms for player in atom.columns})

    @property
    def name(self) -> str:
        """The kernels, for messages."""
        return " * ".join(dict.fromkeys(atom.atom.name for atom in self.atoms))

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.coef)

    @property
    def signed(self) -> bool:
        """Whether factors may be negative."""
        return any(atom.atom.signed or atom.atom.kind == "opaque" for atom in self.products)

    def values(self, sides: Sequence[Rows]) -> Floats:
        """Return the values at rows prepared for each atom, one column per output."""
        n = n_rows(sides[0]) if sides else 1
        out = np.zeros((n, self.coef.shape[1]))
        size = max(1, _ENTRIES // max(n, 1))
        powers = [0] * len(self.products) + [p for _, p in self.sums] + [0] * len(self.opaque)
        for first in range(0, self.n_terms, size):
            some = slice(first, first + size)
            block: Any = np.ones((n, len(self.coef[some])))
            for bound, power, side in zip(self.atoms, powers, sides, strict=True):
                terms = take(bound.terms, some)
                if power and bound.atom.part is not None:
                    total = bound.atom.part(side, terms, np.arange(len(bound.owner)))
                    block *= (total + bound.atom.constant) ** power
                else:
                    block *= bound.atom.whole(side, terms)
            out += block @ self.coef[some]
        return out


def make_pieces(
    terms: KernelTerms, X: Any, Z: Any, players: Players, *, walked: bool = False
) -> list[Piece]:
    """Return the pieces of all terms of a model.

    Parameters
    ----------
    terms : KernelTerms
        What the model adds up.
    X, Z : tables
        Rows explained and rows of the background, as kernels read them.
    players : Players
        Groups of columns. Columns of no player are those of one more, which never changes.
    walked : bool
        Whether kernels that can be updated as columns change are one piece each.
    """
    owner = players.owner(X.shape[1])
    owner[owner < 0] = len(players)
    at_rows: dict[Hashable, Rows] = {}
    at_background: dict[Hashable, Rows] = {}
    found = []
    for term in terms.terms:
        if not len(term.coef):
            continue
        kernels = [kernel for kernel, _ in term.factors]
        sides = (
            tuple(rows for _, rows in term.factors),
            tuple(kernel.prepare_once(X, at_rows) for kernel in kernels),
            tuple(kernel.prepare_once(Z, at_background) for kernel in kernels),
        )
        for monomial in _monomials(term, walked):
            bound = [_bind(atom, sides, X, owner) for atom in monomial.atoms]
            found.append(_piece(bound, monomial, term))
    return found


def _monomials(term: KernelTerm, walked: bool) -> Monomials:
    """Return the product of the kernels of a term, or their values where it has too many parts."""
    kernels = [kernel for kernel, _ in term.factors]
    if walked and len(kernels) == 1:
        whole = kernels[0].opaque()
        if whole[0].atoms[0].walks is not None:
            return tuple(item.moved(0) for item in whole)
    return (
        multiply(_moved(kernel.monomials() for kernel in kernels))
        or multiply(_moved(kernel.opaque() for kernel in kernels))
        or ()
    )


def _moved(parts: Iterable[Monomials]) -> list[Monomials]:
    return [tuple(item.moved(place) for item in part) for place, part in enumerate(parts)]


def _bind(atom: Atom, sides: tuple[Rows, Rows, Rows], X: Any, owner: Indices) -> BoundAtom:
    own = owner[atom.positions(X)]
    columns = {int(player): np.flatnonzero(own == player) for player in np.unique(own)}
    terms, rows, background = (atom.rows_of(side) for side in sides)
    if atom.part is not None and is_sparse(rows):  # columns of a dense array are at hand
        if max(side.shape[0] * side.shape[1] for side in (terms, rows, background)) <= _DENSE:
            terms, rows, background = (side.toarray() for side in (terms, rows, background))
    return BoundAtom(atom, terms, rows, background, columns, own)


def _piece(bound: list[BoundAtom], monomial: Monomial, term: KernelTerm) -> Piece:
    """Sort atoms by kind; opaque ones of a single player are factors, equal sums one power."""
    products, opaque = [], []
    sums: dict[Hashable, tuple[BoundAtom, int]] = {}
    for item in bound:
        atom = item.atom
        if atom.kind == "sum":
            before = sums.get(atom.key, (item, 0))
            sums[atom.key] = (before[0], before[1] + atom.power)
        elif atom.kind == "product" or len(item.columns) == 1:
            products.append(item)
        else:
            opaque.append(item)
    return Piece(
        tuple(products),
        tuple(sums.values()),
        tuple(opaque),
        monomial.scale * term.coef,
        monomial.error * float(np.abs(term.coef).sum(axis=0).max(initial=0.0)),
        monomial.vanishes,
    )
