"""The epsilon-insensitive loss is that of support vector regression."""

from numpy.testing import assert_allclose
from sklearn.svm import SVR

from gram_banks import kernel_of
from kernelweave.inner import solve_inner
from kernelweave.losses import EpsilonInsensitive
from oracles import random_problem


def test_epsilon_insensitive_is_libsvm():
    problem = random_problem(6, kind="regression", n=60)
    gram = problem.grams.sum(axis=0)
    loss_function = EpsilonInsensitive(0.2)
    found = solve_inner(loss_function, kernel_of(gram), problem.Y, 0.5 * problem.cost, tol=1e-8)
    reference = SVR(kernel="precomputed", C=0.5, epsilon=0.2, tol=1e-8).fit(gram, problem.y)
    assert_allclose(found.fitted[:, 0] + found.intercept, reference.predict(gram), atol=1e-3)
