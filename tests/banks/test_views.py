"""Rows are prepared once for all kernels on the same columns."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from kernelweave.banks import Views, cross_block
from kernelweave.kernels import Linear, Overlap
from shared_views import KERNELS


class TestViews:
    def test_equal_columns_are_prepared_once(self, tables):
        X, _ = tables
        views = Views.of(KERNELS, X)
        assert len(views.rows) == 2
        assert views[0] is views[2]
        assert views[3] is views[6]
        assert views.n_samples == 30

    def test_take_and_subset(self, tables):
        X, _ = tables
        views = Views.of(KERNELS, X)
        some = views.take(np.array([4, 2]))
        assert some.n_samples == 2
        assert_allclose(some[1], X[[4, 2]])
        part = views.subset([3])
        assert len(part.rows) == 1
        assert_allclose(part[0], X[:, :1])

    def test_frames(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": ["u", "v", "u"]})
        kernels = [Linear(columns="a"), Overlap(columns="c")]
        views = Views.of(kernels, frame)
        block = cross_block(kernels, np.array([1.0, 10.0]), views, views)
        assert_allclose(block, [[11, 2, 13], [2, 14, 6], [13, 6, 19]])
