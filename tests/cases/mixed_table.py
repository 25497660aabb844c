"""A table of all kinds of columns."""

import numpy as np
import pandas as pd


def mixed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    size = pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l", "xl"], ordered=True)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": rng.normal(size=n).round(2),
            "colour": rng.choice(["red", "blue", "green"], n),
            "smoker": rng.random(n) < 0.3,
            "size": size,
            "anything": rng.choice(np.array([True, False, None], dtype=object), n),
        }
    )
    frame.loc[::7, "pay"] = np.nan
    frame.loc[3::11, "colour"] = None
    return frame
