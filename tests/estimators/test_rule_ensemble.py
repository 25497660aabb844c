"""Rule ensembles: the optimum, its certificate, and what must not change it."""

import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from hkl_oracles import (
    arguments,
    closure,
    conjunctions,
    lattice_instances,
    omega,
    same_model,
    solve_dag,
)
from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from quick import every, first
from rule_problems import TOL, oracle_for, problem, regressor

RHOS = (2.0, 1.5, 1.1)


def classifier(rho=1.1, **options):
    options = {"C": 10.0, "propositions": "given", "tol": TOL, "threshold": 0.0} | options
    return RuleEnsembleClassifier(rho, **options)


def lower_bound(model):
    return model.objective_ - model.duality_gap_


def alike(one, two, rel=2 * TOL):
    assert one.objective_ == pytest.approx(two.objective_, rel=rel)


def with_one_cost(instance):
    """Tell instances that the public estimators can state: each row in all tasks, or in one."""
    cost = instance["cost"]
    used = cost[cost > 0]
    return (used == used[0]).all() and ((cost > 0).all() or ((cost > 0).sum(axis=1) == 1).all())


INSTANCES = [i for i in lattice_instances() if with_one_cost(i)]


@pytest.mark.parametrize("instance", every(3, INSTANCES), ids=[i["id"] for i in INSTANCES])
def test_the_conic_solver_agrees(instance):
    P, Y, B = instance["P"], instance["Y"], instance["B"]
    options = {
        "C": instance["cost"].max(),
        "base": instance["base"],
        "max_length": max(map(len, instance["rules"])),
        "task_correlation": B,
    }
    own = not (instance["cost"] > 0).all()
    task = instance["cost"].argmax(axis=1) if own else None
    if own:
        Y = np.take_along_axis(Y, task[:, None], axis=1)
    if instance["loss"] != "hinge":
        loss = {"loss": instance["loss"], "epsilon": instance["epsilon"]}
        model = regressor(instance["rho"], **options, **loss).fit(P, Y, task=task)
    elif Y.shape[1] == 1:
        model = classifier(instance["rho"], **options).fit(P, Y[:, 0], task=task)
    else:
        model = classifier(instance["rho"], **options).fit(P, (Y > 0).astype(int))
    oracle = solve_dag(**arguments(instance))
    assert model.converged_
    assert model.objective_ == pytest.approx(oracle.value, rel=2 * TOL)
    slack = 1e-9 * oracle.upper
    assert lower_bound(model) <= oracle.upper + slack
    assert model.objective_ >= oracle.lower - slack


@pytest.mark.parametrize("rho", RHOS)
def test_several_classes_are_related_tasks(rho):
    P, score = problem(30, 4)
    labels = np.digitize(score, [-0.5, 0.5])
    model = classifier(rho, task_correlation=0.5).fit(P, labels)
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    oracle = oracle_for(P, Y, 10.0, rho, B=np.eye(3) + 2.0)
    assert model.objective_ == pytest.approx(oracle.value, rel=2 * TOL)
    np.testing.assert_allclose(model.decision_function(P), oracle.decision, atol=0.02)


@pytest.mark.parametrize("rho", RHOS)
def test_the_objective_is_that_of_the_rules(rho):
    P, score = problem()
    y = np.where(score > 0, 1, -1)
    model = classifier(rho).fit(P, y)
    lattice = conjunctions(P)
    number = {rule: i for i, rule in enumerate(lattice.rules)}
    Q = np.zeros(len(number))
    for rule in model.rules_:
        Q[number[tuple(sorted(c.position for c in rule.conditions))]] = abs(rule.weight)
    norm = omega(Q, closure(lattice.parents), 2.0**lattice.lengths, rho)
    hinge = np.maximum(0.0, 1.0 - y * model.decision_function(P)).sum()
    assert 0.5 * norm**2 + 10.0 * hinge == pytest.approx(model.objective_, rel=1e-8)
    np.testing.assert_allclose(model.norms_, [abs(rule.weight) for rule in model.rules_], rtol=1e-9)


