"""Readable rules from a table of mixed types, and the same model in a database.

A synthetic register of loans with numbers, categories, truth values and missing values. A loan is
lost for one of two reasons, both conjunctions. The script prints the rules; the figure shows their
weights and their coverage.

Then the model is exported as SQL and run in SQLite on new loans. The predictions equal those of
``predict``, also for missing values and new categories.

Run it with ``python plot_rules.py [folder]``; the picture is saved in the folder.
"""

import sqlite3
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from kernelweave import RuleEnsembleClassifierCV
from kernelweave.plots import plot_rules


def make_loans(n_samples, seed):
    """Return a register and what became of each loan."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": random.gamma(4.0, 10.0, n_samples).round(1),
            "years employed": random.integers(0, 13, n_samples).astype(float),
            "purpose": random.choice(["car", "house", "studies", "other"], n_samples),
            "guarantor": random.random(n_samples) < 0.3,
        }
    )
    bad = (table["income"] < 30) & ~table["guarantor"]
    bad |= (table["years employed"] <= 5) & (table["purpose"] == "car")
    wrong = np.where(random.random(n_samples) < 0.05, ~bad, bad)
    table.loc[random.random(n_samples) < 0.1, "income"] = np.nan
    table.loc[random.random(n_samples) < 0.1, "purpose"] = None
    return table, np.where(wrong, "lost", "paid")


def run_in_sqlite(model, table):
    """Return what a database makes of the model."""
    with sqlite3.connect(":memory:") as database:
        table.to_sql("loans", database, index=False)
        query = model.to_sql("sqlite", table="loans")
        return pd.read_sql_query(query, database)


def main(folder="."):
    """Fit, print the rules, run them in SQLite, and draw them."""
    loans, outcome = make_loans(500, seed=0)
    model = RuleEnsembleClassifierCV(Cs=[1, 10, 100], cv=3).fit(loans, outcome)
    print(model.to_frame().head(8).to_string(index=False))

    others, truth = make_loans(2000, seed=1)
    others.loc[0, "purpose"] = "boat"  # never seen in training
    answers = run_in_sqlite(model, others)
    same = (answers["prediction"] == model.predict(others)).mean()
    apart = np.abs(answers["score"] - model.decision_function(others)).max()
    print(f"accuracy {model.score(others, truth):.3f} with {len(model.rules_)} rules")
    print(f"SQLite agrees on {same:.1%} of the loans; scores differ by {apart:.0e} at most")

    figure = plot_rules(model, max_rules=10).figure
    path = Path(folder) / "plot_rules.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
