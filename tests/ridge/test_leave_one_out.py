"""Leave-one-out values in closed form, against refits one by one."""

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.errors import InputError, MemoryBudgetError
from kernelweave.kernels import RBF, Additive, Linear, Polynomial, Precomputed
from kernelweave.ridge import average_ridges, default_ridges
from kernelweave.ridge.leave_one_out import averaging_weights, loo_values
from kernelweave.ridge.spectrum import kernel_spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.column_stack([np.sign(X[:, 0] + 0.5 * RNG.normal(size=40)), X[:, 1] ** 2])
RIDGES = np.array([1e-3, 0.1, 1.0, 50.0])
KERNELS = [RBF(1.0), RBF(3.0), Linear(), Polynomial(2), Additive((1.0, 0.5, 2.0))]


def centred(K):
    J = np.eye(len(K)) - 1.0 / len(K)
    return J @ K @ J


def unit(K):
    return K * len(K) / np.trace(centred(K))


def refit(K, y, ridge, left_out):
    """Fit ridge regression with a free intercept to all other rows, and predict the one."""
    keep = np.delete(np.arange(len(K)), left_out)
    # min |y - K a - b|^2 + ridge a'Ka, by its normal equations
    A = np.block([[K[np.ix_(keep, keep)] + ridge * np.eye(len(keep)), np.ones((len(keep), 1))],
                  [np.ones((1, len(keep))), np.zeros((1, 1))]])  # fmt: skip
    solved = np.linalg.solve(A, np.append(y[keep], 0.0))
    return K[left_out, keep] @ solved[:-1] + solved[-1]


def refit_on_values(K, y, ridge, left_out):
    """Fit ridge regression on columns of kernel values to all other rows, and predict the one."""
    keep = np.delete(np.arange(len(K)), left_out)
    columns = np.column_stack([K, np.ones(len(K))])
    penalty = np.diag(np.append(np.full(len(K), ridge), 0.0))
    rows = np.vstack([columns[keep], penalty])
    solved = np.linalg.lstsq(rows, np.append(y[keep], np.zeros(len(K) + 1)), rcond=None)[0]
    return columns[left_out] @ solved


