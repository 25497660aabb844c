"""Pictures of shape functions say what the effects say."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kernelweave import RBF, MetricKernelRegressor, MKLRegressor
from kernelweave.errors import InputError
from kernelweave.inspection import effects
from kernelweave.plots import plot_effects
from plot_tables import TABLE


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
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), random.normal(size=40)
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
    table = pd.DataFrame({"when": days, "x": np.random.default_rng(0).normal(size=60)})
    model = MetricKernelRegressor(n_steps=1).fit(table, np.arange(60.0))
    found = effects(model, table)
    assert found["when"].kind == "date"
    assert found["when"].points.dtype.kind == "M"
    assert np.diff(found["when"].values).min() > -1.0  # it grows with time
    axes = plot_effects(found)
    axes[0].figure.canvas.draw()
    mpl.pyplot.close(axes[0].figure)


def test_bad_input_gets_one_sentence(rules):
    with pytest.raises(InputError, match="X: a model needs the rows of the background"):
        plot_effects(rules)
    found = effects(rules, TABLE)
    with pytest.raises(InputError, match="X: must be None where effects are given"):
        plot_effects(found, TABLE)
    with pytest.raises(InputError, match="axes: 2 are needed, got 1"):
        plot_effects(found, columns=["age", "town"], axes=[Figure().subplots()])
