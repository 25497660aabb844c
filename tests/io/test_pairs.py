"""Learners from pairs in model files."""

import io
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.svm import SVC

from kernelweave import RBF, FromCallable, KernelSpectralClustering, Linear, PairwiseKernelLearner
from kernelweave.errors import ModelFileError
from kernelweave.io import describe, load, save

RANDOM = np.random.default_rng(0)
X = (RANDOM.random((30, 8)) < 0.4).astype(float)
Y = RANDOM.integers(2, size=30)
X[Y == 1, 0] = 1.0
PAIRS = np.column_stack([np.arange(29), np.arange(1, 30)])
LABELS = np.where(Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]], 1, -1)
SHRINK = {"method": "shrink", "gamma": 1.0, "alpha": 0.5, "rho": 1.0, "steps": 2, "n_resample": 2}
CASES = {
    "plain": {},
    "corrected": {"reliability": (0.9, 0.8), "prior": 0.5, "fit_intercept": True},
    "kernels": {"kernels": [RBF(2.0), Linear(columns=[0, 1])], "fit_intercept": True},
    "diag": SHRINK,
    "words": {**SHRINK, "shape": "words"},
    "graph": {**SHRINK, "shape": "graph", "rho": np.inf},
    "chosen": {**SHRINK, "shape": "auto", "n_clusters": 2, "n_splits": 2},
}


def fit(options, rows=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = PairwiseKernelLearner(**{"random_state": 0, "lam": 0.01, **options})
        return model.fit(rows, pairs=PAIRS, labels=LABELS)


def same(one, other):
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif hasattr(one, "__dataclass_fields__") and not isinstance(one, RBF | Linear):
        assert type(one) is type(other)
        for name in vars(one):
            same(getattr(one, name), getattr(other, name))
    elif isinstance(one, float) and np.isnan(one):
        assert np.isnan(other)
    else:
        assert one == other


@pytest.mark.parametrize("wrap", [np.asarray, csr_array, pd.DataFrame])
@pytest.mark.parametrize("case", CASES)
def test_a_loaded_learner_is_the_saved_one(case, wrap, tmp_path):
    rows = pd.DataFrame(X, columns=list("abcdefgh")) if wrap is pd.DataFrame else wrap(X)
    if case == "kernels" and wrap is csr_array:
        rows = X
    model = fit(CASES[case], rows)
    path = save(model, tmp_path / "model.kw")
    again = load(path)
    assert describe(path)["estimator"] == "PairwiseKernelLearner"
    assert str(again.get_params()) == str(model.get_params())
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert {name for name in vars(again) if name.endswith("_")} == fitted
    for name in fitted:
        same(getattr(model, name), getattr(again, name))
    np.testing.assert_array_equal(again.kernel(rows), model.kernel(rows))
    np.testing.assert_array_equal(again.score_pairs(rows, PAIRS), model.score_pairs(rows, PAIRS))
    np.testing.assert_array_equal(again.operator(rows) @ Y, model.operator(rows) @ Y)
    assert save(again, tmp_path / "again.kw").read_bytes() == path.read_bytes()
    same(fit(clone(again).get_params(deep=False), rows).weights_, model.weights_)


def test_training_rows_are_stored_only_where_they_are_needed(tmp_path):
    for case, needed in (("plain", False), ("diag", False), ("words", True), ("graph", True)):
        path = save(fit(CASES[case], csr_array(X)), tmp_path / f"{case}.kw")
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("model.json"))
        shape = document["shape"]
        assert (shape is not None and shape["tuple"][1] is not None) == needed


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PairwiseKernelLearner(), "not fitted yet"),
        (KernelSpectralClustering(), "KernelSpectralClustering is not fitted yet"),
        (SVC(), "of type SVC cannot be saved, only Annotator"),
    ],
)
def test_models_that_cannot_be_saved(model, message, tmp_path):
    with pytest.raises(ModelFileError, match=message):
        save(model, tmp_path / "model.kw")


def test_functions_cannot_be_saved(tmp_path):
    model = fit({"kernels": [FromCallable(lambda a, b: a @ b.T), Linear()], "fit_intercept": True})
    with pytest.raises(ModelFileError, match="the code of its function cannot be stored"):
        save(model, tmp_path / "model.kw")


@pytest.mark.parametrize(
    ("case", "path", "value", "message"),
    [
        ("plain", ("fitted", "weights_"), [1.0], "weights_ is a list"),
        ("plain", ("fitted", "weights_"), None, "weights_ is a NoneType"),
        ("plain", ("fitted", "n_features_in_"), 3, r"weights_ .* \(3,\), got .*\(8,\)"),
        ("plain", ("fitted", "threshold_"), "high", "threshold_ is a str"),
        ("plain", ("fitted", "extra_"), 1, "the fitted attributes are"),
        ("plain", ("kernels",), [1], "an item of kernels_ is a int"),
        ("plain", ("rates",), {"tuple": [{"tuple": [1.0, "a"]}, 0.5]}, "a rate is a str"),
        ("plain", ("statistic",), {"tuple": [1, 2, 3, 4]}, "statistic_ must be an array"),
        ("words", ("setting",), None, "the setting does not belong to the kernel"),
        ("words", ("setting",), {"tuple": ["round", 1.0, 1.0, 1.0, 1]}, "there is no shape"),
        ("words", ("shape",), {"tuple": ["words", None, None, 2]}, "the smoother is a NoneType"),
        ("words", ("shape",), {"tuple": ["graph", None, None, 2]}, "does not belong"),
    ],
)
def test_contents_that_do_not_belong_together(case, path, value, message, tmp_path):
    content = save(fit(CASES[case]), tmp_path / "model.kw").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    members["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(tmp_path / "forged.kw", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "forged.kw")
