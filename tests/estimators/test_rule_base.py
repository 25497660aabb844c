"""Rule ensembles on tables in blocks of rows, and the joining of equal rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

from hkl_oracles import same_model
from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from row_blocks import LocalParts


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(1),
            "b": rng.integers(0, 9, n),
            "c": rng.choice(["u", "v", "w"], n),
        }
    )
    return X, (X["a"] > 0) & (X["c"] != "w") ^ (rng.random(n) < 0.1)


def parts(X, cuts=(1, 71, 200)):
    edges = [0, *cuts, len(X)]
    return LocalParts([X[a:b] for a, b in itertools.pairwise(edges)])


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_give_the_model_of_the_table(weighted):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    whole = RuleEnsembleClassifier(C=3).fit(X, y, weight)
    blocks = RuleEnsembleClassifier(C=3)._fit_parts(parts(X), y, weight)
    same_model(whole, blocks)
    np.testing.assert_array_equal(blocks.feature_names_in_, whole.feature_names_in_)
    np.testing.assert_array_equal(blocks.decision_function(X), whole.decision_function(X))


def test_blocks_of_given_propositions_tasks_and_numbers():
    rng = np.random.default_rng(0)
    P = rng.random((400, 6)) < 0.5
    y, task = 1.0 * (P[:, 0] & P[:, 1]) + 0.1 * rng.normal(size=400), rng.integers(0, 2, 400)
    model = RuleEnsembleRegressor(propositions="given", task_correlation=0.5)
    whole = model.fit(P, y, task=task)
    blocks = RuleEnsembleRegressor(propositions="given", task_correlation=0.5)
    same_model(whole, blocks._fit_parts(parts(P), y, task=task))


def test_blocks_that_are_refused_leave_no_model():
    X, y = table()
    model = RuleEnsembleClassifier()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model._fit_parts(parts(X), y[:-1])
    mixed = LocalParts([np.ones((5, 2), dtype=bool), np.ones((5, 2))])
    with pytest.raises(InputError, match="same columns of the same type"):
        RuleEnsembleClassifier(propositions="given")._fit_parts(mixed, np.arange(10) % 2)
    assert not hasattr(model, "rules_")
    assert not hasattr(model, "n_features_in_")


def test_the_threads_do_not_matter_on_many_rows():
    """Counted systems, bounded searches and blocks of rows give the same bits."""
    rng = np.random.default_rng(0)
    P = rng.random((9000, 14)) < 0.5
    y = ((P[:, 0] & P[:, 1]) | (P[:, 2] & P[:, 3] & P[:, 4])) ^ (rng.random(9000) < 0.05)
    one = RuleEnsembleClassifier(propositions="given", n_jobs=1).fit(P, y)
    three = RuleEnsembleClassifier(propositions="given", n_jobs=3).fit(P, y)
    same_model(one, three)
    np.testing.assert_array_equal(one.decision_function(P), three.decision_function(P))
    assert one.converged_
