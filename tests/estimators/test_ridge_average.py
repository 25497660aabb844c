"""An average of ridge models: its stored parts give its decisions; ridges are checked."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    RBF,
    Linear,
    NoiseTolerantKernelClassifier,
    complete_ladder,
    io,
    mixed_ladder,
)
from kernelweave.errors import InputError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 3))
Y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.4, 0.4])


@pytest.fixture(scope="module")
def model():
    kernels = [RBF(1.0), Linear(columns=[0, 1])]
    return NoiseTolerantKernelClassifier(kernels, ridges=[0.1, 1.0]).fit(X, Y)


def test_decisions_are_the_sum_over_kernels(model):
    new = RANDOM.normal(size=(7, 3))
    decided = np.broadcast_to(model.intercept_, (7, 3)).copy()
    for kernel, scale, coef in zip(model.kernels_, model.scales_, model.dual_coef_, strict=True):
        decided += scale * kernel(new, X[model.support_]) @ coef.T
    np.testing.assert_allclose(model.decision_function(new), decided, rtol=1e-6, atol=1e-8)


def test_weights_are_those_of_kernels_and_ridges(model):
    np.testing.assert_allclose(model.ridge_weights_.sum(), 1.0)
    np.testing.assert_allclose(model.ridge_weights_.sum(axis=1), model.weights_)
    np.testing.assert_array_equal(model.ridges_, [0.1, 1.0])
    np.testing.assert_allclose(model.contributions_.sum(), 1.0)


def test_default_kernels_are_encoded_where_columns_are_mixed(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    mixed = frame.assign(b=1e4 * frame["b"], town=np.where(X[:, 1] > 0, "Ulm", "Bonn"))
    for rows, family in ((frame, complete_ladder()), (mixed, mixed_ladder(per_feature=False))):
        usual = NoiseTolerantKernelClassifier().fit(rows, Y)
        expected = NoiseTolerantKernelClassifier(family).fit(rows, Y)
        np.testing.assert_array_equal(
            usual.decision_function(rows), expected.decision_function(rows)
        )
    io.save(usual, tmp_path / "mixed.kw")
    again = io.load(tmp_path / "mixed.kw")
    np.testing.assert_array_equal(again.decision_function(rows), usual.decision_function(rows))


@pytest.mark.parametrize("ridges", [[], [0.0], [1.0, -1.0], [np.nan], [[1.0]]])
def test_bad_ridges(ridges):
    with pytest.raises(InputError, match="ridges: must be one or more finite numbers > 0"):
        NoiseTolerantKernelClassifier(ridges=ridges).fit(X, Y)
