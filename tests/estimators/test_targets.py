"""Targets: classes, several labels, real values and tasks."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelweave import HierarchicalMKLRegressor, MetricKernelRegressor, MKLRegressor
from kernelweave.errors import InputError, InputTypeError
from kernelweave.estimators.targets import (
    class_targets,
    label_table,
    label_targets,
    read_tasks,
    refuse_absent_class,
    task_matrix,
)


def test_classes_become_signs_and_costs():
    estimator = SimpleNamespace(class_weight={"a": 2.0, "b": 1.0, "c": 0.5})
    found = class_targets(estimator, np.zeros((4, 1)), ["b", "a", "c", "a"], [1.0, 1.0, 1.0, 3.0])
    assert estimator.classes_.tolist() == ["a", "b", "c"]
    assert found.Y.tolist() == [[-1, 1, -1], [1, -1, -1], [-1, -1, 1], [1, -1, -1]]
    assert found.cost[:, 0].tolist() == [1.0, 2.0, 0.5, 6.0]
    two = class_targets(SimpleNamespace(class_weight=None), np.zeros((2, 1)), [0, 1], None)
    assert two.Y.tolist() == [[-1.0], [1.0]]


def test_classes_that_cannot_be_learned():
    estimator = SimpleNamespace(class_weight={0: 1.0, 1: -1.0})
    with pytest.raises(InputError, match="class_weight: weights must be finite numbers > 0"):
        class_targets(estimator, np.zeros((2, 1)), [0, 1], None)
    with pytest.raises(InputError, match="one class only: 7 among the rows of positive weight"):
        class_targets(estimator, np.zeros((2, 1)), [0, 7], [0.0, 1.0])
    estimator.class_weight = None
    found = class_targets(estimator, np.zeros((3, 1)), [0, 1, 2], [1.0, 1.0, 0.0])
    with pytest.raises(InputError, match="all rows of class 2 have weight zero"):
        refuse_absent_class(estimator, found)


def test_tables_of_labels():
    table = np.array([[1, 0], [0, 1]])
    for form in (table, table.astype(bool), csr_array(table), table.astype(object)):
        assert np.array_equal(label_table(form), table)
    assert label_table([0, 1]) is None
    with pytest.raises(InputError, match="y: several columns must be labels"):
        label_table([[2, 0], [0, 1]])


def test_class_weights_of_several_labels():
    table, X = np.array([[1, 0], [0, 1], [0, 1], [0, 0]]), np.zeros((4, 1))
    estimator = SimpleNamespace(class_weight={0: 1.0, 1: 3.0})
    found = label_targets(estimator, X, table, [1.0, 2.0, 1.0, 1.0])
    assert found.cost.tolist() == [[3.0, 1.0], [2.0, 6.0], [1.0, 3.0], [1.0, 1.0]]
    estimator.class_weight = "balanced"
    assert label_targets(estimator, X, table, None).cost[:, 0].tolist() == [2.0, *[2 / 3] * 3]
    estimator.class_weight = {0: 1.0, 1: -1.0}
    with pytest.raises(InputError, match="class_weight: weights must be finite numbers > 0"):
        label_targets(estimator, X, table, None)


def test_relations_of_tasks():
    assert task_matrix(None, 3) is None
    assert task_matrix(0.5, 1) is None
    assert task_matrix(np.eye(2), 2) is None
    assert task_matrix(0.5, 2).tolist() == [[3.0, 2.0], [2.0, 3.0]]
    for given, message in [
        (-1.0, "a number must be finite and > 0"),
        ("x", "must be a number > 0 or a matrix"),
        ([[1.0, 2.0], [0.0, 1.0]], "must be symmetric"),
        ([[0.0, 0.0], [0.0, 1.0]], "diagonal of the matrix must be positive"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite, but has the eigenvalue -1"),
    ]:
        with pytest.raises(InputError, match=message):
            task_matrix(given, 2)


def test_names_of_tasks():
    names, codes = read_tasks(["b", "a", "b"], 3)
    assert names.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="every row needs one, but 1 have None"):
        read_tasks(["a", None], 2)
    with pytest.raises(InputTypeError, match="Hint: turn the numbers into text"):
        read_tasks(np.array(["a", 1], dtype=object), 2)


@pytest.mark.parametrize(
    "model", [MKLRegressor(), MetricKernelRegressor(), HierarchicalMKLRegressor()], ids=str
)
def test_targets_whose_squares_overflow(model):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(
        InputError, match=r"y: values up to 1e\+100 are possible, got .* Hint: divi"
    ):
        model.fit(X, X[:, 0] * 1e200)
