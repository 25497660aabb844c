"""Shape functions equal mean predictions of mixed rows; variances equal those of full grids."""

import sys
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from coalition_oracles import grid_of
from kernelweave import (
    RBF,
    Additive,
    CombinedRegressor,
    Laplacian,
    Linear,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    Overlap,
    Polynomial,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
    complete_ladder,
)
from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection import effects

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
MIXED = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(
    town=RANDOM.choice(["Ulm", "Bonn", "Bonn", "Kiel"], 80)
)
THREE = np.digitize(Y, [-0.5, 0.5])

MODELS = {
    "rbf": (MKLRegressor([RBF(width=1.5), Laplacian(width=3.0)], norm=2), X, Y),
    "additive": (MKLRegressor([Additive((0.5,) * 4), Linear()], norm=2), X, Y),
    "three classes": (MKLClassifier([RBF(width=1.5), RBF(width=1, columns=[0, 2])]), X, THREE),
    "mixed": (MKLRegressor([complete_ladder()], norm=1.5), MIXED, Y),
    "sum times product": (
        MKLRegressor(
            [RBF(columns=["a", "b"], width=1) * (Overlap(columns="town") + Linear(columns=["c"]))]
        ),
        MIXED,
        Y,
    ),
    "polynomial": (MKLRegressor([Polynomial(3)]), X, Y),
    "rules": (RuleEnsembleRegressor(C=10), MIXED, Y),
    "rules of three": (RuleEnsembleClassifier(C=10), MIXED, THREE),
}


def fitted(name):
    model, table, y = MODELS[name]
    return model.fit(table, y), table


def predict(model, rows):
    values = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    return np.reshape(values, (len(rows), -1))


def replaced(table, column, value):
    rows = table.copy()
    if isinstance(rows, pd.DataFrame):
        rows[rows.columns[column]] = value
    else:
        rows[:, column] = value
    return rows


@pytest.mark.parametrize("name", MODELS)
def test_curves_are_means_of_predictions_of_mixed_rows(name):
    model, table = fitted(name)
    found = effects(model, table, n_points=5)
    assert found.n_background == 80
    assert len(found) == table.shape[1]
    names = (
        list(table.columns)
        if isinstance(table, pd.DataFrame)
        else [f"column {j}" for j in range(4)]
    )
    before = predict(model, table)
    assert np.allclose(found.base, before.mean(axis=0).squeeze(), atol=1e-12)
    for curve in found:
        column = names.index(curve.name)
        for g, value in enumerate(curve.points):
            after = predict(model, replaced(table, column, value))
            shape = before.shape
            assert np.allclose(curve.ice[:, g].reshape(shape), after, atol=1e-11)
            change = after - before
            assert np.allclose(curve.values[g], change.mean(axis=0), atol=1e-11)
            error = change.std(axis=0, ddof=1) / np.sqrt(80)
            assert np.allclose(curve.errors[g], error, atol=1e-11)


@pytest.mark.parametrize(
    "name", ["rbf", "additive", "three classes", "mixed", "sum times product", "rules"]
)
def test_variances_are_those_of_the_full_grid(name):
    model, table = fitted(name)
    few = table[:5] if name != "mixed" else table[:4]
    found = effects(model, few, pairs=20)
    assert found.exact
    d = few.shape[1]
    frame = pd.DataFrame(few)
    groups = [[column] for column in frame.columns]
    rows = grid_of(frame, groups)
    rows = rows if isinstance(table, pd.DataFrame) else rows.to_numpy()
    cube = predict(model, rows).reshape(*[len(few)] * d, -1)

    terms: dict[tuple[int, ...], np.ndarray] = {}
    for size in range(d + 1):
        for T in combinations(range(d), size):
            others = tuple(q for q in range(d) if q not in T)
            mean = cube.mean(axis=others, keepdims=True)
            terms[T] = mean - sum(terms[S] for S in terms if set(S) < set(T))
    squares = {T: (term**2).mean(axis=tuple(range(d))) for T, term in terms.items()}
    whole = sum(square for T, square in squares.items() if T)
    tol = 1e-13 * max(1.0, np.abs(cube).max() ** 2)  # relative to the squares that are added
    assert np.abs(found.variance - whole.squeeze()).max() <= tol
    names = [str(c) if isinstance(c, str) else f"column {c}" for c in frame.columns]
    for k, curve in enumerate(found):
        q = names.index(curve.name)
        own = {T: square for T, square in squares.items() if q in T}
        assert np.abs(found.first_order[k] - squares[(q,)]).max() <= tol
        assert np.abs(found.total[k] - sum(own.values())).max() <= tol
        equal = sum(square / len(T) for T, square in own.items())
        assert np.abs(found.shapley[k] - equal).max() <= tol
    assert len(found.pairs) == d * (d - 1) // 2
    for pair in found.pairs:
        T = tuple(names.index(name) for name in pair.names)
        share = np.divide(squares[T], whole, out=np.zeros_like(whole), where=whole > 0)
        assert np.allclose(pair.share, share.squeeze(), atol=1e-12)


