"""Whole sources that rows lack."""

import numpy as np
import pandas as pd
import pytest

from gap_cases import SOURCES, two_sources
from kernelweave import MKLClassifier, MKLRegressor
from kernelweave.errors import InputError, InputTypeError, RowError
from kernelweave.inspection import explain
from kernelweave.kernels import Known, Linear, Precomputed, Words, expand_kernels, rbf_ladder, views
from kernelweave.kernels.completed import Completion, mean_similarity
from kernelweave.kernels.sources import OPTIONS, leave_one_out
from kernelweave.report.decides import _affordable

NAN = float("nan")


def names(kernels):
    return [str(kernel) for kernel in kernels]


@pytest.mark.parametrize("rule", ["off", "complete"])
def test_sources_that_are_missing_get_an_intercept(rule):
    X = two_sources()
    X[:, 2:] = np.where(np.isnan(X[:, 2:]), 0.0, X[:, 2:])
    found = names(expand_kernels(views(SOURCES, rbf_ladder([1.0]), missing=rule), X))
    assert found == ["a: rbf(width=1)", "a: known", "b: rbf(width=1)"]


def test_default_kernels_learn_nothing_from_rows_without_the_source():
    X = two_sources()
    known = ~np.isnan(X[:, 0])
    off = expand_kernels(views({"a": [0, 1], "b": [2, 3, 4]}, missing="off"), X)
    alone = expand_kernels(views({"a": [0, 1]}), X[known])
    assert names(off)[: len(alone)] == names(alone)
    for one, other in zip(off, alone, strict=False):
        np.testing.assert_allclose(one(X)[np.ix_(known, known)], other(X[known]), atol=1e-13)
        assert not one(X)[~known].any()


@pytest.mark.parametrize("rule", ["off", "complete"])
def test_models_predict_rows_with_other_holes(rule):
    X, y = two_sources(90), np.repeat(["x", "y"], 45)
    y = np.where(np.nansum(X, axis=1) > 0, "x", "y")
    model = MKLClassifier(views(SOURCES, missing=rule)).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.85
    new = X[-4:].copy()
    new[0, :2], new[1, 2:], new[2, 0] = NAN, NAN, NAN
    assert model.predict(new).shape == (4,)
    both = model.decision_function(new)
    for row, value in zip(new, both, strict=True):  # a row alone is treated the same
        assert model.decision_function(row[None])[0] == pytest.approx(value, abs=1e-10)


def test_ready_matrices_and_texts_are_sources_too():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2))
    frame = pd.DataFrame({"strand": np.arange(20), "note": ["good", "bad"] * 10})
    frame.loc[:4, "strand"] = -1
    frame.loc[15:, "note"] = None
    gram = Precomputed(rows @ rows.T)
    for rule in ("off", "complete"):
        family = views({"strand": ("strand", gram), "note": ("note", Words())}, missing=rule)
        kernels = expand_kernels(family, frame)
        assert names(kernels)[1::2] == ["strand: known", "note: known"]
        K = kernels[0](frame)
        assert K[:5].any() == (rule == "complete")
        assert kernels[1](frame)[0, 0] == 0.0


def test_bad_input_gets_one_sentence():
    X = two_sources()
    X[7] = NAN
    with pytest.raises(RowError, match="row 7 has none of the sources"):
        expand_kernels(views(SOURCES, rbf_ladder([1.0]), missing="off"), X)
    family = views(SOURCES, rbf_ladder([1.0]), missing="off")
    assert len(expand_kernels([family, Known()], X)) == 5  # others may know the row
    weight = np.ones(len(X))
    weight[7] = 0.0
    expand_kernels(views(SOURCES, rbf_ladder([1.0]), missing="off"), X, weight)
    X[:, :2] = NAN
    X[7] = 1.0
    X[:, :2] = NAN
    with pytest.raises(InputError, match=r"views\['a'\]: no training row has this source"):
        expand_kernels(views(SOURCES, [Linear()], missing="complete"), X)
    with pytest.raises(InputError, match="no training row has this source"):
        expand_kernels(views(SOURCES, missing="off"), X)
    with pytest.raises(InputError, match="views: missing must be one of"):
        views(SOURCES, missing="drop")
    with pytest.raises(InputTypeError, match=r"views\['a'\]: columns are needed, as in"):
        views({"a": Linear()})


def test_few_rows_stand_for_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(OPTIONS.most_anchors + 50, 2))
    X[:20, 0] = NAN
    kernel = expand_kernels(views({"a": [0], "b": [1]}, [Linear()], missing="complete"), X)[0]
    assert len(kernel.completion.inverse) == OPTIONS.most_anchors


