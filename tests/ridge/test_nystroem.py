"""Ridge averages over rows that are read in passes, against those with all eigenvectors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernelweave.banks import make_bank
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError
from kernelweave.kernels import RBF, Additive, Linear, Overlap, Polynomial, Precomputed
from kernelweave.ridge import average_ridges
from kernelweave.ridge.leave_one_out import inverse, loo_values
from kernelweave.ridge.nystroem import average_ridges_nystroem, uses_nystroem
from kernelweave.ridge.spectrum import kernel_spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.column_stack([np.sign(X[:, 0] + 0.5 * RNG.normal(size=150)), X[:, 1] ** 2])
RIDGES = np.geomspace(1e-2, 1e3, 7)
# Two of them are no kernels to learn from: a copy of the first, and a constant.
KERNELS = [RBF(1.0), RBF(1.0), Linear(), Polynomial(2), 3.0 * RBF(1.0), Additive((1.0, 0.5, 2.0))]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(source, "WORK_ROWS", 32)
    monkeypatch.setattr(source, "_BLOCK_BYTES", 8000)


def pair(kernels=KERNELS, rows=X, targets=Y, **options):
    bank = make_bank(kernels, rows, tol=1e-9)
    exact = average_ridges(bank, targets, ridges=RIDGES, **options)
    return exact, average_ridges_nystroem(kernels, rows, targets, ridges=RIDGES, **options)


def values(kernels, scales, average, V, rows, table=X):
    """Return what the averaged model for centred targets says about rows."""
    dual_coef, intercept, _ = average.coefficients(V)
    support = average.support()
    return intercept + sum(
        scale * kernel(rows, table[support]) @ part.T
        for kernel, scale, part in zip(kernels, scales, dual_coef, strict=True)
    )


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("joint", [False, True])
def test_exact_landmarks_give_the_same_models(power, joint):
    exact, found = pair(power=power, joint=joint)
    average = found.average
    for name in ("errors", "weights", "scores", "soft_scores", "kernel_weights", "ridge_weights"):
        np.testing.assert_allclose(getattr(average, name), getattr(exact, name), atol=1e-8)
    assert average.error == pytest.approx(exact.error, abs=1e-9)
    other = RNG.normal(size=(150, 3))
    np.testing.assert_allclose(average.loo(other), exact.loo(other), atol=1e-8)
    scales = make_bank(KERNELS, X, tol=1e-9).scales
    used = average.kernel_weights > 0
    assert used.tolist() == [True, False, True, True, False, True]
    np.testing.assert_allclose(found.scales[used], scales[used], rtol=1e-10)
    # What rounding leaves out of a kernel on its rows shows by its root elsewhere.
    for V in (Y - Y.mean(axis=0), other - other.mean(axis=0)):
        for rows, tol in ((X, 1e-8), (RNG.normal(size=(20, 3)), 1e-5)):
            np.testing.assert_allclose(
                values(KERNELS, found.scales, average, V, rows),
                values(KERNELS, scales, exact, V, rows),
                atol=tol,
            )
        np.testing.assert_allclose(
            average.coefficients(V)[2], exact.coefficients(V)[2], rtol=1e-7, atol=1e-10
        )


def test_few_landmarks_leave_out_exactly_for_the_kernel_that_predicts(monkeypatch):
    monkeypatch.setattr(large, "_MOST_LANDMARKS", 12)
    found = average_ridges_nystroem([RBF(0.7)], X, Y, ridges=RIDGES, power=2)
    (item,) = found.average.eigen.items
    F = item.item.features(X)
    gram = found.scales[0] * F @ F.T
    bank = make_bank([Precomputed(gram)], np.arange(150)[:, None], normalize=None)
    spectrum = kernel_spectrum(bank.combine(np.ones(1)))
    own = loo_values(spectrum, Y, RIDGES, power=2)
    expected = np.tensordot(found.average.weights[0], own, axes=1)
    np.testing.assert_allclose(found.average.scores, expected, atol=1e-8)
    # The function fitted to all rows, at a row: its share of the targets along the eigenvectors.
    mix = found.average.weights[0] @ inverse(spectrum.values, RIDGES, 2)
    V = Y - Y.mean(axis=0)
    fitted = spectrum.vectors @ ((spectrum.values * mix)[:, None] * (spectrum.vectors.T @ V))
    ours = values([RBF(0.7)], found.scales, found.average, V, X)
    np.testing.assert_allclose(ours, fitted, atol=1e-8)
    assert len(found.average.support()) == 12


@pytest.mark.parametrize("power", [1, 2])
def test_a_map_is_held_where_memory_allows(power):
    found = pair(power=power)[1].average
    other = RNG.normal(size=(150, 3))
    held, passes = found.loo_map(), replace(found, eigen=replace(found.eigen, memory=1.0)).loo_map()
    expected = found.loo(other) - (other.sum(axis=0) - other) / 149  # less the means of others
    np.testing.assert_allclose(held(other), expected, atol=1e-10)
    np.testing.assert_allclose(passes(other), expected, atol=1e-13)
    # A row does not vote for itself.
    moved = other.copy()
    moved[7] += 1.0
    shifted = held(moved) - held(other)
    np.testing.assert_allclose(shifted[7], 0.0, atol=1e-12)
    assert np.abs(shifted).max() > 1e-6


def test_weights_for_other_targets_are_those_of_a_fit_to_them():
    exact, found = pair()
    other = RNG.normal(size=(150, 3)) + X[:, :1]
    fresh, _ = pair(targets=other)
    for average in (exact, found.average):
        again = average.weighted_for(other, 4.0, 0.5)
        np.testing.assert_allclose(again.errors, fresh.errors, atol=1e-8)
        np.testing.assert_allclose(again.weights, fresh.weights, atol=1e-6)
        np.testing.assert_allclose(again.scores, fresh.scores, atol=1e-6)
        assert np.abs(average.weights - fresh.weights).max() > 0.01


def test_models_that_do_not_count_are_not_asked():
    exact, found = pair(temperature=1e-3, floor=0.0, power=2)
    assert (exact.weights.sum(axis=1) == 0).any()
    np.testing.assert_allclose(found.average.scores, exact.scores, atol=1e-8)
    np.testing.assert_allclose(found.average.soft_scores, exact.soft_scores, atol=1e-8)


def test_what_the_sample_misses_is_found_in_a_pass(monkeypatch):
    monkeypatch.setattr(large, "_SAMPLE", 8)
    sample = large.even_rows(150, 8)
    rows = X.copy()
    rows[sample, 2] = 0.0  # no row of the sample has anything in this column
    exact, found = pair([Linear(), RBF(5.0)], rows)
    np.testing.assert_allclose(found.average.scores, exact.scores, atol=1e-6)
    assert not set(found.average.support()) <= set(sample)


def test_copies_of_kernels_and_columns_that_some_rows_do_not_show(monkeypatch):
    monkeypatch.setattr("kernelweave.ridge.nystroem._COPY_ROWS", 5)
    rows = np.column_stack([X[:, 0], np.zeros(150)])
    rows[7, 1] = 1.0
    kernels = [Linear(columns=[0]), Linear(columns=[1]), 2.0 * Linear(columns=[0])]
    average = average_ridges_nystroem(kernels, rows, Y).average
    assert (average.kernel_weights > 0).tolist() == [True, True, False]


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InputError, match="every kernel is constant"):
        average_ridges_nystroem([Linear()], np.ones((50, 2)), Y[:50])


def test_a_frame_with_categories():
    frame = pd.DataFrame({"a": X[:, 0], "color": np.where(X[:, 1] > 0, "red", "blue")})
    kernels = [RBF(1.0, columns=["a"]), Overlap(columns=["color"])]
    exact, found = pair(kernels, frame)
    np.testing.assert_allclose(found.average.scores, exact.scores, atol=1e-8)


def test_who_reads_in_passes():
    assert uses_nystroem(1, 5000, np.inf)
    assert not uses_nystroem(12, 4999, np.inf)
    assert uses_nystroem(1000, 4999, 1e9)
    assert not uses_nystroem(1000, 2000, 1e9)  # exact, or refused


def test_every_pass_is_reported():
    calls = []
    average_ridges_nystroem([RBF(1.0)], X, Y, report=lambda: calls.append(1))
    assert len(calls) == 3
