"""A small table in the forms of three libraries."""

import numpy as np
import pandas as pd
import polars as pl

ARRAY = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
NAMES = ["age", "bmi", "dose"]
PANDAS = pd.DataFrame(ARRAY, columns=NAMES)
POLARS = pl.DataFrame({name: ARRAY[:, j] for j, name in enumerate(NAMES)})


def upper(X):
    return [1, 2]
