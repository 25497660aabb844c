import pickle
import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV

from kernelweave import MetricKernelClassifier, MetricKernelRegressor, MKLRegressor
from kernelweave.errors import InputError, MemoryBudgetError
from kernelweave.estimators import metric_base
from kernelweave.io import load, save
from kernelweave.ridge.metric import solve_ridge

RANDOM = np.random.default_rng(0)
N = 160
FRAME = pd.DataFrame(
    {
        "size": RANDOM.normal(size=N),
        "age": RANDOM.exponential(size=N),
        "town": RANDOM.choice(["Ulm", "Bonn", "Kiel"], N),
        "noise": RANDOM.normal(size=N),
    }
)
FRAME.loc[::17, "age"] = np.nan
PRICE = (
    np.sin(2 * FRAME["size"]) + 2.0 * (FRAME["town"] == "Ulm") * FRAME["size"] + FRAME["age"].isna()
).to_numpy() + 0.1 * RANDOM.normal(size=N)
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
    order = RANDOM.permutation(N)
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


def test_the_size_of_blocks_changes_rounding_only(monkeypatch):
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    predicted = model.predict(FRAME)
    monkeypatch.setattr(metric_base, "_BLOCK_BYTES", 8 * N * 7)  # seven rows at a time
    np.testing.assert_allclose(model.predict(FRAME), predicted, atol=1e-12)


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
    "convert", [pl.from_pandas, lambda frame: pl.from_pandas(frame).to_arrow()]
)
def test_frames_of_any_library(convert):
    expected = MetricKernelRegressor().fit(FRAME, PRICE).predict(FRAME)
    model = MetricKernelRegressor().fit(convert(FRAME), PRICE)
    np.testing.assert_array_equal(model.predict(convert(FRAME)), expected)


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


def test_errors_of_rare_classes_count_more_but_probabilities_stay():
    rare = PRICE > np.quantile(PRICE, 0.93)
    weights = {False: 1.0, True: np.sqrt((~rare).sum() / rare.sum())}
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


def test_landmarks_are_nearly_the_exact_fit():
    X, y = make_friedman1(1200, random_state=0)
    exact = MetricKernelRegressor(max_exact=900).fit(X[:900], y[:900])
    marks = MetricKernelRegressor(max_exact=500, max_full=500, metric_rows=450, n_landmarks=300)
    marks.fit(X[:900], y[:900])
    assert len(marks.support_) == 300
    assert 0 < marks.trace_left_out_ < 0.2
    assert exact.trace_left_out_ == 0
    gap = r2_score(y[900:], exact.predict(X[900:])) - r2_score(y[900:], marks.predict(X[900:]))
    assert gap < 0.01
    again = clone(marks).fit(X[:900], y[:900])
    np.testing.assert_array_equal(again.predict(X), marks.predict(X))


def test_conjugate_gradients_give_the_exact_fit():
    X, y = make_friedman1(900, random_state=0)
    options = {"ridges": (0.1,), "n_steps": 1}
    exact = MetricKernelRegressor(max_exact=900, **options).fit(X[:700], y[:700])
    full = MetricKernelRegressor(max_exact=500, n_landmarks=200, **options).fit(X[:700], y[:700])
    assert (exact.solver_, full.solver_) == ("cholesky", "conjugate gradients")
    np.testing.assert_array_equal(full.support_, np.arange(700))
    np.testing.assert_array_equal(full.metric_, exact.metric_)  # 700 rows are below metric_rows
    score = r2_score(y[700:], full.predict(X[700:]))
    assert score > r2_score(y[700:], exact.predict(X[700:])) - 0.01  # its ridge is chosen anew
    # Errors of folds, which leave out more than one row, are a little larger.
    assert exact.loo_error_ * 0.9 < full.loo_error_ < exact.loo_error_ * 1.4
    again = clone(full).set_params(n_jobs=2).fit(X[:700], y[:700])
    np.testing.assert_array_equal(again.predict(X), full.predict(X))


def test_all_rows_as_landmarks_give_the_exact_fit():
    marks = MetricKernelRegressor(max_exact=20, max_full=0, n_landmarks=N).fit(FRAME, PRICE)
    assert marks.solver_ == "nystroem"
    assert marks.trace_left_out_ < 1e-9
    K = marks.kernel_(FRAME)
    exact = solve_ridge(K.copy(), marks.ridge_, PRICE[:, None], np.ones(N))
    values = (K @ exact.dual_coef + exact.intercept)[:, 0]
    np.testing.assert_allclose(marks.predict(FRAME), values, atol=1e-6)
    left_out = PRICE - exact.loo_residuals[:, 0]
    np.testing.assert_allclose(marks.loo_values_, left_out, atol=1e-6)


def test_landmarks_are_used_where_memory_does_not_hold_the_kernel():
    X, y = make_friedman1(3000, random_state=0)
    model = MetricKernelRegressor(metric_rows=200, n_steps=0, n_landmarks=50, memory_limit="20MB")
    with pytest.warns(UserWarning, match="the kernel of all 3000 rows needs"):
        model.fit(X, y)
    assert model.solver_ == "nystroem"


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
    shuffled = RANDOM.permutation(PRICE)
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
    X = RANDOM.normal(size=(n, 4))
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
    X = RANDOM.normal(size=(60, 30))
    noise = RANDOM.normal(size=60)
    model = MetricKernelRegressor(select="cv").fit(X, noise)
    errors = [step["cv_error"] for step in model.steps_]
    assert model.step_ == int(np.argmin(errors))
    assert model.cv_error_ == min(errors)
    assert model.cv_error_ > 0.95  # where leave-one-out promises much less
    assert min(step["loo_error"] for step in model.steps_) < 0.9
    with pytest.warns(UserWarning, match="select='cv'"):
        model.set_params(select="loo").fit(X, noise)
    assert np.isnan(model.cv_error_)


def test_few_rows_for_many_columns_are_said():
    X = RANDOM.normal(size=(40, 30))
    with pytest.warns(UserWarning, match="40 rows are few for 30 encoded columns"):
        MetricKernelRegressor().fit(X, X[:, 0])
