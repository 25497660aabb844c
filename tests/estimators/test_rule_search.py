"""Searches of rule ensembles: what each refuses, and constraints on fitted models."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from kernelweave.estimators.rule_search import HierarchicalSearch, SparseSearch, search_of


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["kind"] = rng.choice(["u", "v", "w"], n)
    score = 1.5 * X["a"] - X["b"] + (X["c"] > 0) * (X["kind"] == "u")
    return X, (score + rng.normal(size=n) > 0).astype(int), score.to_numpy()


def sparse(**options):
    return RuleEnsembleClassifier(1.0, loss="logistic", C=10.0, **options)


def test_the_exponent_decides():
    assert type(search_of(RuleEnsembleClassifier())) is HierarchicalSearch
    assert type(search_of(sparse())) is SparseSearch


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RuleEnsembleClassifier(1.0), "loss: rho=1 needs a smooth loss, 'logistic' or 'square'"),
        (RuleEnsembleRegressor(1.0, loss="huber"), "loss: rho=1 needs a smooth loss"),
        (RuleEnsembleClassifier(monotone={"a": 1}), "monotone: needs rho=1, got rho=1.1"),
        (RuleEnsembleClassifier(max_columns=2), "max_columns: needs rho=1"),
        (sparse(task_correlation=1.0), "task_correlation: must be None with rho=1"),
        (sparse(solver="mirror"), "solver: must be 'alternate' with rho=1, got 'mirror'"),
        (sparse(certificate="paper"), "certificate: must be 'tight' with rho=1, got 'paper'"),
        (sparse(forbidden=["z"]), "forbidden: must hold names of columns"),
        (sparse(forbidden=["a"], required=["a"]), "required: column 0 is also in forbidden"),
        (sparse(monotone={"kind": 1}), "monotone: 'kind' has categories without an order"),
    ],
)
def test_what_is_refused(model, message):
    X, y, score = table(60)
    with pytest.raises(InputError, match=message):
        model.fit(X, score if isinstance(model, RuleEnsembleRegressor) else y)


def test_monotone_needs_one_output():
    X, _, _ = table(90)
    with pytest.raises(InputError, match="monotone: needs two classes or one target"):
        sparse(monotone={"a": 1}).fit(X, np.arange(90) % 3)


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
@pytest.mark.parametrize("rho", [1.5, 2.0])
def test_published_solver_and_condition(kind, rho):
    """Their bounds enclose the optimum of the defaults, and the condition activates more."""
    X, y, score = table(80)
    target = y if kind is RuleEnsembleClassifier else score
    exact = kind(rho, C=10.0, tol=1e-5).fit(X, target)
    low, high = exact.objective_ - exact.duality_gap_, exact.objective_
    nodes, objectives = {}, set()
    for solver in ("alternate", "mirror"):
        for certificate in ("tight", "paper"):
            model = kind(rho, C=10.0, solver=solver, certificate=certificate).fit(X, target)
            assert model.converged_
            assert model.objective_ >= low
            assert model.objective_ - model.duality_gap_ <= high
            assert model.duality_gap_ <= 1e-2 * model.objective_
            nodes[solver, certificate] = model.n_nodes_
            objectives.add(model.objective_)
    assert len(objectives) == 4  # each takes its own way
    for solver in ("alternate", "mirror"):
        assert nodes[solver, "paper"] > 1.5 * nodes[solver, "tight"]


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("direction", [1, -1])
def test_scores_are_monotone(refit, direction):
    X, y, _ = table()
    model = sparse(monotone={"a": direction, "b": -1}, refit=refit, n_cuts=6).fit(X, y)
    assert model.converged_
    grid = X.iloc[:40].copy()
    scores = []
    for value in np.linspace(-3, 3, 25):
        grid["a"] = value
        scores.append(model.decision_function(grid))
    steps = np.diff(np.array(scores), axis=0) * direction
    assert steps.min() >= -1e-12
    if direction == 1:
        assert steps.max() > 0.05


def test_forbidden_required_and_few_columns():
    X, y, _ = table()
    used = lambda model: {c.feature for rule in model.rules_ for c in rule.conditions}  # noqa: E731
    assert "a" not in used(sparse(forbidden=["a"]).fit(X, y))
    assert "a" not in used(RuleEnsembleClassifier(forbidden=[0]).fit(X, y))
    few = sparse(max_columns=2).fit(X, y)
    assert used(few) == {"a", "b"}
    assert few.converged_
    alone = sparse().fit(X[["a", "b"]], y)
    assert few.objective_ == pytest.approx(alone.objective_, rel=2e-2)
    weak = sparse(max_rules=3, refit=True)
    assert "d" not in used(weak.fit(X, y))
    required = weak.set_params(required=["d"]).fit(X, y)
    assert "d" in used(required)
    assert len(required.rules_) == 3
    both = sparse(max_columns=2, required=["d"], refit=True).fit(X, y)
    assert "d" in used(both)
    assert len(used(both)) == 2
    with pytest.raises(InputError, match="required: must be at most max_columns=1 columns, got 2"):
        sparse(max_columns=1, required=["a", "d"]).fit(X, y)


def test_several_classes_labels_and_tasks():
    X, y, score = table()
    three = np.digitize(score, [-1, 1])
    model = sparse(max_length=2).fit(X, three)
    assert model.predict_proba(X).shape == (len(X), 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, three) > 0.7
    labels = sparse(max_length=2).fit(X, np.column_stack([y, 1 - y]))
    assert labels.predict(X).shape == (len(X), 2)
    task = np.arange(len(X)) % 2
    tasks = sparse(max_length=2).fit(X, y, task=task)
    assert tasks.predict_proba(X, task).shape == (len(X), 2)
    numbers = RuleEnsembleRegressor(1.0, C=1.0, refit=True, max_rules=10).fit(X, score)
    assert len(numbers.rules_) <= 10
    assert numbers.score(X, score) > 0.7


def test_weights_count_rows():
    X, y, _ = table(150)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    weighted = sparse(refit=True, max_rules=6).fit(X, y, weight.astype(float))
    repeated = sparse(refit=True, max_rules=6).fit(
        X.loc[np.repeat(X.index, weight)].reset_index(drop=True), np.repeat(y, weight)
    )
    assert [r.text for r in weighted.rules_] == [r.text for r in repeated.rules_]


def test_threads_and_calibration():
    X, y, _ = table()
    one, two = (sparse(n_jobs=k, refit=True).fit(X, y) for k in (1, 2))
    assert one.rules_ == two.rules_
    calibrated = sparse(refit=True, max_rules=8, calibration="sigmoid").fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)
    assert calibrated.out_of_fold_.shape == (len(X), 1)


def test_exported_probabilities_of_the_logistic_loss():
    X, y, score = table(120)
    for target in (y, np.digitize(score, [-1, 1])):
        model = sparse(refit=True, max_rules=6).fit(X, target)
        link = model._link()
        decision = np.atleast_2d(model.decision_function(X).T).T
        ones = 1 / (1 + np.exp(-(decision * link.slopes + link.biases)))
        if link.shares:
            ones /= ones.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X)[:, -ones.shape[1] :], ones)
