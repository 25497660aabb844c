"""Rule ensembles of regression."""

import numpy as np
import pytest

from rule_problems import TOL, oracle_for, problem, regressor


@pytest.mark.parametrize(
    ("loss", "epsilon"), [("square", 0.1), ("huber", 0.3), ("epsilon_insensitive", 0.2)]
)
@pytest.mark.parametrize("related", [False, True])
def test_losses_of_regression(loss, epsilon, related):
    P, score = problem(25, 4)
    Y = np.column_stack([score, P[:, 0] - score]) if related else score[:, None]
    B = np.array([[1.0, 0.6], [0.6, 2.0]]) if related else None
    model = regressor(1.5, loss=loss, epsilon=epsilon, task_correlation=B).fit(P, Y)
    oracle = oracle_for(P, Y, 10.0, 1.5, loss=loss, B=B, epsilon=epsilon)
    assert model.objective_ == pytest.approx(oracle.value, rel=2 * TOL)
    np.testing.assert_allclose(model.predict(P), oracle.decision, atol=0.02)
