"""Pipelines predict after loading, bit by bit, what they predicted before saving."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler

from kernelweave import (
    RBF,
    Linear,
    MetricKernelClassifier,
    MKLClassifier,
    MKLRegressor,
    RuleEnsembleClassifier,
)
from kernelweave.errors import ModelFileError
from kernelweave.io import describe, load, load_steps, save
from model_files import changed, forged, mutated, refused, same
from quick import examples

RANDOM = np.random.default_rng(0)
N = 40
X = RANDOM.normal(size=(N, 4))
FRAME = pd.DataFrame(
    {
        "age": np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.normal(50, 10, N)),
        "income": RANDOM.lognormal(3, 1, N),
        "town": RANDOM.choice(["Ulm", "Köln", "Bonn"], N),
        "size": RANDOM.choice(["S", "M", "L"], N),
        "note": RANDOM.normal(size=N),
    }
)
Y = np.where(X[:, 0] + RANDOM.normal(size=N) > 0, "yes", "no")
NUMBERS = make_pipeline(SimpleImputer(strategy="median"), RobustScaler())
MODEL = MKLClassifier([RBF(1.0), Linear()])


def columns(**options):
    return ColumnTransformer(
        [
            ("numbers", clone(NUMBERS), ["age", "income"]),
            ("town", OneHotEncoder(handle_unknown="ignore"), ["town"]),
            ("size", OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
        ],
        **options,
    )


def check(pipeline, X, path):
    again = load(save(pipeline, path))
    assert type(again) is Pipeline
    assert [name for name, _ in again.steps] == [name for name, _ in pipeline.steps]
    same(pipeline.predict(X), again.predict(X))
    if hasattr(pipeline, "decision_function"):
        same(pipeline.decision_function(X), again.decision_function(X))
    return again


FRAMES = {
    "drop": columns(),
    "pass on": columns(remainder="passthrough"),
    "rest": columns(remainder=StandardScaler()),
    "dense": columns(remainder="passthrough", sparse_threshold=0.0),
    "weights": columns(transformer_weights={"numbers": 2.0}),
    "selector": make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
        (clone(NUMBERS), make_column_selector(dtype_include=np.number)),
    ),
    "positions": make_column_transformer(
        (OneHotEncoder(), [2, 3]), ("passthrough", [1]), ("drop", 0)
    ),
    "range": make_column_transformer((OneHotEncoder(), slice("town", "size")), ("drop", "age")),
    "mask": make_column_transformer((OneHotEncoder(), np.array([0, 0, 1, 1, 0], dtype=bool))),
}


@pytest.mark.parametrize("step", FRAMES.values(), ids=FRAMES.keys())
def test_columns_of_a_frame(tmp_path, step):
    pipeline = make_pipeline(clone(step), MODEL).fit(FRAME, Y)
    again = check(pipeline, FRAME, tmp_path / "m.kw")
    names = {"transformers", "remainder", "transformers_", "_columns", "_remainder"}
    for name in set(vars(pipeline[0])) - names:
        one, two = vars(pipeline[0])[name], vars(again[0])[name]
        if name == "_transformer_to_input_indices":
            one = {key: [int(j) for j in at] for key, at in one.items()}
        same(one, two)
    others = FRAME[FRAME.columns[::-1]].assign(more=1)  # found by name, as before saving
    same(pipeline.predict(others), again.predict(others))


def test_further_models_and_frames(tmp_path):
    y = X[:, 1]
    one = Pipeline([("columns", columns()), ("same", "passthrough"), ("model", MKLRegressor())])
    check(one.fit(FRAME, y), FRAME, tmp_path / "a.kw")
    check(make_pipeline(StandardScaler(), RuleEnsembleClassifier()).fit(X, Y), X, tmp_path / "b.kw")
    check(make_pipeline(MetricKernelClassifier()).fit(X, Y), X, tmp_path / "c.kw")
    table = pl.from_pandas(FRAME)
    two = make_pipeline(columns(), MODEL).fit(table, Y)
    check(two, table, tmp_path / "d.kw")
    three = make_pipeline(
        columns(sparse_threshold=0.0, verbose_feature_names_out=False), MKLClassifier(None)
    )
    three[0].set_params(town__sparse_output=False)
    three.set_output(transform="pandas")
    again = check(three.fit(FRAME, Y), FRAME, tmp_path / "e.kw")
    assert isinstance(again[:-1].transform(FRAME), pd.DataFrame)


def test_fit_again(tmp_path):
    pipeline = make_pipeline(columns(remainder="passthrough"), MODEL).fit(FRAME, Y)
    again = check(pipeline, FRAME, tmp_path / "m.kw")
    same(clone(again).fit(FRAME, Y).decision_function(FRAME), pipeline.decision_function(FRAME))
    assert describe(tmp_path / "m.kw")["estimator"] == "MKLClassifier"
    assert [name for name, _ in load_steps(tmp_path / "m.kw")] == [n for n, _ in pipeline.steps]
    assert save(again, tmp_path / "n.kw").read_bytes() == (tmp_path / "m.kw").read_bytes()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([PCA(2), MODEL], "A step of type PCA cannot be saved, only StandardScaler, .* can; save"),
        ([StandardScaler(), LogisticRegression()], "A model of type LogisticRegression cannot be"),
        (
            [make_column_transformer((StandardScaler(), []), ("passthrough", [0, 1])), MODEL],
            "This StandardScaler is not fitted or has no columns; fit or remove it",
        ),
    ],
)
def test_refused_steps(tmp_path, steps, message):
    pipeline = make_pipeline(*steps).fit(X, Y)
    with pytest.raises(ModelFileError, match=message):
        save(pipeline, tmp_path / "m.kw")
    assert not list(tmp_path.iterdir())


def test_refused_pipelines(tmp_path):
    class Scaler(StandardScaler):
        pass

    with pytest.raises(ModelFileError, match="A step of type Scaler cannot be saved"):
        save(make_pipeline(Scaler(), MODEL).fit(X, Y), tmp_path / "m.kw")
    kept = make_pipeline(StandardScaler(), MODEL, memory=str(tmp_path / "cache")).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"A Pipeline with memory='.*' cannot be saved"):
        save(kept, tmp_path / "m.kw")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    pipeline = make_pipeline(columns(remainder="passthrough"), MODEL).fit(FRAME, Y)
    return save(pipeline, tmp_path_factory.mktemp("io") / "m.kw").read_bytes()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("parameters/memory", "/tmp/cache", "memory is '/tmp/cache'"),
        ("last", 3, "is damaged"),
        ("steps/0/1", "run", "there is no step 'run'"),
        ("steps/0/1/step", "PCA", "there is no step 'PCA'"),
        ("steps/0/1/remainder", "run", "remainder is 'run'"),
        ("steps/0/1/parameters/verbose_feature_names_out", "{0.__class__}", "verbose_feature"),
        ("steps/0/1/sparse", 1, "sparse is a int"),
        ("steps/0/1/transformers/0/2", [0, 9], "there is no column 9"),
        ("steps/0/1/transformers/0/2", [0], "takes other columns than it was fitted to"),
        ("steps/0/1/transformers/0/1", "passthrough", "takes other columns"),
        ("steps/0/1/transformers/1/1", "drop", "a step returns 4 columns, but the next one takes"),
        ("steps/0/1/transformers/1/0", "numbers", "not unique"),
    ],
)
def test_forged_pipelines(tmp_path, saved, place, value, message):
    refused(tmp_path / "m.kw", changed(saved, {f"pipeline/{place}": value}), message)


@given(data=st.data())
@examples(200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_forged_values_are_refused_or_harmless(tmp_path, saved, data):
    path = tmp_path / "m.kw"
    path.write_bytes(forged(saved, data, within="pipeline"))
    try:
        model = load(path)
    except ModelFileError as error:
        told = str(error)
    else:
        assert type(model) is Pipeline
        return
    assert str(path) in told
    assert "\n" not in told


def test_damage_is_told(tmp_path, saved):
    random, path, refusals = np.random.default_rng(0), tmp_path / "m.kw", 0
    for _ in range(200):
        path.write_bytes(mutated(saved, random))
        try:
            model = load(path)
        except ModelFileError:
            refusals += 1
        else:
            assert type(model) is Pipeline
    assert refusals > 150
