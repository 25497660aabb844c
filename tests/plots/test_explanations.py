"""Pictures of explanations say what the values say."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kernelweave import (
    RBF,
    MetricKernelRegressor,
    MKLRegressor,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
)
from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection import effects, explain
from kernelweave.plots import plot_attributions, plot_effects, plot_importance

RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RANDOM.normal(40, 10, 120),
        "$\\frac{$ " + "a name of many words " * 9: RANDOM.normal(size=120),
        "town": RANDOM.choice(["Ulm", "\x1b[31mBonn", "a very long name of a town"], 120),
        "unused": RANDOM.normal(size=120),
    }
)
LONG = TABLE.columns[1]
Y = 0.1 * (TABLE["age"] > 42) * TABLE[LONG] + (TABLE["town"] == "Ulm") + 0.02 * TABLE["age"]


@pytest.fixture(scope="module")
def rules():
    return RuleEnsembleRegressor(C=30, max_length=2).fit(TABLE, Y)


@pytest.fixture(scope="module")
def classes():
    return RuleEnsembleClassifier(C=10).fit(TABLE, np.digitize(Y, [0.8, 1.5]))


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def bars(ax):
    return [
        patch for container in ax.containers for patch in container if hasattr(patch, "get_width")
    ]


def test_a_waterfall_leads_from_the_average_to_the_prediction(ax, rules):
    found = explain(rules, TABLE)
    assert plot_attributions(found, 3, ax, max_players=2) is ax
    drawn = ax.patches
    order = np.argsort(-np.abs(found.values[3]), kind="stable")
    widths = [bar.get_width() for bar in drawn]
    rest = found.values[3][order[2:]].sum()
    assert np.allclose(widths, [*found.values[3][order[:2]], rest])
    assert drawn[0].get_x() == pytest.approx(found.base_values[3])
    for before, after in pairwise(drawn):
        assert after.get_x() == pytest.approx(before.get_x() + before.get_width())
    end = drawn[-1].get_x() + drawn[-1].get_width()
    assert end == pytest.approx(rules.predict(TABLE)[3])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[-1] == "2 others"
    low, high = ax.get_xlim()
    assert low < found.base_values[3] < high
    assert low < end < high
    ax.figure.canvas.draw()


def test_a_single_row_needs_no_number(ax, rules):
    found = explain(rules, TABLE)[5]
    plot_attributions(found, ax=ax)
    assert "average of 120 rows" in ax.get_title(loc="left")


def test_of_several_classes_the_predicted_one_is_drawn(ax, classes):
    found = explain(classes, TABLE)
    plot_attributions(found, 0, ax)
    assert ax.get_title(loc="left").startswith(f"{classes.predict(TABLE)[0]}: decision")


def test_importance_is_the_length_of_the_bars(ax, rules):
    found = explain(rules, TABLE)
    plot_importance(found, ax, max_players=3)
    table = found.importance()
    assert np.allclose([bar.get_width() for bar in ax.patches], table["importance"][:3])
    assert "the 3 largest of 4" in ax.get_title(loc="left")
    ax.figure.canvas.draw()


@pytest.mark.parametrize("most", [4, 1])
def test_importance_of_several_classes(ax, classes, monkeypatch, most):
    monkeypatch.setattr("kernelweave.plots.attributions._SIDE_BY_SIDE", most)
    found = explain(classes, TABLE)
    plot_importance(found, ax)
    assert len(ax.patches) == 3 * 4
    means, _ = found.mean_sizes()
    total = sum(bar.get_width() for bar in ax.patches)
    assert total == pytest.approx(means.sum())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]


def test_effects_are_curves_and_bars(rules):
    found = effects(rules, TABLE)
    axes = plot_effects(found, columns=["age", "town"])
    assert len(axes) == 2
    x, y = axes[0].lines[0].get_data()
    assert np.allclose(x, found["age"].points)
    assert np.allclose(y, found["age"].values)
    heights = [bar.get_height() for bar in axes[1].patches]
    assert np.allclose(heights, found["town"].values)
    assert axes[0].get_ylim() == axes[1].get_ylim()
    title = axes[0].figure.get_suptitle()
    assert "band: 95% interval of the mean over 120 rows, not of the fit" in title
    axes[0].figure.canvas.draw()
    mpl.pyplot.close(axes[0].figure)


def test_columns_without_effect_are_left_out(rules):
    axes = plot_effects(rules, TABLE)
    drawn = [ax.get_title(loc="left") for ax in axes]
    assert not any("unused" in title for title in drawn)
    assert "\x1b" not in "".join(label.get_text() for ax in axes for label in ax.get_xticklabels())
    axes[0].figure.canvas.draw()
    mpl.pyplot.close(axes[0].figure)


def test_bands_of_refits_are_called_so():
    X, y = RANDOM.normal(size=(40, 2)), RANDOM.normal(size=40)
    model = MKLRegressor([RBF(width=1.0)]).fit(X, y)
    axes = plot_effects(effects(model, X, y=y, n_refits=3), rows=True)
    assert "band: 5 to 95% of 3 refits" in axes[0].figure.get_suptitle()
    mpl.pyplot.close(axes[0].figure)


def test_axes_can_be_given(classes):
    figure = Figure(layout="constrained")
    axes = figure.subplots(1, 3)
    found = plot_effects(effects(classes, TABLE), axes=axes, max_columns=2)
    assert len(found) == 2
    assert not axes[2].get_visible()
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["0", "1", "2"]
    figure.canvas.draw()


def test_dates_are_an_axis_of_time():
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) * 5, "D")
    table = pd.DataFrame({"when": days, "x": RANDOM.normal(size=60)})
    model = MetricKernelRegressor(n_steps=1).fit(table, np.arange(60.0))
    found = effects(model, table)
    assert found["when"].kind == "date"
    assert found["when"].points.dtype.kind == "M"
    assert np.diff(found["when"].values).min() > -1.0  # it grows with time
    axes = plot_effects(found)
    axes[0].figure.canvas.draw()
    mpl.pyplot.close(axes[0].figure)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda e: plot_attributions(e), "row: must be a number from 0 to 119"),
        (lambda e: plot_attributions(e, 120), "row: must be a number from 0 to 119, got 120"),
        (lambda e: plot_attributions(e, 0.5), "row: must be a number from 0 to 119, got 0.5"),
        (lambda e: plot_attributions(e[0], 0), "row: must be None"),
        (lambda e: plot_attributions(e, 0, max_players=0), "max_players must be a whole number"),
        (lambda e: plot_importance(e[0]), "importance needs several rows"),
    ],
)
def test_bad_input_gets_one_sentence(rules, draw, message):
    with pytest.raises(InputError, match=message):
        draw(explain(rules, TABLE))


def test_other_things_cannot_be_drawn(rules):
    with pytest.raises(InputTypeError, match="attributions: must be the result of"):
        plot_importance(np.zeros(3))
    with pytest.raises(InputError, match="X: a model needs the rows of the background"):
        plot_effects(rules)
    found = effects(rules, TABLE)
    with pytest.raises(InputError, match="X: must be None where effects are given"):
        plot_effects(found, TABLE)
    with pytest.raises(InputError, match="axes: 2 are needed, got 1"):
        plot_effects(found, columns=["age", "town"], axes=[Figure().subplots()])
