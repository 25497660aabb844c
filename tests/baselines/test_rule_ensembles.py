"""SLIPPER and ENDER against their formulas, written out row by row."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.baselines import EnderClassifier, SlipperClassifier, ender, slipper
from kernelweave.errors import InputError

BOTH = [SlipperClassifier(30, random_state=0), EnderClassifier(60, random_state=0)]


@pytest.fixture(params=BOTH, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param)


def table(n=120, p=6, seed=0):
    return (np.random.default_rng(seed).random((n, p)) < 0.5).astype(float)


def noisy(X, seed=0, rate=0.1):
    wrong = np.random.default_rng(seed).random(len(X)) < rate
    return ((X[:, 0] * X[:, 2] > 0) ^ wrong).astype(int)


def covers(X, rule):
    return np.array([all(row[c] == 1 for c in rule) for row in X])


# scikit-learn's data are measurements, so these are cut at a threshold; without one they are
# refused, see below.
# scikit-learn's test of the type of y casts an infinite label to a whole number.
quietly = pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")


@quietly
@parametrize_with_checks([SlipperClassifier(10, threshold=0.0), EnderClassifier(20, threshold=0.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@quietly
@parametrize_with_checks(
    [
        SlipperClassifier(5, cv=2, threshold=1, random_state=3),
        EnderClassifier(5, shrinkage=1.0, subsample=1.0, threshold=1, random_state=3),
    ]
)
def test_scikit_learn_contract_of_other_configurations(estimator, check):
    check(estimator)


def test_a_known_conjunction_is_found(model):
    X, new = table(), table(500, seed=1)
    for flip in (False, True):  # the rarer class may be the first or the second
        y, true = ((Z[:, 0] * Z[:, 2] > 0) ^ flip for Z in (X, new))
        model.fit(X, y)
        assert (0, 2) in model.rules_
        assert model.score(new, true) == 1.0
    if isinstance(model, SlipperClassifier):
        assert model.rules_ == [(0, 2)]
        assert not model.rule_classes_[0]


def test_three_classes(model):
    X, new = (np.hstack([Z, 1 - Z]) for Z in (table(300), table(500, seed=1)))
    y, true = (np.array(["a", "b", "c"])[(Z[:, 0] + Z[:, 2]).astype(int)] for Z in (X, new))
    model.fit(X, y)
    assert model.decision_function(new).shape == (500, 3)
    assert model.score(new, true) > 0.95
    found = set(zip(model.rules_, model.rule_classes_, strict=True))
    assert found >= {((6, 8), "a"), ((0, 8), "b"), ((2, 6), "b"), ((0, 2), "c")}


def test_decisions_are_sums_of_votes(model):
    X, new = table(), table(50, seed=1)
    for y in (noisy(X), noisy(X) + (X[:, 1] > 0)):
        model.fit(X, y)
        classes = model.classes_
        total = np.zeros((50, len(classes)))
        rows = zip(model.rules_, model.weights_, model.rule_classes_, strict=True)
        for rule, weight, label in rows:
            assert weight > 0
            assert list(rule) == sorted(set(rule))
            total[:, classes == label] += weight * covers(new, rule)[:, None]
        if len(classes) == 2:
            total = total[:, 1] - total[:, 0]
        np.testing.assert_allclose(model.decision_function(new), total + model.intercept_)
        assert model.n_rules_ == len(model.rules_)
        assert model.mean_length_ == np.mean([len(rule) for rule in model.rules_])


def test_the_random_state_decides(model):
    X, y = table(seed=4), noisy(table(seed=4), rate=0.3)
    found = []
    for seed in (0, 0, 1, 2, 3, 4):
        model.set_params(random_state=seed).fit(X, y)
        found.append((model.rules_, model.weights_.tolist(), model.intercept_.tolist()))
    assert found[0] == found[1]
    assert any(other != found[0] for other in found[2:])


def test_tables_of_any_kind(model):
    X, y = table(), noisy(table())
    model.fit(X, y)
    rules, weights = model.rules_, model.weights_
    frame = pd.DataFrame(X > 0, columns=list("abcdef"))
    for other in (X.astype(bool), X.astype(int), X.tolist(), frame):
        model.fit(other, y)
        assert model.rules_ == rules
        np.testing.assert_array_equal(model.weights_, weights)
    assert list(model.feature_names_in_) == list("abcdef")


def test_bad_input_gets_one_sentence(model):
    X, y = table(), noisy(table())
    name = type(model).__name__
    wrong = X.copy()
    wrong[3, 1] = 0.5
    with pytest.raises(InputError, match=rf"{name} needs propositions.*row 3, column 1 holds 0.5"):
        model.fit(wrong, y)
    model.fit(X, y)
    with pytest.raises(InputError, match="set threshold"):
        model.predict(wrong)
    with pytest.raises(InputError, match="got text or objects"):
        model.fit(pd.DataFrame(X).replace({0: "no", 1: "yes"}), y)
    with pytest.raises(InputError, match="needs propositions"):
        model.fit(pd.DataFrame(X).replace({0: None}), y)
    with pytest.raises(InputError, match="two classes or more"):
        model.fit(X, np.ones(len(X)))


def test_columns_that_say_nothing(model):
    """Rows that no rule covers go to the larger class, whichever it is."""
    X = np.zeros((30, 3))
    for common in (0, 1, 2):
        y = np.r_[np.full(16, common), np.arange(14) % 3]
        assert set(model.fit(X, y).predict(X)) == {common}
        assert model.rules_ == []
        assert model.mean_length_ == 0.0
    for common in (0, 1):
        y = np.r_[np.full(20, common), np.full(10, 1 - common)]
        assert set(model.fit(X, y).predict(X)) == {common}


# SLIPPER


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


# ENDER


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
