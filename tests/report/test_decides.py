"""What decides: importance and shape functions of columns, or the heaviest parts of the model."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    RBF,
    CombinedClassifier,
    CombinedRegressor,
    Linear,
    MetricKernelRegressor,
    MKLRegressor,
    RuleEnsembleRegressor,
)
from kernelweave.inspection import explain
from kernelweave.io import FitRecord
from kernelweave.kernels import Cosine
from kernelweave.report.decides import (
    Deciding,
    _affordable,
    _fast_enough,
    measure_importance,
    section,
    what_decides,
)
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


def test_shape_functions_stand_in_the_order_of_the_bars():
    """A rare large effect has more variance, a frequent one of moderate size more importance."""
    random = np.random.default_rng(0)
    frequent = np.where(random.random(120) < 0.5, 1.5, -1.5)
    rare = np.where(random.random(120) < 0.06, 10.0, 0.0)
    rows = pd.DataFrame({"rare": rare, "frequent": frequent})
    found = what_decides(Subject(MKLRegressor([Linear()]).fit(rows, rare + frequent), rows))
    assert [bar.name for bar in found.bars] == ["frequent", "rare"]
    assert [chart.heading for chart in found.shapes] == ["frequent", "rare"]


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
    found = Deciding(bars, "Importance", by_column=True)
    assert found.sentence == " It looks most at age and town."
    assert Deciding(bars, "Importance").sentence == ""


def test_the_first_screen_has_no_columns_without_use():
    bars = (Bar("age", "1", 1.0), Bar("town", "0", 0.0), Bar("iron", "0", 0.0))
    assert Deciding(bars, "Importance").first_bars == bars[:1]
    assert Deciding(bars[1:], "Importance").first_bars == bars[1:2]


def test_slow_models_are_explained_on_fewer_rows(model, monkeypatch):
    fast = _affordable(model, NUMBERS)
    assert (fast.n_rows, fast.n_background, fast.n_permutations) == (200, 200, None)
    monkeypatch.setattr("kernelweave.report.decides._WORK", 1e5)
    slow = _affordable(model, NUMBERS)
    assert (slow.n_rows, slow.n_background) == (20, 20)
    assert _fast_enough(model, NUMBERS)
    monkeypatch.setattr("kernelweave.report.decides._PAIR_WORK", 1e3)
    assert not _fast_enough(model, NUMBERS)


@pytest.mark.parametrize(
    ("kernels", "n_permutations"), [([Cosine(Linear())], 40), ([RBF(3.0)], None)]
)
def test_kernels_that_compare_columns_together_are_sampled_little(kernels, n_permutations):
    X = np.random.default_rng(0).standard_normal((60, 9))
    model = MKLRegressor(kernels).fit(X, X[:, 0])
    size = _affordable(model, X)
    assert (size.n_permutations is None) == (n_permutations is None)
    found = measure_importance(model, X)
    assert found.sampled == (n_permutations is not None)
    assert (found.n_columns, found.names[0]) == (9, "column 0")


def test_a_learned_metric_is_explained_on_many_rows():
    X = np.random.default_rng(0).standard_normal((300, 20))
    model = MetricKernelRegressor(n_steps=1).fit(X, X[:, 0] + X[:, 1] ** 2)
    size = _affordable(model, X)
    assert (size.n_rows, size.n_background, size.n_permutations) == (200, 40, 40)
    found = measure_importance(model, X)
    assert (found.n_rows, found.n_background, found.sampled) == (200, 40, True)
    assert set(found.names[:2]) == {"column 0", "column 1"}
    model.support_ = np.arange(1000)
    assert _affordable(model, X).n_rows == 75
    model.support_ = np.arange(100_000)
    assert _affordable(model, X).n_rows == 20


def test_members_of_some_columns_are_sampled():
    X = np.random.default_rng(0).standard_normal((80, 7))
    model = CombinedClassifier().fit(X, X[:, 0] * X[:, 1] > 0)
    size = _affordable(model, X)
    assert (size.n_background, size.n_permutations) == (40, 40)
    assert size.n_rows == 200
    assert measure_importance(model, X).sampled
    assert (
        _affordable(CombinedClassifier().fit(X[:, :4], X[:, 0] > 0), X[:, :4]).n_permutations
        is None
    )


def test_members_that_add_up_share_the_time():
    X = np.random.default_rng(0).standard_normal((300, 20))
    members = [("metric", MetricKernelRegressor(n_steps=1)), ("linear", MKLRegressor([Linear()]))]
    model = CombinedRegressor(members).fit(X, X[:, 0] + X[:, 1] ** 2)
    size, own = _affordable(model, X), _affordable(model.members_[0], X, 0.5)
    assert size == own
    assert size.n_permutations == size.n_background == 40
    found = measure_importance(model, X)
    assert (found.n_rows, found.sampled) == (size.n_rows, True)
    assert set(found.names[:2]) == {"column 0", "column 1"}
    exact = CombinedRegressor(members[1:]).fit(X, X[:, 0])
    assert _affordable(exact, X).n_permutations is None


def test_the_record_of_a_fit_says_what_decides(model, monkeypatch):
    known = measure_importance(model, NUMBERS)
    record = FitRecord((), "", importance=known)
    found = what_decides(Subject(model, record=record))
    assert [bar.name for bar in found.bars] == list(known.names)
    assert found.shapes == ()
    assert found.sentence.startswith(f" It looks most at {known.names[0]}")
    assert "over 60 rows" in found.words
    assert section(Subject(model, record=record)) is not None

    def refuse(*arguments, **options):
        raise AssertionError("explained again")

    monkeypatch.setattr("kernelweave.inspection.explain", refuse)
    assert what_decides(Subject(model, NUMBERS, record=record)).shapes


def test_importance_lists_many_columns_in_part(monkeypatch):
    monkeypatch.setattr("kernelweave.report.decides._KEPT", 2)
    X = np.random.default_rng(0).standard_normal((30, 4))
    found = measure_importance(MKLRegressor([Linear()]).fit(X, X[:, 2]), X)
    assert (len(found.names), found.n_columns, found.names[0]) == (2, 4, "column 2")
    assert found.means[0] > found.means[1]
