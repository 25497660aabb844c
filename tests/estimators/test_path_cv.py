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
    MKLClassifierCV,
    MKLRegressorCV,
)
from path_cases import CS, LABELS, PAIRS, TARGET, X


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
