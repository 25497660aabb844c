"""C chosen by cross-validation along paths: the same as a search over fits, and saved as such."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    RuleEnsembleClassifierCV,
    io,
    rbf_ladder,
)
from kernelweave.errors import InputError

KERNELS = [rbf_ladder([0.5, 2.0]), Linear()]
CS = [0.01, 1.0, 100.0]
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
TARGET = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80)
LABELS = np.where(TARGET > 0, "ill", "well")
PAIRS = [
    (MKLClassifierCV(KERNELS, Cs=CS, tol=1e-6), MKLClassifier(KERNELS, tol=1e-6), LABELS),
    (MKLRegressorCV(KERNELS, Cs=CS, tol=1e-6), MKLRegressor(KERNELS, tol=1e-6), TARGET),
]


@pytest.mark.parametrize(("model", "plain", "y"), PAIRS)
def test_a_path_is_scored_as_a_grid_of_fits(model, plain, y):
    model = clone(model).fit(X, y)
    search = GridSearchCV(plain, {"C": CS}, cv=3).fit(X, y)
    results = model.cv_results_
    np.testing.assert_array_equal(results["C"], CS)
    expected = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(3)]).T
    np.testing.assert_allclose(results["scores"], expected, atol=1e-3)
    np.testing.assert_allclose(results["mean_score"], results["scores"].mean(axis=1))
    np.testing.assert_allclose(results["std_score"], results["scores"].std(axis=1))
    assert ((results["n_kernels"] >= 1) & (results["n_kernels"] <= 3)).all()
    assert model.C_ == search.best_params_["C"]
    # The final model is that of a fit to all rows, to the last bit.
    alone = clone(plain).set_params(C=model.C_).fit(X, y)
    np.testing.assert_array_equal(model.weights_, alone.weights_)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.objective_ == alone.objective_


def test_the_smaller_of_equally_good_values_is_chosen():
    y = (X[:, 0] > 0).astype(int)
    model = MKLClassifierCV([Linear()], Cs=[3.0, 1.0, 1.0, 2.0], scoring=lambda *_: 1.0).fit(X, y)
    assert model.C_ == 1.0
    np.testing.assert_array_equal(model.cv_results_["C"], [1.0, 2.0, 3.0])


def test_splitters_scores_and_frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = MKLClassifierCV(Cs=CS, cv=folds, scoring="roc_auc").fit(frame, pd.Series(LABELS))
    assert model.cv_results_["scores"].shape == (3, 4)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    given = list(KFold(2).split(X))
    model = MKLRegressorCV(Cs=CS, cv=given, scoring="neg_mean_absolute_error").fit(frame, TARGET)
    assert (model.cv_results_["scores"] < 0).all()


def test_sparse_rows_and_pipelines():
    few = [RBF(2.0), Linear()]
    dense = MKLClassifierCV(few, Cs=CS).fit(X, LABELS)
    sparse = MKLClassifierCV(few, Cs=CS).fit(sp.coo_array(X), LABELS)
    assert sparse.C_ == dense.C_
    np.testing.assert_allclose(sparse.cv_results_["scores"], dense.cv_results_["scores"], atol=0.05)
    pipe = make_pipeline(StandardScaler(), MKLClassifierCV(few, Cs=CS)).fit(1e3 * X, LABELS)
    assert pipe.score(1e3 * X, LABELS) > 0.8


def test_a_number_of_values():
    model = MKLRegressorCV([Linear()], Cs=3).fit(X, TARGET)
    np.testing.assert_allclose(model.cv_results_["C"], [1e-3, 1.0, 1e3])


def test_several_targets_and_weights():
    Y = np.column_stack([TARGET, X[:, 2]])
    weight = np.where(np.arange(80) % 4, 1.0, 0.0)
    model = MKLRegressorCV([Linear(), RBF(2.0)], Cs=CS).fit(X, Y, weight)
    assert model.predict(X).shape == (80, 2)
    assert not np.isin(model.support_, np.flatnonzero(weight == 0)).any()


def test_model_files(tmp_path):
    for model, _, y in PAIRS:
        model = clone(model).fit(X, y)
        again = io.load(io.save(model, tmp_path / "model.kw"))
        assert again.C_ == again.C == model.C_
        np.testing.assert_array_equal(again.cv_results_["scores"], model.cv_results_["scores"])
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [MKLClassifierCV, RuleEnsembleClassifierCV])
def test_bad_input(kind):
    for Cs in ([], [0.0, 1.0], [1.0, np.inf], ["a"]):
        with pytest.raises(InputError, match="Cs: must be one or more finite numbers > 0"):
            kind(Cs=Cs).fit(X, LABELS)
    with pytest.raises(ValueError, match="'Cs' parameter"):
        kind(Cs=0).fit(X, LABELS)
    weight = np.zeros(80)
    weight[:20] = 1.0
    with pytest.raises(InputError, match="rows to learn from in fold 1 have weight zero"):
        kind(Cs=CS, cv=[(np.arange(20, 80), np.arange(20))]).fit(X, LABELS, weight)
    with pytest.raises(InputError, match=r"scoring: gives \[nan"):
        kind(Cs=CS, scoring=lambda *_: np.nan).fit(X, LABELS)
    with pytest.raises(InputError, match="one class only"):
        kind(Cs=CS).fit(X, ["a"] * 80)
