"""Lattices of products as they are written: ladders, and what is refused."""

import numpy as np
import pytest

from kernelweave import (
    RBF,
    Linear,
    Polynomial,
    ProductLattice,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from kernelweave.errors import InputError, InputTypeError


def test_ladders_are_written_out():
    X = np.arange(12.0).reshape(4, 3)
    assert [len(ladder) for ladder in ProductLattice().expand(X)] == [1, 1, 1]
    family = ProductLattice(rbf_ladder([4, 1], per_feature=True))
    assert [[k.width for k in ladder] for ladder in family.expand(X)] == [[4.0, 1.0]] * 3
    both = ProductLattice([Linear(columns=[0]), polynomial_ladder([1, 2], columns=[1])])
    assert [[str(k) for k in ladder] for ladder in both.expand(X)] == [
        ["linear on column 0"],
        ["polynomial(degree=1, coef0=1) on column 1", "polynomial(degree=2, coef0=1) on column 1"],
    ]
    named = ProductLattice(views({"a": [0, 1], "b": [2]}, [Linear(), RBF()]))
    assert [len(ladder) for ladder in named.expand(X)] == [2, 2]
    assert ProductLattice(RBF()).ladders == ((RBF(),),)
    assert ProductLattice([[RBF(), Polynomial(2)]]) == ProductLattice(((RBF(), Polynomial(2)),))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ladders": []}, InputError, "the list is empty"),
        ({"ladders": 3}, InputTypeError, "ladders must be a list of kernels.*got int"),
        ({"ladders": [RBF(), "x"]}, InputTypeError, "ladder 1 holds 'x', which is not"),
        ({"ladders": [[RBF(), 2]]}, InputTypeError, "ladder 0 holds 2, which is not a kernel"),
        ({"ladders": [[]]}, InputTypeError, "ladder 0 must be a kernel"),
        ({"base": 0}, InputError, "base must be a finite number > 0"),
        ({"base": np.inf}, InputError, "base must be a finite number > 0"),
        ({"base": "2"}, InputError, "base must be a finite number > 0"),
        ({"max_order": 0}, InputError, "max_order must be a whole number >= 1"),
        ({"max_order": 1.5}, InputError, "max_order must be a whole number >= 1"),
        ({"max_visited": 0}, InputError, "max_visited must be a whole number >= 1"),
    ],
)
def test_lattices_refuse_what_they_cannot_use(arguments, error, message):
    with pytest.raises(error, match=message):
        ProductLattice(**arguments)
