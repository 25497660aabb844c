"""Rules with their weights and coverage."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
)
from kernelweave.errors import InputError
from kernelweave.plots import plot_rule_path, plot_rules
from kernelweave.plots.rules import rule_path
from plot_models import X, Y, fitted


def one_line(label):
    return " ".join(label.get_text().split())


@pytest.mark.parametrize("max_rules", [2, 20])
def test_rules_are_drawn_with_weights_and_coverage(ax, max_rules):
    model = RuleEnsembleClassifier(2.0, C=30.0).fit(X, np.where(Y > 0, "good", "bad"))
    assert plot_rules(model, ax, max_rules) is ax
    shown = model.rules_[:max_rules]
    assert len(model.rules_) > 2
    assert [one_line(label) for label in ax.get_yticklabels()] == [
        f"{rule.text} ({100 * rule.coverage:.0f} %)" for rule in shown
    ]
    (bars,) = ax.containers
    np.testing.assert_allclose([bar.get_width() for bar in bars], [rule.weight for rule in shown])
    colours = {bar.get_facecolor() for bar in bars if bar.get_width() > 0}
    assert len(colours) == 1
    assert not colours & {bar.get_facecolor() for bar in bars if bar.get_width() < 0}
    assert ax.get_xlabel() == "adds to the score (positive: good)"
    title = ax.get_title(loc="left")
    assert title.startswith(f"{len(model.rules_)} rules")
    assert ("that matter most" in title) is (len(shown) < len(model.rules_))
    ax.figure.canvas.draw()


def test_rules_in_a_figure_of_their_own():
    mpl.use("agg")
    from matplotlib import pyplot as plt

    model = RuleEnsembleClassifier(C=30.0).fit(X, Y)
    ax = plot_rules(model)
    assert [one_line(label) for label in ax.get_yticklabels()] == [r.text for r in model.rules_]
    beside = ax.figure.axes[1]
    shares = [bar.get_width() for bar in beside.containers[0]]
    np.testing.assert_allclose(shares, [100 * rule.coverage for rule in model.rules_])
    assert beside.get_ylim() == ax.get_ylim()
    plt.close(ax.figure)


def test_rules_of_several_outputs(ax):
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = RuleEnsembleClassifier(C=30.0).fit(X, labels)
    plot_rules(model, ax)
    assert len(ax.containers) == 3
    for t, bars in enumerate(ax.containers):
        weights = [rule.weights[t] for rule in model.rules_[:20]]
        np.testing.assert_allclose([bar.get_width() for bar in bars], weights)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    ax.figure.canvas.draw()


def test_rules_of_regression_and_tasks(ax):
    plot_rules(RuleEnsembleRegressor(C=10.0).fit(X, X[:, 0]), ax)
    assert ax.get_xlabel() == "adds to the prediction"
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y, task=np.array(["x", "y"])[np.arange(40) % 2])
    again = plot_rules(model, Figure(layout="constrained").subplots())
    assert [text.get_text() for text in again.get_legend().get_texts()] == ["x", "y"]
    both = RuleEnsembleRegressor(C=10.0).fit(X, X[:, :2])
    again = plot_rules(both, Figure(layout="constrained").subplots())
    texts = [text.get_text() for text in again.get_legend().get_texts()]
    assert texts == ["output 0", "output 1"]


def test_no_rules_at_all(ax):
    model = RuleEnsembleRegressor().fit(X, np.ones(40))
    assert plot_rules(model, ax).get_title(loc="left") == "0 rules"
    ax.figure.canvas.draw()


def test_rules_that_cannot_be_drawn(ax):
    with pytest.raises(InputError, match="MKLClassifier has no rules; draw plot_weights"):
        plot_rules(fitted(1.0), ax)
    with pytest.raises(NotFittedError):
        plot_rules(RuleEnsembleClassifier(), ax)
    with pytest.raises(InputError, match="max_rules must be a whole number >= 1, got 0"):
        plot_rules(RuleEnsembleClassifier().fit(X, Y), ax, max_rules=0)


def test_the_path_shows_the_score_by_the_number_of_rules(ax):
    model = RuleEnsembleClassifierCV(Cs=[1.0, 10.0], cv=3, max_rules=4).fit(X, Y > 0)
    assert plot_rule_path(model, ax) is ax
    line, chosen = ax.get_lines()
    path = rule_path(model.cv_results_)
    np.testing.assert_allclose(line.get_xdata(), path.n_rules)
    np.testing.assert_allclose(line.get_ydata(), path.score)
    assert chosen.get_xdata()[0] == len(model.rules_) + len(model.linear_terms_)
    assert path.score.max() == model.cv_results_["mean_score"].max()
    assert (np.diff(path.n_rules) >= 0).all()


def test_paths_without_a_limit_and_models_without_a_path():
    model = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=3, max_rules=None, refit=False)
    assert len(rule_path(model.fit(X, Y > 0).cv_results_).score) == 2
    with pytest.raises(InputError, match="chose nothing; fit a class with CV in its name"):
        plot_rule_path(RuleEnsembleClassifier().fit(X, Y > 0))
