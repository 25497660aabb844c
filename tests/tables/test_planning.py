"""Folds and budgets of a comparison."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError
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


@pytest.mark.parametrize("n_folds", [1, 2, 5])
@pytest.mark.parametrize("target", [X[:, 0], np.where(X[:, 0] > 0, "yes", "no")])
def test_groups_stay_in_one_fold_with_the_copies_of_their_rows(n_folds, target):
    person = np.arange(N) % 20
    table = TABLE.assign(y=target, person=np.where(person > 17, None, person))
    table.loc[3, table.columns[:4]] = table.loc[5, table.columns[:4]]  # joins two persons
    problem = make_problem(table, "y", groups="person")
    assert "person" not in problem.X
    joined = np.where(person > 17, np.arange(N) + 100, person)  # a gap is a group of its own
    joined[joined == 5] = 3
    left_out = []
    for train, test in make_folds(problem, n_folds, 0):
        assert not set(joined[train]) & set(joined[test])
        assert len(train) + len(test) == N
        left_out.extend(test)
    assert len(set(left_out)) == (N if n_folds > 1 else len(left_out)) > 0.1 * N


def test_folds_of_groups_hold_all_classes_to_learn_from():
    y = np.full(N, "common")
    y[:20], y[100:120] = "rare", "rare"  # in two groups of ten
    problem = make_problem(TABLE.assign(y=y, person=np.arange(N) // 20), "y", groups="person")
    for seed in range(10):
        for train, _ in make_folds(problem, 5, seed):
            assert set(y[train]) == {"common", "rare"}
    y[100:120] = "common"
    problem = make_problem(TABLE.assign(y=y, person=np.arange(N) // 20), "y", groups="person")
    with pytest.raises(DataError, match="no fold can leave it out"):
        make_folds(problem, 5, 0)


def test_fewer_groups_than_folds():
    problem = make_problem(TABLE.assign(y=X[:, 1], person=np.arange(N) % 3), "y", groups="person")
    assert len(make_folds(problem, 10, 0)) == 3