def test_an_additive_model_is_the_sum_of_its_curves():
    model, table = fitted("additive")
    found = effects(model, table)
    assert found.additive
    assert found.main_share == pytest.approx(1.0)
    total = found.base + sum(
        np.interp(table[:, int(curve.name.split()[-1])], curve.points, curve.values)
        for curve in effects(model, table, n_points=2000)
    )
    inside = (np.abs(table) < 1.2).all(axis=1)  # between the quantiles that curves cover
    assert np.abs(total - model.predict(table))[inside].max() < 1e-4
    assert not effects(*fitted("rbf")).additive


def test_rules_are_steps_at_their_thresholds():
    model, table = fitted("rules")
    curve = effects(model, table)["a"]
    cuts = {c.value for rule in model.rules_ for c in rule.conditions if c.feature == "a"}
    low, high = np.quantile(table["a"], [0.05, 0.95], method="nearest")
    inner = sorted(cut for cut in cuts if low <= cut < high)
    expected = [low, *(p for cut in inner for p in (cut, np.nextafter(cut, np.inf))), high]
    assert curve.points.tolist() == expected
    jumps = np.diff(curve.values)
    assert np.abs(jumps[::2]).max() < 1e-12  # constant between thresholds
    assert np.abs(jumps[1::2]).max() > 0.1


def test_linear_terms_are_straight_lines_between_their_ends():
    model = RuleEnsembleRegressor(1.0, C=10, n_cuts=2, linear_terms=True)
    model.fit(MIXED, Y + 2 * MIXED["a"])
    (term,) = (term for term in model.linear_terms_ if term.feature == "a")
    curve = effects(model, MIXED)["a"]
    between = np.linspace(curve.points[0], curve.points[-1], 500)
    mixed = MIXED.loc[np.repeat(0, 500)].assign(a=between)
    alone = model.predict(mixed) - model.predict(mixed.assign(a=between[0]))
    own = [r for r in model.rules_ if "a" in r.columns]
    if all(len(rule.columns) == 1 for rule in own):
        drawn = np.interp(between, curve.points, curve.values) - curve.values[0]
        np.testing.assert_allclose(drawn, alone, atol=1e-9)
    assert {term.low, term.high} & {*curve.points.tolist()} or term.low < curve.points[0]


def test_categories_come_in_the_order_of_their_frequency():
    model, table = fitted("mixed")
    curve = effects(model, table)["town"]
    assert curve.kind == "category"
    assert curve.points.tolist() == table["town"].value_counts().index.tolist()
    assert curve.rows[0] == curve.points.tolist().index(table["town"][0])


