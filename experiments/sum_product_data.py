"""Data for the comparison of structures: made-up problems and real tables with groups of columns.

The made-up problems have four groups of two standard normal columns, a, b, c and d. Each group
has a score with median zero: ``a1 + a2``, a ring in b, ``c1 c2``. The label is a sign, of which one
in twenty is flipped.

- product: of ``a b``. Whatever a is, b makes either label equally likely, and the other way round,
  so ``E[y f] = 0`` for every sum f of functions of single groups. Its expected hinge loss is at
  least ``E[1 - y f] = 1``, which f = 0 has too. And of four rows that combine two values of a, of
  different signs, with two of b, f cannot classify all, because ``f(a+, b+) + f(a-, b-) =
  f(a+, b-) + f(a-, b+)``: its accuracy is at most 75 % before labels are flipped, 72.5 % after.
- mixed: of ``a b + c``, each of about unit deviation. Products help, and sums alone see a part.
- additive: of ``a + b + c``. Products are of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kernelweave.datasets import load_dataset

Floats = NDArray[np.float64]
Groups = dict[str, list[int]]

N_ROWS = 400  # of which half are for training
N_FLIPPED = 20  # one label in so many
_PER_GROUP = 2
_MEDIAN_RING = 2 * np.log(2)  # of the chi-squared distribution with two degrees of freedom


@dataclass(frozen=True)
class Problem:
    """Rows, labels and groups of columns of one division.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        The columns.
    y : ndarray of shape (n_rows,)
        Labels.
    groups : dict of str to list of int
        The columns of each group.
    standardise : bool
        Whether columns are to get unit deviation; indicators are left as they are.
    """

    X: Floats
    y: NDArray[np.str_]
    groups: Groups
    standardise: bool = True


@dataclass(frozen=True)
class Source:
    """A problem and what there is to know about it."""

    title: str
    read: Callable[[int], Problem]  # by the seed of the rows
    made_up: bool = False
    file: str | None = None  # under this name `load_dataset` knows it
    truth: tuple[frozenset[str], ...] = ()  # the groups that decide together, of made-up problems


def scores(X: Floats) -> dict[str, Floats]:
    """Return the scores of groups a, b and c, each of median zero and about unit deviation."""
    return {
        "a": (X[:, 0] + X[:, 1]) / np.sqrt(2),
        "b": (np.square(X[:, 2:4]).sum(axis=1) - _MEDIAN_RING) / 2,
        "c": X[:, 4] * X[:, 5],
    }


def make(seed: int, rule: Callable[[dict[str, Floats]], Floats], n_rows: int = N_ROWS) -> Problem:
    """Draw a made-up problem."""
    random = np.random.default_rng(seed)
    groups = {
        name: [_PER_GROUP * k + j for j in range(_PER_GROUP)] for k, name in enumerate("abcd")
    }
    X = random.standard_normal((n_rows, 4 * _PER_GROUP))
    signs = np.sign(rule(scores(X))) * np.where(random.integers(N_FLIPPED, size=n_rows), 1, -1)
    return Problem(X, np.where(signs > 0, "yes", "no"), groups)


def _made_up(
    title: str, rule: Callable[[dict[str, Floats]], Floats], truth: tuple[str, ...]
) -> Source:
    def read(seed: int) -> Problem:
        return make(seed, rule)

    return Source(title, read, made_up=True, truth=tuple(frozenset(term) for term in truth))


def _real(title: str, file: str, cut: Callable[[Floats], tuple[Floats, Groups, bool]]) -> Source:
    def read(seed: int) -> Problem:
        table = load_dataset(file)
        X, groups, standardise = cut(np.asarray(table.X.astype(float)))
        y = np.asarray(table.y.astype(str))
        random = np.random.default_rng(seed)
        rows = random.permutation(len(X))[:N_ROWS]
        return Problem(X[rows], y[rows], groups, standardise)

    return Source(title, read, file=file)


def _bands(X: Floats) -> tuple[Floats, Groups, bool]:
    """Sixty energies in order of frequency."""
    return X, {"low": [*range(20)], "middle": [*range(20, 40)], "high": [*range(40, 60)]}, True


def _shape(X: Floats) -> tuple[Floats, Groups, bool]:
    """Distances along 162 rays, cut in file order, and four numbers on an oxygen atom."""
    groups = {"rays1": [*range(81)], "rays2": [*range(81, 162)], "oxygen": [*range(162, 166)]}
    return X, groups, True


def _credit(X: Floats) -> tuple[Floats, Groups, bool]:
    """Accounts and loan, person, and indicators of purpose, guarantors, housing and job."""
    groups = {"loan": [*range(5)], "person": [*range(5, 15)], "indicators": [*range(15, 24)]}
    return X, groups, True


def _windows(X: Floats) -> tuple[Floats, Groups, bool]:
    """Mark the bases near and far from a junction, thirty positions on either side."""
    bases = np.concatenate([X == base for base in (1, 2, 3, 4)], axis=1).astype(float)
    windows = {"far left": (0, 15), "left": (15, 30), "right": (30, 45), "far right": (45, 60)}
    groups = {
        name: [60 * base + at for base in range(4) for at in range(*ends)]
        for name, ends in windows.items()
    }
    return bases, groups, False


SOURCES = {
    "product": _made_up("Made up: product", lambda s: s["a"] * s["b"], ("ab",)),
    "mixed": _made_up("Made up: mixed", lambda s: s["a"] * s["b"] + s["c"], ("ab", "c")),
    "additive": _made_up("Made up: additive", lambda s: s["a"] + s["b"] + s["c"], ("a", "b", "c")),
    "sonar": _real("Sonar", "sonar", _bands),
    "musk1": _real("Musk1", "musk1", _shape),
    "german": _real("German", "german_numer", _credit),
    "splice": _real("Splice", "splice_train", _windows),
}


def terms(groups: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the summands of the stated structure: every group alone, and every two multiplied."""
    names = list(groups)
    return [*((name,) for name in names), *combinations(names, 2)]
