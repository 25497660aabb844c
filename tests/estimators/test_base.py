"""Inside scikit-learn's tools: pipelines, searches, copies, frames, threads and interruptions."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from flat_data import assert_same_bits, attributes
from kernelweave import (
    RBF,
    FromCallable,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Overlap,
    Polynomial,
    Precomputed,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from kernelweave.estimators import fit as estimator_fit

NAMES = ["age", "bmi", "dose"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0, "ill", "well")
    return X, y


def test_pipeline(data):
    X, y = data
    pipe = make_pipeline(StandardScaler(), MKLClassifier([rbf_ladder()], C=10))
    shifted = 1000 * X + 5
    pipe.fit(shifted, y)
    assert pipe.score(shifted, y) > 0.95
    assert list(pipe.classes_) == ["ill", "well"]
    pipe.set_params(mklclassifier__norm=2.0)
    assert pipe.fit(shifted, y)[-1].weights_.all()
    weight = np.where(y == "ill", 1.0, 0.1)
    pipe.fit(shifted, y, mklclassifier__sample_weight=weight)
    assert (pipe.predict(shifted)[y == "ill"] == "ill").mean() > 0.95


@pytest.mark.slow
def test_grid_search_over_costs_and_kernels_in_processes(data):
    X, y = data
    grid = {"C": [0.1, 10.0], "kernels": [[Linear()], [RBF(0.7), Linear()], rbf_ladder()]}
    search = GridSearchCV(MKLClassifier(), grid, cv=3, n_jobs=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.8
    assert len(search.best_estimator_.kernels_) > 1
    alone = GridSearchCV(MKLClassifier(), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert_same_bits(search.best_estimator_, alone.best_estimator_)


def test_grid_search_for_regression(data):
    X, _ = data
    y = np.sin(X[:, 0])
    grid = {"loss": ["epsilon_insensitive", "square", "huber"], "norm": [1.0, 2.0, "uniform"]}
    search = GridSearchCV(MKLRegressor([rbf_ladder()], C=10), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8


def test_cross_validation_on_ready_matrices(data):
    X, y = data
    kernels = [RBF(0.7), Linear(), RBF(0.5, columns=0)]
    rows = np.arange(len(X))[:, None]
    ready = MKLClassifier([Precomputed(kernel(X)) for kernel in kernels], tol=1e-6)
    direct = MKLClassifier(kernels, tol=1e-6)
    np.testing.assert_allclose(
        cross_val_score(ready, rows, y, cv=4), cross_val_score(direct, X, y, cv=4), atol=0.05
    )
    predicted = cross_val_predict(ready, rows, y, cv=4, method="decision_function")
    expected = cross_val_predict(direct, X, y, cv=4, method="decision_function")
    np.testing.assert_allclose(predicted, expected, atol=5e-3)
    train, test = train_test_split(rows, random_state=0)
    ready.fit(train, y[train.ravel()])
    assert ready.predict(test).shape == (len(test),)


def test_ready_matrices_beside_columns(data):
    # Row numbers in one column of a frame, numbers in the others.
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(row=np.arange(len(X)))
    gram = RBF(0.7, columns=[0, 1])(X)
    kernels = [Precomputed(gram, columns="row", name="ready"), RBF(1.0, columns="dose")]
    model = MKLClassifier(kernels, norm=2.0).fit(frame, y)
    assert model.score(frame, y) > 0.8
    shuffled = frame.sample(frac=1.0, random_state=0)
    values = pd.Series(model.decision_function(frame), index=frame.index)
    np.testing.assert_allclose(model.decision_function(shuffled), values[shuffled.index])


def test_calibrated_probabilities(data):
    X, y = data
    model = CalibratedClassifierCV(MKLClassifier(C=5), cv=3).fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(X) == y).mean() > 0.9
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    proba = CalibratedClassifierCV(MKLClassifier(), cv=3).fit(X, classes).predict_proba(X)
    assert proba.shape == (90, 3)
    assert np.isfinite(proba).all()


def test_permutation_importance_finds_the_useless_column(data):
    X, y = data
    model = MKLClassifier([rbf_ladder(per_feature=True)], C=10).fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert found.argmin() == 2


def test_tags():
    assert is_classifier(MKLClassifier())
    assert is_regressor(MKLRegressor())
    for model in (MKLClassifier(), MKLRegressor()):
        tags = model.__sklearn_tags__()
        assert tags.input_tags.sparse
        assert tags.target_tags.required
    assert MKLRegressor().__sklearn_tags__().target_tags.multi_output


def test_constructor_only_stores():
    nonsense = {"norm": -1, "C": "much", "tol": None, "kernels": 3}
    for kind in (MKLClassifier, MKLRegressor):
        assert kind(**nonsense).get_params().items() >= nonsense.items()


def test_set_params_takes_effect(data):
    X, y = data
    model = MKLClassifier([RBF(1.0), Linear()]).fit(X, y)
    weights = model.weights_
    model.set_params(norm="uniform")
    assert model.weights_ is weights  # until the next fit
    np.testing.assert_array_equal(model.fit(X, y).weights_, [0.5, 0.5])


def test_clone_shares_kernels(data):
    X, y = data
    gram = RBF(1.0)(X)
    kernels = [Precomputed(gram), 2 * Precomputed(gram) + Precomputed(gram)]
    model = MKLClassifier(kernels, C=3.0, norm=2.0).fit(np.arange(len(X))[:, None], y)
    copy = clone(model)
    assert copy.get_params()["C"] == 3.0
    assert not hasattr(copy, "weights_")
    assert all(a is b for a, b in zip(copy.kernels, kernels, strict=True))
    assert np.shares_memory(copy.kernels[0].gram, gram)
    family = views({"all": [0, 1]}, [rbf_ladder(), polynomial_ladder()])
    assert clone(MKLClassifier(family)).kernels is family


def test_fit_does_not_copy_the_matrix_into_the_model(data):
    X, y = data
    gram = RBF(1.0)(X)
    model = MKLClassifier([Precomputed(gram)]).fit(np.arange(len(X))[:, None], y)
    assert np.shares_memory(model.kernels_[0].gram, gram)


@pytest.mark.parametrize(
    "kernels",
    [
        None,
        [RBF(0.7), Linear(), Polynomial(3, columns=[0, 1])],
        [rbf_ladder([0.5, 1.0], per_feature=True)],
        [RBF(0.7, columns=0) * Linear() + 3 * RBF(1.0)],
        views({"a": [0], "b": slice(1, 3)}),
    ],
    ids=["default", "list", "per feature", "expression", "views"],
)
@pytest.mark.parametrize("normalize", ["trace", "cosine"])
def test_pickle_predicts_the_same_bits(data, kernels, normalize):
    X, y = data
    model = MKLClassifier(kernels, norm=1.5, normalize=normalize).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_bits(model, again)
    new = np.random.default_rng(1).normal(size=(40, 3))
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(again.kernel(new, X), model.kernel(new, X))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_pickle_of_a_ready_matrix_and_of_an_unfitted_model(data):
    X, y = data
    rows = np.arange(len(X))[:, None]
    model = MKLClassifier([Precomputed(RBF(1.0)(X))]).fit(rows, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    fresh = pickle.loads(pickle.dumps(MKLRegressor(loss="huber", C=7.0)))
    assert fresh.get_params()["C"] == 7.0
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


def test_repr_is_short(data):
    X, y = data
    model = MKLClassifier([Precomputed(RBF(1.0)(X)), RBF(2.0)], C=3)
    assert "Precomputed(<90 x 90 float64>)" in repr(model)
    assert "C=3" in repr(model.fit(np.column_stack([np.arange(90), X]), y))
    assert len(repr(model)) < 300


@pytest.fixture(params=["pandas", "polars"])
def frame(request, data):
    make = pd.DataFrame if request.param == "pandas" else pl.DataFrame
    return make(dict(zip(NAMES, data[0].T, strict=True)))


def test_frames_give_the_same_model_as_arrays(data, frame):
    X, y = data
    kernels = [RBF(0.7), Linear(columns=[0, 1])]
    by_name = [RBF(0.7), Linear(columns=["age", "bmi"])]
    plain = MKLClassifier(kernels).fit(X, y)
    named = MKLClassifier(by_name).fit(frame, y)
    np.testing.assert_array_equal(named.weights_, plain.weights_)
    np.testing.assert_array_equal(named.decision_function(frame), plain.decision_function(X))
    assert list(named.feature_names_in_) == NAMES
    assert named.n_features_in_ == 3
    assert not hasattr(plain, "feature_names_in_")


def test_columns_are_checked_by_name(data, frame):
    _, y = data
    model = MKLClassifier([RBF(0.7), Linear(columns="dose")]).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["bmi", "age", "dose"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["age", "bmi"]])
    renamed = frame.rename(columns={"age": "years"}) if isinstance(frame, pd.DataFrame) else (
        frame.rename({"age": "years"})
    )  # fmt: skip
    with pytest.raises(ValueError, match="feature names"):
        model.decision_function(renamed)
    with pytest.raises(ValueError, match="feature names"):
        model.kernel(frame, frame[["bmi", "age", "dose"]])


def test_a_model_fitted_to_names_warns_about_arrays(data, frame):
    X, y = data
    model = MKLClassifier([RBF(0.7)]).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        values = model.decision_function(X)
    np.testing.assert_array_equal(values, model.decision_function(frame))


def test_frames_of_both_libraries_are_exchangeable(data):
    X, y = data
    first = pd.DataFrame(X, columns=NAMES)
    second = pl.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    model = MKLClassifier([rbf_ladder(per_feature=True)]).fit(first, pd.Series(y))
    np.testing.assert_array_equal(model.decision_function(second), model.decision_function(first))
    other = MKLClassifier([rbf_ladder(per_feature=True)]).fit(second, pl.Series(y))
    assert_same_bits(model, other)


def test_columns_chosen_by_type(data):
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(town=np.tile(["A", "B", "C"], 30))
    kernels = [
        RBF(1.0, columns=make_column_selector(dtype_include="number")),
        Overlap(columns=["town"]),
    ]
    model = MKLClassifier(kernels, norm=2.0).fit(frame, y)
    assert [str(kernel) for kernel in model.kernels_][1] == "overlap on town"
    assert model.score(frame, y) > 0.8
    np.testing.assert_allclose(
        model.decision_function(frame.iloc[:5]), model.decision_function(frame)[:5]
    )


def test_extra_columns_may_hold_anything(data):
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(note="text", missing=np.nan)
    model = MKLClassifier([RBF(1.0, columns=NAMES)]).fit(frame, y)
    plain = MKLClassifier([RBF(1.0)]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))


def test_an_index_is_not_data(data):
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    odd = frame.set_index(np.random.default_rng(0).permutation(len(X)) + 500)
    first, second = (MKLClassifier().fit(table, y) for table in (frame, odd))
    assert_same_bits(first, second)
    np.testing.assert_array_equal(first.predict(frame), second.predict(odd))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_input(data, form):
    X, y = data
    X = X * (np.abs(X) > 0.5)
    model = MKLClassifier([RBF(1.0), Linear()], tol=1e-6).fit(form(X), y)
    dense = MKLClassifier([RBF(1.0), Linear()], tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(form(X)), dense.decision_function(X), atol=5e-3
    )
    assert model.score(form(X), y) > 0.6
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        pickled.decision_function(form(X)), model.decision_function(form(X))
    )


def test_lists_and_tuples(data):
    X, y = data
    first = MKLClassifier([RBF(1.0), Linear()]).fit(X, y)
    second = MKLClassifier((RBF(1.0), Linear())).fit(X.tolist(), list(y))
    assert_same_bits(first, second)
    np.testing.assert_array_equal(first.predict(X.tolist()), second.predict(X))


def test_float32_is_its_value_in_float64(data):
    X, y = data
    single = X.astype(np.float32)
    first = MKLClassifier().fit(single, y)
    second = MKLClassifier().fit(single.astype(np.float64), y)
    assert_same_bits(first, second)
    assert first.decision_function(single).dtype == np.float64
    np.testing.assert_array_equal(
        first.decision_function(single), first.decision_function(single.astype(np.float64))
    )


def test_single_precision_matrices(data):
    X, y = data
    rows = np.arange(len(X))[:, None]
    gram = RBF(1.0)(X)
    first = MKLClassifier([Precomputed(gram.astype(np.float32))], tol=1e-6).fit(rows, y)
    second = MKLClassifier([Precomputed(gram)], tol=1e-6).fit(rows, y)
    assert first.objective_ == pytest.approx(second.objective_, rel=1e-5)
    loss = np.maximum(1 - np.where(y == "well", 1, -1) * first.decision_function(rows), 0).sum()
    dual_coef = np.zeros(len(X))
    dual_coef[first.support_] = first.dual_coef_[0]
    penalty = 0.5 * dual_coef @ first.kernel(rows) @ dual_coef
    assert penalty + loss == pytest.approx(first.objective_, rel=1e-8)


def test_whole_numbers_and_booleans_as_columns(data):
    X, y = data
    whole = np.rint(3 * X).astype(int)
    first = MKLClassifier().fit(whole, y)
    assert_same_bits(first, MKLClassifier().fit(whole.astype(float), y))
    flags = X > 0
    assert_same_bits(MKLClassifier().fit(flags, y), MKLClassifier().fit(flags.astype(float), y))


def test_memory_maps_and_strided_arrays(data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "gram.npy", RBF(1.0)(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    plain = MKLClassifier([RBF(1.0), Linear()]).fit(X, y)
    for table in (mapped, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        model = MKLClassifier([RBF(1.0), Linear()]).fit(table, y)
        assert_same_bits(plain, model)
        np.testing.assert_array_equal(model.decision_function(table), plain.decision_function(X))
    gram = np.load(tmp_path / "gram.npy", mmap_mode="r")
    rows = np.arange(len(X))[:, None]
    ready = MKLClassifier([Precomputed(gram)]).fit(rows, y)
    assert ready.score(rows, y) > 0.7


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("learner", [MKLClassifier, MKLRegressor])
@pytest.mark.parametrize("normalize", [None, "trace", "cosine"])
def test_inputs_stay_as_they_are(data, learner, normalize):
    X = data[0]
    y = (X[:, 0] > 0).astype(float)
    weight = np.linspace(0.1, 2.0, len(X))
    rows = np.column_stack([np.arange(len(X)), X])
    gram = RBF(1.0)(X)
    kernels = [Precomputed(gram), RBF(1.0, columns=[1, 2, 3]), Linear(columns=1)]
    given = [rows, y, weight, gram]
    before = [array.copy() for array in given]
    model = learner(kernels, norm=2.0, normalize=normalize)
    model.fit(rows, y, sample_weight=weight)
    model.fit_path(rows, y, [1.0, 2.0], sample_weight=weight)
    model.predict(rows)
    model.kernel(rows)
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, old)
    frozen_model = learner(kernels, norm=2.0, normalize=normalize)
    frozen_model.fit(frozen(rows), frozen(y), sample_weight=frozen(weight))
    np.testing.assert_array_equal(frozen_model.predict(frozen(rows)), model.predict(rows))


def test_kernels_and_parameters_stay_as_they_are(data):
    X, y = data
    kernels = [RBF(1.0), rbf_ladder(per_feature=True)]
    model = MKLClassifier(kernels, class_weight={"ill": 2.0})
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    assert model.kernels is kernels
    assert len(kernels) == 2
    assert len(model.kernels_) == 16


def test_later_changes_of_the_data_do_not_reach_the_model(data):
    X, y = data[0].copy(), data[1]
    model = MKLClassifier([RBF(1.0), Linear()]).fit(X, y)
    before = model.decision_function(data[0])
    X[:] = 0.0
    np.testing.assert_array_equal(model.decision_function(data[0]), before)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_to_frame(data, norm):
    X, y = data
    kernels = [RBF(0.7, name="near"), Linear(columns=[0]), Polynomial(2)]
    model = MKLClassifier(kernels, norm=norm).fit(X, y)
    table = model.to_frame()
    assert list(table.columns) == ["kernel", "weight", "contribution"]
    assert set(table["kernel"]) == {"near", "linear on column 0", "polynomial(degree=2, coef0=1)"}
    assert table["weight"].is_monotonic_decreasing
    assert table.loc[table["kernel"] == "near", "weight"].item() == model.weights_[0]
    assert table["contribution"].sum() == pytest.approx(1.0)
    with pytest.raises(NotFittedError):
        MKLClassifier().to_frame()


@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_verbose_writes_progress_to_stderr(data, norm, capsys):
    X, y = data
    MKLClassifier(norm=norm, verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "kernelweave [" in err
    assert "gap" in err
    assert err.endswith("\n")
    MKLClassifier(norm=norm, verbose=0).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_verbose_on_a_path(data, capsys):
    X, y = data
    MKLClassifier(verbose=1).fit_path(X, y, [1.0, 10.0])
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("learner", [MKLClassifier, MKLRegressor])
def test_stopping_early_is_said(data, learner, norm):
    X = data[0]
    y = (np.sin(3 * X[:, 0]) > 0).astype(float)
    model = learner([rbf_ladder(per_feature=True)], norm=norm, C=100, tol=1e-8, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert learner.__name__ in text
    assert "relative duality gap" in text
    assert "tol=1e-08" in text
    assert "max_iter" in text
    assert caught[0].filename == __file__  # points at the caller
    assert not model.converged_
    assert model.duality_gap_ > 1e-8 * model.objective_
    assert np.isfinite(model.predict(X)).all()
    assert f"{model.duality_gap_ / model.objective_:.1e}" in text


def test_max_iter_counts_machines(data):
    X, y = data
    for max_iter in (1, 3, 5):
        model = MKLClassifier([rbf_ladder(per_feature=True)], C=100, tol=1e-9, max_iter=max_iter)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        assert model.n_iter_ <= max_iter + 1  # the first solve is part of the start


def test_history(data):
    X, y = data
    model = MKLClassifier([rbf_ladder(per_feature=True)], C=10).fit(X, y)
    last = model.history_[-1]
    assert last.upper == model.objective_
    rounding = model.duality_gap_ - (last.upper - last.lower)  # is part of the gap alone
    assert 0 <= rounding < 1e-9 * last.upper
    assert last.relative_gap <= model.tol
    assert model.n_iter_ == last.solves


@pytest.fixture(scope="module")
def larger():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    y = np.digitize(
        np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=700), [-0.4, 0.4]
    )
    return X, y


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (MKLClassifier, {"norm": 1.0}),
        (MKLClassifier, {"norm": 2.0}),
        (MKLRegressor, {"norm": 1.0, "loss": "square"}),
        (MKLRegressor, {"norm": 1.5, "loss": "epsilon_insensitive"}),
        (MKLRegressor, {"norm": "uniform", "loss": "huber"}),
    ],
    ids=str,
)
def test_threads_do_not_change_a_bit(larger, learner, options):
    X, y = larger
    kernels = [
        rbf_ladder([0.5, 2.0], per_feature=True),
        rbf_ladder([1.0, 4.0]),
        Polynomial(2),
        FromCallable(lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, :1].T))),
    ]
    models = [
        learner(kernels, n_jobs=n_jobs, tol=1e-2, **options).fit(X, y) for n_jobs in (1, 2, 3, None)
    ]
    new = np.random.default_rng(1).normal(size=(301, 4))
    decide = "decision_function" if learner is MKLClassifier else "predict"
    values = getattr(models[0], decide)(new)
    for other in models[1:]:
        assert_same_bits(models[0], other)
        np.testing.assert_array_equal(getattr(other, decide)(new), values)
    one_thread = models[1].set_params(n_jobs=1)
    np.testing.assert_array_equal(getattr(one_thread, decide)(new), values)


def test_fitting_again_gives_the_same_bits(larger):
    X, y = larger
    first, second = (MKLClassifier(n_jobs=2, tol=1e-2).fit(X, y) for _ in range(2))
    assert_same_bits(first, second)


class Stop:
    """Stands in for the progress line and raises after some steps."""

    steps = 2
    error: type[BaseException] = KeyboardInterrupt

    def __init__(self, *_):
        self.seen = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, step):
        self.seen += 1
        if self.seen >= self.steps:
            raise self.error


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function that fits and expects the interruption."""

    def fit(model, *data, method="fit", **options):
        with monkeypatch.context() as patch:
            patch.setattr(estimator_fit, "Progress", Stop)
            with pytest.raises(KeyboardInterrupt):
                getattr(model, method)(*data, **options)

    return fit


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_an_interrupted_first_fit_leaves_nothing(data, interrupted, norm):
    X, y = data
    model = MKLClassifier([rbf_ladder(per_feature=True)], norm=norm, C=100, tol=1e-8)
    interrupted(model, X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert model.set_params(tol=1e-3).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("change", ["nothing", "classes", "columns", "names", "rows", "regression"])
def test_an_interrupted_refit_leaves_the_old_model(data, interrupted, change, warm_start):
    X, y = data
    options = {"kernels": [rbf_ladder(per_feature=True)], "C": 100, "warm_start": warm_start}
    learner, target = MKLClassifier, y
    if change == "regression":
        learner, target = MKLRegressor, X[:, 0]
    model = learner(**options, tol=1e-3).fit(X, target)
    before, expected = attributes(model), model.predict(X)
    table = X
    if change == "classes":
        target = np.array(["p", "q", "r"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    elif change == "columns":
        table = X[:, :2]
    elif change == "names":
        table = pd.DataFrame(X, columns=NAMES)
    elif change == "rows":
        table, target = X[:60], target[:60]
    elif change == "regression":
        target = np.column_stack([X[:, 0], X[:, 1]])
    model.set_params(tol=1e-9)
    interrupted(model, table, target)
    for name, value in before.items():
        np.testing.assert_array_equal(attributes(model)[name], value, err_msg=name)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, expected)
    assert model.n_features_in_ == 3


def test_an_interrupted_path_leaves_nothing(data, interrupted):
    X, y = data
    model = MKLClassifier([rbf_ladder(per_feature=True)], C=100, tol=1e-8)
    interrupted(model, X, y, [1.0, 100.0], method="fit_path")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_refused_refit_leaves_the_old_model(data):
    X, y = data
    model = MKLClassifier([RBF(1.0), Linear()]).fit(X, y)
    expected = model.predict(X)
    refused = [
        (X, np.full(len(X), "one class")),
        (X[:, :2], np.where(X[:, 0] > 0, "p", "q")),
        (np.full((90, 2), np.nan), np.tile(["p", "q", "r"], 30)),
    ]
    for table, target in refused:
        with pytest.raises(ValueError, match=r"class|column|NaN"):
            model.set_params(kernels=[RBF(1.0, columns=[2])]).fit(table, target)
        np.testing.assert_array_equal(model.predict(X), expected)
