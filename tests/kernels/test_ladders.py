"""Families of kernels."""

import pickle

import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import clone

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import (
    RBF,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    expand_kernels,
    mixed_ladder,
    polynomial_ladder,
    rbf_ladder,
    views,
)

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 0.1]
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose"])
MIXED = FRAME.assign(city=["x", "y"] * 15, smoker=[True, False] * 15)


def test_given_widths_and_degrees():
    assert rbf_ladder([1, 2]).expand(X) == [RBF(1), RBF(2)]
    assert rbf_ladder(np.array([0.5]), columns=["bmi"]).expand(FRAME) == [RBF(0.5, columns="bmi")]
    assert polynomial_ladder().expand(X) == [Polynomial(d) for d in (1, 2, 3)]
    assert polynomial_ladder([2], coef0=0, columns=1).expand(X) == [Polynomial(2, 0, columns=1)]


def test_per_feature_is_column_major():
    expected = [RBF(w, columns=j) for j in range(3) for w in (1, 2)]
    assert rbf_ladder([1, 2], per_feature=True).expand(X) == expected
    assert rbf_ladder([1, 2], per_feature=True).expand(sp.csr_array(X)) == expected
    chosen = rbf_ladder([1], columns=["dose", 0], per_feature=True).expand(FRAME)
    assert chosen == [RBF(1, columns="dose"), RBF(1, columns="age")]
    family = polynomial_ladder([2], columns=[False, True, True], per_feature=True)
    assert family.expand(X) == [Polynomial(2, columns=1), Polynomial(2, columns=2)]


@pytest.mark.parametrize("frame", [MIXED, pl.DataFrame(MIXED.to_dict("list"))], ids=["pd", "pl"])
def test_per_feature_leaves_text_out_only_by_default(frame):
    kernels = rbf_ladder([1], per_feature=True).expand(frame)
    assert [k.columns for k in kernels] == ["age", "bmi", "dose", "smoker"]
    with pytest.raises(
        InputError, match=r"rbf_ladder on 2 columns \(age, city\): not numeric: city"
    ):
        rbf_ladder([1], columns=["age", "city"], per_feature=True).expand(frame)
    with pytest.raises(InputError, match=r"rbf_ladder: not numeric: city; choose other columns"):
        rbf_ladder(per_feature=True).expand(frame[["city"]])
    with pytest.raises(InputError, match=r"rbf_ladder: not numeric: city"):
        rbf_ladder().expand(frame)


def typical_distance(rows):
    """Root mean squared distance between two rows drawn with replacement."""
    return np.sqrt(2 * (pdist(rows) ** 2).sum()) / len(rows)


def test_default_widths_surround_the_typical_distance():
    middle = typical_distance(X)
    for data in (X, FRAME, sp.csr_array(X), X.tolist()):
        widths = [kernel.width for kernel in rbf_ladder().expand(data)]
        np.testing.assert_allclose(widths, middle * np.array([0.25, 0.5, 1, 2, 4]))
        np.testing.assert_array_equal(np.divide(widths[1:], widths[:-1]), 2.0)
    alone = rbf_ladder(per_feature=True).expand(X)
    middles = [typical_distance(X[:, [j]]) for j in range(3)]
    np.testing.assert_allclose([kernel.width for kernel in alone[2::5]], middles)
    assert len(alone) == 15


def test_default_widths_of_many_columns_begin_at_half_the_typical_distance():
    many = np.hstack([X, X**2])
    widths = [kernel.width for kernel in rbf_ladder().expand(many)]
    np.testing.assert_allclose(widths, typical_distance(many) * np.array([0.5, 1, 2, 4, 8]))


def test_default_widths_count_a_weight_of_two_as_two_rows():
    weight = np.arange(len(X)) % 3.0
    repeated = np.repeat(X, weight.astype(int), axis=0)
    weighted = [kernel.width for kernel in rbf_ladder().expand(X, weight)]
    given = [kernel.width for kernel in rbf_ladder().expand(repeated)]
    np.testing.assert_allclose(weighted, given)


@pytest.mark.parametrize("data", [np.zeros((5, 2)), np.ones((1, 2)), np.ones((4, 1)) * 7.0])
@pytest.mark.parametrize("read", [np.array, sp.csr_array])
def test_default_width_without_distances_is_one(data, read):
    widths = [kernel.width for kernel in rbf_ladder().expand(read(data))]
    assert widths == [0.25, 0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e300])
