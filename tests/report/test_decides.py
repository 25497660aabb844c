"""What decides: importance and shape functions of columns, or the heaviest parts of the model."""

import numpy as np
import pytest

from kernelweave import Linear, MetricKernelRegressor, MKLRegressor, RuleEnsembleRegressor
from kernelweave.inspection import effects, explain
from kernelweave.report.decides import Deciding, _affordable, _some, section, what_decides
from kernelweave.report.shapes import Bar
from kernelweave.report.subject import Subject
from report_models import FRAME, QUANTITY, fitted

NUMBERS = FRAME[["age", "height", "weight"]]


@pytest.fixture(scope="module")
def model():
    return MKLRegressor([Linear()]).fit(NUMBERS, QUANTITY)


def test_bars_are_mean_sizes_of_values(model):
    found = what_decides(Subject(model, NUMBERS))
    sizes = np.abs(explain(model, NUMBERS).values).mean(axis=0)
    order = np.argsort(-sizes)
    assert [bar.name for bar in found.bars] == NUMBERS.columns[order].tolist()
    lengths = np.array([bar.length for bar in found.bars])
    np.testing.assert_allclose(lengths / lengths[0], sizes[order] / sizes.max())
    assert [chart.heading for chart in found.shapes] == NUMBERS.columns[order].tolist()
    assert "This model is exactly the sum of its shape functions." in found.words
    assert found.pairs == ()  # a sum has no interactions
    assert found.refused == ()


def test_without_rows_the_heaviest_parts_are_shown():
    rules = RuleEnsembleRegressor(C=10).fit(NUMBERS, QUANTITY)
    found = what_decides(Subject(rules))
    assert found.title == "The most important rules"
    assert section(Subject(rules)) is None
    kernels = what_decides(Subject(fitted("mkl")[0]))
    assert kernels.title == "Weights of kernels"
    assert "no measure of importance" in kernels.note


def test_reasons_are_given(model, monkeypatch):
    def refuse(*arguments, **options):
        raise ValueError("Too many columns.")

    monkeypatch.setattr("kernelweave.inspection.explain", refuse)
    found = what_decides(Subject(model, NUMBERS))
    assert found.refused == ("Importance is not shown: Too many columns.",)
    assert found.title == "Share of the variance by each column alone"
    assert found.shapes
    monkeypatch.setattr("kernelweave.inspection.effects", refuse)
    subject = Subject(model, NUMBERS)
    assert len(subject.decides.refused) == 2
    assert section(subject).values["found"] is subject.decides


def test_the_sentence_names_columns_that_matter():
    bars = (Bar("age", "1", 1.0), Bar("town", "0.5", 0.5), Bar("iron", "0", 0.01))
    assert (
        Deciding(bars, "Importance", shapes=("a chart",)).sentence
        == " It looks most at age and town."
    )
    assert Deciding(bars, "Importance").sentence == ""


def test_slow_models_are_explained_on_fewer_rows(model, monkeypatch):
    subject = Subject(model, NUMBERS)
    fast = _affordable(subject)
    assert (fast.n_rows, fast.n_background, fast.n_permutations) == (200, 200, None)
    monkeypatch.setattr("kernelweave.report.decides._WORK", 1e5)
    slow = _affordable(subject)
    assert (slow.n_rows, slow.n_background) == (20, 20)


def test_a_quick_page_explains_slow_models_on_fewer_rows_and_without_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 14))  # too many columns to enumerate
    slow = MetricKernelRegressor(n_steps=0).fit(rows, rows[:, 0] * rows[:, 1])
    asked = []

    def record(model, X, columns, **options):
        asked.append((len(X), options))
        return effects(model, X, columns, **options)

    monkeypatch.setattr("kernelweave.inspection.effects", record)
    found = what_decides(Subject(slow, rows, quick=True))
    assert asked == [(30, {"pairs": 0, "n_points": 11})]
    assert (found.pairs, len(found.shapes), found.refused) == ((), 6, ())
    quick, full = (_affordable(Subject(slow, rows, quick=q)) for q in (True, False))
    assert quick.n_rows <= full.n_rows
    what_decides(Subject(slow, rows))
    assert asked[1] == (60, {"pairs": 5})


def test_rows_are_spread_evenly():
    assert _some(NUMBERS, 60) is NUMBERS
    np.testing.assert_array_equal(_some(NUMBERS, 3), NUMBERS.iloc[[0, 30, 59]])
    np.testing.assert_array_equal(_some(np.arange(10)[:, None], 4)[:, 0], [0, 3, 6, 9])
