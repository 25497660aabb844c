"""A table with odd names, for pictures of explanations."""

import numpy as np
import pandas as pd

RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RANDOM.normal(40, 10, 120),
        "$\\frac{$ " + "a name of many words " * 9: RANDOM.normal(size=120),
        "town": RANDOM.choice(["Ulm", "\x1b[31mBonn", "a very long name of a town"], 120),
        "unused": RANDOM.normal(size=120),
    }
)
LONG = TABLE.columns[1]
TARGET = 0.1 * (TABLE["age"] > 42) * TABLE[LONG] + (TABLE["town"] == "Ulm") + 0.02 * TABLE["age"]
