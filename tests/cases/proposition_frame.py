"""A frame of all kinds of columns, and the propositions it must give."""

import numpy as np
import pandas as pd


def frame():
    return pd.DataFrame(
        {
            "age": [20, 30, 30, 50, np.nan],
            "colour": ["red", "blue", None, "green", "red"],
            "side": pd.Categorical(["left", "right", "left", None, "right"]),
            "smoker": pd.array([True, False, None, True, True], dtype="boolean"),
            "size": pd.Categorical(
                ["S", "L", "M", "M", None], categories=["S", "M", "L"], ordered=True
            ),
            "same": [1.0, 1, 1, np.nan, 1],
        }
    )


EXPECTED = [
    *("age <= 25", "age > 25", "age <= 40", "age > 40"),
    *("colour == blue", "colour != blue", "colour == green", "colour != green"),
    *("colour == red", "colour != red", "side == left", "side == right"),
    *("smoker", "not smoker", "size <= S", "size > S", "size <= M", "size > M"),
]
ROWS = np.array(
    [
        [1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0],
        [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
        [0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0],
        [0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0],
    ],
    dtype=bool,
)
