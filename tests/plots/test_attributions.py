"""Pictures of attributions say what the values say."""

from itertools import pairwise

import numpy as np
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection import explain
from kernelweave.plots import plot_attributions, plot_importance
from plot_tables import TABLE


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


def test_other_things_cannot_be_drawn():
    with pytest.raises(InputTypeError, match="attributions: must be the result of"):
        plot_importance(np.zeros(3))
