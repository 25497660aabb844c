"""What estimators say that they add up is what they predict."""

import numpy as np

from kernelweave import (
    RBF,
    CombinedRegressor,
    Linear,
    MKLRegressor,
    RuleEnsembleRegressor,
    SumProductMKLClassifier,
)
from kernelweave.estimators.terms import FunctionTerms, KernelTerms, MemberTerms, RuleTerms
from kernelweave.rules import score_rules

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
LEFT, RIGHT = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])


def added_up(terms):
    """Return the sum of kernel terms at the rows of X."""
    assert isinstance(terms, KernelTerms)
    total = np.tile(terms.intercept, (len(X), 1))
    for term in terms.terms:
        block = 1.0
        for kernel, rows in term.factors:
            block = block * kernel.block(kernel.prepare(terms.check(X)), rows)
        total += block @ term.coef
    return total[:, 0]


def test_kernels():
    model = MKLRegressor([RBF(1.0), Linear()]).fit(X, Y)
    np.testing.assert_allclose(added_up(model._terms()), model.predict(X), atol=1e-9)


def test_products_of_kernels():
    model = SumProductMKLClassifier((LEFT + RIGHT) * Linear()).fit(X, Y > 0)
    terms = model._terms()
    assert max(len(term.factors) for term in terms.terms) == 2
    np.testing.assert_allclose(added_up(terms), model.decision_function(X), atol=1e-9)


def test_rules():
    model = RuleEnsembleRegressor(C=10).fit(X, Y)
    terms = model._terms()
    assert isinstance(terms, RuleTerms)
    total = score_rules(terms.rules, terms.intercept, terms.check(X))
    np.testing.assert_allclose(total[:, 0], model.predict(X), atol=1e-9)


def test_members():
    model = CombinedRegressor(
        [("one", MKLRegressor([Linear()])), ("two", MKLRegressor([RBF(1.0)]))], weights=[0.7, 0.3]
    ).fit(X, Y)
    terms = model._terms()
    assert isinstance(terms, MemberTerms)
    total = terms.intercept + sum(
        part.predict(X)[:, None] @ slopes.T for part, slopes in terms.members
    )
    np.testing.assert_allclose(total[:, 0], model.predict(X), atol=1e-9)


def test_a_combination_that_is_no_sum():
    model = CombinedRegressor(
        [("log", MKLRegressor([Linear()])), ("plain", MKLRegressor([Linear()]))],
        logarithms=[(8.0, 1.0), None],
    ).fit(X, Y)
    terms = model._terms()
    assert isinstance(terms, FunctionTerms)
    assert terms.reason
    np.testing.assert_allclose(terms.function(X)[:, 0], model.predict(X), atol=1e-12)
