"""Tables held by Dask in uneven parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    RBF,
)

da = pytest.importorskip("dask.array")

KERNELS = [RBF(width=w, columns=[c]) for c in range(3) for w in (0.7, 2.0)]
CHUNKS = (1, 150, 0, 49, 100)  # one row, no rows, uneven


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.2 * rng.normal(size=n)


def parted(X):
    return da.from_array(X, chunks=(CHUNKS, *((s,) for s in X.shape[1:])))


def rule_frame(n=400):
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "dose": rng.normal(size=n).round(1),
            "site": rng.choice(["a", "b", "c"], n),
        }
    )
    X.loc[::17, "dose"] = np.nan
    return X, ((X["age"] > 50) & (X["site"] == "b")) | (X["dose"] > 1.2)
