"""SLIPPER against its formulas, written out row by row."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from kernelweave.baselines import SlipperClassifier, slipper
from rule_tables import covers, noisy, table


def weighted(seed, n=40, p=5):
    """Return a table, signs and weights, the latter by class as well."""
    rng = np.random.default_rng(seed)
    X, signs = (rng.random((n, p)) < 0.5).astype(float), np.where(rng.random(n) < 0.4, 1.0, -1.0)
    D = rng.dirichlet(np.ones(n))
    return X, signs, D, np.stack([D * (signs > 0), D * (signs < 0)])


def brute_score(X, signs, D, rule):
    inside = covers(X, rule)
    positive = sum(d for d, s, on in zip(D, signs, inside, strict=True) if on and s > 0)
    negative = sum(d for d, s, on in zip(D, signs, inside, strict=True) if on and s < 0)
    return np.sqrt(positive) - np.sqrt(negative), positive, negative


@pytest.mark.parametrize("seed", range(8))
def test_slipper_adds_the_best_condition_as_long_as_it_helps(seed):
    X, signs, D, both = weighted(seed)
    rule = slipper._grow(X, both)
    grown = ()
    score, _, negative = brute_score(X, signs, D, grown)
    while negative > 0:
        best = max(range(5), key=lambda c: brute_score(X, signs, D, (*grown, c))[0])
        if brute_score(X, signs, D, (*grown, best))[0] <= score + 1e-12:
            break
        grown = (*grown, best)
        score, _, negative = brute_score(X, signs, D, grown)
    assert rule == grown
    every = [r for k in range(6) for r in combinations(range(5), k)]
    exhaustive = max(brute_score(X, signs, D, r)[0] for r in every)
    assert max(brute_score(X, signs, D, (c,))[0] for c in range(5)) <= score + 1e-12
    assert score <= exhaustive + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_slipper_prunes_by_the_other_rows(seed):
    X, signs, D, both = weighted(seed)
    rng = np.random.default_rng(seed)
    grows = (rng.random(40) < 2 / 3).astype(float)
    rule = tuple(rng.permutation(5)[:4])
    losses = []
    for length in range(1, 5):
        _, right, wrong = brute_score(X, signs, D * grows, rule[:length])
        confidence = 0.5 * np.log((right + 1 / 80) / (wrong + 1 / 80))
        _, right, wrong = brute_score(X, signs, D * (1 - grows), rule[:length])
        losses.append(
            (1 - right - wrong) + right * np.exp(-confidence) + wrong * np.exp(confidence)
        )
    length = int(np.argmin(losses)) + 1
    assert slipper._prune(X, both, grows, rule) == tuple(sorted(rule[:length]))


@pytest.mark.parametrize("seed", range(4))
def test_slipper_rounds(seed):
    """Confidences, the choice between rule and default rule, and the bound of the error."""
    X, signs, *_ = weighted(seed, n=60)
    n = len(signs)
    steps = slipper._boost(X, signs, 25, np.random.RandomState(seed))
    D, F, losses = np.full(n, 1 / n), np.zeros(n), [1.0]
    for step in steps:
        score, positive, negative = brute_score(X, signs, D, step.rule)
        wanted = 0.5 * np.log((positive + 0.5 / n) / (negative + 0.5 / n))
        assert step.confidence == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        assert step.Z == pytest.approx(1 - score**2, rel=1e-12)
        default = 1 - brute_score(X, signs, D, ())[0] ** 2
        assert step.Z <= default + 1e-12
        assert step.confidence > 0 or step.rule == ()
        inside = covers(X, step.rule)
        if positive > 0 and negative > 0:
            best = 0.5 * np.log(positive / negative)
            assert np.sum(D * np.exp(-signs * best * inside)) == pytest.approx(step.Z, rel=1e-12)
        F += step.confidence * inside
        D = np.exp(-signs * F) / np.sum(np.exp(-signs * F))
        losses.append(np.mean(np.exp(-signs * F)))
        assert np.mean(np.where(F > 0, 1, -1) != signs) <= losses[-1] + 1e-12
    assert np.all(np.diff(losses) <= 1e-12)
    assert losses[-1] < losses[0]


def test_slipper_chooses_the_rounds_with_the_fewest_errors():
    X, y = table(seed=2), noisy(table(seed=2), rate=0.2)
    model = SlipperClassifier(12, random_state=5).fit(X, y)
    random = np.random.RandomState(5)
    signs = np.where(y == 1, 1.0, -1.0)  # the ones are fewer
    errors = np.zeros(12)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=random).split(X, y):
        steps = slipper._boost(X[train], signs[train], 12, random)
        F = np.zeros(len(test))
        for t, step in enumerate(steps):
            F += step.confidence * covers(X[test], step.rule)
            errors[t] += np.sum((F > 0) != (y[test] == 1))
    assert model.rounds_.tolist() == [int(errors.argmin()) + 1]
    steps = slipper._boost(X, signs, model.rounds_[0], random)
    assert dict(zip(model.rules_, model.weights_, strict=True)) == pytest.approx(
        {
            rule: sum(s.confidence for s in steps if s.rule == rule)
            for rule in {s.rule for s in steps if s.rule}
        }
    )


def test_slipper_with_a_class_of_one_row():
    X = table(20)
    y = (np.arange(20) == 7).astype(int)
    assert SlipperClassifier(3, random_state=0).fit(X, y).rounds_.tolist() == [3]
