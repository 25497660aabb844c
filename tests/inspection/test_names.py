"""Names are found as they are or as text; others get a hint."""

import numpy as np
import pytest

from kernelweave.errors import InputError
from kernelweave.inspection.names import find_name


@pytest.mark.parametrize(
    ("given", "names", "place"),
    [
        ("b", ["a", "b"], 1),
        (1, [True, 1], 1),  # True equals 1, but is no number
        ("1", [0, 1], 1),
        (np.int64(7), [5, 7], 1),
        (None, ["a", None], 1),
    ],
)
def test_found(given, names, place):
    assert find_name(given, names, "by") == place


def test_not_found():
    with pytest.raises(InputError, match=r"by: must be 'age' or 'weight', got 'wieght'\. Did you"):
        find_name("wieght", ["age", "weight"], "by")
    with pytest.raises(InputError, match=r"got 'x'\.$"):
        find_name("x", ["age", "weight"], "by")
