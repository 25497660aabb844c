import numpy as np

from kernelweave.inner.solution import Solution, unsolved


def test_a_start_proves_nothing():
    fitted = np.ones((4, 2))
    start = unsolved(np.zeros((4, 2)), fitted)
    assert start.gap == np.inf
    assert start.fitted is fitted
    assert start.intercept.tolist() == [0.0, 0.0]


def test_the_gap_is_the_distance_of_the_bounds():
    none = np.zeros((0, 1))
    assert Solution(none, np.zeros(1), none, 3.0, 1.0).gap == 2.0
