"""A table of two related sources that rows lack, and some columns beside them."""

import numpy as np
import pandas as pd


def source_table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    scan = hidden @ rng.normal(size=(2, 3)) + 0.2 * rng.normal(size=(n, 3))
    lab = np.tanh(hidden @ rng.normal(size=(2, 2))) + 0.1 * rng.normal(size=(n, 2))
    frame = pd.DataFrame({f"scan_{j}": scan[:, j] for j in range(3)})
    frame = frame.assign(hdl=lab[:, 0], ldl=lab[:, 1], age=rng.normal(50, 10, n))
    gone = rng.random((n, 2)) < 0.4
    gone[gone.all(axis=1), 0] = False
    frame.loc[gone[:, 0], ["scan_0", "scan_1", "scan_2"]] = np.nan
    frame.loc[gone[:, 1], ["hdl", "ldl"]] = np.nan
    frame.loc[::9, "hdl"] = np.nan
    frame.loc[::7, "age"] = np.nan
    places = pd.Series(rng.choice(["arm is broken", "a leg and more", "none at all"], n))
    frame["remark"] = places + [f" {i}" for i in range(n)]
    return frame.assign(ill=np.where(hidden[:, 0] + 0.3 * hidden[:, 1] > 0, "yes", "no"))


SOURCES = {"scan": ["scan_*"], "lab": ["hdl", "ldl"]}