def test_the_leave_one_out_error_is_that_of_fits_without_the_anchor():
    rng = np.random.default_rng(0)
    phi, rows = rng.normal(size=(25, 4)), rng.normal(size=(25, 3))
    S = np.exp(-0.5 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    errors = []
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        inner = S[np.ix_(rest, rest)] + OPTIONS.ridge * np.eye(24)
        errors.append(((phi[i] - S[i, rest] @ np.linalg.solve(inner, phi[rest])) ** 2).sum())
    inverse = np.linalg.inv(S + OPTIONS.ridge * np.eye(25))
    assert leave_one_out(inverse, phi @ phi.T) == pytest.approx(np.mean(errors), rel=1e-10)


def test_similarities_have_the_width_of_the_least_leave_one_out_error():
    rng = np.random.default_rng(0)
    hidden = rng.uniform(size=200)
    X = np.column_stack([np.sin(12 * hidden), np.cos(12 * hidden), hidden])
    X[::4, :2] = NAN
    widths = [0.02, 0.2, 20.0]
    family = views({"a": [0, 1], "b": [2]}, rbf_ladder(widths), missing="complete")
    completion = expand_kernels(family, X)[0].completion
    having = ~np.isnan(X[:, 0])
    phi = expand_kernels(views({"a": [0, 1]}, rbf_ladder([0.2])), X[having])[0](X[having])
    errors = []
    for kernel in expand_kernels(views({"b": [2]}, rbf_ladder(widths)), X[having]):
        rows = (kernel.prepare(X[having]),)
        S = mean_similarity((kernel,), rows, rows)
        errors.append(leave_one_out(np.linalg.inv(S + 0.1 * np.eye(len(S))), phi))
    best = rbf_ladder([widths[int(np.argmin(errors))]])
    (expected,) = expand_kernels(views({"b": [2]}, best), X[having])
    (found,) = completion.references
    np.testing.assert_allclose(found(X[having]), expected(X[having]), atol=1e-12)
    assert np.argmin(errors) == 0  # neither the middle one nor the widest


@pytest.mark.parametrize("rule", ["off", "complete"])
def test_probabilities_intervals_and_dask_tables(rule):
    dd = pytest.importorskip("dask.dataframe")
    X = two_sources(90)
    frame = pd.DataFrame(X, columns=list("abcde"))
    total = np.nansum(X, axis=1)
    y = np.where(total > 0, "x", "y")
    family = views({"a": ["a", "b"], "b": ["c", "d", "e"]}, rbf_ladder([1.0, 3.0]), missing=rule)
    model = MKLClassifier(family, calibration="sigmoid").fit(frame, y)
    chance = model.predict_proba(frame)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    parts = dd.from_pandas(frame, npartitions=3)
    again = MKLClassifier(family, calibration="sigmoid").fit(parts, y)
    np.testing.assert_allclose(again.decision_function(frame), model.decision_function(frame))
    np.testing.assert_array_equal(np.asarray(model.predict(parts)), model.predict(frame))
    bounds = MKLRegressor(family, loss="square", intervals="jackknife+").fit(frame, total)
    low, high = np.asarray(bounds.predict_interval(frame)).T
    assert ((low <= total) & (total <= high)).mean() > 0.8


def test_a_row_without_sources_is_predicted_by_the_intercept():
    X = two_sources(60)
    y = np.where(np.nansum(X, axis=1) > 0, "x", "y")
    model = MKLClassifier(views(SOURCES, rbf_ladder([1.0]), missing="off")).fit(X, y)
    nothing = model.decision_function(np.full((2, 5), NAN))
    np.testing.assert_allclose(nothing, model.intercept_[0], atol=1e-12)


def test_a_page_explains_few_rows_of_many_completed_kernels():
    """Their mixed rows are predicted, for each kernel in use."""
    X = np.random.default_rng(0).normal(size=(150, 12))
    X[:60, :6], y = NAN, np.nansum(X, axis=1)
    sources, sizes = {"a": slice(0, 6), "b": slice(6, 12)}, []
    for n_kernels in (1, 3):
        kernels = rbf_ladder([0.5 * (k + 2) for k in range(n_kernels)])
        model = MKLRegressor(views(sources, kernels, missing="complete"), norm=2, C=0.1).fit(X, y)
        sizes.append(_affordable(model, X))
        table = model.to_frame()
        assert (table["weight"][~table["kernel"].str.endswith("known")] > 0).all()
    assert sizes[0].n_permutations is not None
    assert sizes[1].n_rows * sizes[1].n_background < sizes[0].n_rows * sizes[0].n_background / 2


def test_explanations_prepare_mixed_rows_once_for_all_kernels(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 10))
    X[:15, :5], y = NAN, np.nansum(X, axis=1)
    sources, calls, counts = {"a": slice(0, 5), "b": slice(5, 10)}, [], []
    whole = Completion._prepare

    def counted(self, *args):
        calls.append(self)
        return whole(self, *args)

    for widths in ([2.0], [1.0, 2.0, 4.0]):
        family = views(sources, rbf_ladder(widths), missing="complete")
        model = MKLRegressor(family, norm=2).fit(X, y)
        expected = model.predict(X[10:12]) - model.predict(X).mean()
        with monkeypatch.context() as patch:
            patch.setattr(Completion, "_prepare", counted)
            found = explain(model, X[10:12], X, n_permutations=40)
        total = np.asarray(found.values).reshape(2, 10).sum(axis=1)
        np.testing.assert_allclose(total, expected, atol=1e-9)
        counts.append(len(calls) - 2 * len(widths))  # once for each kernel at the background
        calls.clear()
    assert counts[0] == counts[1] > 0


def test_explanations_have_the_sources_as_players():
    X = two_sources(60)
    y = np.where(np.nansum(X, axis=1) > 0, "x", "y")
    for rule in ("off", "complete"):
        model = MKLClassifier(views(SOURCES, rbf_ladder([1.0]), missing=rule)).fit(X, y)
        found = explain(model, X[:6], X, by="source")
        assert list(found.feature_names) == ["a", "b"]
        total = np.asarray(found.values).reshape(6, 2).sum(axis=1)
        decisions = model.decision_function(X)
        np.testing.assert_allclose(total, decisions[:6] - decisions.mean(), atol=1e-8)
