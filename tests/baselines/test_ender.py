"""ENDER against its formulas, written out row by row."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, softmax

from kernelweave.baselines import EnderClassifier, ender
from rule_tables import covers, noisy, table


@pytest.mark.parametrize("seed", range(8))
def test_ender_adds_the_best_condition_as_long_as_it_helps(seed):
    rng = np.random.default_rng(seed)
    X, G = (rng.random((40, 5)) < 0.5).astype(float), rng.normal(size=(3, 40))
    H = rng.uniform(0.05, 0.25, size=(3, 40))

    def brute(k, rule):
        inside = covers(X, rule)
        return G[k, inside].sum() / np.sqrt(H[k, inside].sum()) if inside.any() else 0.0

    rules = []
    for k in range(3):
        rule = ()
        while True:
            best = max(range(5), key=lambda c, k=k, rule=rule: brute(k, (*rule, c)))
            if brute(k, (*rule, best)) <= brute(k, rule) + 1e-12:
                break
            rule = (*rule, best)
        rules.append(rule)
    k = max((k for k in range(3) if rules[k]), key=lambda k: brute(k, rules[k]))
    assert ender._grow(X, G, H) == (tuple(sorted(rules[k])), k)
    every = [r for size in range(6) for r in combinations(range(5), size)]
    assert brute(k, rules[k]) <= max(brute(k, r) for r in every) + 1e-12


@pytest.mark.parametrize("n_classes", [2, 4])
def test_ender_weights_are_shrunken_newton_steps(n_classes):
    X = table(150, seed=3)
    y = noisy(X, rate=0.2) if n_classes == 2 else (X[:, 0] + 2 * X[:, 1]).astype(int)
    model = EnderClassifier(40, random_state=0).fit(X, y)
    own = y[:, None] == np.arange(n_classes)
    F = np.tile(np.log(own.mean(axis=0)), (150, 1))
    if n_classes == 2:
        F -= F[:, :1]
    np.testing.assert_allclose(model.intercept_, F[0, 1:] if n_classes == 2 else F[0])
    losses = [-np.mean(np.log(softmax(F, axis=1)[own]))]
    for rule, weight, k in zip(model.rules_, model.weights_, model.rule_classes_, strict=True):
        P, inside = softmax(F, axis=1)[:, k], covers(X, rule)
        step = np.sum((own[:, k] - P)[inside]) / np.sum((P * (1 - P))[inside])
        assert weight == pytest.approx(0.1 * step, rel=1e-8)
        if n_classes == 2:
            F[inside, 1] += weight if k == 1 else -weight
        else:
            F[inside, k] += weight
        losses.append(-np.mean(np.log(softmax(F, axis=1)[own])))
    np.testing.assert_allclose(model.train_loss_, losses)
    decision = F[:, 1] if n_classes == 2 else F
    np.testing.assert_allclose(model.decision_function(X), decision, atol=1e-10)


@pytest.mark.parametrize(("shrinkage", "n_classes"), [(0.1, 2), (1.0, 2), (0.1, 4), (1.0, 4)])
def test_ender_never_raises_the_loss(shrinkage, n_classes):
    X = table(100, seed=6)
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 100)
    model = EnderClassifier(150, shrinkage=shrinkage, random_state=0).fit(X, y)
    assert np.all(np.diff(model.train_loss_) <= 1e-12)
    assert model.train_loss_[-1] < model.train_loss_[0]
    assert len(model.train_loss_) == model.n_rules_ + 1


def test_ender_halves_a_step_that_is_too_long():
    # All scores far on the wrong side for half of the rows: a whole step would overshoot.
    codes = np.array([1, 1, 1, 0])
    likelihood = ender._Likelihood(codes, np.array([-6.0]))
    before = likelihood.loss()
    newton = (0.75 - expit(-6)) / (expit(-6) * expit(6))
    step = likelihood.move(1, np.ones(4), 1.0)
    assert likelihood.loss() < before
    assert 0 < step < newton
    assert np.log2(newton / step) == pytest.approx(round(np.log2(newton / step)))


def test_ender_learns_as_many_rules_as_asked_for():
    X, y = table(), noisy(table())
    assert EnderClassifier(37, random_state=0).fit(X, y).n_rules_ == 37