def test_gaps_are_a_category_of_their_own_and_no_number():
    table = MIXED.copy()
    table.loc[::7, "town"] = None
    table.loc[::5, "a"] = np.nan
    found = effects(RuleEnsembleRegressor(C=10).fit(table, Y), table)
    assert None in found["town"].points.tolist()
    assert np.isfinite(found["a"].points).all()
    assert np.isnan(found["a"].rows[0])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_of_any_library_give_the_same(library):
    numbers = MIXED.assign(count=np.arange(80) % 4, big=np.arange(80) * 3)
    model = MKLRegressor([RBF(columns=["a", "count", "big"], width=10), Overlap(columns="town")])
    table = library(numbers.to_dict("list"))
    found = effects(model.fit(table, Y), table, n_points=6)
    assert found["count"].points.tolist() == [0, 1, 2, 3]
    assert (found["big"].points % 1 == 0).all()
    reference = effects(model.fit(numbers, Y), numbers, n_points=6)
    for curve in reference:
        assert np.allclose(found[curve.name].values, curve.values, atol=1e-12)


def test_several_classes_have_a_curve_each():
    model, table = fitted("three classes")
    found = effects(model, table, pairs=2)
    assert found.output_names == ("0", "1", "2")
    curve = found["column 0"]
    assert curve.values.shape == (21, 3)
    one = found[..., "2"]
    assert np.array_equal(one["column 0"].values, curve.values[:, 2])
    assert one.pairs[0].values.ndim == 2
    assert np.array_equal(effects(model, table, output=2)["column 0"].values, curve.values[:, 2])
    assert set(found.to_frame()["output"]) == {"0", "1", "2"}
    assert "output" not in one.to_frame()
    assert len(found.shares()) == 12


def test_predicted_effects_are_near_those_of_the_exact_form(monkeypatch):
    model, table = fitted("rbf")
    exact = effects(model, table, pairs=1)
    monkeypatch.setattr(
        sys.modules["kernelweave.inspection.effects"], "is_manageable", lambda *_: False
    )
    found = effects(model, table, pairs=1)
    assert exact.exact
    assert not found.exact
    assert found.total is found.shapley is None
    assert found.names[0] == exact.names[0]
    assert found.pairs[0].names == exact.pairs[0].names
    for curve in exact:
        assert np.allclose(found[curve.name].values, curve.values, atol=1e-12)
    assert found.variance == pytest.approx(exact.variance, rel=0.15)
    assert found.main_share == pytest.approx(exact.main_share, abs=0.15)
    assert found.pairs[0].share == pytest.approx(exact.pairs[0].share, abs=0.15)


def test_many_rows_are_thinned_out():
    many = np.tile(X, (9, 1))
    model = MKLRegressor([RBF(width=1.5)]).fit(X, Y)
    assert effects(model, many, [0]).n_background == 500
    polynomial = MKLRegressor([Polynomial(3)]).fit(X, Y)
    assert effects(polynomial, many, [0]).n_background == 200


def test_refits_give_bands_and_need_targets():
    model, table = fitted("rbf")
    found = effects(model, table, ["column 0", 1], y=Y, n_refits=4, n_points=5)
    assert found.n_refits == 4
    assert set(found.names) == {"column 0", "column 1"}
    for curve in found:
        assert curve.band.shape == (2, 5)
        assert (curve.band[0] <= curve.band[1]).all()
        assert (curve.band[1] - curve.band[0]).max() > 0.01
    assert {"low", "high"} <= set(found.to_frame().columns)
    again = effects(model, table, ["column 0", 1], y=Y, n_refits=4, n_points=5)
    assert np.array_equal(again[0].band, found[0].band)
    with pytest.raises(InputError, match="y: refits need the targets of X"):
        effects(model, table, n_refits=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["colum 0"]}, "columns: .* Did you mean 'column 0'"),
        ({"columns": [9]}, "columns: there are 4 columns, got 9"),
        ({"columns": [1, 1]}, "columns: each may be listed once"),
        ({"pairs": -1}, "pairs must be a whole number >= 0"),
        ({"n_points": 1}, "n_points must be a whole number >= 2"),
        ({"output": "x"}, "output: must be"),
    ],
)
def test_bad_input_gets_one_sentence(options, message):
    model, table = fitted("three classes")
    with pytest.raises(InputError, match=message):
        effects(model, table, **options)


