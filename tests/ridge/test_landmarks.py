import numpy as np

from kernelweave.ridge.landmarks import choose_landmarks, solve_nystroem
from kernelweave.ridge.metric import solve_ridge

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(40, 4))
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3]])
WEIGHT = RANDOM.uniform(0.5, 2.0, 40)


def kernel(A, B):
    return np.exp(-np.abs(A[:, None] - B).sum(axis=2) / 3)


def test_all_rows_as_landmarks_give_the_exact_ridge():
    K = kernel(X, X)
    exact = solve_ridge(K.copy(), 0.3, Y, WEIGHT)
    found, _ = solve_nystroem(
        lambda a, b: K[np.ix_(a, b)], Y, WEIGHT, np.arange(40), 40, np.array([0.3])
    )
    np.testing.assert_allclose(found.loo_residuals, exact.loo_residuals, atol=1e-9)
    values = K[:, found.landmarks] @ found.dual_coef + found.intercept
    np.testing.assert_allclose(values, K @ exact.dual_coef + exact.intercept, atol=1e-9)
    assert found.left_out < 1e-12


def test_nystroem_leave_one_out_residuals_are_those_of_refits():
    K = kernel(X, X)
    marks, triangle = choose_landmarks(lambda a, b: K[np.ix_(a, b)], np.arange(40), 12)
    np.testing.assert_allclose(triangle @ triangle.T, K[np.ix_(marks, marks)], atol=1e-12)
    options = (np.arange(40), 12, np.array([0.2]))
    found, half = solve_nystroem(lambda a, b: K[np.ix_(a, b)], Y, WEIGHT, *options)
    fewer = solve_nystroem(lambda a, b: K[np.ix_(a, b)], Y, WEIGHT, marks[:6], 6, options[-1])[0]
    np.testing.assert_allclose(half(), fewer.loo_error, rtol=1e-9)
    Z = np.linalg.solve(triangle, K[marks]).T
    for i in (0, 11):
        rest = np.delete(np.arange(40), i)
        w, share = WEIGHT[rest], WEIGHT[rest] / WEIGHT[rest].sum()
        centred, means = Z[rest] - share @ Z[rest], share @ Y[rest]
        system = centred.T @ (w[:, None] * centred) + 0.2 * np.eye(len(marks))
        beta = np.linalg.solve(system, centred.T @ (w[:, None] * (Y[rest] - means)))
        value = means + (Z[i] - share @ Z[rest]) @ beta
        np.testing.assert_allclose(Y[i] - value, found.loo_residuals[i], atol=1e-10)
