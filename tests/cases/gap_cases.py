"""Tables with gaps, and kernels with every rule for them."""

import numpy as np
import pandas as pd

from kernelweave.kernels import ARD, RBF, Additive, Laplacian, Linear, Overlap, Polynomial


def holed(n=24, d=3, share=0.3, seed=0):
    """Return standard normal rows with gaps; every row and column has a value."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    gone = rng.random((n, d)) < share
    gone[np.arange(n), rng.integers(d, size=n)] = False
    X[gone] = np.nan
    return X


WIDTHS = (0.7, 1.5, 2.0)
RULES = [
    (kernel, rule)
    for kernel in (
        RBF(1.3),
        ARD(WIDTHS),
        Additive(WIDTHS),
        Laplacian(1.3),
        Linear(),
        Polynomial(),
        Overlap(),
        2 * RBF(1.0) + Linear(),
        RBF(1.0) * Linear(columns=[0]),
    )
    for rule in ("off", "fill", "expected", "category")
    if rule not in ("expected", "category")
    or (rule == "expected" and not isinstance(kernel, Polynomial))
    or isinstance(kernel, Overlap)
]


def mixed_frame():
    """Return numbers, text and dates with None, NaN, NaT and pandas' NA."""
    return pd.DataFrame(
        {
            "number": [1.0, np.nan, 3.0, 4.0],
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "text": ["a", None, "b", "a"],
            "day": pd.to_datetime(["2020-01-01", None, "2020-03-01", "2020-03-02"]),
        }
    )


def two_sources(n=30, seed=0):
    """Return rows of two related sources, each missing for some."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    X = np.hstack([hidden + 0.1 * rng.normal(size=(n, 2)), hidden @ rng.normal(size=(2, 3))])
    X[: n // 3, :2] = np.nan
    X[n // 3 : n // 2, 2:] = np.nan
    return X


SOURCES = {"a": [0, 1], "b": [2, 3, 4]}
