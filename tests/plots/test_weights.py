"""Bars and paths of kernel weights."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    RuleEnsembleClassifier,
    SumProductMKLClassifier,
    group,
    rbf_ladder,
)
from kernelweave.errors import InputError
from kernelweave.plots import (
    plot_path,
    plot_rules,
    plot_structure,
    plot_weights,
)
from plot_models import X, Y, fitted


@pytest.mark.parametrize("norm", [1.0, 1.5])
def test_weights_are_the_lengths_of_the_bars(ax, norm):
    model = fitted(norm)
    assert plot_weights(model, ax, max_kernels=4) is ax
    order = np.argsort(-model.weights_)[:4]
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        str(model.kernels_[j]) for j in order
    ]
    lengths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(lengths, 100 * model.weights_[order] / model.weights_.sum())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    if norm == 1:  # at the optimum both are the same
        assert labels == ["weight (and contribution)"]
    else:
        assert labels == ["weight", "contribution"]
        lengths = [bar.get_width() for bar in ax.containers[1]]
        np.testing.assert_allclose(lengths, 100 * model.contributions_[order])
    used = np.count_nonzero(model.weights_)
    assert f"{used} of 15 kernels in use" in ax.get_title(loc="left")
    ax.figure.canvas.draw()


def test_long_names_are_shortened(ax):
    kernel = rbf_ladder([1.0]).expand(X)[0].renamed("a name of many words " * 9)
    plot_weights(MKLClassifier([kernel]).fit(X, Y), ax)
    (label,) = (label.get_text() for label in ax.get_yticklabels())
    assert label.endswith("...")
    assert len(label.splitlines()) == 2


@pytest.mark.parametrize(
    "name", ["\x1b[31m", "$\\frac{$", "$a$", "n" * 5000, "a\u202eb", "\x9b", " "]
)
def test_any_name_can_be_drawn(name):
    table = pd.DataFrame({name: X[:, 0], "b": X[:, 1]})
    labels = np.where(Y > 0, name, "other")
    kernels = [Linear(columns=name), RBF(1.0, columns="b")]
    model = MKLClassifier(kernels, norm=2.0).fit(table, labels)
    rules = RuleEnsembleClassifier(C=10).fit(table, labels)
    structure = SumProductMKLClassifier(group(*kernels, name=name) * RBF(2.0)).fit(table, labels)
    path = [model, MKLClassifier(kernels, norm=2.0, C=10.0).fit(table, labels)]
    for draw, drawn in (
        (plot_weights, model),
        (plot_rules, rules),
        (plot_structure, structure),
        (plot_path, path),
    ):
        figure = Figure(layout="constrained")
        ax = draw(drawn, figure.subplots())
        figure.canvas.draw()
        texts = [text.get_text() for text in figure.findobj(mpl.text.Text)]
        assert max(map(len, texts)) < 140
        assert not any("\x1b" in text or "\x9b" in text for text in texts)
        assert ax.figure is figure


def test_weights_of_a_structure_are_named_by_their_paths(ax):
    model = SumProductMKLClassifier(RBF(1.0) * Linear() + RBF(2.0)).fit(X, Y)
    plot_weights(model, ax)
    shown = {label.get_text() for label in ax.get_yticklabels()}
    assert shown == {"rbf(width=1) * linear", "rbf(width=2)"}


def test_paths_are_weights_over_C(ax):
    model = MKLClassifier([rbf_ladder(per_feature=True)])
    models = model.fit_path(X, Y, Cs=[10.0, 0.1, 1.0])
    assert plot_path(models, ax, max_kernels=2) is ax
    shares = np.array([m.weights_ / m.weights_.sum() for m in (models[1], models[2], models[0])])
    named = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    top = np.argsort(-shares.max(axis=0), kind="stable")[:2]
    assert list(named) == [str(models[0].kernels_[j]) for j in top]
    for j, line in zip(top, named.values(), strict=True):
        assert line.get_xdata().tolist() == [0.1, 1.0, 10.0]
        np.testing.assert_allclose(line.get_ydata(), 100 * shares[:, j])
    assert len(ax.lines) == np.count_nonzero(shares.any(axis=0))
    counts = [np.count_nonzero(row) for row in shares]
    expected = f"{counts[0]} kernels at the smallest C, {counts[-1]} at the largest"
    assert ax.get_title(loc="left") == expected


def test_paths_need_models_on_the_same_kernels():
    one, two = fitted(1.0), MKLClassifier([Linear()]).fit(X, Y)
    with pytest.raises(InputError, match="models: must be two or more"):
        plot_path([one])
    with pytest.raises(InputError, match="models: must be two or more"):
        plot_path(one)
    with pytest.raises(InputError, match="the same kernels, but there are 1 and 15"):
        plot_path([one, two])
    with pytest.raises(InputError, match="RuleEnsembleClassifier has no weights"):
        plot_path([one, RuleEnsembleClassifier().fit(X, Y)])
    with pytest.raises(NotFittedError):
        plot_path([one, MKLClassifier()])
