"""Predictions by which a model was chosen, beside the truth."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from kernelweave.tables.left_out import chosen_predictions


def test_classes():
    problem = SimpleNamespace(regression=False, y=pd.Series(["no", "yes", "maybe", "yes"]))
    proba = np.array([[0.1, 0.7, 0.2], [0.0, 0.4, 0.6]])
    found = chosen_predictions(SimpleNamespace(rows=np.array([0, 3]), predicted=proba), problem)
    assert found.classes == ("maybe", "no", "yes")
    np.testing.assert_array_equal(found.y, [1, 2])
    np.testing.assert_array_equal(found.predicted, [1, 2])
    assert found.positive == 2
    assert found.proba is proba


def test_numbers():
    problem = SimpleNamespace(regression=True, y=pd.Series([1, 2, 3]))
    choice = SimpleNamespace(rows=np.array([2, 0]), predicted=np.array([2.5, 1.5]))
    found = chosen_predictions(choice, problem)
    np.testing.assert_array_equal(found.y, [3.0, 1.0])
    np.testing.assert_array_equal(found.predicted, [2.5, 1.5])
