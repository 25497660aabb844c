"""Checks of labels, weights and of what an estimator offers."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from kernelweave._validation import (
    all_or_nothing,
    check_labels,
    check_weights,
    is_missing,
    offered_if,
)
from kernelweave.errors import InputError


class Model:
    fitted = False

    @offered_if(lambda model: None if model.fitted else "fit first")
    def answer(self):
        """Return the answer."""
        return 42


def test_methods_are_offered_with_a_sentence():
    model = Model()
    assert not hasattr(model, "answer")
    with pytest.raises(AttributeError, match=r"^fit first$"):
        model.answer()
    model.fitted = True
    assert model.answer() == 42
    assert Model.answer.__doc__ == "Return the answer."


def test_attributes_are_restored_after_an_interruption():
    model = Model()
    model.old = 1

    def fit():
        with all_or_nothing(model):
            model.old, model.new = 2, 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert vars(model) == {"old": 1}


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, Decimal("nan"), np.float32("nan")])
def test_missing_labels_are_named_by_their_row(value):
    assert is_missing(value)
    with pytest.raises(InputError, match="the label of row 1 is missing"):
        check_labels(np.array(["a", value, "b"], dtype=object))


def test_labels():
    assert not is_missing("nan")
    assert not is_missing(0)
    assert check_labels(pd.Series(["b", "a"])).tolist() == ["b", "a"]
    with pytest.raises(InputError, match="contains NaN or infinity"):
        check_labels(np.array([0.0, np.inf]))


def test_weights():
    assert check_weights(None, 3) is None
    assert check_weights([1, 0, 2], 3).dtype == np.float64
    with pytest.raises(InputError, match="at least one weight must be positive"):
        check_weights([0, 0], 2)
    with pytest.raises(ValueError, match="Negative values"):
        check_weights([1.0, -1.0], 2)
