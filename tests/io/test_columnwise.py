"""Each step is in a file what it was, attribute by attribute, and nothing else can be in one."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from kernelweave import RBF, Linear, MKLClassifier
from kernelweave.errors import ModelFileError
from kernelweave.io import load, save
from kernelweave.io.columnwise import STEPS
from model_files import changed, refused, same, unpacked

RANDOM = np.random.default_rng(0)
N = 24
X = RANDOM.normal(size=(N, 3)) * [1.0, 30.0, 0.1]
GAPS = np.where(RANDOM.random(X.shape) < 0.2, np.nan, X)
LEVELS = np.array([["Ulm", "L"], ["Köln", "S"], ["Bonn", "S"], ["Ulm", "M"]] * 6, dtype=object)
WITH_NAN = np.where(np.arange(N)[:, None] % 5 == 0, np.nan, RANDOM.integers(0, 3, (N, 2)))
Y = np.arange(N) % 2
MODEL = MKLClassifier([RBF(1.0), Linear()])

CASES = {
    "standard": (StandardScaler(), X),
    "standard of one row count": (StandardScaler(with_mean=False), X),
    "standard of float32": (StandardScaler(), X.astype(np.float32)),
    "not scaled": (StandardScaler(with_std=False), X),
    "robust": (RobustScaler(quantile_range=(10.0, 90.0), unit_variance=True), X),
    "not centred": (RobustScaler(with_centering=False), X),
    "minmax": (MinMaxScaler((-1, 2), clip=True), X),
    "maxabs": (MaxAbsScaler(), X),
    "mean": (SimpleImputer(), GAPS),
    "mode": (SimpleImputer(strategy="most_frequent"), GAPS),
    "constant": (SimpleImputer(strategy="constant", fill_value=-7.5), GAPS),
    "empty column": (SimpleImputer(keep_empty_features=True), np.c_[GAPS, np.full(N, np.nan)]),
    "one-hot": (OneHotEncoder(), LEVELS),
    "one-hot of text": (OneHotEncoder(sparse_output=False), LEVELS.astype(str)),
    "one-hot of numbers": (OneHotEncoder(handle_unknown="ignore"), WITH_NAN),
    "one-hot without first": (OneHotEncoder(drop="first", dtype=np.float32), LEVELS),
    "one-hot if binary": (OneHotEncoder(drop="if_binary"), LEVELS),
    "one-hot without named": (OneHotEncoder(drop=np.array(["Ulm", "S"], dtype=object)), LEVELS),
    "one-hot of known": (
        OneHotEncoder(categories=[np.array([0.0, 1.0, 2.0, np.nan])] * 2), WITH_NAN,
    ),
    "ordinal": (OrdinalEncoder(), LEVELS),
    "ordinal of unknown": (
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        ),
        WITH_NAN,
    ),
    "pass on": (FunctionTransformer(feature_names_out="one-to-one"), X),
}  # fmt: skip


def saved_with(step, X, path, model=MODEL):
    return save(make_pipeline(step, model).fit(X, Y), path)


@pytest.mark.parametrize(("step", "X"), CASES.values(), ids=CASES.keys())
def test_every_attribute_is_kept(tmp_path, step, X):
    pipeline = make_pipeline(step, MODEL).fit(X, Y)
    again = load(save(pipeline, tmp_path / "m.kw"))
    one, two = vars(pipeline[0]), vars(again[0])
    assert set(one) <= set(two) <= {*one, "_fill_dtype"}  # which older scikit-learn lacks
    for name in set(one) - {"dtype", "categories", "categories_", "drop"}:
        same(one[name], two[name])
    for name in {"categories_"} & set(one):  # text is as wide as its values
        same([a.tolist() for a in one[name]], [a.tolist() for a in two[name]])
        assert [a.dtype.kind for a in one[name]] == [a.dtype.kind for a in two[name]]
    same(pipeline.decision_function(X), again.decision_function(X))
    names = pipeline[0].get_feature_names_out()
    assert names.tolist() == again[0].get_feature_names_out().tolist()


def test_the_cases_cover_the_list():
    assert {type(step).__name__ for step, _ in CASES.values()} == set(STEPS)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_and_containers(tmp_path, kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), MKLClassifier([RBF(1.0, columns=["b", "c"])]))
    pipeline[0].set_output(transform=kind)
    again = load(save(pipeline.fit(frame, Y), tmp_path / "m.kw"))
    assert type(again[0].transform(frame)) is type(pipeline[0].transform(frame))
    same(again.feature_names_in_, pipeline.feature_names_in_)
    same(again.decision_function(frame), pipeline.decision_function(frame))


@pytest.mark.parametrize(
    ("step", "X", "message"),
    [
        (FunctionTransformer(np.exp), X, r"FunctionTransformer with func=<ufunc 'exp'> cannot be"),
        (OneHotEncoder(min_frequency=3), LEVELS, "OneHotEncoder with min_frequency=3 cannot be"),
        (OneHotEncoder(feature_name_combiner=max), LEVELS, "with feature_name_combiner=<built-in"),
        (SimpleImputer(add_indicator=True), GAPS, "SimpleImputer with add_indicator=True cannot"),
        (SimpleImputer(strategy=np.nanmax), GAPS, "SimpleImputer with strategy=<function nanmax"),
    ],
)
def test_what_files_do_not_hold(tmp_path, step, X, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        saved_with(step, X, tmp_path / "m.kw")
    assert "save the last step alone with save(pipeline[-1], path)." in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_attributes_that_are_not_known(tmp_path):
    pipeline = make_pipeline(StandardScaler(), MODEL).fit(X, Y)
    pipeline[0].surprise_ = 1
    with pytest.raises(ModelFileError, match="A StandardScaler with surprise_ cannot be saved"):
        save(pipeline, tmp_path / "m.kw")


def test_other_types_of_levels(tmp_path):
    dates = np.array(["2024-01-01", "2024-02-01"] * (N // 2), dtype="M8[D]")[:, None]
    pipeline = make_pipeline(OneHotEncoder(), MODEL).fit(dates, Y)
    with pytest.raises(ModelFileError, match=r"values of type datetime64\[D\] cannot be saved"):
        save(pipeline, tmp_path / "m.kw")


SCALER = {
    "step": "there is no step 'Popen'",
    "parameters/with_mean": "with_mean",
    "columns": "names of columns",
    "output": "there is no output",
    "fitted/mean_": "mean_",
    "fitted/n_samples_seen_": "n_samples_seen_",
}
VALUES = {
    "step": "Popen",
    "parameters/with_mean": {"kernel": ["RBF", {"width": 1.0, "columns": None, "name": None}]},
    "columns": [1, 2, 3],
    "output": "os.system",
    "fitted/mean_": {"tuple": ["<f8", [0.0, 1.0]]},
    "fitted/n_samples_seen_": "many",
}


@pytest.mark.parametrize("place", SCALER)
def test_forged_scalers(tmp_path, place):
    content = saved_with(StandardScaler(), X, tmp_path / "m.kw").read_bytes()
    where = f"pipeline/steps/0/1/{place}"
    refused(tmp_path / "m.kw", changed(content, {where: VALUES[place]}), SCALER[place])


@pytest.mark.parametrize(
    "values",
    [
        {"tuple": ["<U999999999", ["a", "b", "c"]]},  # would take gigabytes
        {"tuple": ["|V8", [1, 2, 3]]},
        {"tuple": ["|i1", [1, 2, 1000]]},
        {"tuple": ["<f8", [0.0, 1.0, [2.0]]]},
        {"tuple": ["|O", [{"kernel": ["Linear", {"columns": None, "name": None}]}, 1, 2]]},
        {"tuple": ["<f8", "abc"]},
        [0.0, 1.0, 2.0],
    ],
)
def test_forged_vectors(tmp_path, values):
    content = saved_with(StandardScaler(), X, tmp_path / "m.kw").read_bytes()
    where = "pipeline/steps/0/1/fitted/mean_"
    refused(tmp_path / "m.kw", changed(content, {where: values}), "is damaged")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("fitted/categories_", [{"tuple": ["U", ["a"]]}], "1 items for 2 columns"),
        ("fitted/categories_/0", {"tuple": ["U", []]}, "a column without levels"),
        ("fitted/drop_idx_", {"tuple": ["|O", [0, 9]]}, "drop_idx_ holds 9"),
        ("fitted/drop_idx_", {"tuple": ["|O", [0, "x"]]}, "drop_idx_ is a str"),
        ("parameters/dtype", "|O", "dtype is '|O'"),
        ("parameters/min_frequency", 2, "min_frequency is 2"),
        ("parameters/handle_unknown", "run", "handle_unknown"),
        ("fitted/categories_/0", {"tuple": ["U", ["a"]]}, "returns 2 columns, but the next one"),
    ],
)
def test_forged_encoders(tmp_path, place, value, message):
    step = OneHotEncoder(drop="first")
    content = saved_with(step, LEVELS, tmp_path / "m.kw").read_bytes()
    refused(tmp_path / "m.kw", changed(content, {f"pipeline/steps/0/1/{place}": value}), message)


def test_files_are_plain(tmp_path):
    content = saved_with(SimpleImputer(), GAPS, tmp_path / "m.kw").read_bytes()
    document = json.loads(unpacked(content)["model.json"])
    assert document["version"] == 2
    step = document["pipeline"]["steps"][0][1]
    assert step["step"] == "SimpleImputer"
    assert step["fitted"]["_fit_dtype"] == "<f8"
    assert step["parameters"]["missing_values"] == {"float": "nan"}
