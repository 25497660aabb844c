"""Bounds of information-theoretic metric learning."""

import numpy as np
import pytest

from kernelweave.baselines import InformationTheoreticMetric
from kernelweave.errors import InputError
from pair_problems import metric_problem


def test_bounds_are_percentiles_or_given():
    X, pairs, labels, _ = metric_problem()
    model = InformationTheoreticMetric().fit(X, pairs=pairs, labels=labels)
    square = np.sum((X[:, None] - X) ** 2, axis=2)[np.triu_indices(len(X), 1)]
    np.testing.assert_allclose(model.bounds_, np.percentile(square, [5, 95]))
    for bad in ((1.0,), (0.0, 1.0), "ab", (1.0, np.nan)):
        with pytest.raises(InputError, match="bounds: must be two finite numbers > 0"):
            InformationTheoreticMetric(bounds=bad).fit(X, pairs=pairs, labels=labels)
    with pytest.raises(InputError, match="nearly all rows are equal"):
        InformationTheoreticMetric().fit(np.ones_like(X), pairs=pairs, labels=labels)
