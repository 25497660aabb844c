"""Targets of regression: their scale, and several of them."""

import numpy as np
import pytest

from flat_models import KERNELS, TIGHT, make_data, make_model
from kernelweave import (
    MKLRegressor,
)


@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_scaled_and_shifted_targets(norm):
    X, y = make_data("square")
    plain = MKLRegressor(KERNELS, norm=norm, loss="square", tol=TIGHT).fit(X, y)
    other = MKLRegressor(KERNELS, norm=norm, loss="square", tol=TIGHT).fit(X, 100 * y - 7)
    assert other.objective_ == pytest.approx(1e4 * plain.objective_, rel=4 * TIGHT)
    np.testing.assert_allclose(other.predict(X), 100 * plain.predict(X) - 7, atol=0.1)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
def test_targets_on_equal_weights_are_separate(loss):
    X, y = make_data(loss)
    Y = np.column_stack([y, np.cos(X[:, 1]), X[:, 2]])
    options = {"norm": "uniform", "target_scale": 1.5}  # several targets share one unit
    together = make_model(loss, **options).fit(X, Y)
    alone = [make_model(loss, **options).fit(X, column) for column in Y.T]
    assert together.objective_ == pytest.approx(sum(m.objective_ for m in alone), rel=4 * TIGHT)
    predictions = np.column_stack([m.predict(X) for m in alone])
    np.testing.assert_allclose(together.predict(X), predictions, atol=2e-3)
    assert together.dual_coef_.shape[0] == 3


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_shared_weights_cost_something(norm):
    X, y = make_data("square")
    Y = np.column_stack([y, 3 * X[:, 3]])
    together = make_model("square", norm=norm).fit(X, Y)
    alone = [make_model("square", norm=norm).fit(X, column) for column in Y.T]
    assert together.objective_ >= sum(m.objective_ for m in alone) * (1 - TIGHT)
    assert together.predict(X).shape == (50, 2)


def test_one_target_as_a_column():
    X, y = make_data("square")
    flat = make_model("square").fit(X, y)
    column = make_model("square").fit(X, y[:, None])
    assert flat.predict(X).shape == (50,)
    assert column.predict(X).shape == (50, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], flat.predict(X))


def test_equal_targets_have_equal_predictions():
    X, y = make_data("square")
    model = make_model("square").fit(X, np.column_stack([y, y]))
    np.testing.assert_allclose(model.predict(X)[:, 0], model.predict(X)[:, 1], atol=1e-9)
