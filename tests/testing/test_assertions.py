import numpy as np
import pytest

from kernelweave.testing.assertions import close, require, unchanged


def test_values_shapes_and_nan_are_told():
    close([1.0, 2.0], [1.0, 2.1], 0.2, "sums")
    with pytest.raises(AssertionError, match=r"^sums: found 2, expected 2\.1 at \(1,\)\.$"):
        close([1.0, 2.0], [1.0, 2.1], 0.05, "sums")
    with pytest.raises(AssertionError, match="found nan"):
        close([np.nan], [1.0], 1.0, "sums")
    with pytest.raises(AssertionError, match=r"the shape is \(1,\), expected \(2,\)"):
        close([1.0], [1.0, 1.0], 1.0, "sums")
    close([], [], 0.0, "nothing")
    with pytest.raises(AssertionError, match="no"):
        require(False, "no")


def test_work_that_writes_is_told():
    array = np.zeros(3)
    assert unchanged(array, lambda: array.sum(), "sum") == 0.0
    with pytest.raises(AssertionError, match="fill writes to its input"):
        unchanged(array, lambda: array.fill(1.0), "fill")
