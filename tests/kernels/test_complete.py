"""The additive kernel, and the family of kernels that each see everything."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kernelweave._threads import threads
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import (
    RBF,
    Additive,
    Linear,
    Overlap,
    Product,
    complete_ladder,
    expand_kernels,
    views,
)
from kernelweave.testing import check_kernel

X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 0.1]
MIXED = pd.DataFrame(X, columns=["age", "bmi", "dose"]).assign(
    city=["x", "y"] * 25, shift=["early", "late", "late", "night", "off"] * 10
)


def test_additive_is_a_mean_over_columns():
    kernel = Additive((0.5, 20.0, np.inf))
    expected = (RBF(0.5, columns=0)(X) + RBF(20.0, columns=1)(X) + 1.0) / 3
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(X, X[:2]), expected[:, :2], atol=1e-12)  # few rows
    np.testing.assert_allclose(kernel(X[:2], X), expected[:2], atol=1e-12)
    check_kernel(kernel, X)
    check_kernel(Additive([1.0], columns=1), X)


def test_additive_does_not_depend_on_threads():
    table = np.random.default_rng(1).normal(size=(300, 4))
    kernel = Additive((1.0,) * 4)
    blocks = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            blocks.append(kernel(table))
    np.testing.assert_array_equal(*blocks)
    np.testing.assert_array_equal(blocks[0], blocks[0].T)


def test_additive_is_a_value():
    kernel = Additive([1, 2.5])
    assert kernel == Additive((1.0, 2.5)) == pickle.loads(pickle.dumps(kernel))
    assert str(kernel) == "additive(2 widths from 1 to 2.5)"
    assert kernel != Additive((1.0, 2.0))


@pytest.mark.parametrize(
    ("widths", "error", "message"),
    [
        ((), InputTypeError, "one per column"),
        (1.0, InputTypeError, "list of numbers"),
        ((1.0, 0.0), InputError, r"widths\[1\] must be a number > 0"),
        ((1.0, "a"), InputError, r"widths\[1\]"),
    ],
)
def test_additive_refuses_widths(widths, error, message):
    with pytest.raises(error, match=message):
        Additive(widths)


def test_additive_refuses_rows():
    with pytest.raises(InputError, match="2 widths for 3 columns"):
        Additive((1.0, 1.0))(X)
    with pytest.raises(InputError, match=r"sparse rows.*toarray"):
        Additive((1.0,) * 3)(sp.csr_array(X))


def test_numbers_get_twelve_kernels():
    kernels = complete_ladder().expand(X)
    typical = np.sqrt(2 * X.var(axis=0).sum())
    steps = [0.25, 0.5**1.5, 0.5, 0.5**0.5, 1, 2**0.5, 2, 4]
    assert [k.width / typical for k in kernels[:8]] == pytest.approx(steps)
    for kernel, step in zip(kernels[8:11], (0.5, 1, 2), strict=True):
        np.testing.assert_allclose(kernel.widths, step * X.std(axis=0))
    assert kernels[11:] == [Linear()]
    assert all(kernel.columns is None for kernel in kernels)


def test_weights_count_as_rows_given_twice():
    weight = np.ones(50)
    weight[:10] = 2
    twice = np.vstack([X, X[:10]])
    pairs = zip(complete_ladder().expand(X, weight), complete_ladder().expand(twice), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one(X[:5]), other(X[:5]), rtol=1e-12)


def test_constant_columns_do_not_count():
    table = np.column_stack([X, np.full(50, 7.0)])
    additive = complete_ladder().expand(table)[9]
    assert additive.widths[3] == np.inf
    assert np.isfinite(additive(table)).all()
    for kernel in complete_ladder().expand(np.ones((5, 2))):
        assert np.isfinite(kernel(np.ones((5, 2)))).all()


def test_sparse_rows_get_no_additive_kernels():
    kernels = complete_ladder().expand(sp.csr_array(X))
    assert [type(k) for k in kernels] == [RBF] * 8 + [Linear]


def test_every_kernel_sees_all_columns():
    kernels = expand_kernels(complete_ladder(), MIXED)
    assert len(kernels) == 15
    for kernel in kernels:
        K = kernel(MIXED)
        for column in ("bmi", "city", "shift"):
            other = MIXED.assign(**{column: np.sort(MIXED[column])})
            assert not np.allclose(kernel(other), K), (str(kernel), column)


def test_categories_alone_and_chosen_columns():
    only = complete_ladder(columns=["city", "shift"]).expand(MIXED)
    overlap = Overlap(columns=["city", "shift"])
    assert only == [overlap, *(Product((overlap,) * power) for power in (2, 4, 8))]
    some = complete_ladder(columns=["age", "dose"]).expand(MIXED)
    assert {kernel.columns for kernel in some} == {("age", "dose")}
    assert len(complete_ladder().expand(MIXED[["city", "shift"]])) == 4
    named = views({"body": ["age", "bmi"]}, [complete_ladder()]).expand(MIXED)
    assert str(named[-1]) == "body: linear"
    with pytest.raises(InputError, match="complete_ladder on nobody: X has no column"):
        complete_ladder(columns="nobody").expand(MIXED)
    assert str(complete_ladder().on("age")) == "complete_ladder on age"
