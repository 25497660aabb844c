"""A mixed table with gaps."""

import numpy as np
import pandas as pd

RANDOM = np.random.default_rng(0)
N = 160
FRAME = pd.DataFrame(
    {
        "size": RANDOM.normal(size=N),
        "age": RANDOM.exponential(size=N),
        "town": RANDOM.choice(["Ulm", "Bonn", "Kiel"], N),
        "noise": RANDOM.normal(size=N),
    }
)
FRAME.loc[::17, "age"] = np.nan
PRICE = (
    np.sin(2 * FRAME["size"]) + 2.0 * (FRAME["town"] == "Ulm") * FRAME["size"] + FRAME["age"].isna()
).to_numpy() + 0.1 * RANDOM.normal(size=N)
