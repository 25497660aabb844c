"""Mirror descent on graphs of kernels, as published."""

import pytest

from dag_cases import INSTANCES, NAMES, brackets, fit, oracle


@pytest.mark.parametrize("number", range(0, len(INSTANCES), 2), ids=NAMES[::2])
def test_mirror_descent_and_the_published_condition_end_at_the_same_value(number):
    for options in ({"solver": "mirror"}, {"certificate": "paper"}):
        _, result = fit(INSTANCES[number], 1e-3, **options)
        assert result.converged
        assert result.objective == pytest.approx(oracle(number).value, rel=1e-3)
        assert brackets(result, oracle(number))
