"""Rule ensembles in use: tables of any kind, exports, explanations, searches, interruptions."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from kernelweave import (
    Propositions,
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
)
from kernelweave.datasets import make_balance_scale, make_monks
from kernelweave.rules import score_rules
from rule_use_cases import (
    NEW,
    SCORE,
    SIZES,
    THREE,
    TRAIN,
    TWO,
    N,
    run_python,
    run_sqlite,
)


def test_the_table_of_rules():
    model = RuleEnsembleClassifier(C=30.0).fit(TRAIN, TWO)
    frame = model.to_frame()
    assert list(frame.columns) == ["rule", "weight", "coverage", "length", "norm"]
    assert frame["rule"].tolist() == [rule.text for rule in model.rules_]
    assert frame["weight"].tolist() == [rule.weight for rule in model.rules_]
    assert frame["length"].tolist() == [rule.length for rule in model.rules_]
    assert (frame["norm"].diff().dropna() <= 0).all()
    covered = [rule.holds(TRAIN).mean() for rule in model.rules_]
    np.testing.assert_allclose(frame["coverage"], covered)
    several = RuleEnsembleClassifier(C=30.0).fit(TRAIN, THREE).to_frame()
    assert list(several.columns[1:4]) == ["weight 0", "weight 1", "weight 2"]
    outputs = RuleEnsembleRegressor().fit(TRAIN, np.column_stack([SCORE, SCORE])).to_frame()
    assert list(outputs.columns[1:3]) == ["weight_0", "weight_1"]


def test_rules_that_say_the_same_are_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0.8) & (X[:, 1] > 0)
    model = RuleEnsembleClassifier(2.0, C=100.0, n_cuts=8, threshold=0.0).fit(X, y)
    texts = [rule.text for rule in model.rules_]
    assert len(texts) == len(set(texts))
    assert all(rule.text.count("column 0 >") <= 1 for rule in model.rules_)


def test_the_truth_is_found():
    """Rules of MONK's first problem are its definition: equal shapes, or a red jacket."""
    monks = make_monks(1)
    model = RuleEnsembleClassifier(C=10.0).fit(monks.X, monks.y)
    assert model.score(monks.X, monks.y) == 1.0
    assert model.converged_
    used = {c.feature for rule in model.rules_[:10] for c in rule.conditions}
    assert used == {"head_shape", "body_shape", "jacket_color"}


def test_several_classes():
    data = make_balance_scale()
    some = np.random.default_rng(0).choice(len(data.y), 200, replace=False)
    X = data.X.iloc[some] if hasattr(data.X, "iloc") else data.X[some]
    model = RuleEnsembleClassifier(C=3.0).fit(X, data.y[some])
    assert model.score(data.X, data.y) > 0.8
    assert model.decision_function(data.X).shape == (625, 3)
    assert len(model.rules_[0].weights) == 3
    np.testing.assert_array_equal(
        model.predict(data.X), model.classes_[model.decision_function(data.X).argmax(axis=1)]
    )


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_frames_of_any_library_give_one_model(kind):
    target = TWO if kind is RuleEnsembleClassifier else SCORE
    size = pl.Series("size", TRAIN["size"].astype(str).tolist(), dtype=pl.Enum(SIZES))
    other = pl.from_pandas(TRAIN.drop(columns="size")).with_columns(size)
    one, two = kind(C=10.0).fit(TRAIN, target), kind(C=10.0).fit(other, target)
    assert one.rules_ == two.rules_
    np.testing.assert_array_equal(one.predict(TRAIN), two.predict(other))
    assert one.feature_names_in_.tolist() == two.feature_names_in_.tolist()


def test_arrays_of_any_type():
    X = np.random.default_rng(0).integers(0, 2, size=(60, 4))
    y = (X[:, 0] & X[:, 1]) | X[:, 2]
    scores = []
    for given in (X, X.astype(bool), X.astype(np.float32), X.astype(object), X.tolist()):
        model = RuleEnsembleClassifier(C=100.0).fit(given, y)
        assert model.score(given, y) == 1.0
        scores.append(model.decision_function(given))
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=0.05)


def test_propositions_as_given():
    made = Propositions().fit(TRAIN)
    P = made.transform(TRAIN)
    given = RuleEnsembleClassifier(C=10.0, propositions="given")
    auto = RuleEnsembleClassifier(C=10.0).fit(TRAIN, TWO)
    for form in (P, P.astype(int), pd.DataFrame(P), pl.from_numpy(P.astype(float))):
        model = clone(given).fit(form, TWO)
        assert (model.objective_, model.n_iter_) == (auto.objective_, auto.n_iter_)
        np.testing.assert_allclose(
            model.decision_function(form), auto.decision_function(TRAIN), atol=1e-12
        )
    pipeline = make_pipeline(Propositions(), clone(given)).fit(TRAIN, TWO)
    np.testing.assert_array_equal(pipeline.predict(NEW), auto.predict(NEW))


