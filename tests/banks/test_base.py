"""Every bank answers as the Gram matrices of its kernels would."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bank_contract import check_bank
from kernelweave.banks import make_bank
from kernelweave.errors import InputError
from kernelweave.kernels import (
    ARD,
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Precomputed,
    rbf_ladder,
)

N = 70


def table(n=N, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def shifted_product(A, B):
    return (A @ B.T + 1.0) ** 2


# One entry per form and mixture of forms that `make_bank` chooses between.
BANKS = {
    "factors of one column": [RBF(width=w, columns=[c]) for w in (1.0, 3.0) for c in range(4)],
    "one factor": [RBF(width=2.0, columns=[0])],
    "linear": [Linear(), Linear(columns=[0])],
    "distances": [RBF(width=w) for w in (0.1, 0.2, 0.4, 0.5)],
    "absolute distances": [Laplacian(width=w) for w in (0.5, 1.0, 3.0)],
    "two distance matrices": [
        RBF(width=0.3, columns=[0, 1, 2]),
        RBF(width=0.3),
        RBF(width=0.2, columns=[0, 1, 2]),
    ],
    "dense": [Polynomial(degree=3), FromCallable(shifted_product), RBF(width=0.2) * Linear()],
    "sums": [RBF(width=0.2) + Linear(), 3.0 * RBF(width=0.1)],
    "everything": [
        Linear(),
        RBF(width=0.2),
        RBF(width=1.0, columns=[1]),
        Polynomial(degree=2),
        Laplacian(width=1.0),
        RBF(width=0.4),
        RBF(width=50.0),
        FromCallable(shifted_product, columns=[0, 1]),
    ],
    "duplicates": [RBF(width=0.3), Linear(), RBF(width=0.3), Linear()],
    "wide and narrow": [RBF(width=w) for w in (1e-3, 1e3)],
}


@pytest.mark.parametrize("normalize", [None, "trace", "diagonal", "cosine"])
@pytest.mark.parametrize("kernels", BANKS.values(), ids=BANKS)
def test_contract(kernels, normalize):
    X = table()
    check_bank(make_bank(kernels, X, normalize=normalize), X)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-9])
def test_contract_at_other_tolerances(tol):
    X = table()
    check_bank(make_bank(BANKS["everything"], X, tol=tol), X)
    check_bank(make_bank(BANKS["factors of one column"], X, tol=tol), X)


def test_precomputed():
    A = table()
    grams = [A[:, :2] @ A[:, :2].T, np.exp(-np.abs(A[:, :1] - A[:, 0]))]
    index = np.arange(N)[:, None]
    kernels = [Precomputed(gram) for gram in grams]
    bank = make_bank(kernels, index)
    check_bank(bank, index)
    assert [row["form"] for row in bank.summary()] == ["dense", "dense"]
    some = index[::3]
    check_bank(make_bank(kernels, some), some)


def test_precomputed_in_single_precision():
    A = table()
    gram = (A @ A.T).astype(np.float32)
    index = np.arange(N)[:, None]
    check_bank(make_bank([Precomputed(gram), Precomputed(gram)], index), index, tol=1e-6)


def test_precomputed_of_two_precisions():
    A = table()
    grams = [
        A @ A.T,
        (A[:, :1] @ A[:, :1].T).astype(np.float32),
        np.exp(-((A[:, :1] - A[:, 0]) ** 2)),
    ]
    index = np.arange(N)[:, None]
    check_bank(make_bank([Precomputed(gram) for gram in grams], index), index, tol=1e-6)


def test_categories_in_a_frame():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=50),
            "b": rng.normal(size=50),
            "c": rng.choice(["x", "y", "z"], 50),
            "d": rng.choice(["u", "v"], 50),
        }
    )
    kernels = [
        RBF(width=1.0, columns="a"),
        RBF(width=0.1, columns=["a", "b"]),
        Overlap(columns=["c", "d"]),
        Overlap(columns="c") * RBF(width=1.0, columns="a"),
    ]
    check_bank(make_bank(kernels, frame), frame)


def test_sparse_rows():
    X = sp.random_array((60, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
    kernels = [Linear(), RBF(width=1.0), Polynomial(degree=2)]
    check_bank(make_bank(kernels, X), X)
    dense = make_bank(kernels, X.toarray())
    V = np.random.default_rng(1).normal(size=(60, 2))
    assert_allclose(make_bank(kernels, X).quadratic_forms(V), dense.quadratic_forms(V), rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n):
    X = table(n)
    check_bank(make_bank(BANKS["everything"], X), X)


def test_repeated_rows():
    X = np.repeat(table(12), 5, axis=0)
    bank = make_bank(BANKS["everything"], X)
    check_bank(bank, X)
    assert bank.summary()[1]["form"] == "factor"  # twelve different rows: rank twelve


def test_more_rows_than_a_panel():
    X = table(300)
    check_bank(make_bank([RBF(width=0.3), Linear(), RBF(width=1.0, columns=[0])], X), X)


def test_offsets_cost_no_digits():
    X = table() + 1e6
    bank = make_bank([RBF(width=0.5), RBF(width=1.0, columns=[0]), Laplacian(width=1.0)], X)
    centred = make_bank(bank.kernels, X - 1e6)
    V = np.random.default_rng(0).normal(size=(N, 1))
    assert_allclose(bank.quadratic_forms(V), centred.quadratic_forms(V), rtol=1e-8)


@given(
    st.integers(2, 25),
    st.lists(
        st.sampled_from(
            [
                Linear(),
                RBF(width=0.3),
                RBF(width=0.6),
                RBF(width=2.0, columns=[0]),
                Laplacian(width=1.0),
                Polynomial(degree=2),
            ]
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([None, "trace", "diagonal", "cosine"]),
    st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_contract_of_random_banks(n, kernels, normalize, seed):
    X = table(n, 3, seed).round(1)  # rounding makes ties and repeated rows
    check_bank(make_bank(kernels, X, normalize=normalize), X, random_state=seed)


def test_forms_never_see_rows_of_zeros():
    X = table()
    bank = make_bank(BANKS["everything"], X)
    keep = np.arange(N) % 3 == 0
    V = np.zeros((N, 2))
    V[keep] = np.random.default_rng(0).normal(size=(keep.sum(), 2))
    alone = make_bank(BANKS["everything"], X[keep], normalize=None)
    plain = make_bank(BANKS["everything"], X, normalize=None)
    assert_allclose(plain.quadratic_forms(V), alone.quadratic_forms(V[keep]), rtol=1e-7)
    assert bank.quadratic_forms(np.zeros((N, 1))).tolist() == [0] * bank.n_kernels


def test_forms_of_several_columns_add_up():
    bank = make_bank(BANKS["everything"], table())
    V = np.random.default_rng(0).normal(size=(N, 3))
    apart = sum(bank.quadratic_forms(V[:, [o]]) for o in range(3))
    assert_allclose(bank.quadratic_forms(V), apart, rtol=1e-10)


def test_a_constant_shift_of_the_gram_is_invisible_to_balanced_vectors():
    X = table()
    bank = make_bank([Linear(), Polynomial(degree=1, coef0=5.0)], X)
    V = np.random.default_rng(0).normal(size=(N, 1))
    V -= V.mean()
    first, second = bank.quadratic_forms(V)
    assert first == pytest.approx(second, rel=1e-9)
    assert bank.scales[0] == pytest.approx(bank.scales[1], rel=1e-9)


def test_an_indefinite_gram_is_an_error_that_names_the_kernel():
    gram = np.array([[1.0, 2.0], [2.0, 1.0]])
    kernel = Precomputed(gram, check=False, name="crooked")
    bank = make_bank([Precomputed(np.eye(2)), kernel], np.arange(2)[:, None], normalize=None)
    with pytest.raises(InputError, match=r"kernels\[1\] = crooked.*not positive semi-definite"):
        bank.quadratic_forms(np.array([[1.0], [-1.0]]))
    assert bank.quadratic_forms(np.array([[1.0], [1.0]])) == pytest.approx([2, 6])


def test_negative_rounding_is_clipped():
    v = np.array([1.0, -1.0, 0.0])
    gram = np.ones((3, 3)) - 1e-12 * np.outer(v, v)
    bank = make_bank([Precomputed(gram, check=False)], np.arange(3)[:, None], normalize=None)
    assert bank.quadratic_forms(v[:, None]).tolist() == [0]


def test_subset_shares_memory():
    bank = make_bank(BANKS["everything"], table())
    part = bank.subset(np.array([5, 1, 0]))
    assert [str(k) for k in part.kernels] == [str(bank.kernels[j]) for j in (5, 1, 0)]
    assert part.subset(np.array([1])).kernels == (bank.kernels[1],)
    check_bank(part, table())
    check_bank(part.subset(np.array([2, 0])), table())


def test_summary():
    rows = make_bank(BANKS["everything"], table()).summary()
    kinds = {row["kernel"]: row["form"] for row in rows}
    assert kinds["linear"] == "factor"
    assert kinds["rbf(width=1) on column 1"] == "factor"
    assert kinds["rbf(width=0.2)"] == kinds["rbf(width=0.4)"] == "distances"
    assert kinds["laplacian(width=1)"] == "distances"
    assert rows[0]["rank"] == 4
    assert rows[1]["rank"] is None
    assert all(0 <= row["left_out"] <= 1e-7 for row in rows)


def test_factor():
    X = table()
    low = make_bank([Linear(), RBF(width=3.0, columns=[0])], X)
    weights = np.array([0.3, 0.7])
    Z = low.combine(weights).factor()
    assert Z.shape[0] < N
    assert_allclose(Z.T @ Z, low.combine(weights).dense(), atol=1e-12)
    mixed = make_bank([Linear(), RBF(width=0.1)], X)
    assert mixed.combine(np.array([0.5, 0.5])).factor() is None
    assert low.subset(np.array([1])).combine(np.ones(1)).factor() is not None


def test_a_coarse_combination_keeps_most_of_the_trace():
    bank = make_bank(rbf_ladder([2.0, 4.0], per_feature=True).expand(table()), table())
    weights = np.full(bank.n_kernels, 1.0)
    whole, coarse = bank.combine(weights), bank.combine(weights, coarse=True)
    share = coarse.diag().sum() / whole.diag().sum()
    assert 0.95 <= share <= 1.0
    assert len(coarse.factor()) < len(whole.factor())


def test_rows_are_computed_once():
    bank = make_bank([RBF(width=0.2), RBF(width=1.0, columns=[0])], table())
    kernel = bank.combine(np.array([0.5, 0.5]))
    kernel.rows(np.array([3, 5]))
    assert [index.tolist() for index, _ in kernel.blocks] == [[3, 5]]
    kernel.fetch(np.array([5, 3, 8]))
    assert [index.tolist() for index, _ in kernel.blocks] == [[3, 5], [8]]
    kernel.fetch(np.array([3]))
    assert len(kernel.blocks) == 2
    kernel.fetch(np.arange(60))  # most of them: all are computed
    assert kernel.blocks[-1][1].shape == (N, N)
    before = kernel.dense()
    assert kernel.dense() is before


def test_products_of_a_kernel_asked_for_twice():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    bank = make_bank([Linear(), RBF(1.0), RBF(0.1, columns=[0])], X)
    each = bank.products(V, np.arange(3))
    np.testing.assert_array_equal(bank.products(V, np.array([2, 0, 2, 1])), each[[2, 0, 2, 1]])


@pytest.mark.parametrize("n", [50, 1200, 3000])
def test_equal_rows_are_constant_for_a_linear_kernel_however_many(n):
    """The mean of equal numbers is rounded."""
    bank = make_bank([Linear()], np.full((n, 3), 0.1))
    assert bank.is_constant.all()


@pytest.mark.slow
def test_single_precision_is_in_no_exact_value():
    """Storage rounds by 6e-8; products and quadratic forms of the exact kernels must not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3100, 6))
    kernels = [RBF(1.0), RBF(2.0), Laplacian(2.0), RBF(1.0, columns=[0, 1, 2]), ARD([1.0] * 6)]
    kernels.append(RBF(1.0, columns=[0, 1]) * Laplacian(2.0))  # whose rows are two tables
    options = {"normalize": None}
    bank, exact = make_bank(kernels, X, **options), make_bank(kernels, X, tol=1e-7, **options)
    assert bank.rounded.all()
    assert not exact.rounded.any()
    V = rng.normal(size=(3100, 2)) * (rng.random(3100) < 0.2)[:, None]
    right = exact.quadratic_forms(V)
    assert np.abs(bank.quadratic_forms(V) / right - 1).max() > 1e-10
    np.testing.assert_allclose(bank.exact_forms(V), right, rtol=1e-12)
    some = np.array([0, 3])
    np.testing.assert_allclose(bank.exact_forms(V, some), right[some], rtol=1e-12)
    weights, quadratic_forms = rng.random(6), np.full(6, np.nan)
    weights[1] = 0.0
    np.testing.assert_allclose(
        bank.exact_product(weights, V, quadratic_forms),
        exact.exact_product(weights, V),
        rtol=0,
        atol=1e-10,
    )
    right[1] = np.nan  # without a weight it is not evaluated
    np.testing.assert_allclose(quadratic_forms, right, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-21, 1.0, 1e20, 1e150])
