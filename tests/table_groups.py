"""A table of three groups of rows, for tests of `kernelweave.tables`."""

import numpy as np
import pandas as pd

N = 120
RANDOM = np.random.default_rng(2)
GROUP = np.repeat([0, 1, 2], [60, 40, 20])
POINTS = np.array([[0, 0], [6, 0], [0, 6]])[GROUP] + RANDOM.normal(size=(N, 2))
TABLE = pd.DataFrame(
    {
        "a": POINTS[:, 0],
        "b": POINTS[:, 1],
        "kind": np.array(["u", "v", "w"])[GROUP],
        "noise": RANDOM.normal(size=N),
    }
)
TABLE["y"] = np.where(GROUP == 0, "in", "out")
