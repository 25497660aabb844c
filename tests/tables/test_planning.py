"""Folds and budgets of a comparison."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import make_problem
from kernelweave.tables.planning import make_folds, make_plan

N = 200
X = np.random.default_rng(0).normal(size=(N, 3))
TABLE = pd.DataFrame(X, columns=["age", "height", "weight"])


@pytest.mark.parametrize("n_folds", [1, 2, 5])
def test_copies_stay_in_one_fold(n_folds):
    table = TABLE.assign(ill=np.where(X[:, 0] > 0, "yes", "no"))
    twice = pd.concat([table, table[:60]], ignore_index=True)
    for train, test in make_folds(make_problem(twice, "ill"), n_folds, 0):
        assert not set(train % N) & set(test % N)
        assert len(test) > 0


def test_a_budget_decides():
    problem = make_problem(TABLE.assign(y=X[:, 0] - 2.0 * X[:, 2]), "y")
    few, many = make_plan(problem, 0.1), make_plan(problem, 1000.0)
    assert (few.n_folds, many.n_folds) == (2, 10)
    assert len(many.candidates) > len(few.candidates)
    assert few.seconds < many.seconds < 1000
