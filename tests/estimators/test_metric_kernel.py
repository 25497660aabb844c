import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV

from kernelweave import MetricKernelClassifier, MetricKernelRegressor, MKLRegressor
from kernelweave.errors import InputError, MemoryBudgetError
from kernelweave.io import load, save
from metric_cases import FRAME, PRICE, N

CLASS = np.where(PRICE > np.median(PRICE), "dear", "cheap")
THREE = np.digitize(PRICE, np.quantile(PRICE, [0.3, 0.7]))


def test_a_mixed_table_with_gaps_is_learned():
    model = MetricKernelRegressor().fit(FRAME[:120], PRICE[:120])
    assert r2_score(PRICE[120:], model.predict(FRAME[120:])) > 0.85
    weights = model.column_weights_
    assert abs(sum(weights.values()) - 1) < 1e-12
    assert max(weights, key=weights.get) == "size"
    assert weights["noise"] < 0.05
    assert model.feature_importances_.shape == (4,)
    assert model.to_frame()["weight"].is_monotonic_decreasing
    assert model.step_ == int(np.argmin([step["loo_error"] for step in model.steps_]))


def test_leave_one_out_values_are_those_of_refits_with_the_metric_fixed():
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    K = model.kernel_(FRAME)
    rest = np.delete(np.arange(N), 9)
    ridge = model.ridge_
    system = np.block(
        [
            [K[np.ix_(rest, rest)] + ridge * np.eye(N - 1), np.ones((N - 1, 1))],
            [np.ones((1, N - 1)), np.zeros((1, 1))],
        ]
    )
    solved = np.linalg.solve(system, np.append(PRICE[rest], 0.0))
    value = K[9, rest] @ solved[:-1] + solved[-1]
    assert abs(value - model.loo_values_[9]) < 1e-9


def test_predictions_follow_units_and_order_of_the_data():
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    predicted = model.predict(FRAME)
    scaled = MetricKernelRegressor().fit(FRAME, 3e4 * PRICE + 5e5)
    np.testing.assert_allclose(scaled.predict(FRAME), 3e4 * predicted + 5e5, rtol=1e-7)
    shuffled = FRAME[["noise", "town", "age", "size"]]
    again = MetricKernelRegressor().fit(shuffled, PRICE)
    np.testing.assert_allclose(again.predict(shuffled), predicted, atol=1e-7)
    moved = FRAME.assign(size=100 * FRAME["size"] + 7)
    np.testing.assert_allclose(
        MetricKernelRegressor().fit(moved, PRICE).predict(moved), predicted, atol=1e-7
    )
    order = np.random.default_rng(0).permutation(N)
    turned = MetricKernelRegressor().fit(FRAME.iloc[order], PRICE[order])
    np.testing.assert_allclose(turned.predict(FRAME), predicted, atol=1e-7)
    constant = FRAME.assign(unit=1.0)
    same = MetricKernelRegressor().fit(constant, PRICE).predict(constant)
    np.testing.assert_allclose(same, predicted, atol=1e-12)


def test_names_of_levels_do_not_matter():
    predicted = MetricKernelRegressor().fit(FRAME, PRICE).predict(FRAME)
    renamed = FRAME.replace({"town": {"Ulm": "Aachen", "Bonn": "Zwickau"}})
    again = MetricKernelRegressor().fit(renamed, PRICE).predict(renamed)
    np.testing.assert_allclose(again, predicted, atol=1e-7)


def test_unit_weights_change_nothing_and_rows_of_weight_zero_are_absent():
    plain = MetricKernelRegressor().fit(FRAME, PRICE)
    unit = MetricKernelRegressor().fit(FRAME, PRICE, sample_weight=np.full(N, 3.0))
    np.testing.assert_allclose(unit.predict(FRAME), plain.predict(FRAME), atol=1e-10)
    weight = np.ones(N)
    weight[100:] = 0.0
    dropped = MetricKernelRegressor().fit(FRAME, PRICE, sample_weight=weight)
    part = MetricKernelRegressor().fit(FRAME[:100], PRICE[:100])
    np.testing.assert_allclose(dropped.predict(FRAME), part.predict(FRAME), atol=1e-9)
    assert np.isnan(dropped.loo_values_[100:]).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"select": "cv"}, {"max_exact": 50}, {"max_exact": 50, "max_full": 0, "n_landmarks": 40}],
    ids=["cholesky", "folds", "conjugate gradients", "nystroem"],
)
def test_threads_and_copies_give_the_same_bits(options):
    model = MetricKernelClassifier(n_jobs=1, **options).fit(FRAME, CLASS)
    other = MetricKernelClassifier(n_jobs=3, **options).fit(FRAME, CLASS)
    expected = model.predict_proba(FRAME)
    np.testing.assert_array_equal(other.predict_proba(FRAME), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(FRAME), expected)


