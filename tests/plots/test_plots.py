"""Pictures say what the model says."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from kernelweave import (
    RBF,
    KernelSpectralClustering,
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
    SumProductMKLClassifier,
    group,
    rbf_ladder,
)
from kernelweave.errors import InputError, KernelweaveError
from kernelweave.plots import (
    plot_clusters,
    plot_history,
    plot_noise,
    plot_path,
    plot_rules,
    plot_structure,
    plot_weights,
)

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
    with pytest.raises(KernelweaveError, match=r'need matplotlib.*"kernelweave\[report\]"'):
        plot_history(fitted(1.0))


def test_a_structure_shows_its_weights_and_kernels(ax):
    structure = (RBF(1.0, columns=[0]) + RBF(2.0, columns=[1])) * Linear() + group(RBF(3.0))
    model = SumProductMKLClassifier(structure).fit(X, Y)
    assert plot_structure(model, ax) is ax
    texts = [text.get_text() for text in ax.texts]
    for leaf in model.network_.leaves:
        assert str(model.network_.nodes[leaf].kernel) in texts
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


def test_history_of_rules(ax):
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y)
    assert "certified within" in plot_history(model, ax).get_title(loc="left")


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


def test_the_noise_curve_is_the_quality_of_the_labels(ax):
    noisy = np.where(np.arange(40) % 10 == 0, -Y, Y)
    model = NoiseTolerantKernelClassifier().fit(X, noisy)
    assert plot_noise(model, ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.sort(model.label_quality_))
    found = model.suspects()
    (marked,) = ax.collections
    np.testing.assert_array_equal(marked.get_offsets()[:, 1], found.quality)
    assert ax.lines[1].get_xdata()[0] == model.noise_level_ * 40
    assert ax.get_title(loc="left") == f"{found.n_wrong} of 40 labels look wrong"
    with pytest.raises(InputError, match="MKLClassifier does not assess"):
        plot_noise(fitted(1.0))


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_clusters_are_the_points_that_were_grouped(ax, n_clusters):
    model = KernelSpectralClustering(n_clusters, random_state=0).fit(np.abs(X))
    assert plot_clusters(model, ax) is ax
    drawn = [group.get_offsets() for group in ax.collections]
    sizes = np.bincount(model.labels_).tolist()
    assert [len(points) for points in drawn] == sizes
    labels = [f"cluster {k} ({n})" for k, n in enumerate(sizes)]
    assert [group.get_label() for group in ax.collections] == labels
    if n_clusters == 2:
        expected = [model.embedding_[model.labels_ == k] for k in range(2)]
        for points, own in zip(drawn, expected, strict=True):
            np.testing.assert_array_equal(points, own)
    if n_clusters == 4:  # distances in the plane are no longer than the true ones
        flat = np.concatenate(drawn)
        order = np.argsort(model.labels_, kind="stable")
        true = np.linalg.norm(np.diff(model.embedding_[order], axis=0), axis=1)
        assert (np.linalg.norm(np.diff(flat, axis=0), axis=1) <= true + 1e-9).all()
    with pytest.raises(InputError, match="MKLClassifier has no clusters"):
        plot_clusters(fitted(1.0))