def test_missing_and_unseen_values():
    model = RuleEnsembleClassifier(1.5, C=30.0).fit(TRAIN, TWO)
    blank = pd.DataFrame({name: [None, np.nan, pd.NA] for name in TRAIN.columns}, dtype=object)
    assert (model.decision_function(blank) == model.intercept_[0]).all()
    assert all(why.rules == () for why in model.explain(blank))
    town = "O'Hara; DROP TABLE x"
    unseen = TRAIN.assign(**{town: "Atlantis"})
    for rule in model.rules_:
        for condition in rule.conditions:
            if condition.feature == town:
                holds = condition.holds(unseen[town])
                assert holds.all() if condition.operator == "!=" else not holds.any()


def test_input_is_not_changed():
    X, y, w = TRAIN.copy(), TWO.copy(), np.ones(N)
    B = np.eye(2) + 0.5
    RuleEnsembleClassifier().fit(X, y, w)
    RuleEnsembleClassifier(task_correlation=B).fit(X, y, task=np.arange(N) % 2)
    pd.testing.assert_frame_equal(X, TRAIN)
    np.testing.assert_array_equal(y, TWO)
    np.testing.assert_array_equal(B, np.eye(2) + 0.5)


def test_pickles_and_clones():
    for model, target in ((RuleEnsembleClassifier(C=3.0), TWO), (RuleEnsembleRegressor(), SCORE)):
        model.fit(TRAIN, target)
        again = pickle.loads(pickle.dumps(model))
        assert again.rules_ == model.rules_
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        fresh = clone(model)
        assert not hasattr(fresh, "rules_")
        assert fresh.fit(TRAIN, target).rules_ == model.rules_
        with pytest.raises(NotFittedError):
            clone(model).predict(NEW)


def test_searches_and_pipelines():
    search = GridSearchCV(
        RuleEnsembleClassifier(tol=0.05), {"C": [0.1, 10.0], "rho": [1.1, 2.0]}, cv=2, n_jobs=1
    ).fit(TRAIN, TWO)
    assert search.best_params_["C"] == 10.0
    numbers = TRAIN.select_dtypes("number").columns.tolist()
    steps = make_column_transformer(
        (SimpleImputer(), numbers), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(steps, RuleEnsembleClassifier(C=10.0)).fit(TRAIN, TWO)
    assert model.score(TRAIN, TWO) > 0.8
    assert cross_val_score(RuleEnsembleRegressor(C=10.0), TRAIN, SCORE, cv=2).mean() > 0.3
    calibrated = CalibratedClassifierCV(RuleEnsembleClassifier(), cv=2).fit(TRAIN, TWO)
    assert calibrated.predict_proba(NEW).shape == (N, 2)


def test_labels_keep_their_type():
    for target in (TWO, TWO.astype(object), SCORE > 0, (SCORE > 0).astype(np.int8), pd.Series(TWO)):
        model = RuleEnsembleClassifier().fit(TRAIN, target)
        assert set(model.predict(NEW)) <= set(target)
        assert model.predict(NEW).dtype == np.asarray(target).dtype


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleClassifierCV])
@pytest.mark.parametrize("after", [0, 2])
def test_an_interruption_leaves_the_old_model(kind, after, monkeypatch):
    from kernelweave.solvers import dag_problem

    options = {}
    if kind is RuleEnsembleClassifierCV:
        options = {"rho": 1.1, "Cs": [0.1, 1.0], "loss": "hinge", "refit": False}
    model = kind(**options).fit(TRAIN, TWO)
    before, rules = dict(vars(model)), list(model.rules_)
    solve, calls = dag_problem.solve_multitask, []

    def stop(*args, **kwargs):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return solve(*args, **kwargs)

    monkeypatch.setattr(dag_problem, "solve_multitask", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(TRAIN.iloc[:50].rename(columns={"smoker": "other"}), THREE[:50])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert model.rules_ == rules
    fresh = kind(**options)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(TRAIN, TWO)
    assert vars(fresh).keys() == vars(kind(**options)).keys()
    if kind is RuleEnsembleClassifier:
        with pytest.raises(KeyboardInterrupt):
            fresh.fit_path(TRAIN, TWO, [1.0, 2.0])
        assert vars(fresh).keys() == vars(kind(**options)).keys()


def test_progress_is_shown(capsys):
    RuleEnsembleClassifier(verbose=1).fit(TRAIN, TWO)
    assert capsys.readouterr().err
    RuleEnsembleClassifier().fit(TRAIN, TWO)
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""


def test_scores_are_summed_in_blocks():
    """Hundreds of rules: predict, SQL and Python add them in the same order."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 6)), columns=list("abcdef"))
    y = rng.normal(size=150)
    model = RuleEnsembleRegressor(2.0, C=30.0, threshold=0.0, max_length=2, tol=0.05).fit(X, y)
    assert len(model.rules_) > 130
    expected = model.predict(X)
    np.testing.assert_array_equal(expected, score_rules(model.rules_, model.intercept_, X)[:, 0])
    np.testing.assert_array_equal(run_python(model.to_python(), X), expected)
    np.testing.assert_array_equal(run_sqlite(model.to_sql("sqlite"), X)["prediction"], expected)