@pytest.mark.parametrize("target", [PRICE, CLASS, THREE], ids=["regressor", "two", "three"])
def test_files_keep_the_model(target, tmp_path):
    kind = MetricKernelRegressor if target is PRICE else MetricKernelClassifier
    frame = FRAME.assign(day=pd.date_range("2024-01-01", periods=N))
    model = kind().fit(frame, target)
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.column_weights_ == model.column_weights_
    assert again.kernel_ == model.kernel_


def test_columns_chosen_by_a_function_are_saved_by_name(tmp_path):
    model = MetricKernelRegressor(columns=lambda X: ["size", "town"]).fit(FRAME, PRICE)
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    assert again.columns == ["size", "town"]
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))


def test_probabilities_are_honest():
    model = MetricKernelClassifier().fit(FRAME[:120], CLASS[:120])
    proba = model.predict_proba(FRAME[120:])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_log_proba(FRAME[120:]), np.log(proba))
    assert roc_auc_score(CLASS[120:], proba[:, 1]) > 0.95
    assert log_loss(CLASS[120:], proba) < 0.4
    assert set(model.classes_) == {"cheap", "dear"}
    predicted = model.predict(FRAME[120:])
    np.testing.assert_array_equal(predicted == "dear", proba[:, 1] > 0.5)


def test_labels_without_pattern_get_the_shares_of_the_classes():
    labels = np.arange(N) % 4 == 0
    model = MetricKernelClassifier().fit(FRAME[["noise"]], labels)
    slope = model.calibration_coef_[0, 0]
    assert slope >= 0
    if slope == 0:
        np.testing.assert_allclose(model.predict_proba(FRAME[["noise"]])[:, 1], 0.25)


def test_several_classes_and_targets():
    model = MetricKernelClassifier().fit(FRAME, THREE)
    assert model.predict_proba(FRAME).shape == (N, 3)
    assert model.score(FRAME, THREE) > 0.85
    both = MetricKernelRegressor().fit(FRAME, np.column_stack([PRICE, 1e3 * FRAME["size"]]))
    assert both.predict(FRAME).shape == (N, 2)
    assert both.loo_values_.shape == (N, 2)


@pytest.mark.parametrize(("share", "power"), [(0.07, 0.5), (0.015, 1.0)])
def test_errors_of_rare_classes_count_more_but_probabilities_stay(share, power):
    rare = PRICE > np.quantile(PRICE, 1.0 - share)
    weights = {False: 1.0, True: ((~rare).sum() / rare.sum()) ** power}
    auto = MetricKernelClassifier().fit(FRAME, rare)
    given = MetricKernelClassifier(class_weight=weights).fit(FRAME, rare)
    np.testing.assert_allclose(auto.loo_values_, given.loo_values_, atol=1e-12)
    assert abs(auto.predict_proba(FRAME)[:, 1].mean() - rare.mean()) < 0.02
    common = PRICE > np.quantile(PRICE, 0.8)
    plain = MetricKernelClassifier(class_weight=None).fit(FRAME, common)
    np.testing.assert_array_equal(
        MetricKernelClassifier().fit(FRAME, common).loo_values_, plain.loo_values_
    )


def test_class_weights_shift_decisions():
    rare = PRICE > np.quantile(PRICE, 0.9)
    plain = MetricKernelClassifier(class_weight=None).fit(FRAME, rare)
    balanced = MetricKernelClassifier(class_weight="balanced").fit(FRAME, rare)
    assert balanced.predict(FRAME).sum() >= plain.predict(FRAME).sum()
    assert balanced.predict_proba(FRAME)[:, 1].mean() > plain.predict_proba(FRAME)[:, 1].mean()


