"""Pictures say what the model says."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from kernelweave import RBF, Linear, MKLClassifier, SumProductMKLClassifier, group, rbf_ladder
from kernelweave.errors import InputError, KernelweaveError
from kernelweave.plots import plot_history, plot_structure, plot_weights

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) > 0, 1, -1)


def fitted(norm):
    return MKLClassifier([rbf_ladder(per_feature=True)], norm=norm).fit(X, Y)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


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


def test_a_figure_is_made_where_none_is_given():
    mpl.use("agg")
    from matplotlib import pyplot as plt

    model = fitted(1.0)
    for ax in (plot_weights(model), plot_history(model)):
        assert len(ax.figure.axes) == 1
        plt.close(ax.figure)


def test_refusals(monkeypatch):
    with pytest.raises(NotFittedError):
        plot_weights(MKLClassifier())
    with pytest.raises(InputError, match="max_kernels must be a whole number >= 1, got 0"):
        plot_weights(fitted(1.0), max_kernels=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(KernelweaveError, match=r'need matplotlib.*"kernelweave\[cli\]"'):
        plot_history(fitted(1.0))


def test_a_structure_shows_its_weights_and_kernels(ax):
    structure = (RBF(1.0, columns=[0]) + RBF(2.0, columns=[1])) * Linear() + group(RBF(3.0))
    model = SumProductMKLClassifier(structure).fit(X, Y)
    assert plot_structure(model, ax) is ax
    texts = [text.get_text() for text in ax.texts]
    for kernel in model.kernels_:
        assert str(kernel) in texts
    for weight in model.node_weights_.values():
        assert f"{weight:.2g}" in texts
    assert texts.count("+") == 2  # the root, and the sum inside the product
    with pytest.raises(InputError, match="has no structure"):
        plot_structure(fitted(1.0), ax)


def test_weights_of_a_structure_are_named_by_their_paths(ax):
    model = SumProductMKLClassifier(RBF(1.0) * Linear() + RBF(2.0)).fit(X, Y)
    plot_weights(model, ax)
    shown = {label.get_text() for label in ax.get_yticklabels()}
    assert shown == {"rbf(width=1) * linear", "rbf(width=2)"}
