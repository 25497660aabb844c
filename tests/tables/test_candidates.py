"""Kinds of models that are compared."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import make_problem
from kernelweave.tables.candidates import BOOSTING, LINEAR, METRIC, MKL, SVM

X = np.random.default_rng(0).normal(size=(40, 2))
PROBLEM = make_problem(pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0] > 0), "y")


@pytest.mark.parametrize("candidate", [LINEAR, SVM, METRIC, MKL, BOOSTING], ids=lambda c: c.name)
def test_settings_and_times(candidate):
    assert candidate.settings(PROBLEM)
    seconds = [candidate.seconds(n, 1) for n in (100, 1000, 10_000)]
    assert 0 < seconds[0] < seconds[1] < seconds[2]
    assert candidate.written is (candidate is not BOOSTING)
