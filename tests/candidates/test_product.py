"""Lattices of products as they are written: ladders, and what is refused."""

import numpy as np
import pandas as pd
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


def test_default_ladders_of_mixed_tables():
    n = 40
    frame = pd.DataFrame(
        {
            "size": np.linspace(0.0, 1.0, n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) * 9, unit="D"),
            "town": ["Ulm", None, "Bonn", "Ulm"] * 10,
            "dose": np.where(np.arange(n) % 5 == 0, np.nan, np.arange(n) % 7),
            "wet": np.arange(n) % 2 == 0,
            "row": [f"r{i}" for i in range(n)],  # names tell nothing
        }
    )
    kernels = [kernel for (kernel,) in ProductLattice().expand(frame)]
    columns = [str(kernel).split(" on ")[1] for kernel in kernels]
    assert columns == ["size", "day", "town", "dose", "wet"]
    dose = kernels[3](frame)
    assert dose[0, 5] == pytest.approx(1.0)  # two gaps
    assert dose[3, 10] < 0.9  # a gap is not the median, which is 3
    assert kernels[1](frame).shape == (n, n)
    assert kernels[0](frame.assign(size=np.nan)).max() == 1.0  # gaps that training rows had not
    for rule in ("refuse", "fill"):
        assert ProductLattice(missing=rule).missing == rule
    with pytest.raises(InputError, match="missing"):
        [kernel(frame) for (kernel,) in ProductLattice(missing="refuse").expand(frame)]
    with pytest.raises(InputError, match="no column to learn from"):
        ProductLattice().expand(frame[["row"]])


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
