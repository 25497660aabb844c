"""What all combinations share: members, weights, and how values become predictions."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import CombinedRegressor, Linear, MKLRegressor
from kernelweave.errors import InputError
from kernelweave.estimators.combination import to_probabilities, undo_logarithm

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 2))
Y = X[:, 0] + 0.1 * RANDOM.normal(size=30)
MEMBERS = [
    ("line", LinearRegression()),
    ("scaled", make_pipeline(StandardScaler(), MKLRegressor([Linear()]))),
]


def test_members_are_fitted_copies_and_weights_sum_to_one():
    weight = RANDOM.integers(1, 4, 30).astype(float)
    model = CombinedRegressor(MEMBERS, weights=[1.0, 3.0]).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.weights_, [0.25, 0.75])
    alone = LinearRegression().fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.members_[0].coef_, alone.coef_)
    assert not hasattr(MEMBERS[0][1], "coef_")
    assert model.n_iter_ == model.members_[1][-1].n_iter_
    assert model.to_frame()["member"].tolist() == ["scaled", "line"]
    parts = [member.predict(X) for member in model.members_]
    np.testing.assert_allclose(model.predict(X), 0.25 * parts[0] + 0.75 * parts[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": []}, "estimators: must have one item or more"),
        ({"estimators": [LinearRegression()]}, "estimators: must be pairs of a name and an"),
        ({"weights": [1.0]}, "weights: must have an item for each of the 2 members, got 1"),
        ({"weights": [0.0, 0.0]}, "weights: must be finite, not negative, not all 0"),
        ({"weights": [2.0, -1.0]}, "weights: must be finite, not negative, not all 0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        CombinedRegressor(**({"estimators": MEMBERS} | options)).fit(X, Y)


def test_logarithms_are_undone():
    y = np.array([0.0, 1.0, 50.0])
    np.testing.assert_allclose(undo_logarithm(np.log(y + 2.0), 2.0, 1.0), y, atol=1e-12)
    np.testing.assert_allclose(undo_logarithm(np.log(y + 2.0), 2.0, 1.5), 1.5 * (y + 2.0) - 2.0)
    assert np.isfinite(undo_logarithm(np.array([1e6]), 0.0, 1.0)).all()


def test_calibrated_decisions():
    values = np.array([-1.0, 0.5])
    two = to_probabilities(values, [[2.0]], [0.1])
    np.testing.assert_allclose(two[:, 1], expit(2.0 * values + 0.1))
    np.testing.assert_allclose(two.sum(axis=1), 1.0)
    table, slopes = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(3, 3))
    shift = np.array([0.1, 0.2, 0.3])
    expected = softmax(table @ slopes.T + shift, axis=1)
    np.testing.assert_allclose(to_probabilities(table, slopes, shift), expected)
    scaled = softmax(2.0 * table + shift, axis=1)
    np.testing.assert_allclose(to_probabilities(table, 2.0, shift), scaled)