def of(kernel, table=X):
    bank = make_bank([kernel], table)
    return kernel_spectrum(bank.combine(np.ones(1))), bank


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_refits(kernel):
    spectrum, _ = of(kernel)
    K = unit(kernel(X))
    values = loo_values(spectrum, Y, RIDGES)
    for k, ridge in enumerate(RIDGES):
        for i in (0, 7, 39):
            for o in range(2):
                assert values[k, i, o] == pytest.approx(refit(K, Y[:, o], ridge, i), rel=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_of_power_two_are_those_of_ridge_regression_on_kernel_values(kernel):
    spectrum, _ = of(kernel)
    K = centred(unit(kernel(X)))
    values = loo_values(spectrum, Y, RIDGES, power=2)
    for k, ridge in enumerate(RIDGES):
        for i in (0, 7, 39):
            for o in range(2):
                expected = refit_on_values(K, Y[:, o], ridge, i)
                assert values[k, i, o] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_the_range_is_read_off_power_one():
    bank = make_bank(KERNELS, X)
    one, two = (average_ridges(bank, Y, power=power) for power in (1, 2))
    np.testing.assert_array_equal(two.soft_scores, one.soft_scores)
    assert np.abs(two.scores - one.scores).max() > 0.01
    np.testing.assert_allclose(two.loo(Y), two.scores, atol=1e-12)
    assert two.errors.shape == one.errors.shape == (len(KERNELS), len(default_ridges(len(X))))


def test_leverages_and_values_stay_finite_without_a_ridge():
    spectrum, _ = of(Precomputed(np.eye(40)), np.arange(40)[:, None])
    U, d = spectrum.vectors, spectrum.values
    for ridge in default_ridges(40):
        h = 1 / 40 + (U * U) @ (d / (d + ridge))
        assert (h >= 1 / 40 - 1e-12).all()
        assert (h < 1).all()
    assert np.isfinite(loo_values(spectrum, Y, np.array([1e-300]))).all()


def test_ridges_grow_with_many_rows():
    assert default_ridges(500)[[0, -1]] == pytest.approx([0.01, 1000])
    assert default_ridges(5000)[[0, -1]] == pytest.approx([0.01, 5000])


def test_weights_are_a_probability_vector_with_a_floor():
    errors = RNG.uniform(0.5, 1.0, size=(5, 4))
    weights = averaging_weights(errors, 100, 4.0, 0.5)
    assert weights.sum() == pytest.approx(1)
    assert (weights.sum(axis=1) >= 0.1 - 1e-15).all()
    soft = averaging_weights(errors, 100, 4.0, 0.0)
    ratio = soft.ravel() / soft.max()
    np.testing.assert_allclose(ratio, (errors.min() / errors.ravel()) ** (100 / 8), rtol=1e-10)
    flat = averaging_weights(errors, 100, 1e12, 0.0)
    np.testing.assert_allclose(flat, 1 / 20, rtol=1e-8)


def test_one_kernel_and_one_ridge_is_plain_ridge_regression():
    bank = make_bank([RBF(1.5)], X)
    average = average_ridges(bank, Y[:, :1], ridges=np.array([0.7]))
    assert average.weights.tolist() == [[1.0]]
    K = unit(RBF(1.5)(X))
    expected = [refit(K, Y[:, 0], 0.7, i) for i in range(40)]
    np.testing.assert_allclose(average.scores[:, 0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(average.loo(Y)[:, 1], [refit(K, Y[:, 1], 0.7, i) for i in range(40)])


def test_coefficients_give_the_average_of_all_models():
    new = RNG.normal(size=(9, 3))
    bank = make_bank(KERNELS, X)
    average = average_ridges(bank, Y[:, :1], ridges=RIDGES)
    y = Y[:, 0]
    dual_coef, intercept, spread = average.coefficients(Y[:, :1] - y.mean())
    found = y.mean() + intercept[0]
    found = found + sum(
        bank.scales[j] * kernel(new, X) @ dual_coef[j, 0] for j, kernel in enumerate(KERNELS)
    )
    expected = np.zeros(9)
    for j, kernel in enumerate(KERNELS):
        whole = unit(kernel(np.vstack([X, new]))[:40, :40])
        scale = whole[0, 0] / kernel(X)[0, 0]
        for k, ridge in enumerate(RIDGES):
            n = len(X)
            A = np.block([[whole + ridge * np.eye(n), np.ones((n, 1))],
                          [np.ones((1, n)), np.zeros((1, 1))]])  # fmt: skip
            solved = np.linalg.solve(A, np.append(y, 0.0))
            one = scale * kernel(new, X) @ solved[:-1] + solved[-1]
            expected += average.weights[j, k] * one
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert (spread > 0).all()


def test_coefficients_of_power_two_give_the_average_of_all_models():
    new, y = RNG.normal(size=(9, 3)), Y[:, 0]
    bank = make_bank(KERNELS, X)
    average = average_ridges(bank, Y[:, :1], ridges=RIDGES, power=2)
    dual_coef, intercept, _ = average.coefficients(Y[:, :1] - y.mean())
    found, expected = y.mean() + intercept[0], np.zeros(9)
    for j, kernel in enumerate(KERNELS):
        found = found + bank.scales[j] * kernel(new, X) @ dual_coef[j, 0]
        K, size = kernel(X), np.trace(centred(kernel(X))) / len(X)
        columns, rows = centred(K) / size, kernel(new, X)
        rows = (rows - rows.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()) / size
        for k, ridge in enumerate(RIDGES):
            beta = np.linalg.solve(
                columns @ columns + ridge**2 * np.eye(len(X)), columns @ (y - y.mean())
            )
            expected += average.weights[j, k] * (y.mean() + rows @ beta)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("power", [1, 2])
def test_affine_targets_change_values_alike_and_weights_not(power):
    bank = make_bank(KERNELS, X)
    one = average_ridges(bank, Y[:, :1], power=power)
    other = average_ridges(bank, 3.0 * Y[:, :1] + 2.0, power=power)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(other.scores, 3.0 * one.scores + 2.0, atol=1e-9)


def test_the_mean_kernel_is_one_kernel():
    bank = make_bank(KERNELS, X)
    joint = average_ridges(bank, Y, joint=True)
    mean = sum(unit(kernel(X)) for kernel in KERNELS) / len(KERNELS)
    alone = average_ridges(make_bank([Precomputed(mean)], np.arange(40)[:, None]), Y)
    np.testing.assert_allclose(joint.scores, alone.scores, atol=1e-7)
    np.testing.assert_allclose(joint.kernel_weights, 0.2)


def test_what_cannot_be_used_is_refused():
    rows = np.arange(40)[:, None]
    with pytest.raises(InputError, match="every kernel is constant"):
        average_ridges(make_bank([Precomputed(np.ones((40, 40)))], rows), Y)
    wrong = np.eye(40)
    wrong[0, 1] = wrong[1, 0] = 3.0
    with pytest.raises(InputError, match=r"kernels\[0\].*not positive semi-definite"):
        average_ridges(make_bank([Precomputed(wrong, check=False)], rows), Y)
    with pytest.raises(MemoryBudgetError, match=r"5 kernels over 40 rows.*Hint"):
        average_ridges(make_bank(KERNELS, X), Y, memory=1000)
