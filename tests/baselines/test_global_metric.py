"""Metrics from sums of distances."""

import numpy as np
import pytest

from kernelweave.baselines import GlobalDistanceMetric
from kernelweave.errors import InputError
from pair_problems import metric_problem


def test_columns_that_only_cost_get_no_weight_and_equal_rows_are_refused():
    X, pairs, labels, _ = metric_problem()
    X = np.column_stack([X, np.ones(len(X))])
    assert GlobalDistanceMetric().fit(X, pairs=pairs, labels=labels).components_[-1] == 0
    X[pairs[labels < 0]] = 0.0
    with pytest.raises(InputError, match="different pairs are equal"):
        GlobalDistanceMetric().fit(X, pairs=pairs, labels=labels)