def test_scores_are_the_sums_of_the_rules():
    P, score = problem(60)
    model = classifier(2.0, C=100.0, threshold=1e-3).fit(P, score > 0)
    sums = model.intercept_[0] + sum(rule.weight * rule.holds(P) for rule in model.rules_)
    np.testing.assert_allclose(model.decision_function(P), sums, rtol=1e-10, atol=1e-12)
    assert len(model.rules_) > 3
    assert max(rule.length for rule in model.rules_) > 1
    covered = [rule.holds(P).mean() for rule in model.rules_]
    np.testing.assert_allclose([rule.coverage for rule in model.rules_], covered)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 4),
    rho=st.sampled_from(RHOS),
    base=st.sampled_from([0.7, 1.0, 2.0]),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    max_iter=st.sampled_from([1, 2, 5, 2000]),
    max_nodes=st.sampled_from([1, 6, 20_000]),
    tol=st.sampled_from([0.3, 1e-2, 1e-4]),
)
def test_the_certificate_holds_wherever_the_search_stops(
    seed, p, rho, base, C, max_iter, max_nodes, tol
):
    rng = np.random.default_rng(seed)
    P = rng.random((14, p)) < 0.6
    y = np.where(rng.random(14) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    limits = {"max_iter": max_iter, "max_nodes": max_nodes, "tol": tol}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "RuleEnsembleClassifier: no column", UserWarning)
        model = classifier(rho, C=C, base=base, **limits).fit(P, y)
    oracle = oracle_for(P, y, C, rho, base=base)
    slack = 1e-8 * oracle.upper
    assert lower_bound(model) <= oracle.upper + slack
    assert model.objective_ >= oracle.lower - slack
    assert model.duality_gap_ >= 0.0
    if model.converged_:
        assert model.objective_ <= oracle.upper * (1 + 1.001 * tol)


@pytest.mark.parametrize(("n", "p"), [(30, 6), (200, 6)])
def test_the_certificate_against_all_conjunctions(n, p):
    P, score = problem(n, p, seed=3)
    y = np.where(score > 0, 1.0, -1.0)
    model = classifier(2.0, C=3.0, tol=1e-3).fit(P, y)
    oracle = oracle_for(P, y, 3.0, 2.0)
    assert lower_bound(model) <= oracle.upper * (1 + 1e-9)
    assert oracle.lower * (1 - 1e-9) <= model.objective_ <= oracle.upper * 1.001


@pytest.mark.parametrize("limits", [{"max_iter": 1}, {"max_nodes": 8}])
def test_a_limit_is_told_with_an_honest_gap(limits):
    P, score = problem(60, 6)
    best = classifier(C=100.0).fit(P, score > 0)
    with pytest.warns(ConvergenceWarning, match="relative duality gap of .*Hint: raise max_iter"):
        model = classifier(C=100.0, **limits).fit(P, score > 0)
    assert not model.converged_
    assert model.duality_gap_ > 2 * TOL * model.objective_
    assert lower_bound(model) <= best.objective_
    assert model.objective_ >= lower_bound(best)
    assert model.n_iter_ <= limits.get("max_iter", 2000)
    assert model.history_[-1].upper == model.objective_
    assert model.predict(P).shape == (60,)


def test_history():
    P, score = problem(60)
    model = classifier(C=100.0).fit(P, score > 0)
    uppers, lowers = np.array([(step.upper, step.lower) for step in model.history_]).T
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert (uppers >= lowers - 1e-12 * uppers).all()
    assert model.history_[-1].solves == model.n_iter_


@pytest.mark.parametrize("rho", RHOS)
def test_what_is_in_play_is_closed_under_parts(rho):
    P, score = problem(60, 7)
    model = classifier(rho, C=100.0, warm_start=True, tol=1e-3).fit(P, score > 0)
    nodes = set(model._last[1])
    assert len(nodes) == model.n_nodes_
    for node in nodes:
        assert all(part in nodes for k in range(len(node)) for part in combinations(node, k))


def test_order_of_rows_does_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + (X[:, 1] > 0) * (X[:, 2] > 0) > 0.5
    order = rng.permutation(80)
    one = RuleEnsembleClassifier(C=10.0).fit(X, y)
    same_model(one, RuleEnsembleClassifier(C=10.0).fit(X[order], y[order]))
    target = X[:, 0] * 1.0
    one = RuleEnsembleRegressor(C=10.0).fit(X, target)
    same_model(one, RuleEnsembleRegressor(C=10.0).fit(X[order], target[order]))


@pytest.mark.parametrize("rho", RHOS)
def test_order_of_propositions_does_not_matter(rho):
    P, score = problem()
    order = np.random.default_rng(1).permutation(P.shape[1])
    one = classifier(rho).fit(P, score > 0)
    two = classifier(rho).fit(P[:, order], score > 0)
    alike(one, two)
    scores = one.decision_function(P), two.decision_function(P[:, order])
    np.testing.assert_allclose(*scores, atol=0.02)


