"""Picking columns, names, equality: what all kernels share."""

import pickle

import narwhals.selectors as ncs
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_selector

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import RBF, Laplacian, Linear, Overlap, n_rows, take
from table_cases import ARRAY, PANDAS, POLARS, upper


def test_input_is_shared_or_copied_but_never_changed():
    assert Linear().prepare(ARRAY) is ARRAY
    duplicated = sp.csr_array((np.ones(3), [1, 0, 0], [0, 3]), shape=(1, 2))
    before = duplicated.copy()
    assert Linear()(duplicated)[0, 0] == 5.0  # the row is (2, 1)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(duplicated, part), getattr(before, part))
    X = np.arange(12.0).reshape(4, 3)
    kept = X.copy()
    X.flags.writeable = False
    for kernel in (Linear(), RBF(), Laplacian(), Overlap(), 2 * RBF() + Linear() * Laplacian()):
        kernel(X)
        kernel.diag(X)
    np.testing.assert_array_equal(X, kept)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(width=0.5, columns="age"), "rbf(width=0.5) on age"),
        (RBF(width=1 / 3, columns=["age"]), "rbf(width=0.3333) on age"),
        (Linear(columns=["a", "b", "c"]), "linear on 3 columns (a, b, c)"),
        (Linear(columns=range(8)), "linear on 8 columns (0, 1, 2, 3, 4, ...)"),
        (Linear(columns=3), "linear on column 3"),
        (Linear(columns=slice(10, 500)), "linear on columns 10:500"),
        (Linear(columns=slice("a", None, 2)), "linear on columns a::2"),
        (Linear(columns=[True, False, True]), "linear on 2 columns (0, 2)"),
        (Linear(columns=upper), "linear on columns by upper"),
        (Linear(columns=make_column_selector("a")), "linear on columns by make_column_selector"),
        (Linear(columns=ncs.all()), "linear on selected columns"),
        (Laplacian(), "laplacian(width=1)"),
        (RBF(columns="age", name="young"), "young"),
    ],
)
def test_str(kernel, text):
    assert str(kernel) == text


def test_repr_shows_what_was_given():
    assert repr(Linear()) == "Linear()"
    assert repr(RBF(2)) == "RBF(width=2.0)"
    kernel = RBF(2, columns=["a", 1], name="x")
    assert repr(kernel) == "RBF(width=2.0, columns=('a', 1), name='x')"
    assert eval(repr(kernel)) == kernel


def test_equality_and_hash_are_by_value():
    assert RBF(1, columns=["a"]) == RBF(1.0, columns=("a",)) == RBF(columns=np.array(["a"]))
    assert len({RBF(columns=slice(1, 2)), RBF(columns=slice(1, 2)), RBF(columns=slice(1, 3))}) == 2
    assert len({RBF(), RBF(2), Laplacian(), Linear(), RBF(columns=0), RBF(name="x")}) == 6
    assert RBF(columns=[1, 0]) != RBF(columns=[True, False])
    assert RBF(columns=0) != RBF(columns="0")
    assert Linear(columns=upper) == Linear(columns=upper)
    first, second = ncs.numeric(), ncs.numeric()
    assert Linear(columns=first) == Linear(columns=first)
    assert Linear(columns=first) != Linear(columns=second)
    assert RBF() != "rbf"


def test_view_says_which_rows_are_shared():
    same = [RBF(columns="a"), RBF(3, columns=["a"], name="x"), Linear(columns=("a",))]
    same += [Laplacian(columns="a"), 2 * Linear(columns="a")]
    assert len({kernel.view for kernel in same}) == 1
    others = [Linear(), Linear(columns="b"), Linear(columns=0), Linear(columns=[True])]
    others += [Overlap(columns="a"), Linear(columns=slice(0, 1)), Linear(columns=upper)]
    others += [Linear(columns=ncs.all()), Linear(columns=ncs.all())]
    assert len({kernel.view for kernel in same + others}) == 1 + len(others)
    assert Linear(columns=upper).view == RBF(columns=upper).view


def test_copies_under_another_name_or_on_other_columns():
    kernel = RBF(0.5, columns="age")
    assert kernel.renamed("x") == RBF(0.5, columns="age", name="x")
    assert kernel.on(["a", "b"]) == RBF(0.5, columns=("a", "b"))
    assert kernel.on(None).columns is None
    assert kernel == RBF(0.5, columns="age")
    with pytest.raises(AttributeError, match="cannot assign"):
        kernel.width = 2.0


@pytest.mark.parametrize("name", ["", 3])
def test_names_are_strings(name):
    with pytest.raises(InputTypeError, match="RBF: name must be a non-empty string or None"):
        RBF(name=name)


def test_bound_replaces_callables_and_selectors():
    assert Linear(columns=upper).bound(PANDAS) == Linear(columns=("bmi", "dose"))
    assert Linear(columns=upper).bound(ARRAY) == Linear(columns=(1, 2))
    assert RBF(columns=ncs.matches("e$")).bound(POLARS) == RBF(columns=("age", "dose"))
    kernel = RBF(columns="age")
    assert kernel.bound(PANDAS) is kernel


@pytest.mark.parametrize(
    "kernel", [Linear(), RBF(2, columns=["a"]), Overlap(columns=slice(0, 2)), RBF(columns=upper)]
)
def test_pickle_and_clone(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert clone(kernel) is kernel
    assert clone([kernel])[0] is kernel


def test_call_on_one_and_on_two_tables():
    kernel = Linear(columns=["age", "dose"])
    np.testing.assert_array_equal(kernel(PANDAS, POLARS), kernel(PANDAS))
    np.testing.assert_array_equal(kernel(PANDAS, PANDAS[:1]), kernel(PANDAS)[:, :1])
    np.testing.assert_array_equal(kernel.diag(POLARS), [10.0, 52.0])
    with pytest.raises(InputError, match="linear: the two sides must have the same columns, got 3"):
        Linear()(ARRAY, ARRAY[:, :2])


def test_take_and_count_prepared_rows():
    sparse = sp.csr_array(ARRAY)
    rows = (ARRAY, sparse, (np.arange(2), ARRAY))
    assert n_rows(rows) == n_rows(sparse) == n_rows(ARRAY) == 2
    taken = take(rows, np.array([1]))
    assert n_rows(taken) == n_rows(taken[2]) == 1
    np.testing.assert_array_equal(taken[0], ARRAY[1:])
    np.testing.assert_array_equal(taken[1].toarray(), ARRAY[1:])
    np.testing.assert_array_equal(taken[2][0], [1])
    np.testing.assert_array_equal(take(rows, np.array([False, True]))[0], ARRAY[1:])
    shared = take((ARRAY, ARRAY, sparse), [0])
    assert shared[0] is shared[1]


def test_no_rows():
    for kernel in (Linear(), RBF(), Laplacian(), Overlap(), RBF() * Linear()):
        assert kernel(ARRAY[:0]).shape == (0, 0)
        assert kernel(ARRAY[:0], ARRAY).shape == (0, 2)
        assert kernel.diag(ARRAY[:0]).shape == (0,)
