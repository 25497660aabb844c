"""Values as JSON and back."""

import datetime

import numpy as np
import pytest

from kernelweave import rbf_ladder
from kernelweave.errors import ModelFileError
from kernelweave.io.codec import Decoder, encode
from model_files import same


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        -np.inf,
        "text",
        (1, [2.5, "a"]),
        slice(1, None),
        {"a": (1,)},
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 23, 59, 1),
        np.float32(0.1),
        np.str_("x"),
        rbf_ladder([1.0, 2.0], per_feature=True),
    ],
    ids=str,
)
def test_round_trips(value):
    same(Decoder(None)(encode(value, None)), value)


def test_a_record_from_before_it_had_its_last_field():
    parts = ["sigmoid", [1.0], [0.5], False, encode((), None)]
    found = Decoder(None)({"calibrator": parts})
    assert (found.method, found.biases, found.mixing) == ("sigmoid", [0.5], None)
    for damaged in (parts[:2], [*parts, None, None]):
        with pytest.raises(ValueError, match="'calibrator' is not known or not complete"):
            Decoder(None)({"calibrator": damaged})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.longdouble(0.1), "A value of type .* cannot be stored"),
        (np.complex128(1j), "A value of type complex128 cannot be stored"),
        (np.array([1j]), "An array of type complex128 cannot be stored in a model file; use"),
        (object(), "A value of type object cannot be stored"),
        (len, "A function or selector cannot be stored"),
    ],
)
def test_values_that_cannot_be_stored(value, message):
    with pytest.raises(ModelFileError, match=message):
        encode(value, None)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"date": "2024-02-30"}, "day is out of range"),
        ({"slice": [1, 2]}, "a value of kind 'slice' is not known or not complete"),
        ({"family": ["RBFLadder", {"per_feature": "yes"}]}, "per_feature must be true or false"),
        ({"step": [1.0]}, "a value of kind 'step' is not known or not complete"),
    ],
)
def test_damaged_values(node, message):
    with pytest.raises(ValueError, match=message):
        Decoder(None)(node)
