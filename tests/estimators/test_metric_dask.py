import numpy as np
import pytest

from kernelweave import MetricKernelRegressor
from kernelweave.errors import MemoryBudgetError
from metric_parts import FRAME, SMALL, VALUES, Y

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")


def test_weights_of_zero_leave_rows_out():
    weight = np.ones(900)
    weight[600:] = 0.0
    lazy = da.from_array(VALUES, chunks=(250, 6))
    model = MetricKernelRegressor(**SMALL).fit(lazy, Y, sample_weight=weight)
    assert np.isnan(model.loo_values_[600:]).all()
    assert not np.isnan(model.loo_values_[:600]).any()
    assert model.support_.max() < 600
    interval = model.predict_interval(VALUES[600:])
    held = (interval[:, 0] <= Y[600:]) & (Y[600:] <= interval[:, 1])
    assert 0.8 < held.mean() < 0.98


def test_few_rows_are_fetched_and_memory_is_limited():
    few = dd.from_pandas(FRAME[:150], npartitions=3)
    model = MetricKernelRegressor(n_steps=0).fit(few, Y[:150])
    assert model.solver_ == "cholesky"
    expected = MetricKernelRegressor(n_steps=0).fit(FRAME[:150], Y[:150])
    np.testing.assert_array_equal(model.predict(FRAME), expected.predict(FRAME))
    with pytest.raises(MemoryBudgetError, match="memory_limit: 4 matrices of 200 rows need"):
        MetricKernelRegressor(**SMALL, memory_limit="1MB").fit(
            dd.from_pandas(FRAME, npartitions=4), Y
        )
