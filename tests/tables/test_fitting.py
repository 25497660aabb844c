"""From a table to a model, by every method, and back from its file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kernelweave import MKLRegressor, Precomputed, RuleEnsembleClassifierCV
from kernelweave.errors import InputError
from kernelweave.io import load, save
from kernelweave.tables import METHODS, Settings, fit_table

N = 90
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(N, 2))
WORDS = np.array("fever cough pain mild severe none rest".split())
TABLE = pd.DataFrame(
    {
        "id": RANDOM.permutation(N),
        "age": np.where(RANDOM.random(N) < 0.1, np.nan, 50 + 10 * X[:, 0]),
        "dose": X[:, 1],
        "seen": pd.date_range("2023-05-01", periods=N, freq="3D").strftime("%d.%m.%Y"),
        "town": np.where(RANDOM.random(N) < 0.1, None, RANDOM.choice(["Ulm", "Bonn"], N)),
        "note": [" ".join(RANDOM.choice(WORDS, 5)) for _ in range(N)],
        "unit": "mg",
    }
)
SCORE = X[:, 0] + X[:, 1] ** 2 - 1 + TABLE["note"].str.contains("severe")
TABLE["ill"] = np.where(SCORE > 0.3, "yes", "no")
TABLE["level"] = SCORE.astype(float)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", ["ill", "level"])
def test_every_method_makes_a_file_that_predicts(tmp_path, method, target):
    ignore = ["level" if target == "ill" else "ill"]
    if target == "level" and METHODS[method].regressor is None:
        with pytest.raises(InputError, match=f"method {method}: it is for classification"):
            fit_table(TABLE, target, method=method, ignore=ignore)
        return
    C = 10.0 if METHODS[method].cost else "auto"
    fit = fit_table(TABLE, target, method=method, ignore=ignore, C=C, test_share=0.25)
    assert fit.n_rows == N
    assert fit.choice.ranking[0].name == METHODS[method].title
    again = load(save(fit.model, tmp_path / "model.kw"))
    new = TABLE[::-1].drop(columns=[target, "unit"])
    if method == "pairs":
        pairs = np.array([[0, 1], [2, 5], [7, 3]])
        scores = [m[-1].score_pairs(m[0].transform(new), pairs) for m in (fit.model, again)]
        np.testing.assert_array_equal(*scores)
        assert fit.choice.ranking[0].scores["pairs"] > 0.55
        return
    np.testing.assert_array_equal(again.predict(new), fit.model.predict(new))
    names = {item.name for item in fit.choice.ranking}
    assert {"learned metric", "linear model", "SVM baseline", "gradient boosting"} < names
    assert again.score(TABLE, TABLE[target]) > (0.3 if method == "rules" else 0.7)
    assert again[0].target_ == target


@pytest.mark.slow
def test_sets_of_a_learned_metric_rest_on_metrics_that_did_not_see_the_row():
    fit = fit_table(TABLE, "ill", ignore=["level"], method="metric")
    model = fit.model[-1]
    assert type(model).__name__ == "MetricKernelClassifier"
    np.testing.assert_array_equal(model.margins, fit.choice.left_out)
    rows = TABLE.drop(columns=["ill"])
    alone = clone(model).set_params(margins=None).fit(fit.model[0].transform(rows), TABLE["ill"])
    both = fit.model.predict_proba(rows), alone.predict_proba(fit.model[0].transform(rows))
    np.testing.assert_allclose(*both)  # sets change, probabilities do not
    sizes = [m.predict_set(fit.model[0].transform(rows), 0.9).sum() for m in (model, alone)]
    assert sizes[0] != sizes[1]


def test_intervals_of_a_learned_metric_rest_on_metrics_that_did_not_see_the_row(tmp_path):
    fit = fit_table(TABLE, "level", ignore=["ill", "note"], method="metric")
    model = fit.model[-1]
    assert type(model).__name__ == "MetricKernelRegressor"
    np.testing.assert_array_equal(model.residuals, fit.choice.left_out)
    rows = fit.model[0].transform(TABLE)
    low, high = model.predict_interval(rows, 0.5).T
    np.testing.assert_allclose(0.5 * (low + high), fit.model.predict(TABLE))
    size = np.sort(np.abs(model.residuals))[int(np.ceil(0.5 * (len(model.residuals) + 1))) - 1]
    np.testing.assert_allclose(0.5 * (high - low), size)
    again = load(save(fit.model, tmp_path / "model.kw"))[-1]
    np.testing.assert_array_equal(again.predict_interval(rows, 0.5)[:, 0], low)


def test_what_was_done_is_said():
    fit = fit_table(TABLE, "ill", ignore=["level"], C=1.0, test_share=0)
    assert fit.method == "mkl"
    assert fit.choice is None
    gaps = [TABLE[name].isna().sum() for name in ("age", "town")]
    assert fit.notes == (
        "the column 'id' is left out: its values are all different, as of identifiers",
        "the column 'unit' is left out: it has one value only",
        "'seen' holds dates, which become a number and places in the year, the week and the day",
        "'note' holds text, which is compared by its words",
        f"missing values in 'age' ({gaps[0]} rows) are filled with the median, and marked",
        f"missing values in 'town' ({gaps[1]} rows) are a value of their own",
    )


def test_rules_are_few_and_chosen_with_their_cost():
    """The estimator chooses both on its own folds; C that is given leaves the number of rules."""
    ignore, shown = ["level"], []
    for C in ("auto", 3.0):
        fit = fit_table(TABLE, "ill", method="rules", ignore=ignore, C=C, test_share=0)
        model = fit.model[-1]
        assert isinstance(model, RuleEnsembleClassifierCV)
        assert model.rho == 1.0
        assert 1 <= len(model.rules_) <= model.max_rules == 30
        assert model.converged_
        shown.append((len(set(model.cv_results_["C"])), model.C_))
    assert shown[0][0] > 3
    assert shown[1] == (1, 3.0)


def test_rules_are_in_the_units_of_the_table():
    fit = fit_table(TABLE, "ill", ignore=["level"], method="rules", C=10.0, test_share=0)
    assert "the column 'note' is left out: rules take no text and no matrices" in fit.notes
    cuts = [p.value for p in fit.model[-1].propositions_ if p.feature == "age" and p.value]
    assert all(20 < cut < 80 for cut in cuts if isinstance(cut, float))
    years = [p.value for p in fit.model[-1].propositions_ if p.feature == "seen"]
    assert all(2023 < year < 2025 for year in years if isinstance(year, float))


def test_many_rows_are_sampled():
    fit = fit_table(TABLE, "ill", ignore=["level"], C=1.0, max_rows=30, test_share=0.25)
    assert fit.n_rows == 30
    assert any(note.startswith("30 of 90 rows are used") for note in fit.warnings)
    assert set(fit.model[0].rows_) <= set(range(N))  # which rows these were
    assert len(fit.model[0].rows_) == 30


def test_c_is_chosen_by_the_score_that_compares():
    options = {"method": "mkl", "scoring": "log_loss", "test_share": 0.25}
    fit = fit_table(TABLE, "ill", ignore=["level", "note"], **options)
    assert fit.search.scoring == "log-loss"
    assert fit.model[-1].C == fit.search.C == fit.choice.members[0].setting["C"]
    assert fit.search.losses[fit.search.values.index(fit.search.C)] < 1.2 * fit.search.losses.min()


def test_too_few_rows_to_choose():
    fit = fit_table(TABLE[:12], "ill", ignore=["level"])
    assert fit.search is None
    assert "the rows are too few to choose C, so it is 1" in fit.notes


def test_c_of_a_quantity_is_in_its_units():
    fit = fit_table(TABLE, "level", ignore=["ill"], C=2.0, test_share=0)
    assert type(fit.model[-1]) is MKLRegressor
    assert fit.model[-1].C == 2.0
    assert fit.model[-1].target_scale == "spread"


def test_a_gram_matrix_beside_the_columns(tmp_path):
    gram = np.exp(-np.square(np.subtract.outer(SCORE.to_numpy(), SCORE.to_numpy())))
    fit = fit_table(TABLE, "ill", ignore=["level"], grams={"lab": gram}, C=1.0, test_share=0)
    (kernel,) = (k for k in fit.model[-1].kernels_ if isinstance(k, Precomputed))
    assert str(kernel) == "lab"
    weights = dict(zip(map(str, fit.model[-1].kernels_), fit.model[-1].weights_, strict=True))
    assert max(weights, key=weights.get) == "lab"
    again = load(save(fit.model, tmp_path / "model.kw"))
    rows = TABLE.assign(lab=np.arange(N))[40:60]
    np.testing.assert_array_equal(again.predict(rows), fit.model.predict(rows))


def test_mistakes():
    with pytest.raises(InputError, match="method: must be one of auto, metric, linear, svm, mkl"):
        fit_table(TABLE, "ill", method="tree")
    with pytest.raises(InputError, match="norm: the method rules does not have it"):
        fit_table(TABLE, "ill", method="rules", settings=Settings(norm=2.0))


@pytest.mark.parametrize("option", [{"tol": 1e-20}, {"max_iter": 0}], ids=str)
def test_options_are_checked_before_the_comparison(monkeypatch, option):
    def compare(*args):
        raise AssertionError("the comparison began")

    monkeypatch.setattr("kernelweave.tables.fitting.Race", compare)
    with pytest.raises(ValueError, match=f"The '{next(iter(option))}' parameter of MKLClassifier"):
        fit_table(TABLE, "ill", settings=Settings(**option))