def test_tables_that_cannot_be_used():
    model, table = fitted("rbf")
    with pytest.raises(InputError, match="effects need 2 rows or more, got 1"):
        effects(model, table[:1])
    with pytest.raises(InputTypeError, match=r"pass X.toarray\(\)"):
        effects(model, sp.csr_array(table))
    with pytest.raises(InputError, match="has 3 columns, but the model was fitted to 4"):
        effects(model, table[:, :3])


def test_text_lists_columns_and_pairs():
    model, table = fitted("rbf")
    text = str(effects(model, table, pairs=1))
    assert "of the variance" in text
    assert "column 1 and column 2 together" in text
    assert repr(effects(model, table)) == "<Effects of 4 columns, 0 pairs, 1 output>"


def pipelines():
    """Return models around an estimator, and whether they are sums of products of columns."""
    numbers = ["a", "b", "c", "d"]
    one_hot = ColumnTransformer(
        [("numbers", StandardScaler(), numbers), ("town", OneHotEncoder(), ["town"])]
    )
    rbf = MKLRegressor([RBF(width=2.0)])
    members = [("one", rbf), ("two", MKLRegressor([Linear()]))]
    return {
        "scaled": (make_pipeline(StandardScaler(), rbf), MIXED[numbers], True),
        "one-hot": (make_pipeline(one_hot, rbf), MIXED, True),
        "pca": (make_pipeline(PCA(2), rbf), MIXED[numbers], False),
        "search": (GridSearchCV(rbf, {"C": [1, 10]}, cv=2), MIXED[numbers], True),
        "combined": (CombinedRegressor(members, weights=[1, 3]), MIXED[numbers], True),
        "scaled members": (
            CombinedRegressor([("scaled", make_pipeline(StandardScaler(), rbf))]),
            MIXED[numbers],
            True,
        ),
        "logarithm": (
            CombinedRegressor(members, logarithms=[(9.0, 1.0), None]),
            MIXED[numbers],
            False,
        ),
        "metric": (MetricKernelRegressor(n_steps=1), MIXED, False),
    }


@pytest.mark.parametrize("name", pipelines())
def test_pipelines_have_effects_of_the_columns_that_users_have(name):
    model, table, exact = pipelines()[name]
    model.fit(table, Y)
    found = effects(model, table, n_points=4, pairs=1)
    assert found.exact == exact
    assert sorted(found.names) == sorted(table.columns)
    before = model.predict(table)
    for curve in found:
        for g, value in enumerate(curve.points):
            after = model.predict(table.assign(**{curve.name: value}))
            assert np.allclose(curve.values[g], (after - before).mean(), atol=1e-10)
    assert len(found.pairs) == 1


def test_levels_that_are_too_rare_to_be_tried_are_predicted():
    """Derived columns are found by trying rows; what is missed must not change the curves."""
    rare = pd.DataFrame({"x": np.linspace(0, 1, 400), "kind": ["a", "b"] * 200})
    rare.loc[[7, 211], "kind"] = "z"
    y = np.sin(5 * rare["x"]) + 3.0 * (rare["kind"] == "z")
    encoder = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = make_pipeline(encoder, MKLRegressor([RBF(width=1.0)], C=100)).fit(rare, y)
    curve = effects(model, rare)["kind"]
    assert curve.points.tolist() == ["a", "b", "z"]
    some = rare if len(curve.ice) == 400 else rare.iloc[np.linspace(0, 399, 200).astype(int)]
    before = model.predict(some)
    for g, level in enumerate("abz"):
        change = model.predict(some.assign(kind=level)) - before
        assert curve.values[g] == pytest.approx(change.mean(), abs=1e-10)


def test_without_totals_the_curves_stay_exact():
    model = MKLRegressor([RBF(width=1.5)]).fit(X, Y)
    whole, quick = effects(model, X, [0, 1]), effects(model, X, [0, 1], total=False)
    assert (whole.exact, quick.exact) == (True, False)
    assert quick.total is None
    assert quick.shapley is None
    for curve in whole.curves:
        np.testing.assert_array_equal(quick[curve.name].values, curve.values)
    np.testing.assert_allclose(quick.first_order, whole.first_order, rtol=0.2)