def test_order_of_tasks_does_not_matter():
    P, score = problem()
    Y = np.column_stack([score > 0, score > 0.5, P[:, 0] | P[:, 4]]).astype(int)
    B = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 2.0]])
    order = [2, 0, 1]
    one = classifier(task_correlation=B).fit(P, Y)
    two = classifier(task_correlation=B[np.ix_(order, order)]).fit(P, Y[:, order])
    alike(one, two)
    scores = one.decision_function(P)[:, order], two.decision_function(P)
    np.testing.assert_allclose(*scores, atol=0.02)


def test_a_row_given_twice_at_half_the_cost():
    P, score = problem()
    one = classifier(C=8.0).fit(P, score > 0)
    two = classifier(C=4.0).fit(np.vstack([P, P]), np.append(score, score) > 0)
    same_model(one, two)


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_a_weight_of_two_is_a_row_given_twice(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    target = np.where(X[:, 0] > X[:, 1], 1.0, 0.0)
    weight = rng.integers(0, 4, 70)
    again = np.repeat(np.arange(70), weight)
    for task in (None, np.arange(70) % 2):
        one = kind(C=3.0).fit(X, target, sample_weight=weight, task=task)
        repeated = None if task is None else task[again]
        same_model(one, kind(C=3.0).fit(X[again], target[again], task=repeated))


def test_class_weights_are_sample_weights():
    P, score = problem(60)
    y = np.where(score > 0.5, "rare", "often")
    factors = {"rare": 3.0, "often": 0.5}
    one = classifier(class_weight=factors).fit(P, y)
    weight = np.vectorize(factors.get)(y)
    two = classifier().fit(P, y, sample_weight=weight)
    alike(one, two, rel=1e-12)
    np.testing.assert_array_equal(one.decision_function(P), two.decision_function(P))
    balanced = {label: 60 / (2 * (y == label).sum()) for label in factors}
    same_model(
        classifier(class_weight="balanced").fit(P, y), classifier(class_weight=balanced).fit(P, y)
    )


@pytest.mark.parametrize("n_jobs", first(1, [2, 1, 3]))
def test_threads_do_not_change_a_bit(n_jobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 6))
    y = (X[:, 0] > 0) & (X[:, 1] > 0.3) | (X[:, 2] > 1)
    models = [RuleEnsembleClassifier(n_jobs=n, n_cuts=6).fit(X, y) for n in (None, n_jobs)]
    same_model(*models)


def test_large_tables_start_from_a_part_of_the_rows():
    rng = np.random.default_rng(0)
    P = rng.random((6000, 14)) < 0.5
    y = (P[:, 0] & P[:, 1]) | (P[:, 2] & P[:, 3]) ^ (rng.random(6000) < 0.1)
    model = RuleEnsembleClassifier(propositions="given", tol=0.02).fit(P, y)
    assert model.converged_
    same_model(model, RuleEnsembleClassifier(propositions="given", tol=0.02, n_jobs=1).fit(P, y))
    assert {rule.text for rule in model.rules_[:8]} >= {"column 0 and column 1"}


def test_identical_tasks_without_relation_are_one_task():
    P, score = problem()
    one = classifier().fit(P, score > 0)
    Y = np.repeat((score > 0)[:, None].astype(int), 3, axis=1)
    three = classifier().fit(P, Y)
    assert three.objective_ == pytest.approx(3 * one.objective_, rel=2 * TOL)
    scores = three.decision_function(P)
    np.testing.assert_allclose(scores, scores[:, :1] * np.ones(3), atol=1e-6)
    np.testing.assert_allclose(scores[:, 0], one.decision_function(P), atol=0.02)


def test_one_task_is_no_task():
    P, score = problem()
    one = classifier().fit(P, score > 0)
    two = classifier(task_correlation=[[1.0]]).fit(P, score > 0, task=np.full(len(P), "all"))
    same_model(one, two)
    assert two.tasks_.tolist() == ["all"]
    np.testing.assert_array_equal(one.predict(P), two.predict(P, "all"))


def test_large_mu_is_no_relation_and_small_mu_one_function():
    P, score = problem(60)
    task = np.arange(60) % 2
    y = np.where(task == 0, score > 0, score > 0.4)
    free = classifier().fit(P, y, task=task)
    alike(free, classifier(task_correlation=1e9).fit(P, y, task=task))
    alike(free, classifier(task_correlation=np.eye(2)).fit(P, y, task=task))

    def apart(model):
        constant = model.decision_function(P, 0) - model.decision_function(P, 1)
        return np.ptp(constant)

    near = classifier(task_correlation=1e-4).fit(P, y, task=task)
    assert apart(near) < 0.05 < apart(free)


