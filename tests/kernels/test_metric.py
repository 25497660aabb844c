"""The Laplacian kernel in a learned metric."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import InputError
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.kernels.metric import Metric, MetricLaplacian
from kernelweave.testing import check_kernel

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame({"size": RANDOM.normal(size=30), "town": RANDOM.choice(["a", "b"], 30)})
ENCODING = TableEncoding.learn(FRAME)
ROWS = ENCODING.encode(FRAME)
ROOT = RANDOM.normal(size=(ROWS.shape[1],) * 2)
METRIC = Metric(RANDOM.uniform(0.5, 2.0, ROWS.shape[1]), ROOT + ROOT.T)


def test_distances_are_those_of_the_formulas():
    """Indicator columns take another way than numbers."""
    difference = ROWS[:, None] - ROWS[:12]
    absolute, euclidean = METRIC.distances(ROWS, ROWS[:12])
    np.testing.assert_allclose(absolute, np.abs(difference) @ METRIC.weights, atol=1e-12)
    lengths = np.sqrt(((difference @ METRIC.root) ** 2).sum(axis=2))
    np.testing.assert_allclose(euclidean, lengths, atol=1e-12)


def test_it_is_the_mixture_and_a_kernel():
    kernel = MetricLaplacian(ENCODING, METRIC, (2.0, 3.0), 0.25)
    absolute, euclidean = METRIC.distances(ROWS, ROWS)
    expected = 0.25 * np.exp(-absolute / 2.0) + 0.75 * np.exp(-euclidean / 3.0)
    np.testing.assert_allclose(kernel(FRAME), expected, atol=1e-12)
    check_kernel(kernel, FRAME)


def test_refusals():
    with pytest.raises(InputError, match="omit columns"):
        MetricLaplacian(ENCODING, METRIC, (1.0, 1.0), 0.5, columns=[0])
    for weights, root in [
        (np.ones(2), np.eye(3)),
        (-np.ones(2), np.eye(2)),
        (np.full(2, np.nan), np.eye(2)),
    ]:
        with pytest.raises(ValueError, match="a metric"):
            Metric(weights, root)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_walks_end_at_the_values_of_mixed_rows(share):
    kernel = MetricLaplacian(ENCODING, METRIC, (2.0, 3.0), share)
    ((atom,),) = [item.atoms for item in kernel.opaque()]
    columns = [np.array([0]), np.arange(1, ROWS.shape[1])]
    coef = RANDOM.normal(size=(20, 2))
    walk = atom.walks(ROWS[:20], coef, ROWS[20:], ROWS[:3], columns)
    for order in ([0, 1], [1, 0]):
        mixed = np.tile(ROWS[2], (10, 1))
        mixed[:, columns[order[0]]] = ROWS[20:, columns[order[0]]]
        expected = kernel.block(mixed, ROWS[:20]) @ coef
        np.testing.assert_allclose(walk(2, np.array(order)), expected[None], atol=1e-4)


def test_a_product_is_not_walked():
    ((atom,),) = [
        item.atoms for item in MetricLaplacian(ENCODING, METRIC, (1.0, 1.0), 1.0).opaque()
    ]
    assert atom.walks is None