def test_the_learned_kernel_is_a_kernel():
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    other = MKLRegressor([model.kernel_], C=10.0).fit(FRAME, PRICE)
    assert other.score(FRAME, PRICE) > 0.8
    K = model.kernel_(FRAME)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert "4 columns" in str(model.kernel_)


def test_search_and_permuted_labels():
    search = GridSearchCV(MetricKernelRegressor(), {"n_steps": [0, 2]}, cv=3).fit(FRAME, PRICE)
    assert search.best_params_["n_steps"] in (0, 2)
    shuffled = np.random.default_rng(0).permutation(PRICE)
    model = MetricKernelRegressor().fit(FRAME[:120], shuffled[:120])
    error = np.mean((model.predict(FRAME[120:]) - shuffled[120:]) ** 2)
    assert error / np.var(shuffled[120:]) < 1.15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": []}, "shares: must be one or more finite numbers between 0 and 1"),
        ({"shares": [1.5]}, "shares: must be one or more finite numbers between 0 and 1"),
        ({"widths": [0.0]}, "widths: must be one or more finite numbers > 0"),
        ({"ridges": ["x"]}, "ridges: must be one or more finite numbers > 0"),
    ],
)
def test_bad_grids_get_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        MetricKernelRegressor(**options).fit(FRAME, PRICE)


def test_bad_data_get_a_sentence():
    with pytest.raises(InputError, match=r"y: has one value only: 3\.2"):
        MetricKernelRegressor().fit(FRAME, np.full(N, 3.2))
    with pytest.raises(InputError, match="needs 10 rows of positive weight or more, got 6"):
        MetricKernelRegressor().fit(FRAME[:6], PRICE[:6])
    with pytest.raises(MemoryBudgetError, match="Hint: lower max_exact"):
        MetricKernelRegressor(memory_limit="0.1MB").fit(FRAME, PRICE)
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    with pytest.raises(InputError, match="held numbers in training, but now 'big'"):
        model.predict(FRAME.assign(size="big"))


@pytest.mark.parametrize(
    ("n", "options"), [(900, {}), (6000, {"n_landmarks": 300, "metric_rows": 100, "max_full": 0})]
)
def test_the_peak_stays_within_the_limit_that_is_needed(n, options):
    X = np.random.default_rng(0).normal(size=(n, 4))
    model = MetricKernelRegressor(n_jobs=1, n_steps=1, **options)
    with pytest.raises(MemoryBudgetError) as refusal:
        clone(model).set_params(memory_limit=1e3 if not options else "1MB").fit(X, X[:, 0])
    need = 1e9 * float(re.search(r"need (\S+) GB", str(refusal.value))[1])
    tracemalloc.start()
    model.set_params(memory_limit=1.01 * need).fit(X, X[:, 0] * X[:, 1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.1 * need


def test_steps_chosen_by_folds_reject_a_metric_of_noise():
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(60, 30)), random.normal(size=60)
    model = MetricKernelRegressor(select="cv").fit(X, noise)
    errors = [step["cv_error"] for step in model.steps_]
    assert model.step_ == int(np.argmin(errors))
    assert model.cv_error_ == min(errors)
    assert model.cv_error_ > 0.95  # where leave-one-out promises much less
    assert min(step["loo_error"] for step in model.steps_) < 0.9
    with pytest.warns(UserWarning, match="select='cv'"):
        model.set_params(select="loo").fit(X, noise)
    assert np.isnan(model.cv_error_)


@pytest.mark.parametrize("kind", [MetricKernelClassifier, MetricKernelRegressor])
def test_a_model_of_rows_without_weight_is_loaded_as_it_was(kind, tmp_path):
    """Rows of weight zero have no left-out value."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    model = kind(n_steps=1).fit(X, y, np.arange(40) % 4 > 0)
    assert np.isnan(model.loo_values_).any()
    again = load(save(model, tmp_path / "model.kw"))
    np.testing.assert_array_equal(again.loo_values_, model.loo_values_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_steps_are_chosen_by_folds_where_one_lacks_a_class():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.arange(12) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = MetricKernelClassifier(select="cv").fit(X, y)
    assert np.isfinite([step["cv_error"] for step in model.steps_]).all()
