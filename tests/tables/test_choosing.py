"""The comparison of candidates: folds, choice, combination and the model that is written."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from kernelweave import CombinedClassifier, CombinedRegressor, MetricKernelRegressor
from kernelweave.io import load, save
from kernelweave.tables import Settings, fit_table, make_problem
from kernelweave.tables.candidates import LINEAR, METRIC, SVM
from kernelweave.tables.choosing import Race, log_offsets, silent
from kernelweave.tables.deciding import decide
from kernelweave.tables.planning import make_folds
from kernelweave.tables.scoring import choose_scoring
from kernelweave.tables.verdicts import describe_choice
from quick import first

RANDOM = np.random.default_rng(0)
N = 240
X = RANDOM.normal(size=(N, 3))
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    town=RANDOM.choice(["Ulm", "Bonn", "Köln"], N),
    seen=pd.date_range("2023-01-01", periods=N, freq="D").strftime("%Y-%m-%d"),
)
TABLE.loc[::9, "b"] = np.nan
LINEAR_TARGET = X[:, 0] - 2 * X[:, 2] + (TABLE["town"] == "Ulm") + 0.3 * RANDOM.normal(size=N)


def test_a_linear_target_is_not_lost_to_a_kernel():
    fit = fit_table(TABLE.assign(y=LINEAR_TARGET), "y")
    scores = {item.name: item.scores["r2"] for item in fit.choice.ranking}
    chosen = fit.choice.ranking[0].scores["r2"]
    assert chosen >= max(scores["linear model"], scores["SVM baseline"]) - 0.005
    assert "linear model" in fit.choice.name


@pytest.mark.slow
def test_a_skewed_target_is_learned_on_a_logarithmic_scale(tmp_path):
    table = TABLE.assign(price=np.exp(1.2 * np.sin(2 * X[:, 0]) + X[:, 2]))
    fit = fit_table(table, "price", method="metric")
    assert type(fit.model[-1]) is CombinedRegressor
    ((offset, scale),) = fit.model[-1].logarithms
    assert offset == 0.0
    assert 0.8 <= scale <= 1.25
    assert "learned on a logarithmic scale" in describe_choice(fit.choice)[0]
    again = load(save(fit.model, tmp_path / "model.kw"))
    np.testing.assert_array_equal(again.predict(table), fit.model.predict(table))
    raw = MetricKernelRegressor(shares=(0.5,)).fit(table[["a", "b", "c"]], table["price"])
    assert fit.choice.ranking[0].scores["r2"] > 1 - raw.loo_error_


def test_offsets_of_logarithms():
    y = np.exp(RANDOM.normal(size=N))
    assert log_offsets(make_problem(TABLE.assign(y=y), "y")) == [0.0]
    zero = np.where(np.arange(N) == 0, 0.0, y)
    assert log_offsets(make_problem(TABLE.assign(y=zero), "y")) == [zero[1:].min()]
    assert log_offsets(make_problem(TABLE.assign(y=-y), "y")) == []
    assert log_offsets(make_problem(TABLE.assign(y=LINEAR_TARGET), "y")) == []


def test_a_combination_is_written_and_predicts_as_compared(tmp_path):
    """Two parts of the target, each of which another candidate sees."""
    y = 3 * X[:, 2] + 2 * np.sign(X[:, 0] * X[:, 1]) + 0.3 * RANDOM.normal(size=N)
    table = TABLE.assign(b=X[:, 1], y=y > 0)[["a", "b", "c", "town", "seen", "y"]]
    problem = make_problem(table, "y")
    scoring = choose_scoring((y > 0).astype(int), False, "log_loss", False)
    folds = make_folds(problem, 3, 0)
    race = Race(problem, [METRIC, LINEAR, SVM], scoring, Settings(), folds, silent)
    race.run()
    choice = decide(race)
    means = [item.scores["log_loss"] for item in choice.ranking]
    assert means[0] <= min(means) * 1.01
    fit = fit_table(table, "y", scoring="log_loss")
    if len(fit.choice.members) > 1:
        assert type(fit.model[-1]) is CombinedClassifier
    again = load(save(fit.model, tmp_path / "model.kw"))
    new = fit.model.predict_proba(table)
    np.testing.assert_array_equal(again.predict_proba(table), new)
    assert roc_auc_score(table["y"], new[:, 1]) > 0.9


def test_left_out_rows_are_not_seen():
    """With a random target, no candidate is better than chance."""
    noise = np.random.default_rng(5).random(N) < 0.5
    fit = fit_table(TABLE.assign(y=noise), "y")
    for item in fit.choice.ranking:
        assert abs(item.scores["roc_auc"] - 0.5) < 0.12
    said = " ".join(describe_choice(fit.choice))
    assert "not significantly better than a constant prediction" in said


@pytest.mark.slow
def test_rare_classes_are_ranked():
    score = X[:, 0] + X[:, 2] + 0.5 * RANDOM.normal(size=N)
    rare = score > np.quantile(score, 0.93)
    fit = fit_table(TABLE.assign(y=rare), "y", settings=Settings(class_weight="balanced"))
    assert fit.choice.ranking[0].scores["roc_auc"] > 0.8
    assert "balanced_accuracy" in fit.choice.scoring.shows
    assert fit.model.predict(TABLE).mean() > 0.05  # the rare class is predicted


@pytest.mark.parametrize("method", first(2, ["metric", "linear", "svm"]))
def test_one_candidate_beside_the_others(method):
    y = np.sin(2 * X[:, 0]) + 0.1 * RANDOM.normal(size=N)
    fit = fit_table(TABLE.assign(y=y), "y", method=method)
    assert fit.method == method
    said = describe_choice(fit.choice)
    if method == "linear":  # the others are better, which is said
        assert any(line.startswith("Better on rows left out") for line in said)
    assert len(fit.choice.members) == 1


def test_a_better_reference_is_said_and_does_not_end_the_race():
    """Steps of many columns, which trees find and kernels do not."""
    random = np.random.default_rng(2)
    steps = pd.DataFrame(random.random((900, 6)), columns=list("abcdef"))
    y = (steps["a"] > 0.5) ^ (steps["b"] > 0.5) ^ (steps["c"] > 0.5)
    fit = fit_table(steps.assign(y=4.0 * y + 0.01 * random.normal(size=900)), "y", seconds=3.0)
    first, second = fit.choice.ranking[:2]
    assert (second.name, second.written) == ("gradient boosting", False)
    assert second.scores["r2"] > first.scores["r2"] + 0.05
    said = describe_choice(fit.choice)
    assert any("gradient boosting" in line and "significantly better" in line for line in said)


def test_equal_tables_give_equal_models(tmp_path):
    table = TABLE.assign(y=LINEAR_TARGET > 0)
    files = [save(fit_table(table, "y", seconds=1.0).model, tmp_path / f"{k}.kw") for k in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_too_few_rows():
    few = TABLE[:20].assign(y=LINEAR_TARGET[:20])
    with pytest.warns(UserWarning, match="20 rows are few for"):
        fit = fit_table(few, "y", method="metric")
    assert type(fit.model[-1]) is MetricKernelRegressor
    assert fit.choice is None
    assert "the rows are too few to compare models" in fit.notes
    assert fit_table(few, "y").method == "mkl"


def test_text_beside_numbers():
    """The learned metric leaves text out, the other candidates compare its words."""
    said = np.where(RANDOM.random(N) < 0.5, "late and damaged", "all went quite well")
    notes = [f"{text}, case {i}" for i, text in enumerate(said)]
    y = X[:, 0] + 2 * (said == "late and damaged") + 0.3 * RANDOM.normal(size=N)
    fit = fit_table(TABLE.assign(note=notes, y=y), "y")
    scores = {item.name: item.scores["r2"] for item in fit.choice.ranking}
    assert scores["learned metric"] < 0.6 < scores["linear model"]
    assert fit.choice.ranking[0].scores["r2"] > 0.8


@pytest.mark.slow
def test_probabilities_of_a_rare_class_are_those_of_the_rows():
    """The learned metric weights classes equally, and is calibrated afterwards."""
    random = np.random.default_rng(3)
    numbers = random.normal(size=(600, 3))
    rare = numbers[:, 0] ** 2 + numbers[:, 1] + 0.5 * random.normal(size=600) > 3.6
    table = pd.DataFrame(numbers, columns=list("abc")).assign(y=rare)
    assert 0.02 < rare.mean() < 0.1
    fit = fit_table(table, "y", method="metric")
    (member,) = fit.model[-1].members_
    assert member.class_weight == "balanced"
    proba = fit.model.predict_proba(table)[:, 1]
    assert proba.mean() == pytest.approx(rare.mean(), rel=0.5)
    assert roc_auc_score(rare, proba) > 0.9


def test_a_race_ends_when_one_candidate_is_left():
    random = np.random.default_rng(1)
    numbers = random.normal(size=(1000, 4))
    y = np.sin(3 * numbers[:, 0]) * numbers[:, 1] + 0.01 * random.normal(size=1000)
    table = pd.DataFrame(numbers, columns=list("abcd")).assign(y=y)
    heard = []
    fit = fit_table(table, "y", announce=lambda step, done: heard.append(step))
    assert fit.choice.name == "learned metric"
    assert fit.choice.ranking[0].rows < 1000
    assert not any(step.startswith("fold 2") for step in heard)


def test_metrics_of_later_folds_search_among_the_values_of_earlier_ones():
    problem = make_problem(TABLE.assign(y=np.sin(X[:, 0]) + X[:, 1] * X[:, 2]), "y")
    scoring = choose_scoring(problem.y.to_numpy(), True, "auto", False)
    folds = make_folds(problem, 3, 0)
    race = Race(problem, [METRIC, SVM], scoring, Settings(), folds, silent, "learned metric")
    race.run()
    entry = race.entries[0]
    (s,) = entry.values
    assert set(entry.setting(s)) == {"widths", "ridges"}
    assert len(entry.setting(s)["ridges"]) < len(MetricKernelRegressor().ridges)
    model = METRIC.make(entry.setting(s), race._task(METRIC, 1)[0])
    assert model.ridges == entry.setting(s)["ridges"]
    assert decide(race).members[0].setting == {}  # all rows may need other values
