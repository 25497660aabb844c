"""Rule ensembles in use: tables of any kind, exports, explanations, searches, interruptions."""

import pickle
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from kernelweave import (
    Propositions,
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.datasets import make_balance_scale, make_monks
from kernelweave.errors import InputError
from kernelweave.rules import score_rules

N = 120
SIZES = ["S", "M", "L"]


def table(seed=0, towns=("Köln", "O'Hara", "Ulm", None), n=N):
    """Return numbers, truth values, text and ordered categories, some missing, under odd names."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            'a "quoted" name': np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(2)),
            "back`tick": rng.integers(-3, 4, n),
            "smoker": rng.random(n) < 0.5,
            "O'Hara; DROP TABLE x": rng.choice(np.array(towns, dtype=object), n),
            "size": pd.Categorical(rng.choice(SIZES, n), categories=SIZES, ordered=True),
        }
    )


def signal(frame):
    first, tick, smoker, town, size = (frame[name] for name in frame.columns)
    score = 1.0 * (first > 0.3) - 1.0 * (tick <= -1) + 1.5 * (smoker & (town == "Ulm"))
    return (score - 0.8 * (size == "L")).to_numpy()


TRAIN = table()
SCORE = signal(TRAIN)
TWO = np.where(SCORE > 0.2, "yes", "it's no")
THREE = np.digitize(SCORE, [-0.2, 0.8])
# Values that fit did not see, and every kind of missing value.
NEW = table(1, ("Paris", "Ulm", "", None, "Köln"))
NEW.loc[:4, 'a "quoted" name'] = np.nan


# Exports


def plain_rows(frame):
    """Return the rows as Python's own values, None where one is missing."""
    columns = [
        [None if pd.isna(v) else v.item() if hasattr(v, "item") else v for v in frame[name]]
        for name in frame.columns
    ]
    return [tuple(row) for row in zip(*columns, strict=True)]


def run_sqlite(query, frame):
    """Return what SQLite answers for the rows of a frame, in their order."""
    with sqlite3.connect(":memory:") as base:
        names = ", ".join("`" + name.replace("`", "``") + "`" for name in frame.columns)
        base.execute(f"CREATE TABLE data ({names})")
        marks = ", ".join("?" * len(frame.columns))
        base.executemany(f"INSERT INTO data VALUES ({marks})", plain_rows(frame))
        cursor = base.execute(query)
        return pd.DataFrame(cursor.fetchall(), columns=[c[0] for c in cursor.description])


def run_python(code, frame):
    scope = {}
    exec(code, scope)
    rows = [dict(zip(frame.columns, row, strict=True)) for row in plain_rows(frame)]
    return [scope["predict"](row) for row in rows]


@pytest.mark.parametrize("frame", [TRAIN, NEW], ids=["train", "new"])
@pytest.mark.parametrize("target", [TWO, THREE, SCORE > 0], ids=["two", "three", "bools"])
def test_exports_of_classifiers_agree_with_predict(frame, target):
    model = RuleEnsembleClassifier(1.5, C=30.0).fit(TRAIN, target)
    assert max(rule.length for rule in model.rules_) > 1
    labels, scores = model.predict(frame), model.decision_function(frame).reshape(len(frame), -1)
    found = run_sqlite(model.to_sql("sqlite"), frame)
    answers = found["prediction"].to_numpy()
    np.testing.assert_array_equal(answers.astype(labels.dtype), labels)
    columns = found.drop(columns="prediction").to_numpy()
    np.testing.assert_allclose(columns, scores, rtol=1e-12, atol=1e-12)
    found = run_python(model.to_python(), frame)
    assert [answer[0] for answer in found] == labels.tolist()
    given = np.array([answer[1] for answer in found]).reshape(len(frame), -1)
    np.testing.assert_allclose(given, scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("frame", [TRAIN, NEW], ids=["train", "new"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_exports_of_regressors_agree_with_predict(frame, outputs):
    target = SCORE if outputs == 1 else np.column_stack([SCORE, -(SCORE**2)])
    model = RuleEnsembleRegressor(1.5, C=30.0).fit(TRAIN, target)
    expected = model.predict(frame).reshape(len(frame), -1)
    found = run_sqlite(model.to_sql("sqlite"), frame).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found = np.array(run_python(model.to_python(), frame)).reshape(len(frame), -1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_exports_of_labels_and_tasks_give_scores():
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, Y)
    found = run_sqlite(model.to_sql("sqlite"), NEW).to_numpy()
    np.testing.assert_allclose(found, model.decision_function(NEW), rtol=1e-12, atol=1e-12)
    task = np.array(["a", "b"])[np.arange(N) % 2]
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, TWO, task=task)
    found = np.array(run_python(model.to_python(), NEW))
    np.testing.assert_allclose(found[:, 1], model.decision_function(NEW, "b"), rtol=1e-12)


def test_exports_take_other_names():
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN.to_numpy(dtype=object), TWO)
    names = {c.feature for rule in model.rules_ for c in rule.conditions}
    assert names <= {f"column {k}" for k in range(5)}
    rename = {name: TRAIN.columns[int(name[-1])] for name in names}
    found = run_sqlite(model.to_sql("sqlite", rename=rename, keep=["smoker"]), NEW)
    assert list(found.columns) == ["smoker", "score", "prediction"]
    np.testing.assert_array_equal(found["prediction"], model.predict(NEW.to_numpy(dtype=object)))


def test_exports_of_an_intercept_alone():
    with pytest.warns(UserWarning, match="no column of X gives a proposition"):
        model = RuleEnsembleClassifier().fit(np.zeros((5, 2)), [0, 1, 1, 1, 0])
    assert model.rules_ == []
    assert model.predict(np.zeros((3, 2))).tolist() == [1, 1, 1]
    frame = pd.DataFrame({"column 0": [0.0]})
    assert run_sqlite(model.to_sql("sqlite"), frame)["prediction"].tolist() == [1]
    assert run_python(model.to_python(), frame)[0][0] == 1
    assert "intercept" in str(model.explain(np.zeros((1, 2)))[0])
    assert len(model.to_frame()) == 0


# What rules say


@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
def test_explanations_add_up(target):
    model = RuleEnsembleClassifier(C=30.0).fit(TRAIN, target)
    scores = model.decision_function(NEW).reshape(N, -1)
    for i, why in enumerate(model.explain(NEW)):
        total = np.array(why.intercept) + sum((np.array(r.weights) for r in why.rules), 0.0)
        np.testing.assert_allclose(total, scores[i], atol=1e-12)
        np.testing.assert_allclose(why.scores, scores[i], atol=1e-12)
        row = NEW.iloc[[i]]
        assert all(rule.holds(row)[0] for rule in why.rules)
        sizes = [max(map(abs, rule.weights)) for rule in why.rules]
        assert sizes == sorted(sizes, reverse=True)
        assert str(why).endswith("score")


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


# Tables of any kind


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


# scikit-learn


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


# C by cross-validation


def test_the_best_C_is_fitted_to_all_rows():
    model = RuleEnsembleClassifierCV(Cs=[10.0, 0.01, 1.0], cv=KFold(3)).fit(TRAIN, TWO)
    results = model.cv_results_
    assert results["C"].tolist() == [0.01, 1.0, 10.0]
    assert results["scores"].shape == (3, 3)
    np.testing.assert_allclose(results["scores"].mean(axis=1), results["mean_score"])
    np.testing.assert_allclose(results["scores"].std(axis=1), results["std_score"])
    assert model.C_ == results["C"][results["mean_score"].argmax()]
    assert model.C == model.C_
    plain = RuleEnsembleClassifier(C=model.C_).fit(TRAIN, TWO)
    assert model.rules_ == plain.rules_
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.to_sql() == plain.to_sql()
    assert (results["n_rules"] > 0).all()


def test_scores_on_folds_are_those_of_fits_to_the_others():
    model = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=KFold(2), tol=1e-4).fit(TRAIN, SCORE)
    for k, (train, test) in enumerate(KFold(2).split(TRAIN)):
        for c, C in enumerate([0.1, 1.0]):
            plain = RuleEnsembleRegressor(C=C, tol=1e-4).fit(TRAIN.iloc[train], SCORE[train])
            expected = plain.score(TRAIN.iloc[test], SCORE[test])
            assert model.cv_results_["scores"][c, k] == pytest.approx(expected, abs=0.01)


def test_the_smaller_C_wins_a_tie():
    P = np.repeat([[0, 1], [1, 0]], 10, axis=0)
    model = RuleEnsembleClassifierCV(Cs=[1000.0, 100.0, 10.0]).fit(P, P[:, 0])
    assert model.C_ == 10.0


@pytest.mark.parametrize("scoring", ["f1_macro", lambda model, X, y: -float(len(model.rules_))])
def test_other_scores(scoring):
    model = RuleEnsembleClassifierCV(Cs=[0.1, 30.0], cv=2, scoring=scoring).fit(TRAIN, TWO)
    assert model.C_ in (0.1, 30.0)
    if callable(scoring):
        np.testing.assert_allclose(model.cv_results_["mean_score"], -model.cv_results_["n_rules"])


def test_search_with_tasks_weights_and_labels():
    task, weight = np.arange(N) % 2, np.arange(N) % 3 + 0.5
    model = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, TWO, weight, task=task)
    assert model.tasks_.tolist() == [0, 1]
    assert model.predict(NEW, 1).shape == (N,)
    values = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, SCORE, weight, task=task)
    assert values.predict(NEW, 1).shape == (N,)
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    several = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, Y)
    assert several.predict(NEW).shape == (N, 2)
    with pytest.raises(InputError, match="scoring: must be None where tasks are given"):
        RuleEnsembleClassifierCV(Cs=[1.0], cv=2, scoring="f1").fit(TRAIN, TWO, task=task)


def test_scores_that_cannot_be_compared():
    model = RuleEnsembleClassifierCV(Cs=[1.0], cv=2, scoring=lambda model, X, y: np.nan)
    with pytest.raises(InputError, match=r"scoring: gives .*nan.* on fold 1, which cannot"):
        model.fit(TRAIN, TWO)


def test_cross_validated_models_are_clones_and_pickles():
    model = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, TWO)
    again = pickle.loads(pickle.dumps(model))
    assert again.C_ == model.C_
    assert again.rules_ == model.rules_
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert "C" not in model.get_params()


# Interruptions


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleClassifierCV])
@pytest.mark.parametrize("after", [0, 2])
def test_an_interruption_leaves_the_old_model(kind, after, monkeypatch):
    from kernelweave.solvers import dag_problem

    options = {"Cs": [0.1, 1.0]} if kind is RuleEnsembleClassifierCV else {}
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
