"""Rule ensembles on tables in blocks of rows, and the joining of equal rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

from hkl_oracles import same_model
from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from row_blocks import LocalParts


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(1),
            "b": rng.integers(0, 9, n),
            "c": rng.choice(["u", "v", "w"], n),
        }
    )
    return X, (X["a"] > 0) & (X["c"] != "w") ^ (rng.random(n) < 0.1)


def parts(X, cuts=(1, 71, 200)):
    edges = [0, *cuts, len(X)]
    return LocalParts([X[a:b] for a, b in itertools.pairwise(edges)])


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_give_the_model_of_the_table(weighted):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    whole = RuleEnsembleClassifier(C=3).fit(X, y, weight)
    blocks = RuleEnsembleClassifier(C=3)._fit_parts(parts(X), y, weight)
    same_model(whole, blocks)
    np.testing.assert_array_equal(blocks.feature_names_in_, whole.feature_names_in_)
    np.testing.assert_array_equal(blocks.decision_function(X), whole.decision_function(X))


def test_blocks_of_given_propositions_tasks_and_numbers():
    rng = np.random.default_rng(0)
    P = rng.random((400, 6)) < 0.5
    y, task = 1.0 * (P[:, 0] & P[:, 1]) + 0.1 * rng.normal(size=400), rng.integers(0, 2, 400)
    model = RuleEnsembleRegressor(propositions="given", task_correlation=0.5)
    whole = model.fit(P, y, task=task)
    blocks = RuleEnsembleRegressor(propositions="given", task_correlation=0.5)
    same_model(whole, blocks._fit_parts(parts(P), y, task=task))


def test_blocks_that_are_refused_leave_no_model():
    X, y = table()
    model = RuleEnsembleClassifier()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model._fit_parts(parts(X), y[:-1])
    mixed = LocalParts([np.ones((5, 2), dtype=bool), np.ones((5, 2))])
    with pytest.raises(InputError, match="same columns of the same type"):
        RuleEnsembleClassifier(propositions="given")._fit_parts(mixed, np.arange(10) % 2)
    assert not hasattr(model, "rules_")
    assert not hasattr(model, "n_features_in_")


def test_the_threads_do_not_matter_on_many_rows():
    """Counted systems, bounded searches and blocks of rows give the same bits."""
    rng = np.random.default_rng(0)
    P = rng.random((9000, 14)) < 0.5
    y = ((P[:, 0] & P[:, 1]) | (P[:, 2] & P[:, 3] & P[:, 4])) ^ (rng.random(9000) < 0.05)
    one = RuleEnsembleClassifier(propositions="given", n_jobs=1).fit(P, y)
    three = RuleEnsembleClassifier(propositions="given", n_jobs=3).fit(P, y)
    same_model(one, three)
    np.testing.assert_array_equal(one.decision_function(P), three.decision_function(P))
    assert one.converged_


def curved(n=400, seed=0):
    """Return numbers with gaps and categories; the score has a line and rules."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.exponential(size=n),
            "c": rng.choice(["u", "v", "w"], n),
            "d": rng.integers(0, 2, n),
        }
    )
    X.loc[rng.random(n) < 0.1, "a"] = np.nan
    score = 1.5 * X["a"].fillna(0.0) + 1.5 * ((X["b"] > 1) & (X["c"] == "u")) - 0.5
    return X, score, (score + rng.logistic(size=n) > 0).to_numpy()


def linear(kind=RuleEnsembleClassifier, **options):
    named = {} if kind is RuleEnsembleRegressor else {"loss": "logistic"}
    named = {"C": 2.0, "linear_terms": True, "tol": 1e-4, "threshold": 0.0, "n_cuts": 3, **named}
    return kind(1.0, **(named | options))


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_linear_terms_are_part_of_the_certified_problem(kind):
    """The objective, from the fitted rules, terms and scores alone."""
    X, score, y = curved()
    if kind is RuleEnsembleRegressor:
        y = score.to_numpy()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = linear(kind).fit(X, y, weight)
    assert model.converged_
    assert model.linear_terms_[0].feature == "a"
    omega = sum(3.0**rule.length * abs(rule.weight) for rule in model.rules_)
    for term, norm in zip(model.linear_terms_, model.linear_norms_, strict=True):
        values = X[term.feature].to_numpy()
        known = ~np.isnan(values)
        clipped = np.clip(values[known], term.low, term.high)
        mean = np.average(clipped, weights=weight[known])
        deviation = np.sqrt(np.average((clipped - mean) ** 2, weights=weight[known]))
        assert term.mean == pytest.approx(mean)
        assert norm == pytest.approx(3.0 * abs(term.weight) * deviation / 0.8)
        omega += norm
    if kind is RuleEnsembleRegressor:
        loss = 0.5 * (y - model.predict(X)) ** 2
    else:
        loss = np.logaddexp(0.0, -np.where(y, 1.0, -1.0) * model.decision_function(X))
    objective = 0.5 * omega**2 + 2.0 * weight @ loss
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    plain = linear(kind, linear_terms=False).fit(X, y, weight)
    assert model.objective_ < plain.objective_ - plain.duality_gap_
    assert plain.linear_terms_ == []


