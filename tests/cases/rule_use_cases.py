"""A mixed table for rule ensembles."""

import sqlite3

import numpy as np
import pandas as pd

N = 120
SIZES = ["S", "M", "L"]


def table(seed=0, towns=("Köln", "O'Hara", "Ulm", None), n=N):
    """Return numbers, truth values, text and ordered categories, some missing, under odd names."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            'a "quoted" name': np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(2)),
            "back`tick": rng.integers(-3, 4, n),
            "smoker": rng.random(n) < 0.5,
            "O'Hara; DROP TABLE x": rng.choice(np.array(towns, dtype=object), n),
            "size": pd.Categorical(rng.choice(SIZES, n), categories=SIZES, ordered=True),
        }
    )


def signal(frame):
    first, tick, smoker, town, size = (frame[name] for name in frame.columns)
    score = 1.0 * (first > 0.3) - 1.0 * (tick <= -1) + 1.5 * (smoker & (town == "Ulm"))
    return (score - 0.8 * (size == "L")).to_numpy()


TRAIN = table()
SCORE = signal(TRAIN)
TWO = np.where(SCORE > 0.2, "yes", "it's no")
THREE = np.digitize(SCORE, [-0.2, 0.8])
# Values that fit did not see, and every kind of missing value.
NEW = table(1, ("Paris", "Ulm", "", None, "Köln"))
NEW.loc[:4, 'a "quoted" name'] = np.nan


def plain_rows(frame):
    """Return the rows as Python's own values, None where one is missing."""
    columns = [
        [None if pd.isna(v) else v.item() if hasattr(v, "item") else v for v in frame[name]]
        for name in frame.columns
    ]
    return [tuple(row) for row in zip(*columns, strict=True)]


def run_sqlite(query, frame):
    """Return what SQLite answers for the rows of a frame, in their order."""
    with sqlite3.connect(":memory:") as base:
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in frame.columns)
        base.execute(f"CREATE TABLE data ({names})")
        marks = ", ".join("?" * len(frame.columns))
        base.executemany(f"INSERT INTO data VALUES ({marks})", plain_rows(frame))
        cursor = base.execute(query)
        return pd.DataFrame(cursor.fetchall(), columns=[c[0] for c in cursor.description])


def run_python(code, frame):
    scope = {}
    exec(code, scope)
    rows = [dict(zip(frame.columns, row, strict=True)) for row in plain_rows(frame)]
    return [scope["predict"](row) for row in rows]
