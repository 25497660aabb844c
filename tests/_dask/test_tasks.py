"""Sums over parts of a table are added in a fixed order."""

import numpy as np
import pytest

from kernelweave import _dask

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17, 37, 64, 69])
def test_sums_here_are_those_of_dask(n):
    dask = pytest.importorskip("dask")
    numbers = RNG.normal(size=n) * 10.0 ** RNG.integers(-8, 8, n)
    tasks = [_dask.call(lambda x: (x, [x]), x) for x in numbers]
    with dask.config.set(scheduler="synchronous"):
        there = _dask.run([_dask.add_up(tasks)])[0]
    here = _dask.add_up_here(lambda items: [(x, [x]) for x in items], numbers)
    assert here == there
    assert here[1] == numbers.tolist()
