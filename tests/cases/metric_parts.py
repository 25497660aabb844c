"""A mixed table in parts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

dd = pytest.importorskip("dask.dataframe")

VALUES, Y = make_friedman1(900, n_features=6, random_state=0)
FRAME = pd.DataFrame(VALUES, columns=list("abcdef"))
FRAME["town"] = np.where(VALUES[:, 0] > 0.5, "Ulm", "Bonn")
FRAME.loc[::40, "f"] = np.nan
SMALL = {"max_exact": 200, "metric_rows": 200, "n_landmarks": 120, "n_steps": 1}
