import numpy as np
import pytest
from matplotlib.figure import Figure

from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from plot_tables import TABLE, TARGET


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="session")
def rules():
    return RuleEnsembleRegressor(C=30, max_length=2).fit(TABLE, TARGET)


@pytest.fixture(scope="session")
def classes():
    return RuleEnsembleClassifier(C=10).fit(TABLE, np.digitize(TARGET, [0.8, 1.5]))
