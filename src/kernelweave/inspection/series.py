"""Factors of product games: plain numbers, or power series for powers of sums over players."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.kernels.base import n_rows, take

from .game import Game
from .pieces import Piece


@dataclass(frozen=True)
class PowerSeries:
    """Factors as power series: ``(c + sum_l s_l)^p = p! [y^p] exp(c y) prod_l exp(s_l y)``.

    Parameters
    ----------
    exponents : list of tuple
        Powers of the letters of every coefficient; the last one is wanted.
    start : ndarray
        The series ``exp(c y)``.
    steps : ndarray of shape (n_steps, 3)
        Which coefficients of two series are multiplied, and where to.
    scale : float
        ``prod p!``.
    has_products : bool
        Whether there are factors beside the sums.
    """

    exponents: list[tuple[int, ...]]
    start: Floats
    steps: Any
    scale: float
    has_products: bool

    @classmethod
    def of(cls, piece: Piece) -> PowerSeries:
        """Return the form of the series of a piece; one coefficient where it has no sums."""
        powers = [power for _, power in piece.sums]
        exponents = list(product(*(range(power + 1) for power in powers)))
        place = {exponent: k for k, exponent in enumerate(exponents)}
        constants = [bound.atom.constant for bound, _ in piece.sums]
        start = [
            prod(c**e / factorial(e) for c, e in zip(constants, x, strict=True)) for x in exponents
        ]
        steps = [
            (place[a], place[b], place[total])
            for a in exponents
            for b in exponents
            if (total := tuple(i + j for i, j in zip(a, b, strict=True))) in place
        ]
        scale = float(prod(factorial(power) for power in powers))
        return cls(
            exponents,
            np.array(start, dtype=np.float64),
            np.array(steps),
            scale,
            bool(piece.products),
        )

    def degree(self, n_players: int) -> int:
        """Return the degree of a game in the share of players that are present."""
        return n_players if self.has_products else min(sum(self.exponents[-1]), n_players)

    def factors(
        self, piece: Piece, side: str, index: Any, some: slice, weights: Floats | None = None
    ) -> Floats:
        """Return factors of shape (n_players, n_coefficients, n_rows, n_terms).

        Parameters
        ----------
        piece : Piece
            The atoms.
        side : {"rows", "background"}
            Which rows are compared with the terms.
        index : positions or slice
            Some of these rows.
        some : slice
            Some of the terms.
        weights : ndarray of shape (n_rows,), optional
            Weights of a mean over the rows; one row is left then.
        """
        out = []
        atoms = [(bound, take(getattr(bound, side), index)) for bound in piece.products]
        sums = [(bound, take(getattr(bound, side), index)) for bound, _ in piece.sums]
        for player in piece.players:
            factor: Any = None
            for bound, rows in atoms:
                if player in bound.columns:
                    own = bound.part(rows, player, some)
                    factor = own if factor is None else factor * own
            parts = [bound.part(rows, player, some) for bound, rows in sums]
            if factor is None:
                shape = parts[0].shape if parts else self._shape(piece, side, index, some)
                factor = np.ones(shape)
            series = [
                prod(
                    (part**e / factorial(e) for part, e in zip(parts, x, strict=True) if e),
                    start=factor,
                )
                for x in self.exponents
            ]
            out.append(series if weights is None else [weights[None] @ one for one in series])
        return np.ascontiguousarray(out, dtype=np.float64)

    @staticmethod
    def _shape(piece: Piece, side: str, index: Any, some: slice) -> tuple[int, int]:
        rows = take(getattr(piece.atoms[0], side), index)
        return n_rows(rows), len(piece.coef[some])


def outside_factors(
    series: PowerSeries, piece: Piece, game: Game, other: slice, some: slice
) -> Floats:
    """Return the factors of absent players, averaged where each comes from a row of its own."""
    if game.value == "functional":
        one = np.zeros((len(piece.players), len(series.exponents), 1, len(piece.coef[some])))
        one[:, 0] = 1.0
        return one
    weights = None if game.value == "joint" else game.weights
    return series.factors(piece, "background", other, some, weights)
