"""Hierarchies with tasks, classes, labels and paths over C."""

import numpy as np
import pytest
from sklearn.base import clone

from hierarchy_cases import CLASSES, KERNELS, LABELS, PARENTS, X, learner, y
from hkl_oracles import closure, solve_dag
from kernelweave import (
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    Precomputed,
)
from kernelweave.errors import InputError


@pytest.mark.parametrize("rho", [2.0, 1.3])
def test_tasks_against_the_conic_solver(rho):
    rng = np.random.default_rng(4)
    features = [rng.normal(size=(14, 2)) for _ in range(4)]
    parents = {1: [0], 2: [0], 3: [1, 2]}
    Y = np.column_stack([features[3][:, 0], features[1][:, 0] + features[3][:, 0]])
    grams = [Precomputed(phi @ phi.T) for phi in features]
    rows = np.arange(14)[:, None]
    B = np.array([[1.0, 0.5], [0.5, 2.0]])
    reference = solve_dag(
        features, Y, np.full(Y.shape, 2.0), closure([[], [0], [0], [1, 2]]),
        2.0 ** np.array([0, 1, 1, 2]), rho, B=B, loss="square",
    )  # fmt: skip
    model = HierarchicalMKLRegressor(
        grams, parents=parents, rho=rho, C=2.0, loss="square", normalize=None,
        task_correlation=B, tol=1e-5,
    ).fit(rows, Y)  # fmt: skip
    assert model.objective_ == pytest.approx(reference.value, rel=1e-4)
    assert model.predict(rows) == pytest.approx(reference.decision, abs=0.02)
    assert model.block_norms_ == pytest.approx(reference.Q[model.active_nodes_], abs=0.01)


def test_tasks_that_are_alike():
    one = HierarchicalMKLRegressor(KERNELS, parents=PARENTS, loss="square", tol=1e-6)
    target = X[:, 0] * X[:, 1]
    both = clone(one).fit(X, np.column_stack([target, target])).predict(X)
    assert both[:, 0] == pytest.approx(both[:, 1], abs=1e-6)
    far = clone(one).set_params(task_correlation=1e9).fit(X, X[:, :2]).objective_
    assert far == pytest.approx(clone(one).fit(X, X[:, :2]).objective_, rel=1e-5)
    near = clone(one).set_params(task_correlation=0.5, tol=1e-4).fit(X, X[:, :2])
    assert near.objective_ < far  # what the tasks have in common costs less


def test_several_classes_share_their_nodes():
    model = learner().fit(X, CLASSES)
    assert model.decision_function(X).shape == (50, 3)
    assert model.score(X, CLASSES) > 0.8
    related = learner(task_correlation=1.0).fit(X, CLASSES)
    assert related.converged_
    assert set(related.predict(X)) <= set(CLASSES)


def test_several_labels():
    model = learner(C=10.0).fit(X, LABELS)
    assert model.predict(X).shape == LABELS.shape
    assert (model.predict(X) == LABELS).mean() > 0.85
    assert model.decision_function(X).shape == LABELS.shape
    two = learner().fit(X, LABELS[:, :2])
    assert two.predict(X).shape == (50, 2)
    assert list(two.classes_) == [0, 1]
    balanced = learner(class_weight="balanced").fit(X, LABELS.astype(float))
    assert balanced.converged_
    (path,) = learner().fit_path(X, LABELS[:, :2], [3.0])
    assert (path.predict(X) == two.predict(X)).all()
    weight = np.r_[np.zeros(10), np.ones(40)]
    some = learner().fit(X, LABELS, sample_weight=weight)
    assert some.objective_ == pytest.approx(learner().fit(X[10:], LABELS[10:]).objective_, rel=1e-4)
    with pytest.warns(UserWarning, match="y: label 1 is the same in all rows"):
        constant = learner().fit(X, np.column_stack([y, np.ones_like(y)]))
    assert (constant.predict(X)[:, 1] == 1).all()
    with pytest.raises(InputError, match="y: several columns must be labels"):
        learner().fit(X, LABELS + 1)


def test_a_path_over_C_is_the_same_as_fits_one_by_one():
    Cs = [10.0, 0.5, 3.0]
    for model in (learner(), HierarchicalMKLClassifier(tol=1e-4)):
        models = model.fit_path(X, y, Cs)
        assert [m.C for m in models] == Cs
        for one in models:
            alone = clone(one).fit(X, y)
            assert one.objective_ == pytest.approx(alone.objective_, rel=1e-4)
            assert one.converged_


def test_bad_task_matrices_are_told_apart():
    for B, message in [
        ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[0.0, 0.0], [0.0, 1.0]], "diagonal"),
        ("near", "task_correlation: must be"),
        (np.nan, "task_correlation"),
    ]:
        with pytest.raises(InputError, match=message):
            HierarchicalMKLRegressor(task_correlation=B).fit(X, X[:, :2])
