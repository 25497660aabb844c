"""Data of the flat estimators."""

import numpy as np


def attributes(model):
    """Return the numbers a model consists of."""
    names = ("weights_", "scales_", "support_", "dual_coef_", "intercept_", "contributions_")
    numbers = {name: getattr(model, name) for name in names}
    return numbers | {"objective": model.objective_, "gap": model.duality_gap_}


def assert_same_bits(first, second):
    for name, value in attributes(first).items():
        np.testing.assert_array_equal(attributes(second)[name], value, err_msg=name)
