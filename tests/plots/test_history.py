"""Curves of the objective and its bounds."""

import numpy as np

from kernelweave import (
    RuleEnsembleClassifier,
)
from kernelweave.plots import (
    plot_history,
)
from plot_models import X, Y, fitted


def test_history_shows_the_gap(ax):
    model = fitted(1.0)
    assert plot_history(model, ax) is ax
    gap = next(line for line in ax.lines if line.get_label() == "relative gap")
    assert gap.get_ydata()[-1] == model.history_[-1].relative_gap
    assert gap.get_xdata()[-1] == model.n_iter_
    assert "certified within" in ax.get_title(loc="left")
    ax.figure.canvas.draw()


def test_a_method_without_a_bound(ax):
    model = fitted(1.0)
    model.duality_gap_ = np.inf
    assert plot_history(model, ax).get_title(loc="left") == "no lower bound is known"


def test_history_of_rules(ax):
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y)
    assert "certified within" in plot_history(model, ax).get_title(loc="left")
