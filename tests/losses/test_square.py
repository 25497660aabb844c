import numpy as np

from kernelweave.losses import Square


def test_the_bias_of_constant_targets_leaves_nothing():
    Y = np.full((35, 1), 1.1e55)  # whose mean is rounded
    for cost in (np.full((35, 1), 0.1), np.random.default_rng(0).uniform(0.1, 2, (35, 1))):
        value, bias = Square().value(np.zeros_like(Y), Y, cost)
        assert value == 0.0
        assert bias == Y[0]


def test_rows_without_cost_have_no_part_in_the_bias():
    Y = np.array([[1.0], [3.0], [100.0]])
    value, bias = Square().value(np.zeros_like(Y), Y, np.array([[1.0], [1.0], [0.0]]))
    assert (value, bias[0]) == (1.0, 2.0)
