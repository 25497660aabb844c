"""Tables of pyarrow are frames like others, for every estimator."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kernelweave import estimators, report
from kernelweave.errors import InputError
from kernelweave.io import load, save

RANDOM = np.random.default_rng(0)
N = 36
FRAME = pd.DataFrame({"a": RANDOM.normal(size=N), "b": RANDOM.normal(size=N)})
Y = np.where(FRAME["a"] + 0.3 * RANDOM.normal(size=N) > 0, "p", "q")
OPTIONS = {
    "KernelSpectralClustering": {"n_clusters": 2, "random_state": 0},
    "PairwiseKernelLearner": {"random_state": 0},
}


def fit(name, X):
    kind = getattr(estimators, name)
    options = dict(OPTIONS.get(name, {}))
    if "cv" in inspect.signature(kind).parameters:
        options["cv"] = 2
    y = FRAME["b"].to_numpy() if "Regressor" in name else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kind(**options).fit(X, y)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if "CV" in n else n for n in estimators.__all__],
)
def test_a_table_gives_the_model_that_a_frame_gives(name):
    table = pa.table(FRAME)
    ours, theirs = fit(name, table), fit(name, FRAME)
    assert ours.feature_names_in_.tolist() == ["a", "b"]
    if hasattr(ours, "labels_"):
        assert ours.labels_.tolist() == theirs.labels_.tolist()
    elif hasattr(ours, "predict"):
        assert ours.predict(table).tolist() == theirs.predict(FRAME).tolist()
        swapped = table.select(["b", "a"])
        with pytest.raises(ValueError, match="feature names should match"):
            ours.predict(swapped)
    else:
        np.testing.assert_array_equal(ours.kernel(table), theirs.kernel(FRAME))


def test_what_else_takes_a_table(tmp_path):
    table = pa.table(FRAME)
    model = fit("MKLClassifier", table)
    again = load(save(model, tmp_path / "model.kw"))
    assert again.predict(table).tolist() == model.predict(FRAME).tolist()
    assert "36 rows" in report.to_html(model, table, Y, cv=2)
    with pytest.raises(InputError, match="X: lacks 'b', which the model needs"):
        report.to_html(model, table.select(["a"]))


def test_what_is_wrong_with_a_table_is_told():
    twice = pa.table([pa.array([1.0, 2.0]), pa.array([1.0, 2.0])], names=["a", "a"])
    with pytest.raises(InputError, match="X: two columns of the same name, 'a'"):
        fit("MKLClassifier", twice)
    with pytest.raises(InputError, match=r"Found 0 row\(s\) in X"):
        estimators.MKLClassifier().fit(pa.table(FRAME.head(0)), [])
    text = pa.table(FRAME.assign(b="word"))
    with pytest.raises(InputError, match="not numeric: b"):
        estimators.RadiusKernelClassifier().fit(text, Y)
