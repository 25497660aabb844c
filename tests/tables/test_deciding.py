"""The winner of a race: the best, the first one where it is hardly worse, or a combination."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import Settings, make_problem
from kernelweave.tables.blending import share_calibration
from kernelweave.tables.candidates import LINEAR, METRIC, SVM, is_rare
from kernelweave.tables.choosing import Race, silent
from kernelweave.tables.deciding import chosen_predictions, decide
from kernelweave.tables.planning import make_folds
from kernelweave.tables.scoring import choose_scoring

RANDOM = np.random.default_rng(0)
N = 300
Y = RANDOM.normal(size=N)
ERRORS = RANDOM.normal(size=(3, N))
PROBLEM = make_problem(pd.DataFrame({"x": RANDOM.normal(size=N), "y": Y}), "y")
CANDIDATES = [METRIC, LINEAR, SVM]


def race_of(*predicted, fixed=None):
    """Return a race whose candidates have made these predictions."""
    scoring = choose_scoring(Y, True, "auto", False)
    folds = make_folds(PROBLEM, 3, 0)
    race = Race(PROBLEM, CANDIDATES, scoring, Settings(), folds, silent, fixed)
    for entry, values in zip(race.entries, predicted, strict=True):
        entry.values = {0: np.asarray(values)}
    return race


def r2(predicted):
    return 1 - ((Y - predicted) ** 2).sum() / ((Y - Y.mean()) ** 2).sum()


def test_the_clearly_better_one_wins():
    common = 0.1 * ERRORS[0]
    choice = decide(race_of(Y + 8 * common, Y + common, Y + 6 * common))
    assert choice.name == LINEAR.name
    assert [item.name for item in choice.ranking] == [LINEAR.name, SVM.name, METRIC.name]
    assert choice.ranking[0].scores["r2"] == pytest.approx(r2(Y + common))
    assert choice.ranking[1].behind[0] > 0
    np.testing.assert_allclose(choice.left_out, -common)
    np.testing.assert_array_equal(choice.rows, np.arange(N))
    assert choice.interval[0] < choice.ranking[0].scores["r2"] < choice.interval[1]
    assert choice.constant["r2"] == pytest.approx(0.0)


def test_the_first_one_wins_where_it_is_hardly_worse():
    common = 0.3 * ERRORS[0]
    signs = np.empty(N)
    signs[np.argsort(np.abs(common))] = np.tile([-1.0, 1.0], N // 2)
    near = common * (1.0 + 0.02 * signs)  # better and worse by turns
    assert r2(Y + near) < r2(Y + common)
    choice = decide(race_of(Y + near, Y + common, Y + 3 * common))
    assert choice.name == METRIC.name


def test_the_first_one_does_not_win_where_it_is_worse_by_more_than_a_hundredth():
    signs = np.empty(N)
    signs[np.argsort(np.abs(Y))] = np.tile([-1.0, 1.0], N // 2)
    first, better = 0.1 * Y, 0.1 * Y + (0.15 * signs + 0.025) * np.sign(Y)
    gap = (Y - first) ** 2 - (Y - better) ** 2
    assert gap.mean() < gap.std() / np.sqrt(N)  # not significant
    assert 0.01 * Y.var() < gap.mean() < 0.02 * ((Y - better) ** 2).mean()
    assert decide(race_of(first, better, np.zeros(N))).name == LINEAR.name


def test_few_rows_of_a_class_that_is_not_rare_are_no_reason_to_prefer_the_first():
    y = (np.arange(N) % 4 == 0).astype(int)
    problem = make_problem(pd.DataFrame({"x": Y, "y": np.where(y, "yes", "no")}), "y")
    scoring = choose_scoring(y, False, "auto", False)
    race = Race(problem, CANDIDATES, scoring, Settings(), make_folds(problem, 3, 0), silent)
    common = 0.8 * ERRORS[0]
    for entry, value in zip(
        race.entries, (common + 0.15 * ERRORS[2] + y, common + y, ERRORS[1]), strict=True
    ):
        share = 1 / (1 + np.exp(-value))
        entry.values, entry.has_proba = {0: np.column_stack([1 - share, share])}, True
    choice = decide(race)
    scores = {item.name: item.scores["roc_auc"] for item in choice.ranking}
    behind, error = next(i.behind for i in choice.ranking if i.name == METRIC.name)
    assert error < behind < 2 * error  # which was enough for it
    assert choice.name == LINEAR.name
    assert scores[LINEAR.name] > scores[METRIC.name] + 0.01


def test_independent_errors_are_averaged():
    choice = decide(race_of(*(Y + 0.5 * error for error in ERRORS)))
    assert len(choice.members) == 3
    np.testing.assert_allclose([m.weight for m in choice.members], 1 / 3, atol=0.1)
    assert " + " in choice.name
    assert choice.ranking[0].scores["r2"] > r2(Y + 0.5 * ERRORS[0]) + 0.1
    assert len(choice.ranking) == 4  # the parts stay in the ranking


def test_the_one_that_is_asked_for_is_taken():
    choice = decide(race_of(*(Y + 0.5 * error for error in ERRORS), fixed=SVM.name))
    assert choice.name == SVM.name
    assert [m.candidate for m in choice.members] == [SVM]
    assert len(choice.ranking) == 3


def test_candidates_that_left_early_are_compared_on_their_rows():
    few = Y + 3 * ERRORS[1]
    few[100:] = np.nan
    race = race_of(Y + 0.1 * ERRORS[0], few, Y + 2 * ERRORS[2])
    race.entries[1].active = race.entries[2].active = False
    choice = decide(race)
    lost = next(item for item in choice.ranking if item.name == LINEAR.name)
    assert lost.rows == 100
    part = Y[:100]
    expected = 1 - ((0.1 * ERRORS[0, :100]) ** 2).sum() / ((part - part.mean()) ** 2).sum()
    assert lost.chosen_score == pytest.approx(expected)


def test_predictions_of_classes_beside_the_truth():
    problem = SimpleNamespace(regression=False, y=pd.Series(["no", "yes", "maybe", "yes"]))
    proba = np.array([[0.1, 0.7, 0.2], [0.0, 0.4, 0.6]])
    found = chosen_predictions(SimpleNamespace(rows=np.array([0, 3]), predicted=proba), problem)
    assert found.classes == ("maybe", "no", "yes")
    np.testing.assert_array_equal(found.y, [1, 2])
    np.testing.assert_array_equal(found.predicted, [1, 2])
    assert found.positive == 2
    assert found.proba is proba


def test_predictions_of_numbers_beside_the_truth():
    problem = SimpleNamespace(regression=True, y=pd.Series([1, 2, 3]))
    choice = SimpleNamespace(rows=np.array([2, 0]), predicted=np.array([2.5, 1.5]))
    found = chosen_predictions(choice, problem)
    np.testing.assert_array_equal(found.y, [3.0, 1.0])
    np.testing.assert_array_equal(found.predicted, [2.5, 1.5])


@pytest.mark.parametrize(("n_rare", "names"), [(20, [METRIC, LINEAR]), (120, [METRIC])])
def test_a_rare_class_gets_the_mean_of_metric_and_linear_model(n_rare, names):
    rare = np.arange(N) % (N // n_rare) == 0
    problem = make_problem(pd.DataFrame({"x": Y, "y": np.where(rare, "yes", "no")}), "y")
    scoring = choose_scoring(rare.astype(int), False, "auto", False)
    race = Race(problem, CANDIDATES, scoring, Settings(), make_folds(problem, 3, 0), silent)
    scores = [rare + error for error in (ERRORS[0], ERRORS[0], ERRORS[2] + 0.3 * ERRORS[0])]
    shares = [1 / (1 + np.exp(-values)) for values in scores]
    for entry, share in zip(race.entries, shares, strict=True):
        entry.values, entry.has_proba = {0: np.column_stack([1 - share, share])}, True
    choice = decide(race)
    assert [member.candidate for member in choice.members[:2]][: len(names)] == names
    if len(names) == 2:
        assert [member.weight for member in choice.members] == [0.5, 0.5]
        # Both have the same slope for values of unit spread, and the shares of the classes.
        slopes = [
            float(member.calibration[0][0, 0]) * np.std(np.log(share / (1 - share)))
            for member, share in zip(choice.members, shares, strict=False)
        ]
        assert slopes[0] == pytest.approx(slopes[1], rel=1e-9)
        assert choice.predicted[:, 1].mean() == pytest.approx(rare.mean(), rel=0.2)
        folds = [race.part == k for k in range(3)]
        log_odds = [np.log(share / (1 - share)) for share in shares[:2]]
        for own in folds:  # predicted by what other folds say
            found = share_calibration([values[~own] for values in log_odds], rare[~own].astype(int))
            parts = zip(log_odds, found, strict=True)
            both = [1 / (1 + np.exp(-(v[own] * s[0, 0] + b[0]))) for v, (s, b) in parts]
            np.testing.assert_allclose(choice.predicted[own, 1], np.mean(both, axis=0), atol=1e-12)


@pytest.mark.parametrize("n_rare", [20, 120])
def test_the_linear_model_of_a_rare_class_has_one_penalty(n_rare):
    y = np.where(np.arange(1500) % (1500 // n_rare) == 0, "yes", "no")
    problem = make_problem(pd.DataFrame({"x": np.arange(1500) % 7 / 2, "y": y}), "y")
    assert len(LINEAR.settings(problem)) == (1 if n_rare == 20 else 4)
    assert is_rare(problem) == (n_rare == 20)
