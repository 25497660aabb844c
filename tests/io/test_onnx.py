"""Models written as ONNX predict in onnxruntime what they predict here."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    ARD,
    RBF,
    CombinedRegressor,
    HierarchicalMKLClassifier,
    Laplacian,
    Linear,
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    Polynomial,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
    SumProductMKLClassifier,
    rbf_ladder,
)
from kernelweave.datasets import make_additive
from kernelweave.errors import InputError, InputTypeError
from kernelweave.io.onnx import to_onnx

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

X, y = make_additive(90, 5, random_state=0)
NEW = np.random.default_rng(1).normal(size=(40, 5)) * 2 + 0.3
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
AMOUNT = 100 + 30 * X[:, 0] + 10 * X[:, 1] ** 2
EVERY = [Linear(), Polynomial(3), RBF(2.0), ARD((1.0, 2.0, 3.0, np.inf, 1.0)), Laplacian(4.0)]

MODELS = {
    "every kernel": (MKLClassifier(EVERY, norm=2.0), y),
    "columns": (MKLClassifier([RBF(1.0, columns=[0, 3]), Linear(columns=[4])]), y),
    "default kernels": (MKLClassifier(), y),
    "three classes": (MKLClassifier([RBF(2.0), Linear()]), THREE),
    "text": (MKLClassifier([RBF(2.0)]), np.where(y > 0, "yes", "no")),
    "logistic": (MKLClassifier([RBF(2.0)], loss="logistic"), y),
    "regression": (MKLRegressor(), AMOUNT),
    "metric": (MetricKernelClassifier(), THREE),
    "metric regression": (MetricKernelRegressor(), AMOUNT),
    "landmarks": (MetricKernelRegressor(max_exact=0, metric_rows=60, n_landmarks=40), AMOUNT),
    "radius": (RadiusMKLClassifier([RBF(1.0), Linear()]), y),
    "noise": (NoiseTolerantKernelClassifier(rbf_ladder()), y),
    "product": (SumProductMKLClassifier(RBF(2.0) * Linear() + RBF(4.0), normalize="trace"), y),
    "hierarchy": (HierarchicalMKLClassifier([Linear(), RBF(2.0)], parents={1: [0]}), y),
    "rules": (RuleEnsembleClassifier(C=1.0), y),
    "rules of three": (RuleEnsembleClassifier(C=1.0), THREE),
    "rule regression": (RuleEnsembleRegressor(C=10.0), AMOUNT),
    "linear terms": (RuleEnsembleClassifier(1.0, loss="logistic", linear_terms=True), THREE),
    "a linear term alone": (
        RuleEnsembleRegressor(1.0, C=0.1, linear_terms=True, max_rules=1, refit=True),
        AMOUNT,
    ),
}


def run(model, rows):
    session = runtime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": np.asarray(rows, dtype=np.float64)})


@pytest.mark.parametrize("name", MODELS)
def test_predictions_agree(name):
    model, target = MODELS[name]
    model = model.fit(X, target)
    values = run(model, NEW)
    regression = not hasattr(model, "classes_")
    expected = model.predict(NEW) if regression else model.decision_function(NEW)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        values[0].reshape(expected.shape), expected, rtol=1e-9, atol=1e-9 * scale
    )
    if not regression:
        np.testing.assert_array_equal(values[1], model.predict(NEW))


def test_gaps_and_names():
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.loc[::7, "b"] = np.nan
    rows = pd.DataFrame(NEW, columns=list("abcde"))
    rows.loc[::5, "b"] = np.nan
    for model in (MKLClassifier(), MetricKernelClassifier(), RuleEnsembleClassifier(C=1.0)):
        scores = run(model.fit(frame, y), rows)[0].ravel()
        np.testing.assert_allclose(scores, model.decision_function(rows), atol=1e-9)
    linear = RuleEnsembleRegressor(1.0, linear_terms=True).fit(frame, frame["b"].fillna(0.0))
    assert linear.linear_terms_
    np.testing.assert_allclose(run(linear, rows)[0].ravel(), linear.predict(rows), atol=1e-12)


def test_what_cannot_be_written_is_refused():
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["town"] = np.where(X[:, 0] > 0, "Ulm", "Bonn")
    with pytest.raises(InputError, match="'town' is a category or a date"):
        to_onnx(MetricKernelClassifier().fit(frame, y))
    with pytest.raises(InputError, match=r"town .* is on a category"):
        to_onnx(RuleEnsembleClassifier(C=1.0).fit(frame[["town"]], y))
    with pytest.raises(InputTypeError, match="several labels"):
        to_onnx(
            MKLClassifier([Linear()]).fit(X, np.column_stack([y > 0, y < 0, y > 0]).astype(int))
        )
    with pytest.raises(InputTypeError, match="CombinedRegressor cannot be written"):
        to_onnx(CombinedRegressor().fit(X, AMOUNT))
