"""Sets of kernel weights: minimisers, penalties and dual bounds."""

import numpy as np
import pytest

from kernelweave.testing import check_weight_set
from kernelweave.weights import LpBall, Simplex, Uniform

SETS = [
    Simplex(),
    Uniform(),
    LpBall(1.0),
    LpBall(1.01),
    LpBall(1.5),
    LpBall(2.0),
    LpBall(4.0),
    LpBall(50.0),
]


@pytest.mark.parametrize("n_kernels", [1, 2, 7])
@pytest.mark.parametrize("weight_set", SETS, ids=str)
def test_contract(weight_set, n_kernels):
    check_weight_set(weight_set, n_kernels)


@pytest.mark.parametrize("weight_set", SETS, ids=str)
def test_lower_bound_written_out(weight_set):
    quadratic_forms = np.array([2.0, 4.0])
    top = weight_set.support_value(quadratic_forms)
    # Inside the box the whole step is allowed where it is best, and no more than that.
    assert weight_set.lower_bound(top, 0.0, quadratic_forms) == pytest.approx(0.5 * top)
    assert weight_set.lower_bound(3 * top, 0.0, quadratic_forms) == pytest.approx(2.5 * top)
    assert weight_set.lower_bound(3 * top, 0.0, quadratic_forms, bounded=False) == pytest.approx(
        4.5 * top
    )
    assert weight_set.lower_bound(top, top, quadratic_forms) == pytest.approx(0.25 * top)
    assert weight_set.lower_bound(-1.0, 0.0, quadratic_forms) == 0
    zero = np.zeros(2)
    assert weight_set.lower_bound(3.0, 0.0, zero) == 3
    assert weight_set.lower_bound(-3.0, 0.0, zero) == 0
    assert weight_set.lower_bound(3.0, 2.0, zero) == 2
