"""Equal rows are joined."""

import numpy as np
import pytest

from kernelweave.banks.rules import PackedRows
from kernelweave.estimators.duplicates import merge_propositions


@pytest.mark.parametrize("p", [3, 8, 31, 33, 70])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_equal_rows_are_joined_in_the_order_of_their_content(p, n_outputs):
    rng = np.random.default_rng(p)
    P = (rng.random((40, p)) < 0.5)[rng.integers(0, 40, 500)]
    Y = rng.choice([-1.0, 1.0, 0.1, 1 / 3, -7.3, -0.0, 0.0], size=(500, n_outputs))
    weight = rng.integers(0, 3, 500).astype(float)
    cost = rng.random((500, n_outputs))
    merged = merge_propositions(PackedRows.of(P), Y, cost, weight)
    keys = [np.packbits(a).tobytes() + (b + 0.0).tobytes() for a, b in zip(P, Y, strict=True)]
    wanted = sorted({key for key, w in zip(keys, weight, strict=True) if w > 0})
    assert [keys[i] for i in merged.index] == wanted
    for place, key in enumerate(wanted):
        rows = [i for i in range(500) if keys[i] == key and weight[i] > 0]
        assert merged.index[place] == rows[0]
        assert (merged.inverse[rows] == place).all()
        np.testing.assert_allclose(merged.cost[place], cost[rows].sum(axis=0), rtol=1e-14)
        assert merged.weight[place] == weight[rows].sum()
    assert (merged.inverse[weight == 0] == -1).all()
    np.testing.assert_array_equal(merged.X.unpack(), P[merged.index])