def test_default_widths_at_extreme_scales(scale):
    with np.errstate(all="raise"):
        widths = [kernel.width for kernel in rbf_ladder().expand(X * scale)]
    np.testing.assert_allclose(widths, [k.width * scale for k in rbf_ladder().expand(X)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rbf_ladder([]), r"rbf_ladder: widths must not be empty"),
        (lambda: rbf_ladder([1, -1]), r"RBF\(width=-1.0\): width must be a finite number > 0"),
        (lambda: polynomial_ladder([]), r"polynomial_ladder: degrees must not be empty"),
        (lambda: polynomial_ladder([0]), r"Polynomial\(degree=0\): degree must be"),
        (lambda: polynomial_ladder(coef0=-1), r"Polynomial\(coef0=-1.0\): coef0 must be"),
        (lambda: views({}), r"views: at least one view is needed"),
        (lambda: views({"a": ("x", [])}), r"views\['a'\]: the list is empty"),
        (lambda: views({"a": ("x", [views({"b": 0})])}), r"views\['a'\]: a view cannot be part"),
        (lambda: views({"b": 0}).on(1), r"views: a view has its own columns"),
        (lambda: expand_kernels([], X), r"kernels: the list is empty; None gives a default"),
        (lambda: rbf_ladder().expand(X * np.nan), r"rbf_ladder: column 0 has a missing"),
        (lambda: rbf_ladder(columns="x").expand(X), r"rbf_ladder on x: column 'x' is given by"),
        (lambda: expand_kernels(None, X[0]), r"mixed_ladder: X must have two dimensions"),
        (lambda: expand_kernels(None, X[:, :0]), r"mixed_ladder: no column is selected"),
    ],
)
def test_wrong_values(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rbf_ladder(1.0), r"rbf_ladder: widths must be a list of numbers, got 1.0"),
        (lambda: rbf_ladder("12"), r"rbf_ladder: widths must be a list of numbers, got '12'"),
        (lambda: rbf_ladder(["1"]), r"RBF\(width='1'\): width must be"),
        (lambda: rbf_ladder(columns=1.5), r"rbf_ladder: columns must be names"),
        (lambda: polynomial_ladder([1.5]), r"degree must be a whole number"),
        (lambda: views([["a"]]), r"views: the views must be a dict of names and columns, got list"),
        (lambda: views({1: ["a"]}), r"views: a view's name must be a non-empty string, got 1"),
        (lambda: views({"v": {"a"}}), r"views\['v'\]: columns must be names"),
        (lambda: views({"v": 0}, [Linear(), "x"]), r"views\['v'\]\[1\]: must be a kernel"),
        (lambda: expand_kernels("rbf", X), r"kernels: must be a kernel, a family .*, got str"),
        (
            lambda: expand_kernels([RBF(), "rbf"], X),
            r"kernels\[1\]: must be a kernel .*, got str\.",
        ),
        (lambda: expand_kernels([RBF], X), r"kernels\[0\]: .* got RBF; write RBF\(\) with paren"),
        (lambda: expand_kernels([np.eye(2)], X), r"kernels\[0\]: .*; write Precomputed\(gram\)"),
    ],
)
def test_wrong_types(make, message):
    with pytest.raises(InputTypeError, match=message):
        make()


def test_views_bind_and_name():
    gram = Precomputed(np.eye(30))
    family = views(
        {
            "clinical": ["age", "bmi"],
            "dose": slice(2, 3),
            "kin": ("city", [gram]),
            "pair": ("age", "bmi"),
            "one": ("dose", Linear()),
            "each": (["age", "dose"], rbf_ladder([3], per_feature=True)),
        },
        kernels=[RBF(0.5), RBF() * Linear(), Laplacian(columns="city", name="mine")],
    )
    kernels = family.expand(MIXED)
    assert [str(kernel) for kernel in kernels] == [
        "clinical: rbf(width=0.5)",
        "clinical: rbf(width=1) * linear",
        "clinical: mine",
        "dose: rbf(width=0.5)",
        "dose: rbf(width=1) * linear",
        "dose: mine",
        "kin: precomputed(30 rows)",
        "pair: rbf(width=0.5)",
        "pair: rbf(width=1) * linear",
        "pair: mine",
        "one: linear",
        "each: rbf(width=3) on age",
        "each: rbf(width=3) on dose",
    ]
    np.testing.assert_array_equal(kernels[0](MIXED), RBF(0.5)(X[:, :2]))
    np.testing.assert_array_equal(kernels[1](MIXED), (RBF() * Linear())(X[:, :2]))
    np.testing.assert_array_equal(kernels[5](MIXED), Laplacian()(X[:, 2:]))
    assert kernels[6].gram is not gram.gram
    assert np.shares_memory(kernels[6].gram, gram.gram)
    assert kernels[12].columns == "dose"


def test_views_default_kernels():
    kernels = views({"left": [0, 1], "right": 2}).expand(X)
    assert [kernel.columns.keys for kernel in kernels] == [(0, 1)] * 11 + [(2,)] * 8
    assert str(kernels[4]) == f"left: rbf(width={kernels[4].width:.4g})"
    assert str(kernels[7]) == "left: linear"


def test_expand_mixes_kernels_and_families():
    kernel = RBF(7)
    assert expand_kernels(kernel, X) == [kernel]
    assert expand_kernels(rbf_ladder([1]), X) == [RBF(1)]
    mixed = expand_kernels((kernel, polynomial_ladder([1, 2]), kernel), X)
    assert mixed == [kernel, Polynomial(1), Polynomial(2), kernel]
    assert mixed[0] is kernel


def test_expand_default():
    assert expand_kernels(None, MIXED) == mixed_ladder().expand(MIXED)


def test_expand_settles_callables_and_selectors():
    first, second, third = expand_kernels(
        [
            Linear(columns=lambda X: ["bmi"]),
            2 * RBF(columns=ncs.boolean()),
            rbf_ladder([1.0], columns=ncs.matches("e$")),
        ],
        MIXED,
    )
    assert first == Linear(columns=("bmi",))
    assert second == 2 * RBF(columns=("smoker",))
    assert third == RBF(columns=("age", "dose"))


@pytest.mark.parametrize(
    "family",
    [
        rbf_ladder(),
        rbf_ladder([1, 2], columns=slice(0, 2), per_feature=True),
        polynomial_ladder([1]),
        views({"a": [0], "b": (slice(1, 3), [Linear()])}),
    ],
)
def test_pickle_and_clone(family):
    assert clone(family) is family
    again = pickle.loads(pickle.dumps(family))
    assert again == family
    assert again.expand(X) == family.expand(X)
    with pytest.raises(AttributeError, match="cannot assign"):
        family.columns = None
