"""A frame of all kinds of columns, with gaps."""

import numpy as np
import pandas as pd

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": RANDOM.normal(10, 3, 40),
        "town": RANDOM.choice(["Ulm", "Bonn", "Kiel"], 40),
        "paid": RANDOM.random(40) < 0.5,
        "day": pd.date_range("2024-01-01", periods=40, freq="31h"),
        "unit": "kg",
        "name": [f"person {i}" for i in range(40)],
    }
)
FRAME.loc[3, "size"] = np.nan
FRAME.loc[5, "town"] = None