def test_tasks_with_rows_of_their_own():
    P, score = problem(80, seed=2)
    task = np.array(["b", "a", "a", "c"])[np.arange(80) % 4]
    y = np.where(task == "a", score > 0, score < 0)
    model = classifier(C=30.0).fit(P, y, task=task)
    assert model.tasks_.tolist() == ["a", "b", "c"]
    assert (model.predict(P, task) == y).mean() > 0.8
    mixed = model.decision_function(P, task)
    for name in model.tasks_:
        own = model.decision_function(P, name)
        np.testing.assert_array_equal(mixed[task == name], own[task == name])
    values = regressor(C=30.0).fit(P, score * (task == "a"), task=task)
    assert values.predict(P, task).shape == (80,)
    assert np.abs(values.predict(P, task)[task != "a"]).max() < 0.05


@pytest.mark.parametrize("rank", [1, 2])
def test_a_singular_relation(rank):
    P, score = problem(40, 4)
    Y = np.column_stack([score > 0, score > 0.3, score > -0.3]).astype(int)
    L = np.random.default_rng(0).normal(size=(3, rank)) + 1.0
    model = classifier(1.5, task_correlation=L @ L.T).fit(P, Y)
    weights = np.array([rule.weights for rule in model.rules_])
    assert np.linalg.matrix_rank(weights, tol=1e-8 * np.abs(weights).max()) <= rank
    oracle = oracle_for(P, np.where(Y, 1.0, -1.0), 10.0, 1.5, B=L @ L.T)
    assert model.objective_ == pytest.approx(oracle.value, rel=2 * TOL)


def test_an_output_with_one_class_is_constant():
    P, score = problem(40)
    Y = np.column_stack([score > 0, np.ones(40), score > 0.5]).astype(int)
    with pytest.warns(UserWarning, match="y: one class only for label 1; it is predicted always"):
        model = classifier().fit(P, Y)
    assert (model.predict(P)[:, 1] == 1).all()
    two = classifier().fit(P, Y[:, [0, 2]])
    alike(model, two)
    task = np.array(["good", "poor"])[np.arange(40) % 2]
    y = np.where((score > 0) & (task == "good"), "yes", "no")
    with pytest.warns(UserWarning, match="one class only for task 'poor'"):
        model = classifier().fit(P, y, task=task)
    assert set(model.predict(P, "poor")) == {"no"}
    alike(model, classifier().fit(P[::2], y[::2]))


def test_the_optimum_falls_with_rho():
    P, score = problem()
    models = [classifier(rho).fit(P, score > 0) for rho in (1.05, 1.1, 1.5, 2.0)]
    for one, two in pairwise(models):
        assert lower_bound(two) <= one.objective_


def test_the_optimum_rises_with_C_and_is_concave():
    P, score = problem()
    Cs = np.array([0.1, 1.0, 2.0, 4.0, 8.0, 100.0])
    models = [classifier(C=C).fit(P, score > 0) for C in Cs]
    values = np.array([model.objective_ for model in models])
    slack = 2 * TOL * values.max()
    assert (np.diff(values) >= -slack).all()
    slopes = np.diff(values) / np.diff(Cs)
    assert (np.diff(slopes) <= slack).all()


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_max_length(longest):
    P, score = problem(60)
    model = classifier(C=100.0, max_length=longest).fit(P, score > 0)
    assert max(rule.length for rule in model.rules_) <= longest
    longer = classifier(C=100.0, max_length=longest + 1).fit(P, score > 0)
    assert lower_bound(longer) <= model.objective_
    free = classifier(C=100.0, max_length=99).fit(P, score > 0)
    same_model(free, classifier(C=100.0).fit(P, score > 0))


def test_a_large_base_leaves_short_rules():
    P, score = problem(60)
    usual = classifier(C=100.0, threshold=1e-3).fit(P, score > 0)
    assert max(rule.length for rule in usual.rules_) > 1
    strict = classifier(C=100.0, threshold=1e-3, base=50.0).fit(P, score > 0)
    assert {rule.length for rule in strict.rules_} == {1}


