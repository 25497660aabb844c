import numpy as np
import pytest


@pytest.fixture
def tables():
    """Return training rows and new rows."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)), rng.normal(size=(17, 3))