@pytest.mark.parametrize("values", ["any", "few"])
def test_form_errors_bound_the_rounding_of_forms(monkeypatch, scale, values):
    """Whatever the scale of the columns, and where equal distances are rounded alike."""
    monkeypatch.setattr("kernelweave.banks.build._SMALL", 10)  # float32 from there on
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6)) if values == "any" else rng.integers(0, 2, (120, 6)) / 3.0
    ard = ARD([0.7 * scale] * 6)
    kernels = [RBF(0.2 * scale), RBF(1.1 * scale), Laplacian(2.0 * scale), ard]
    with np.errstate(over="ignore"):
        bank = make_bank(kernels, scale * X, normalize=None)
        # A kernel outside the range of float32 keeps all of them in float64.
        assert not make_bank([*kernels, 1e-42 * ard], scale * X, normalize=None).rounded.any()
    rounded = np.flatnonzero(bank.rounded)
    assert len(rounded) >= 3
    for V in (rng.normal(size=(120, 2)), np.ones((120, 1)), rng.choice([-1.0, 1.0], (120, 1))):
        errors = np.abs(bank.quadratic_forms(V) - bank.exact_forms(V))
        bounds = bank.form_errors(V, bank.quadratic_forms(V))
        # Both ways of computing a form are off by rounding in double precision, too.
        assert (errors <= bounds + 1e-14 * np.abs(V).sum() ** 2 * bank.traces() / 120).all()
        if scale == 1.0:
            usual = 2e-7 * np.square(np.abs(V).sum(axis=0)).sum()
            assert (bounds[rounded] <= usual).all()
