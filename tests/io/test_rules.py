"""A loaded rule ensemble is the saved one, and a bad file is one sentence."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.errors import KernelweaveError, ModelFileError
from kernelweave.io import TablePreparer, describe, load, save
from model_files import changed, forged, packed, refused, same, unpacked
from quick import examples

RANDOM = np.random.default_rng(0)
N = 80
SIZES = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
FRAME = pd.DataFrame(
    {
        'a "quoted" name': np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.normal(size=N)),
        "count": RANDOM.integers(0, 4, N),
        "smoker": RANDOM.random(N) < 0.5,
        "town": RANDOM.choice(["Köln", "O'Hara", "Ulm", None], N),
        "code": RANDOM.choice([1, 2, 7], N),
        "size": pd.Categorical(RANDOM.choice(["S", "M", "L"], N)).astype(SIZES),
    }
)
SCORE = (
    1.0 * (FRAME["count"] > 1)
    + 2.0 * (FRAME["smoker"] & (FRAME["town"] == "Ulm"))
    - 1.0 * (FRAME["size"] == "L")
    - 1.0 * (FRAME["code"] == 7)
).to_numpy()
TWO = np.where(SCORE > 0, "yes", "no")
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE, [-0.5, 0.5])]
LABELS = np.column_stack([SCORE > 0, FRAME["smoker"], SCORE > 1]).astype(int)
X = RANDOM.normal(size=(40, 3))
PLAIN = X[:, 0] + 1.0 * ((X[:, 1] > 0) & (X[:, 2] > 0))
CODE = np.array(["code"], dtype=object)
MATRIX = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 2.0]])


def round_trip(model, path, X, **options):
    again = load(save(model, path))
    assert type(again) is type(model)
    assert set(vars(model)) == set(vars(again))
    for name, value in vars(model).items():
        same(value, getattr(again, name))
    assert model.get_params().keys() == again.get_params().keys()
    same(model.predict(X, **options), again.predict(X, **options))
    if hasattr(model, "decision_function"):
        same(model.decision_function(X, **options), again.decision_function(X, **options))
    pd.testing.assert_frame_equal(model.to_frame(), again.to_frame(), check_exact=True)
    assert model.to_python() == again.to_python()
    assert [str(e) for e in model.explain(X)] == [str(e) for e in again.explain(X)]
    assert save(again, path.with_suffix(".again")).read_bytes() == path.read_bytes()
    return again


def test_a_table_of_mixed_types(tmp_path):
    model = RuleEnsembleClassifier(C=10.0, categorical=["code"]).fit(FRAME, TWO)
    values = {type(c.value) for rule in model.rules_ for c in rule.conditions}
    assert values == {bool, float, int, str}  # otherwise this test has no point
    assert any(c.levels for c in model.propositions_)
    round_trip(model, tmp_path / "m.kw", FRAME)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (RuleEnsembleClassifier(2.0, task_correlation=0.5), THREE),
        (RuleEnsembleClassifier(C=3.0, task_correlation=MATRIX), THREE.astype(object)),
        (RuleEnsembleClassifier(C=np.float32(0.3), class_weight={True: 2.0, False: 1}), SCORE > 0),
        (RuleEnsembleClassifier(max_length=2, threshold=0.0), LABELS),
        (RuleEnsembleClassifier(task_correlation=MATRIX.tolist(), n_jobs=1), LABELS),
        (RuleEnsembleRegressor(C=10.0, cut_strategy="uniform"), SCORE),
        (
            RuleEnsembleRegressor(loss="huber", categorical=np.array(["code"], object)),
            SCORE[:, None],
        ),
        (RuleEnsembleRegressor(1.5, fit_intercept=False), np.column_stack([SCORE, -SCORE])),
        (
            RuleEnsembleClassifier(1.0, C=9.0, loss="logistic", linear_terms=True, n_resamples=2),
            THREE,
        ),
        (RuleEnsembleClassifierCV(Cs=[0.1, 1], cv=2, scoring="f1_macro"), TWO),
        (RuleEnsembleClassifierCV(Cs=np.array([0.1, 1.0]), cv=2), LABELS),
        (RuleEnsembleRegressorCV(Cs=2, cv=2, tol=0.05, max_length=2), SCORE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_targets(tmp_path, model, target):
    again = round_trip(model.fit(FRAME, target), tmp_path / "m.kw", FRAME)
    for name, value in model.get_params().items():
        same(value, getattr(again, name))


@pytest.mark.parametrize(
    ("model", "target"), [(RuleEnsembleClassifier(), TWO), (RuleEnsembleRegressor(), SCORE)]
)
@pytest.mark.parametrize("tasks", [["b", "a"], [3, 1]])
def test_tasks(tmp_path, model, target, tasks):
    task = np.array(tasks)[np.arange(N) % 2]
    model.fit(FRAME, target, task=task)
    round_trip(model, tmp_path / "m.kw", FRAME, task=task)


def test_propositions_as_given(tmp_path):
    P = X > 0
    model = RuleEnsembleClassifier(propositions="given").fit(P, PLAIN > 0.5)
    round_trip(model, tmp_path / "m.kw", P)
    names = pd.DataFrame(P.astype(int), columns=["x", "y", "z"])
    model = RuleEnsembleRegressor(propositions="given").fit(names, PLAIN)
    round_trip(model, tmp_path / "m.kw", names)


def test_an_intercept_alone(tmp_path):
    with pytest.warns(UserWarning, match="the model is an intercept alone"):
        model = RuleEnsembleClassifier().fit(np.ones((4, 2)), [0, 1, 1, 1])
    round_trip(model, tmp_path / "m.kw", np.ones((4, 2)))


def test_not_converged(tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = RuleEnsembleClassifier(C=100.0, max_iter=1).fit(X, PLAIN > 0.5)
    round_trip(model, tmp_path / "m.kw", X)


def test_a_loaded_model_goes_on_where_the_saved_one_ended(tmp_path):
    model = RuleEnsembleClassifier(C=10.0, warm_start=True).fit(FRAME, TWO)
    again = round_trip(model, tmp_path / "m.kw", FRAME)
    first = model.n_iter_
    assert again.fit(FRAME, TWO).n_iter_ < first
    same(again.rules_, model.fit(FRAME, TWO).rules_)


def test_the_training_rows_are_not_in_the_file(tmp_path):
    model = RuleEnsembleClassifier().fit(FRAME, TWO)
    members = unpacked(save(model, tmp_path / "m.kw").read_bytes())
    assert sum(map(len, members.values())) - len(members["model.json"]) < 1000
    assert describe(tmp_path / "m.kw")["estimator"] == "RuleEnsembleClassifier"


def test_pipeline_with_preparer(tmp_path):
    full = FRAME.drop(columns=["town", 'a "quoted" name']).assign(size=FRAME["size"].astype(str))
    model = make_pipeline(TablePreparer(), RuleEnsembleClassifier()).fit(full, TWO)
    again = load(save(model, tmp_path / "m.kw"))
    same(again.decision_function(full), model.decision_function(full))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"cv": KFold(2)},
            r"The parameter cv=KFold.* cannot be written .* set_params\(cv=",
        ),
        ({"scoring": lambda model, X, y: 0.0}, "The parameter scoring=.* cannot be written"),
    ],
)
def test_parameters_that_cannot_be_saved(tmp_path, options, message):
    model = RuleEnsembleClassifierCV(**{"Cs": [1.0], "cv": 2} | options).fit(X, PLAIN > 0.5)
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "m.kw")
    assert not list(tmp_path.iterdir())
    save(model.set_params(**dict.fromkeys(options)), tmp_path / "m.kw")


def test_not_fitted(tmp_path):
    with pytest.raises(ModelFileError, match="This RuleEnsembleRegressor is not fitted yet"):
        save(RuleEnsembleRegressor(), tmp_path / "m.kw")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    model = RuleEnsembleClassifier(C=3.0, warm_start=True, max_length=2).fit(FRAME, THREE)
    return save(model, tmp_path_factory.mktemp("io") / "m.kw").read_bytes()


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    model = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=2).fit(X, PLAIN)
    return save(model, tmp_path_factory.mktemp("io") / "m.kw").read_bytes()


P = "fitted/propositions_/tuple/0/proposition"
R = "fitted/rules_/0/rule"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "RuleEnsembleRegressor"}, "is damaged"),
        ({"estimator": "MKLClassifier"}, "is damaged"),
        ({"parameters/rho": 2.5}, "rho.* must be"),
        ({"parameters/surprise": 1}, "is damaged: TypeError"),
        ({"fitted/predict": 1}, "the fitted attributes are"),
        ({f"{P}/1": 9}, "is about another table"),
        ({f"{P}/0": "other"}, "the proposition 'other .*' is about another table"),
        ({f"{P}/2": "<"}, "operator must be one of"),
        ({f"{P}/3": {"float": "inf"}}, "value must be finite"),
        ({f"{P}/3": {"dict": []}}, "value must be a number, a truth value or text"),
        ({P: ["age"]}, "a value of kind 'proposition' is not known or not complete"),
        ({"fitted/propositions_/tuple/0": 1}, "an item of propositions_ is a int"),
        ({"fitted/propositions_": []}, "propositions_ is a list"),
        ({f"{R}/0": {"tuple": [1]}}, "conditions must be propositions"),
        ({f"{R}/1": 1.0}, "does not have 3 weights"),
        ({f"{R}/1": {"tuple": [1.0, 2.0]}}, "does not have 3 weights"),
        ({f"{R}/1": {"tuple": ["1", 2.0, 3.0]}}, "weight must be a finite number"),
        ({f"{R}/2": 1.5}, "coverage must be a share"),
        ({"fitted/rules_": []}, "norms_ must be an array of shape"),
        ({"fitted/rules_/0": 1}, "an item of rules_ is a int"),
        ({"fitted/intercept_": 0.0}, "intercept_ is a float"),
        ({"fitted/n_nodes_": 1.5}, "n_nodes_ is a float"),
        ({"fitted/history_": [1]}, "an item of history_ is a int"),
        ({"fitted/converged_": 1}, "converged_ is a int"),
        ({"fitted/classes_": {"objects": [[2], ["a", "b"]]}}, "number of outputs cannot be 3"),
        ({"fitted/_multilabel": 0}, "_multilabel is a int"),
        ({"fitted/tasks_": {"objects": [[2], ["a", "b"]]}}, r"tasks_ must be .* shape \(3,\)"),
        ({"fitted/tasks_": {"objects": [[3], list("abc")]}}, "number of outputs cannot be 3"),
        ({"fitted/feature_names_in_": {"objects": [[2], ["a", "b"]]}}, "does not have"),
        ({"fitted/_last": 1}, "is damaged: TypeError"),
        ({"fitted/_last/tuple/0": {"tuple": []}}, "propositions to start from are not those"),
        ({"fitted/_last/tuple/1/0": 1}, "a conjunction to start from is a int"),
        ({"fitted/_last/tuple/1/1": {"tuple": [999]}}, "has an unknown proposition"),
        ({"fitted/_last/tuple/1/1": {"tuple": [1, 0]}}, "is not in order"),
        ({"fitted/_last/tuple/1/1": {"tuple": [1]}}, "are not complete"),
        ({"fitted/_last/tuple/2": 1}, "norms to start from must be an array"),
        ({"fitted/_last/tuple/3": 1}, "coefficients to start from is a int"),
        ({"fitted/_last/tuple/4": -1.0}, "the C to start from must be positive"),
        ({"fitted/C_": 1.0}, "the fitted attributes are"),
    ],
)
def test_contents_that_do_not_belong_together(tmp_path, saved, changes, message):
    refused(tmp_path / "m.kw", changed(saved, changes), message)


L = "fitted/linear_terms_/0/linear"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({f"{L}/1": 7}, "is about another table"),
        ({f"{L}/2": 99.0}, "low must be below high"),
        ({f"{L}/5": {"tuple": [1.0, 2.0]}}, "does not have 1 weights"),
        ({"fitted/linear_terms_/0": 1}, "a linear term is a int"),
        ({"fitted/linear_terms_": []}, "linear_norms_ must be an array of shape"),
        ({"fitted/_linear": []}, "_linear is a list"),
    ],
)
def test_linear_terms_that_do_not_belong(tmp_path, searched, changes, message):
    refused(tmp_path / "m.kw", changed(searched, changes), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fitted/C_": "1"}, "C_ is a str"),
        ({"fitted/C_": 0.0}, "C_ must be positive"),
        ({"fitted/cv_results_": []}, "cv_results_ is a list"),
        ({"fitted/cv_results_/dict": []}, r"cv_results_ has the entries \[\]"),
        ({"fitted/cv_results_/dict/0/1": 1}, "C in cv_results_ must be an array"),
        ({"fitted/cv_results_/dict/4/1": 1}, "scores is a int"),
        ({"fitted/_one_output": "yes"}, "_one_output is a str"),
        ({"parameters/cv": "three"}, "cv.* must be"),
    ],
)
def test_searches_that_do_not_belong_together(tmp_path, searched, changes, message):
    refused(tmp_path / "m.kw", changed(searched, changes), message)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_forged_documents(tmp_path, saved, data):
    path = tmp_path / "m.kw"
    path.write_bytes(forged(saved, data))
    try:
        model = load(path)
    except ModelFileError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    try:
        model.predict(FRAME)
    except KernelweaveError:
        pass  # a file may be in order and yet not about these rows
    except ValueError as error:
        assert "feature" in str(error)  # noqa: PT017


def test_members_may_be_missing(tmp_path, saved):
    members = unpacked(saved)
    members.pop("0.npy")
    refused(tmp_path / "m.kw", packed(members), r"the member '0\.npy' is missing")
