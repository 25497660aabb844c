"""The search of C."""

import numpy as np
import pandas as pd

from kernelweave.tables import make_problem, search_cost
from kernelweave.tables.planning import sample_rows

RANDOM = np.random.default_rng(1)


def test_the_search_widens_where_the_best_is_at_an_end():
    x = np.linspace(-3, 3, 120)
    wave = pd.DataFrame({"x": x, "y": np.sin(9 * x)})
    search = search_cost(make_problem(wave, "y"), "mkl")
    assert search.values[:3] == (0.1, 1.0, 10.0)
    assert len(search.values) > 3
    assert search.C == search.values[-2] >= 10
    assert search.losses[search.values.index(search.C)] == search.losses.min()


def test_samples_keep_all_classes():
    y = ["a"] * 95 + ["b"] * 5
    problem = make_problem(pd.DataFrame({"x": RANDOM.normal(size=100), "y": y}), "y")
    rows = sample_rows(problem, 20, 0)
    assert (problem.y.iloc[rows] == "b").sum() == 1
    assert (np.diff(rows) > 0).all()
