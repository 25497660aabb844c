"""What combinations of models share."""

import numpy as np

from kernelweave.estimators.combination import to_probabilities, undo_logarithm


def test_logarithms_are_undone():
    y = np.array([0.5, 3.0, 20.0])
    np.testing.assert_allclose(undo_logarithm(np.log(y + 2.0), 2.0, 1.0), y)
    assert np.isfinite(undo_logarithm(np.array([1e4]), 0.0, 1.0)).all()


def test_decision_values_become_probabilities():
    decision = np.array([-1.0, 0.0, 2.0])
    odds = 2.0 * decision + 0.5
    two = to_probabilities(decision, 2.0, 0.5)
    np.testing.assert_allclose(two[:, 1], 1 / (1 + np.exp(-odds)))
    many = to_probabilities(np.array([[1.0, 2.0, 3.0]]), 1.0, np.zeros(3))
    np.testing.assert_allclose(many.sum(axis=1), 1.0)
    assert many.argmax() == 2