@pytest.mark.parametrize("rho", RHOS)
def test_tiny_C_is_the_majority(rho):
    P, score = problem(60)
    y = np.where(score > -0.5, "often", "rare")
    assert (y == "often").mean() > 0.55
    model = classifier(rho, C=1e-6, tol=1e-3).fit(P, y)
    assert set(model.predict(P)) == {"often"}
    assert np.abs(model.decision_function(P) + 1.0).max() < 1e-3
    values = regressor(rho, C=1e-6).fit(P, score)
    np.testing.assert_allclose(values.predict(P), score.mean(), atol=1e-3)


def test_the_threshold_leaves_out_small_rules():
    P, score = problem(60)
    full = classifier(C=100.0, threshold=0.0).fit(P, score > 0)
    model = classifier(C=100.0, threshold=0.2).fit(P, score > 0)
    assert full.n_changed_ == 0
    assert 0 < len(model.rules_) < len(full.rules_)
    assert model.norms_.min() > 0.2 * model.norms_.max()
    alike(full, model, rel=1e-12)
    rows = np.unique(np.column_stack([P, score > 0]), axis=0)[:, :-1]
    other = (full.predict(rows) != model.predict(rows)).sum()
    assert model.n_changed_ == other
    # The bias is the best for the rules that are left.
    signs = np.where(score > 0, 1, -1)
    rest = model.decision_function(P) - model.intercept_[0]

    def loss(bias):
        return np.maximum(0.0, 1.0 - signs * (rest + bias)).sum()

    assert loss(model.intercept_[0]) <= min(map(loss, np.linspace(-3, 3, 601))) + 1e-9


def test_without_intercept():
    P, score = problem(60)
    model = classifier(fit_intercept=False).fit(P, score > 0)
    assert model.converged_
    sums = model.intercept_[0] + sum(rule.weight * rule.holds(P) for rule in model.rules_)
    np.testing.assert_allclose(model.decision_function(P), sums, atol=1e-10)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_warm_start_needs_fewer_solves(make):
    P, score = problem(80)
    target = score > 0 if make is classifier else score
    model = make(C=5.0, warm_start=True).fit(P, target)
    model.set_params(C=7.0).fit(P, target)
    cold = make(C=7.0).fit(P, target)
    alike(model, cold)
    assert model.converged_
    assert model.n_iter_ < cold.n_iter_
    model.fit(P, target)
    assert model.n_iter_ < cold.n_iter_


def test_warm_start_with_other_data_starts_anew():
    P, score = problem(60)
    model = classifier(warm_start=True).fit(P, score > 0)
    for X, y in [(P[:30], score[:30] > 0), (P[:, :3], score > 0), (P, score > 0.5)]:
        again = classifier(warm_start=True).fit(P, score > 0).fit(X, y)
        assert again.converged_
        alike(again, classifier().fit(X, y))
    model.set_params(max_length=1).fit(P, score > 0)
    alike(model, classifier(max_length=1).fit(P, score > 0))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_path_is_fits_one_by_one(make):
    P, score = problem(60)
    target = score > 0 if make is classifier else score
    Cs = [10.0, 0.1, 1.0, 10.0]
    estimator = make(C=3.0)
    path = estimator.fit_path(P, target, Cs)
    assert not hasattr(estimator, "rules_")
    assert [model.C for model in path] == Cs
    alone = [make(C=C).fit(P, target) for C in Cs]
    for one, two in zip(path, alone, strict=True):
        alike(one, two)
        assert one.converged_
        np.testing.assert_allclose(
            *(getattr(m, "decision_function", m.predict)(P) for m in (one, two)), atol=0.02
        )
        assert lower_bound(one) <= two.objective_


def test_a_path_with_tasks_and_weights():
    P, score = problem(60)
    task, weight = np.arange(60) % 2, np.arange(60) % 3
    path = classifier().fit_path(P, score > 0, [1.0, 10.0], weight, task=task)
    alone = classifier(C=10.0).fit(P, score > 0, weight, task=task)
    alike(path[1], alone)
    assert path[0].tasks_.tolist() == [0, 1]
    assert path[0].predict(P, task).shape == (60,)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 2.0}])
def test_the_tag_says_whether_several_labels_are_learned(class_weight):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    model = RuleEnsembleClassifier(class_weight=class_weight, max_length=1)
    if model.__sklearn_tags__().classifier_tags.multi_label:
        assert model.fit(X, X > 0).predict(X).shape == (40, 2)
    else:
        with pytest.raises(InputError, match="class_weight: must be None where y has several"):
            model.fit(X, X > 0)
