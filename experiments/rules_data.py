"""Data for the rule ensembles: tables, their propositions, and divisions.

Every numeric column is cut in four places at most, at quantiles of the whole table, and every value
of a nominal column gives ``x == v`` and ``x != v``; both follow from the numbers of propositions
that the paper prints, since it does not say where cuts are. What counts as nominal is in
`kernelweave.datasets`; the columns of numbers that do are the year in haberman, legs in zoo, grades
and density in mammographic_mass, education, occupation and living standard in cmc, and instructor
and course in tae.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

from kernelweave import Propositions
from kernelweave.datasets import load_dataset, make_monks
from kernelweave.errors import DataError

from .rules_published import BINARY, CLASSES, TITLES

Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

N_SPLITS = 10
TRAIN_SHARE = 0.1
N_FEWEST = 3  # training rows of every class, one for each fold
MONK_ROWS, MONK_NOISE = 122, 0.05


@dataclass(frozen=True)
class Source:
    """A data set in one form.

    Parameters
    ----------
    title : str
        Its name in tables.
    published : str
        The name of the data set in the paper.
    binary : bool
        Two classes: measured by F1 and the area under the curve, others by accuracy.
    file : str
        What `load_dataset` is asked for.
    cuts : int
        Most cuts of a column of numbers.
    strategy : str
        Where they are.
    variant : bool
        Whether it is another form of a set, shown beside it and left out of means.
    """

    title: str
    published: str
    binary: bool
    file: str
    cuts: int = 4
    strategy: str = "quantile"
    variant: bool = False


SOURCES = {
    name: Source(TITLES[name], TITLES[name], name in BINARY, name) for name in BINARY + CLASSES
} | {
    "monks3-drawn": Source("MK3, drawn", "MK3", True, "", variant=True),
    "iris-uniform": Source("IRIS, equal steps", "IRIS", False, "iris", 4, "uniform", variant=True),
    "iris-six": Source("IRIS, six cuts", "IRIS", False, "iris", 6, variant=True),
    "iris-six-uniform": Source(
        "IRIS, six equal steps", "IRIS", False, "iris", 6, "uniform", variant=True
    ),
}


@dataclass(frozen=True)
class Division:
    """Training and test rows of one division.

    Parameters
    ----------
    X, X_test : DataFrame
        The columns as they are.
    P, P_test : ndarray of bool
        Propositions, chosen on the whole table.
    y, y_test : ndarray of str
        Classes.
    """

    X: pd.DataFrame
    P: Bools
    y: NDArray[Any]
    X_test: pd.DataFrame
    P_test: Bools
    y_test: NDArray[Any]


def n_splits(data: str) -> int:
    """Return how many divisions a data set has: the historical rows of MONK-3 are one."""
    return 1 if data == "monks3" else N_SPLITS


def check_source(data: str) -> None:
    """Raise `DataError` where a data set cannot be read."""
    if data == "monks3":
        load_dataset("monks3_train")
    elif data != "monks3-drawn":
        load_dataset(SOURCES[data].file)


@cache
def read_source(data: str) -> tuple[pd.DataFrame, Bools, NDArray[Any]]:
    """Return columns, propositions and classes of a whole table."""
    source = SOURCES[data]
    if data == "monks3":
        halves = [load_dataset("monks3_train"), load_dataset("monks3_test")]
        X = pd.concat([half.X.astype(str) for half in halves], ignore_index=True)
        X, y = X.astype("category"), np.concatenate([half.y.to_numpy() for half in halves])
    else:
        table = load_dataset(source.file)
        if not isinstance(table.X, pd.DataFrame):
            raise DataError(f"{data} is no table.")
        X, y = table.X, np.asarray(table.y)
    maker = Propositions(source.cuts, cut_strategy=source.strategy)
    return X, maker.fit_transform(X), y.astype(str)


def open_division(data: str, split: int, seed: int = 0) -> Division:
    """Divide a data set: a tenth for training, with all classes in proportion."""
    if data == "monks3-drawn":
        return _draw_monks(seed + split)
    X, P, y = read_source(data)
    if data == "monks3":
        train, test = np.arange(MONK_ROWS), np.arange(MONK_ROWS, len(y))
    else:
        train, test = divide(y, seed + split)
    return Division(
        X.iloc[train].reset_index(drop=True),
        P[train],
        y[train],
        X.iloc[test].reset_index(drop=True),
        P[test],
        y[test],
    )


def divide(y: NDArray[Any], seed: int) -> tuple[Rows, Rows]:
    """Return the rows of both parts; classes short of three rows get theirs from the test part."""
    parts = StratifiedShuffleSplit(1, train_size=TRAIN_SHARE, random_state=seed)
    train, test = next(parts.split(y[:, None], y))
    for label in np.unique(y):
        short = N_FEWEST - int(np.sum(y[train] == label))
        if short > 0:
            moved = test[y[test] == label][:short]
            train, test = np.append(train, moved), np.setdiff1d(test, moved, assume_unique=True)
    return np.random.default_rng(seed).permutation(train), test


def _draw_monks(seed: int) -> Division:
    """Draw training rows as the historical ones were; all robots are the test rows, as there."""
    train = make_monks(3, n_samples=MONK_ROWS, noise=MONK_NOISE, random_state=seed)
    test = make_monks(3)
    maker = Propositions().fit(test.X)
    return Division(
        train.X,
        maker.transform(train.X),
        train.y.to_numpy().astype(str),
        test.X,
        maker.transform(test.X),
        test.y.to_numpy().astype(str),
    )
