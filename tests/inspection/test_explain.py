"""What cannot be explained gets one sentence."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from game_oracles import brute_force, outputs
from kernelweave import (
    RBF,
    CombinedClassifier,
    KernelSpectralClustering,
    Linear,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    PairwiseKernelLearner,
    RuleEnsembleClassifier,
)
from kernelweave.inspection import explain, kernels
from kernelweave.kernels import Cosine, FromCallable

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
FRAME = pd.DataFrame(X, columns=["age", "height", "weight", "iron"])
MODEL = MKLClassifier([RBF(2.0)]).fit(FRAME, np.where(Y > 0, "sick", "well"))
THREE = MKLClassifier([RBF(2.0)]).fit(FRAME, np.digitize(Y, [-0.5, 0.5]))


def far(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "colunm"}, r"by: must be 'column'.*got 'colunm'\. Did you mean 'column'"),
        ({"by": 3}, "by: must be 'column', .* got int"),
        ({"by": "rule"}, "by: 'rule' needs a model that consists of rules"),
        ({"by": "source"}, "one source only"),
        ({"by": {"body": ["hieght"]}}, "group 'body'.*Did you mean 'height'"),
        ({"by": {"body": ["age", 9]}}, "group 'body' has column 9, but there are 4"),
        ({"by": {"a": ["age"], "b": [0]}}, "column 'age' is in the groups 'a' and 'b'"),
        ({"by": {"a": []}}, "group 'a' has no columns"),
        ({"by": {"a": 2.5}}, "group 'a' must be a list of columns, got float"),
        ({"by": {"iron": ["age"]}}, "'iron' is the name of a group and of a column"),
        ({"value": "jiont"}, "Did you mean 'joint'"),
        ({"output": "ill"}, "output: must be 'sick' or 'well', got 'ill'"),
        ({"output": "sick"}, "two classes have one decision, for 'well'"),
        ({"n_permutations": 0}, "n_permutations: must be 1 or more, got 0"),
        ({"n_permutations": 2.5}, "n_permutations: must be 1 or more, got 2.5"),
        ({"random_state": None}, "random_state: must be a whole number >= 0, got None"),
        ({"background": FRAME[:0]}, "background: has no rows"),
        ({"background": FRAME[["age", "iron"]]}, "background: lacks 'height' and 'weight'"),
        ({"background": X[:, :3]}, "background: has 3 columns, but the model was fitted to 4"),
        ({"X": FRAME[:0]}, "X: has no rows"),
        ({"X": FRAME[["age"]]}, "X: lacks"),
        ({"X": FRAME[:19], "background": None}, "X has 19 rows, too few.*training rows"),
        ({"X": FRAME.assign(age=np.nan)}, "missing"),
    ],
)
def test_arguments(options, message):
    given = {"X": FRAME[:3], "background": FRAME, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        explain(MODEL, **given)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (MKLClassifier(), NotFittedError, "not fitted"),
        (LogisticRegression().fit(X, Y > 0), TypeError, "must be an estimator of kernelweave"),
        (
            CalibratedClassifierCV(MKLClassifier([RBF()]), cv=2).fit(X, Y > 0),
            TypeError,
            "explain its calibrated_classifiers_",
        ),
        (PairwiseKernelLearner().fit(X, Y > 0), TypeError, "no decision or prediction"),
        (KernelSpectralClustering().fit(X), TypeError, "no decision or prediction"),
    ],
)
def test_models(model, error, message):
    with pytest.raises(error, match=message):
        explain(model, X[:3], X)


def test_one_output_of_several():
    e = explain(THREE, FRAME[:3], FRAME)
    assert e.output_names == ("0", "1", "2")
    one = explain(THREE, FRAME[:3], FRAME, output=1)
    assert one.output_names == ("1",)
    assert np.array_equal(one.values, e.values[..., 1])
    with pytest.raises(ValueError, match="output: must be"):
        explain(THREE, FRAME[:3], FRAME, output="two")


def test_many_columns_compared_together():
    wide = RANDOM.standard_normal((60, 9))
    model = MKLRegressor([FromCallable(far), Cosine(Linear())], norm=2.0).fit(wide, wide[:, 0])
    rows, background = wide[:2], wide[10:15]
    e = explain(model, rows, background)
    assert e.n_permutations == 500
    found = brute_force(outputs(model), rows, background)[..., 0]
    assert (np.abs(e.values - found) <= 4 * e.errors + 1e-12).all()
    some = explain(model, rows, background, by={"some": [0, 1]})
    assert (some.values.shape, some.n_permutations) == ((2, 8), 0)
    with pytest.raises(ValueError, match="its values are sampled and have no pairs"):
        explain(model, rows, background, interactions=True)


def test_value_functions_that_a_kernel_has_not():
    model = MKLRegressor([Linear()]).fit(X, Y)
    with pytest.raises(ValueError, match="'functional' is defined for products over columns only"):
        explain(model, X[:3], X, value="functional")
    metric = MetricKernelRegressor(shrink=1.0, shares=(0.5,)).fit(X, np.sin(X[:, 0] + X[:, 1]))
    assert metric.step_ > 0
    with pytest.raises(ValueError, match="pass value='joint'"):
        explain(metric, X[:3], X, value="independent")


def test_more_than_64_players_have_no_pairs():
    wide = RANDOM.standard_normal((60, 65))
    model = MKLRegressor([RBF(8.0)]).fit(wide, wide[:, 0])
    with pytest.raises(ValueError, match="at most 64 players have pairs, got 65"):
        explain(model, wide[:2], wide, interactions=True)


def test_sparse_tables_of_many_columns():
    wide = sp.random_array((40, 2500), density=0.01, random_state=0, format="csr")
    model = MKLRegressor([RBF(2.0)]).fit(wide, np.arange(40.0))
    with pytest.raises(ValueError, match="at most 2000 are explained one by one"):
        explain(model, wide[:2], wide)
    halves = {"left": list(range(1250)), "right": list(range(1250, 2500))}
    e = explain(model, wide[:2], wide, by=halves)
    assert np.abs(e.predictions - model.predict(wide[:2])).max() <= 1e-12


def test_too_much_work(monkeypatch):
    monkeypatch.setattr(kernels, "_MOST_WORK", 1e4)
    with pytest.raises(ValueError, match="fewer background rows, or with value='independent'"):
        explain(MODEL, FRAME, FRAME)


def test_products_of_sums_that_are_too_long():
    kernel = RBF(1.0) + RBF(2.0)
    for _ in range(13):
        kernel = kernel * (RBF(1.0) + RBF(2.0)).renamed("both")
    model = MKLRegressor([kernel]).fit(X, Y)
    e = explain(model, X[:2], X[10:16])
    found = brute_force(outputs(model), X[:2], X[10:16])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12 * (1 + np.abs(model.dual_coef_).sum())
    assert explain(model, X[:2], X, by="kernel").values.shape == (2, 1)


def test_combinations_that_do_not_add_up():
    model = CombinedClassifier().fit(X, Y > 0)
    for options in ({"by": "kernel"}, {"value": "independent"}):
        with pytest.raises(ValueError, match="log-odds of mean probabilities do not add up"):
            explain(model, X[:2], X, **options)
    with pytest.raises(ValueError, match="'source' is not known for this model"):
        explain(model, X[:2], X, by="source")


def test_groups_that_a_pipeline_mixes():
    model = make_pipeline(PCA(3), MKLRegressor([RBF(2.0)])).fit(X, Y)
    with pytest.raises(ValueError, match="mix columns of different groups"):
        explain(model, X[:2], X, by={"some": [0, 1]})


@pytest.mark.parametrize("by", ["column", "rule"])
def test_rules_are_explained_too(by):
    pytest.importorskip("kernelweave.inspection.rules")
    model = RuleEnsembleClassifier().fit(X, Y > 0)
    e = explain(model, X[:3], X, by=by)
    assert np.abs(e.predictions - model.decision_function(X[:3])).max() <= 1e-12
