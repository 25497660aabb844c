"""Predictions of classes, labels, tasks and values from outputs."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kernelweave.errors import InputError
from kernelweave.estimators.predictions import TaskClassifier, TaskRegressor
from kernelweave.estimators.targets import DecidedClasses, TaskOutputs

X = np.array([[-1.0, 0.5, 2.0], [0.3, 0.2, -4.0]])


class Classes(TaskClassifier, TaskOutputs):
    classes_ = np.array(["a", "b", "c"])

    def _outputs(self, X):
        return np.asarray(X)


class Values(TaskRegressor, TaskOutputs):
    def _outputs(self, X):
        return np.asarray(X)


class Decided(DecidedClasses):
    classes_ = Classes.classes_

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X


@pytest.mark.parametrize("model", [Classes(), Decided()])
def test_the_class_with_the_largest_output_is_predicted(model):
    assert model.predict(X).tolist() == ["c", "a"]
    assert model.decision_function(X[:, :1]).tolist() == [-1.0, 0.3]
    assert model.predict(X[:, :1]).tolist() == ["a", "b"]


def test_decisions_come_before_the_classes_that_an_unfitted_model_lacks():
    class Unfitted(DecidedClasses):
        def decision_function(self, X):
            raise NotFittedError("not fitted")

    with pytest.raises(NotFittedError):
        Unfitted().predict(X)


@pytest.mark.parametrize("kind", ["_several", "_multilabel"])
def test_labels_are_predicted_one_by_one(kind):
    model = Classes()
    setattr(model, kind, True)
    assert model.predict(X).tolist() == [[0, 1, 1], [1, 1, 0]]
    assert model.predict(X[:, :1]).tolist() == [[0], [1]]


def test_the_output_of_the_task_is_taken():
    for model in (Classes(), Values()):
        with pytest.raises(InputError, match="fitted without tasks"):
            model.predict(X, task="north")
        model.tasks_ = np.array(["east", "north", "west"])
        assert model._by_task(X, ["west", "east"]).tolist() == [2.0, 0.3]
    assert model.predict(X, task="north").tolist() == [0.5, 0.2]


def test_tasks_are_refused_beside_several_outputs():
    Classes()._refuse_outputs(1)
    with pytest.raises(InputError, match="y has 3 classes or labels"):
        Classes()._refuse_outputs(3)
    with pytest.raises(InputError, match="y must have one column"):
        Values()._refuse_outputs(2)
