"""Normalisation, choice of forms, memory budget and awkward data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bank_contract import check_bank
from kernelweave._memory import parse_bytes
from kernelweave.banks import make_bank
from kernelweave.errors import InputError, MemoryBudgetError
from kernelweave.kernels import (
    RBF,
    Cosine,
    FromCallable,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)

KERNELS = [Linear(), RBF(width=0.5), RBF(width=1.0, columns=[0]), Polynomial(degree=2)]


def table(n=60, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 1.0


def gram_of(bank, j, X):
    return bank.scales[j] * bank.kernels[j](X)


class TestNormalisation:
    def test_trace_with_an_intercept(self):
        X = table()
        bank = make_bank(KERNELS, X, normalize="trace", centred=True)
        for j in range(4):
            K = gram_of(bank, j, X)
            H = np.eye(60) - 1 / 60
            assert np.trace(H @ K @ H) / 60 == pytest.approx(1, rel=1e-9)
        assert_allclose(bank.traces(centred=True), 60, rtol=1e-9)

    def test_trace_without_an_intercept(self):
        X = table()
        bank = make_bank(KERNELS, X, normalize="trace", centred=False)
        assert_allclose(bank.traces(), 60, rtol=1e-9)

    def test_diagonal(self):
        X = table()
        for centred in (True, False):
            bank = make_bank(KERNELS, X, normalize="diagonal", centred=centred)
            assert_allclose(bank.traces(), 60, rtol=1e-9)

    def test_cosine(self):
        X = table()
        bank = make_bank(KERNELS, X, normalize="cosine")
        assert (bank.scales == 1).all()
        assert isinstance(bank.kernels[0], Cosine)
        assert bank.kernels[1] is KERNELS[1]  # a Gaussian has a unit diagonal already
        for j in range(4):
            assert_allclose(gram_of(bank, j, X).diagonal(), 1, rtol=1e-12)
        check_bank(bank, X)

    def test_none_leaves_kernels_as_written(self):
        X = table()
        bank = make_bank(KERNELS, X, normalize=None)
        assert (bank.scales == 1).all()
        assert bank.kernels == tuple(KERNELS)

    def test_scale_of_a_kernel_does_not_matter(self):
        X = table()
        for normalize in ("trace", "diagonal", "cosine"):
            bank = make_bank([Linear(), 1e6 * Linear(), 1e-6 * Linear()], X, normalize=normalize)
            V = np.random.default_rng(0).normal(size=(60, 1))
            assert_allclose(bank.quadratic_forms(V), bank.quadratic_forms(V)[0], rtol=1e-9)

    @pytest.mark.parametrize("normalize", ["trace", "diagonal"])
    @pytest.mark.parametrize("centred", [True, False])
    def test_integer_weights_repeat_rows(self, normalize, centred):
        X = table(20)
        times = np.arange(20) % 3 + 1
        weighted = make_bank(
            KERNELS, X, normalize=normalize, centred=centred, sample_weight=times * 2.5
        )
        repeated = make_bank(
            KERNELS, np.repeat(X, times, axis=0), normalize=normalize, centred=centred
        )
        assert_allclose(weighted.scales, repeated.scales, rtol=1e-8)

    def test_weights_of_zero_remove_rows(self):
        X = table(30)
        keep = np.arange(30) % 2 == 0
        weighted = make_bank(KERNELS, X, sample_weight=keep.astype(float))
        part = make_bank(KERNELS, X[keep])
        assert_allclose(weighted.scales, part.scales, rtol=1e-8)

    def test_constant_and_zero_kernels_keep_their_size(self):
        X = np.column_stack([table(), np.full(60, 3.0), np.zeros(60)])
        kernels = [Linear(), Linear(columns=[4]), RBF(width=1.0, columns=[4]), Linear(columns=[5])]
        bank = make_bank(kernels, X, normalize="trace", centred=True)
        assert bank.scales[1:].tolist() == [1, 1, 1]
        assert bank.traces(centred=True)[1:].tolist() == [0, 0, 0]
        V = np.random.default_rng(0).normal(size=(60, 1))
        V -= V.mean()
        assert_allclose(bank.quadratic_forms(V)[1:], 0, atol=1e-10)
        check_bank(bank, X)
        # Without an intercept a constant kernel does have a size.
        bank = make_bank(kernels, X, normalize="trace", centred=False)
        assert_allclose(bank.traces(), [60, 60, 60, 0])

    def test_cosine_of_rows_without_length(self):
        X = table(10)
        X[3] = 0
        bank = make_bank([Linear()], X, normalize="cosine")
        assert bank.traces() == pytest.approx([9])
        check_bank(bank, X)


class TestForms:
    def quadratic_forms(self, kernels, X, **options):
        return [row["form"] for row in make_bank(kernels, X, **options).summary()]

    def test_low_rank_is_factored(self):
        X = table(400)
        kernels = [RBF(width=w, columns=[c]) for w in (0.5, 1.0, 4.0) for c in range(4)]
        kernels += [Linear(), Polynomial(degree=2), FromCallable(lambda A, B: A @ B.T)]
        bank = make_bank(kernels, X)
        assert {row["form"] for row in bank.summary()} == {"factor"}
        assert bank.nbytes < 0.1 * 8 * 400**2 * len(kernels)

    def test_high_rank_is_not(self):
        X = table(400)
        kernels = [RBF(width=0.3), Laplacian(width=1.0), RBF(width=0.2) + Linear()]
        assert self.quadratic_forms(kernels, X) == ["distances", "distances", "dense"]

    def test_widths_of_one_view_share_their_distances(self):
        X = table(100)
        bank = make_bank([RBF(width=w) for w in np.linspace(0.1, 0.5, 20)], X)
        assert bank.nbytes == 8 * 100**2

    def test_one_kernel_of_a_view_may_be_wide_enough(self):
        X = table(400)
        kernels = [RBF(width=0.3), RBF(width=30.0), RBF(width=0.2), RBF(width=20.0)]
        assert self.quadratic_forms(kernels, X) == ["distances", "factor", "distances", "factor"]

    def test_a_tighter_tolerance_means_higher_ranks(self):
        X = table(400)
        kernels = [RBF(width=1.0, columns=[0])]
        ranks = [make_bank(kernels, X, tol=tol).summary()[0]["rank"] for tol in (1e-1, 1e-3, 1e-6)]
        assert ranks == sorted(ranks)
        assert ranks[0] < ranks[-1]

    @pytest.mark.parametrize("tol", [1e-2, 1e-4])
    def test_what_is_left_out_is_far_below_the_tolerance(self, tol):
        bank = make_bank([RBF(width=1.0, columns=[c]) for c in range(4)], table(400), tol=tol)
        assert max(row["left_out"] for row in bank.summary()) <= 1e-2 * tol


class TestBudget:
    def test_the_message_says_what_to_do(self):
        kernels = [RBF(width=0.1), Laplacian(width=0.3), RBF(width=0.1) + Linear(), Linear()]
        with pytest.raises(MemoryBudgetError) as caught:
            make_bank(kernels, table(400), memory_limit="1MB")
        message = str(caught.value)
        assert message.startswith("These 4 kernels need ")
        assert "1 factors: " in message
        assert "2 distance matrices of 400 rows: 2.6 MB" in message
        assert "1 Gram matrices of 400 rows: 1.3 MB" in message
        assert "values as they are computed: 3.8 MB" in message
        assert "the limit is 1.0 MB" in message
        assert "Hint: use fewer rows" in message
        assert "memory_limit='7." in message
        assert isinstance(caught.value, ValueError)

    def test_the_hint_works(self):
        kernels = [RBF(width=0.1), RBF(width=0.1) + Linear()]
        with pytest.raises(MemoryBudgetError) as caught:
            make_bank(kernels, table(400), memory_limit=1e5)
        hint = str(caught.value).split("memory_limit='")[1].split("'")[0]
        make_bank(kernels, table(400), memory_limit=hint)

    def test_sums_and_systems_of_the_caller_count(self):
        def need(**work):
            with pytest.raises(MemoryBudgetError) as caught:
                make_bank([RBF(width=0.1)], table(400), memory_limit=1e5, **work)
            return parse_bytes(str(caught.value).split("memory_limit='")[1].split("'")[0])

        square = 8 * 400**2
        assert need() == pytest.approx(2 * square, abs=1e5)
        assert need(n_combined=3) == pytest.approx(4 * square, abs=1e5)
        assert need(n_solved=400) == pytest.approx(3 * square + 8 * 400 * 512, abs=1e5)
        assert need(beside={"more": 5e6}) == pytest.approx(2 * square + 5e6, abs=1e5)

    def test_nothing_large_is_allocated_first(self):
        calls = []

        def function(A, B):
            calls.append((len(A), len(B)))
            return np.exp(-np.abs(A[:, :1] - B[:, 0]))

        X = table(2000)
        with pytest.raises(MemoryBudgetError):
            make_bank([FromCallable(function)], X, memory_limit="1MB")
        assert max(a * b for a, b in calls) < 2000**2 / 4


class TestExtremes:
    @pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
    def test_scales_that_can_be_normalised(self, scale):
        X = scale * table()
        bank = make_bank([Linear(), RBF(width=scale), RBF(width=scale, columns=[0])], X)
        plain = make_bank([Linear(), RBF(width=1.0), RBF(width=1.0, columns=[0])], X / scale)
        V = np.random.default_rng(0).normal(size=(60, 1))
        assert_allclose(bank.quadratic_forms(V), plain.quadratic_forms(V), rtol=1e-7)
        check_bank(bank, X)

    @pytest.mark.parametrize("scale", [1e155, 1e200])
    def test_overflow_is_one_sentence(self, scale):
        X = scale * table()
        for kernel in (Linear(), Polynomial(degree=2)):
            with pytest.raises(InputError, match=r"overflow.*StandardScaler"):
                make_bank([kernel], X)

    def test_distances_that_overflow(self):
        X = 1e200 * table()
        bank = make_bank([RBF(width=1.0)], X, normalize=None)
        assert np.array_equal(bank.combine(np.ones(1)).dense(), np.eye(len(X)))

    def test_values_too_small_to_normalise(self):
        X = 1e-158 * table()
        with pytest.raises(InputError, match=r"^linear: its values underflow"):
            make_bank([RBF(width=1.0), Linear()], X)

    def test_values_that_vanish_altogether(self):
        X = 1e-200 * table()
        bank = make_bank([Linear(), RBF(width=1.0)], X)
        assert bank.traces()[0] == 0
        assert bank.scales.tolist() == [1, 1]  # a zero kernel and a constant one

    def test_widths_at_the_ends(self):
        X = table()
        bank = make_bank([RBF(width=1e-100), RBF(width=1e100), RBF(width=1.0)], X, normalize=None)
        V = np.random.default_rng(0).normal(size=(60, 1))
        identity, constant, _ = bank.quadratic_forms(V)
        assert identity == pytest.approx(np.vdot(V, V))
        assert constant == pytest.approx(V.sum() ** 2)

    def test_a_width_whose_square_overflows(self):
        X = table()
        kernels = [RBF(width=1e170), RBF(width=0.3), RBF(width=0.2)]
        bank = make_bank(kernels, X, normalize=None)
        V = np.random.default_rng(0).normal(size=(60, 1))
        expected = [float(V[:, 0] @ k(X) @ V[:, 0]) for k in kernels]
        assert_allclose(bank.quadratic_forms(V), expected, rtol=1e-8)

    def test_kernels_of_very_different_size(self):
        X = table()
        bank = make_bank([1e-7 * Linear(), 1e7 * Linear()], X, normalize=None)
        V = np.random.default_rng(0).normal(size=(60, 1))
        small, large = bank.quadratic_forms(V)
        assert large / small == pytest.approx(1e14)

    def test_a_negative_diagonal_is_refused(self):
        def wrong(A, B):
            return -np.ones((len(A), len(B)))

        with pytest.raises(InputError, match="negative"):
            make_bank([FromCallable(wrong)], table())

    def test_an_infinite_gram_is_refused(self):
        gram = np.full((3, 3), 1e308)
        with pytest.raises(InputError, match="overflow"):
            make_bank([Precomputed(gram, check=False)], np.arange(3)[:, None])


def test_inputs_are_not_changed():
    X = table()
    before = X.copy()
    bank = make_bank([Linear(), RBF(width=0.3), Polynomial(degree=2)], X)
    bank.combine(np.ones(3)).dense()
    assert np.array_equal(X, before)


def test_order_of_kernels_is_kept():
    X = table()
    order = np.random.default_rng(0).permutation(4)
    bank, mixed = make_bank(KERNELS, X), make_bank([KERNELS[j] for j in order], X)
    V = np.random.default_rng(1).normal(size=(60, 2))
    assert_allclose(mixed.quadratic_forms(V), bank.quadratic_forms(V)[order], rtol=1e-10)
    assert_allclose(mixed.scales, bank.scales[order], rtol=1e-12)
    products = bank.products(V, np.arange(4))
    assert_allclose(mixed.products(V, np.arange(4)), products[order], atol=1e-10)


def test_values_that_underflow_are_refused():
    rows = 1e-160 * np.random.default_rng(0).normal(size=(20, 2))
    for normalize in (None, "trace"):
        with pytest.raises(InputError, match="underflow"):
            make_bank([Linear()], rows, normalize=normalize)
    make_bank([Linear()], 1e10 * rows)


def gated_table(n=60):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 5))
    X[::3] = np.nan
    return X


@pytest.mark.parametrize("on_demand", [False, True])
@pytest.mark.parametrize("n", [60, 900])
def test_kernels_that_are_off_for_some_rows_in_every_storage_form(n, on_demand):
    X = gated_table(n)
    kernels = [
        *(kind(w, missing="off") for kind in (RBF, Laplacian) for w in (0.4, 0.8)),
        RBF(3.0, columns=[0], missing="off"),
        Linear(missing="off"),
        RBF(0.5, missing="off") + Linear(missing="off"),
    ]
    kernels = [kernel.bound(X) for kernel in kernels]
    bank = make_bank(kernels, X, normalize="trace", on_demand=on_demand)
    forms = {part.form for part, _ in bank.parts}
    if not on_demand:
        assert forms >= {"factor", "distances"}
    V = np.random.default_rng(0).normal(size=(n, 2))
    grams = [scale * kernel(X) for scale, kernel in zip(bank.scales, kernels, strict=True)]
    for j, gram in enumerate(grams):
        assert not gram[::3].any()
        np.testing.assert_allclose(bank.quadratic_forms(V)[j], np.trace(V.T @ gram @ V), rtol=1e-6)
    np.testing.assert_allclose(bank.traces(), [np.trace(gram) for gram in grams], rtol=1e-12)
    weights = np.arange(1.0, len(grams) + 1)
    total = sum(w * gram for w, gram in zip(weights, grams, strict=True))
    combined = bank.combine(weights)
    np.testing.assert_allclose(combined @ V, total @ V, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(combined.diag(), total.diagonal(), rtol=1e-6, atol=1e-9)
    few = bank.take(np.arange(0, n, 2))
    np.testing.assert_allclose(few.traces(), [np.trace(g[::2, ::2]) for g in grams], rtol=1e-9)
