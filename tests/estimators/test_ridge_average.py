"""An average of ridge models: its stored parts give its decisions; ridges are checked."""

import numpy as np
import pytest

from kernelweave import RBF, Linear, NoiseTolerantKernelClassifier
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


@pytest.mark.parametrize("ridges", [[], [0.0], [1.0, -1.0], [np.nan], [[1.0]]])
def test_bad_ridges(ridges):
    with pytest.raises(InputError, match="ridges: must be one or more finite numbers > 0"):
        NoiseTolerantKernelClassifier(ridges=ridges).fit(X, Y)