@pytest.mark.parametrize("refit", [False, True])
def test_rows_that_differ_in_a_number_stay_apart(refit):
    """One cut makes two kinds of rows, but the line sees all of them."""
    x = np.linspace(-1.0, 1.0, 2000)[:, None]
    y = np.round(3.0 * x[:, 0])  # few targets: many rows are alike but for the line
    model = linear(RuleEnsembleRegressor, n_cuts=1, C=100.0, refit=refit).fit(x, y)
    assert model.score(x, y) > 0.95
    assert len(np.unique(model.predict(x))) > 50


def test_weights_blocks_and_order_of_linear_terms():
    X, _, y = curved()
    weight = 1.0 + np.arange(len(y)) % 3
    model = linear(refit=True, max_rules=6).fit(X, y, weight)
    assert model.linear_terms_
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    again = linear(refit=True, max_rules=6).fit(X.iloc[repeated], y[repeated])
    blocks = linear(refit=True, max_rules=6)._fit_parts(parts(X), y, weight)
    order = np.random.default_rng(0).permutation(len(y))
    moved = linear(refit=True, max_rules=6).fit(X.iloc[order], y[order], weight[order])
    for other in (again, blocks, moved):
        assert other.linear_terms_ == model.linear_terms_
        assert other.rules_ == model.rules_


def test_linear_terms_count_as_rules_and_obey_constraints():
    X, _, y = curved()
    few = linear(max_rules=3, refit=True).fit(X, y)
    assert len(few.rules_) + len(few.linear_terms_) == 3
    assert few.refit_gap_ <= 1e-6
    assert len(few.to_frame()) == 3
    none = linear(forbidden=["a"]).fit(X, y)
    assert "a" not in {term.feature for term in none.linear_terms_}
    one = linear(max_columns=1).fit(X, y)
    assert {c.feature for term in one._added for c in term.conditions} == {"a"}
    for refit in (False, True):
        falling = linear(monotone={"a": -1}, refit=refit).fit(X, y)
        assert all(term.weight <= 0 for term in falling.linear_terms_ if term.feature == "a")
        rising = linear(monotone={"a": 1}, refit=refit).fit(X, y)
        assert any(term.feature == "a" and term.weight > 0 for term in rising.linear_terms_)
        grid = X.iloc[np.zeros(50, dtype=int)].assign(a=np.linspace(-4, 4, 50))
        assert (np.diff(rising.decision_function(grid)) >= 0).all()


def test_a_required_column_may_have_a_linear_term():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=200), rng.normal(size=200)])
    y = X[:, 0] + 3.0 * X[:, 1]
    model = linear(RuleEnsembleRegressor, C=0.02, max_rules=2, n_cuts=1, refit=True).fit(X, y)
    assert {term.position for term in model.linear_terms_} == {1}
    model.set_params(required=[0]).fit(X, y)
    assert {term.position for term in model.linear_terms_} == {0, 1}


def test_linear_terms_with_several_outputs_and_resamples():
    X, _, y = curved()
    three = np.where(y, "yes", np.where(X["d"], "no", "perhaps"))
    model = linear(refit=True, max_rules=8, n_resamples=4, random_state=0).fit(X, three)
    assert model.decision_function(X).shape == (len(y), 3)
    assert all(len(term.weights) == 3 for term in model.linear_terms_)
    assert len(model.linear_stability_) == len(model.linear_terms_) > 0
    stable = dict(
        zip([t.feature for t in model.linear_terms_], model.linear_stability_, strict=True)
    )
    assert stable["a"] >= 0.75
    sums = [explained.scores for explained in model.explain(X)]
    np.testing.assert_allclose(sums, model.decision_function(X), rtol=0, atol=0)
    tasks = linear(RuleEnsembleRegressor, refit=True)
    tasks.fit(X, X["a"].fillna(0.0) * np.where(X["d"], 1.0, -1.0), task=X["d"].to_numpy())
    assert max(abs(a + b) for a, b in (t.weights for t in tasks.linear_terms_)) < 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 1.1}, "linear_terms: needs rho=1, got rho=1.1"),
        ({"propositions": "given"}, "linear_terms: needs propositions='auto'"),
        ({"linear_terms": "yes"}, "linear_terms"),
    ],
)
def test_where_linear_terms_are_refused(options, message):
    X, _, y = curved(50)
    with pytest.raises(ValueError, match=message):
        linear().set_params(**options).fit(X[["b"]] > 1, y)
