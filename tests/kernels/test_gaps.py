"""Rules for missing values: exact values, positive semi-definiteness, and bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer

from gap_cases import RULES, WIDTHS, holed
from kernelweave import MKLClassifier
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import ARD, RBF, Known, Linear, Overlap, Polynomial, Precomputed, Words
from kernelweave.kernels.gaps import FilledColumns, known_cells
from kernelweave.testing import check_kernel
from quick import examples

NAN = float("nan")


@pytest.mark.parametrize(("kernel", "rule"), RULES, ids=lambda item: str(item))
def test_every_rule_keeps_the_contract_of_kernels(kernel, rule):
    X = holed()
    bound = kernel.with_missing(rule).bound(X)
    check_kernel(bound, X)
    check_kernel(bound, holed(seed=1))  # other gaps than in training
    np.testing.assert_array_equal(kernel.with_missing(rule)(X), bound(X))
    assert str(bound) == str(kernel) or rule == "category"


@examples(60)
@given(st.integers(0, 2**31), st.sampled_from(RULES), st.floats(0.0, 0.8))
def test_every_rule_is_positive_semi_definite(seed, case, share):
    kernel, rule = case
    X = holed(12, 3, share, seed)
    X[:3] = np.where(np.isnan(X[:3]), 0.5, X[:3])  # no column is empty
    K = kernel.with_missing(rule).bound(X)(X)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * len(K) * max(values[-1], 1.0)


@pytest.mark.parametrize("kernel", [RBF(1.3), Linear(), Polynomial(), ARD(WIDTHS)])
def test_off_is_zero_rows_and_columns_of_the_kernel_elsewhere(kernel):
    X = holed()
    there = ~np.isnan(X).any(axis=1)
    expected = np.zeros((len(X), len(X)))
    expected[np.ix_(there, there)] = kernel(X[there])
    bound = kernel.with_missing("off").bound(X)
    np.testing.assert_allclose(bound(X), expected, rtol=1e-13)
    np.testing.assert_array_equal(bound.diag(X) == 0, ~there)


def test_fill_is_the_median_and_an_indicator_as_high_as_the_deviation():
    X = np.array([[1.0, 5.0], [2.0, 7.0], [NAN, 6.0], [6.0, 9.0]])
    filled = SimpleImputer(strategy="median").fit_transform(X)
    height = np.std([1.0, 2.0, 6.0])
    rows = np.column_stack([filled, [0, 0, height, 0]])
    np.testing.assert_allclose(Linear(missing="fill")(X), rows @ rows.T)
    np.testing.assert_allclose(RBF(2.0, missing="fill")(X), RBF(2.0)(rows))
    wide = ARD((2.0, 3.0), missing="fill").bound(X)
    np.testing.assert_allclose(wide(X), ARD((2.0, 3.0, 2.0))(rows))


def test_fill_learns_from_training_rows_with_their_weights():
    X = np.array([[1.0], [2.0], [NAN], [9.0]])
    weight = np.array([1.0, 1.0, 1.0, 3.0])
    kernel = Linear(missing="fill").bound(X, weight)
    assert kernel.columns.fills == (9.0,)
    assert kernel.columns.heights[0] == pytest.approx(np.std([1.0, 2.0, 9.0, 9.0, 9.0]))
    assert Linear(missing="fill").bound(X).columns.fills == (2.0,)


def test_overlap_has_four_rules():
    X = np.array([["a", "x"], [None, "x"], [None, "y"], ["a", "y"]], dtype=object)
    off, category = Overlap(missing="off")(X), Overlap(missing="category")(X)
    np.testing.assert_array_equal(off[1], [0.5, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(category[1], [0.5, 1.0, 0.5, 0.0])
    filled = Overlap(missing="fill")(X)  # the mode, and a third column that marks gaps
    np.testing.assert_allclose(filled[1], [2 / 3, 1.0, 2 / 3, 1 / 3])
    towns = np.array([["a"], ["b"], ["b"], [None]], dtype=object)
    np.testing.assert_allclose(Overlap(missing="expected")(towns)[3], [1 / 3, 2 / 3, 2 / 3, 5 / 9])


def test_words_of_a_missing_text_are_none():
    X = pd.DataFrame({"note": ["late and damaged", None, "damaged"]})
    K = Words(missing="off")(X)
    np.testing.assert_array_equal(K[1], 0.0)
    np.testing.assert_allclose(K[0, 2], 1 / np.sqrt(3))
    with pytest.raises(InputError, match="column 'note' has a missing value in row 1"):
        Words()(X)


def test_precomputed_does_not_know_rows_without_a_number():
    gram = np.array([[2.0, 1.0], [1.0, 3.0]])
    kernel = Precomputed(gram)
    for unknown in ([[0], [-1], [1]], [[0.0], [NAN], [1.0]]):
        check_kernel(kernel, unknown)
        np.testing.assert_array_equal(kernel(unknown), [[2, 0, 1], [0, 0, 0], [1, 0, 3]])
    left = np.array([0, 1])
    np.testing.assert_array_equal(
        kernel.at_pairs(kernel.prepare([[0], [-1]]), left, left), [2.0, 0.0]
    )
    strict = Precomputed(gram, missing="refuse")
    with pytest.raises(InputError, match="must hold row numbers from 0 to 1, but row 1 has -1"):
        strict([[0], [-1]])
    with pytest.raises(InputError, match="missing or infinite value in row 0"):
        strict([[NAN]])


CONTAINERS = {
    "array": lambda X: X,
    "masked": lambda X: np.ma.masked_invalid(X),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "nullable": lambda X: pd.DataFrame(X, columns=list("abc")).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(
        {c: [None if v != v else v for v in X[:, j]] for j, c in enumerate("abc")}
    ),
    "arrow": lambda X: CONTAINERS["polars"](X).to_arrow(),
    "lists": lambda X: [[None if v != v else v for v in row] for row in X.tolist()],
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("rule", ["off", "fill", "expected"])
def test_gaps_of_any_library_are_gaps(container, rule):
    X = holed()
    expected = RBF(1.3, missing=rule)(X)
    np.testing.assert_allclose(RBF(1.3, missing=rule)(CONTAINERS[container](X)), expected)


def test_sparse_gaps_are_switched_off_only():
    X = holed()
    table = sp.csr_array(np.where(np.isnan(X), 1.0, X))
    table.data[np.isnan(X).ravel()] = NAN
    np.testing.assert_allclose(Linear(missing="off")(table), Linear(missing="off")(X))
    with pytest.raises(InputError, match="sparse X cannot be filled; use missing='off'"):
        Linear(missing="fill")(table)
    with pytest.raises(InputError, match="needs dense rows"):
        RBF(missing="expected")(table)


def test_known_is_an_intercept_of_the_rows_that_have_a_source():
    X = np.array([[1.0, NAN], [NAN, NAN], [1.0, 2.0]])
    np.testing.assert_array_equal(Known()(X).diagonal(), [0, 0, 1])
    np.testing.assert_array_equal(Known(every=False)(X).diagonal(), [1, 0, 1])
    numbers = Known(row_numbers=True)
    np.testing.assert_array_equal(numbers(np.array([[0], [-1]])).diagonal(), [1, 0])


@pytest.mark.parametrize("every", [True, False])
def test_monomials_of_known_are_its_values(every):
    X = holed()
    kernel = Known(every=every)
    A = kernel.prepare(X)
    total = 0.0
    for monomial in kernel.monomials():
        value = monomial.scale
        for atom in monomial.atoms:
            value = value * atom.part(A, A, np.arange(3))
        total = total + value
    np.testing.assert_allclose(total, kernel(X))


def test_a_model_with_off_equals_one_with_zero_rows_and_columns():
    X = holed(40)
    y = np.where(RBF(1.0, missing="fill")(X)[:, 0] > 0.2, "a", "b")
    kernels = [RBF(w, missing="off", columns=c) for c in ([0], [1, 2]) for w in (0.5, 2.0)]
    model = MKLClassifier(kernels, tol=1e-8).fit(X, y)
    grams = []
    for kernel in kernels:
        own = X[:, kernel.columns]
        there = ~np.isnan(own).any(axis=1)
        gram = np.zeros((len(X), len(X)))
        gram[np.ix_(there, there)] = RBF(kernel.width)(own[there])
        grams.append(Precomputed(gram))
    zeroed = MKLClassifier(grams, tol=1e-8).fit(np.arange(len(X))[:, None], y)
    np.testing.assert_allclose(model.scales_, zeroed.scales_, rtol=1e-12)
    np.testing.assert_allclose(model.objective_, zeroed.objective_, rtol=1e-7)
    np.testing.assert_allclose(
        model.kernel(X),
        sum(w * s * g.gram for w, s, g in zip(model.weights_, model.scales_, grams, strict=True)),
        atol=1e-10,
    )


def test_bad_input_gets_one_sentence():
    X = holed()
    with pytest.raises(InputError, match="Polynomial: missing must be 'refuse' or 'off'"):
        Polynomial(missing="expected")
    with pytest.raises(InputTypeError, match=r"RBF: missing must be .* got 'drop'"):
        RBF(missing="drop")
    with pytest.raises(InputError, match="give the kernel missing='off' or missing='fill'"):
        RBF()(X)
    X[:, 1] = NAN
    for rule in ("fill", "expected"):
        with pytest.raises(InputError, match="column 1 has no value in any training row"):
            RBF(missing=rule)(X)
    with pytest.raises(InputError, match="no training row has its source"):
        RBF(missing="off")(X)


def test_filled_columns_are_equal_by_content():
    one, two = FilledColumns.zeros((0, 1)), FilledColumns.zeros((0, 1))
    assert one == two
    assert hash(one) == hash(two)
    assert one != FilledColumns.zeros((0,))
    with pytest.raises(ValueError, match="a value for each column"):
        FilledColumns((0,), (), ())
    with pytest.raises(ValueError, match="finite numbers"):
        FilledColumns((0,), (NAN,), (None,))


def test_rows_without_weight_do_not_count_as_known():
    X = np.array([[1.0], [NAN]])
    assert known_cells(X, None, "X", None).tolist() == [[True], [False]]
    with pytest.raises(InputError, match="has no value in any training row"):
        known_cells(X, None, "X", np.array([0.0, 1.0]))


@pytest.mark.parametrize("rule", ["off", "fill", "expected"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_row_alone_is_treated_as_in_a_table(rule, make):
    """A column without a value has no type there."""
    X = np.array([[1.0, 2.0], [NAN, 3.0], [4.0, NAN], [0.5, 1.0]])
    kernel = RBF(1.5, missing=rule).bound(pd.DataFrame(X, columns=["a", "b"]))
    train = pd.DataFrame(X, columns=["a", "b"])
    for values in ([None, 3.0], [None, None]):
        alone = make({"a": values[:1], "b": values[1:]})
        table = pd.DataFrame([[0.0, 0.0], values], columns=["a", "b"], dtype=float)
        np.testing.assert_array_equal(kernel(alone, train), kernel(table, train)[1:])
    objects = pd.DataFrame({"a": np.array([None, np.inf], dtype=object), "b": [3.0, 3.0]})
    np.testing.assert_array_equal(*kernel(objects, train))
    with pytest.raises(InputError, match="not numeric: a"):
        kernel(pd.DataFrame({"a": [None, "x"], "b": [1.0, 2.0]}), train)


@pytest.mark.parametrize("convert", [pd.DataFrame, lambda f: f.convert_dtypes(), pl.from_pandas])
@pytest.mark.parametrize("rule", ["off", "fill", "expected"])
def test_infinite_numbers_beside_missing_ones_are_gaps(convert, rule):
    frame = pd.DataFrame({"a": [1.0, NAN, np.inf, 3.0, 2.0]})
    expected = RBF(1.0, missing=rule)(np.where(np.isinf(frame), NAN, frame))
    np.testing.assert_array_equal(RBF(1.0, missing=rule)(convert(frame)), expected)
