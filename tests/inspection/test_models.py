"""Pipelines, searches, combinations, sources."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from game_oracles import brute_force, coalition_values, interactions, outputs
from kernelweave import (
    RBF,
    CombinedClassifier,
    CombinedRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    SumProductMKLClassifier,
    views,
)
from kernelweave.inspection import explain
from kernelweave.io import TablePreparer

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((80, 4))
Y = np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2


@pytest.mark.parametrize(
    "steps",
    [
        (StandardScaler(),),
        (SplineTransformer(4), StandardScaler()),
        (SimpleImputer(add_indicator=True), StandardScaler()),
    ],
)
def test_steps_of_single_columns_keep_the_columns(steps):
    gaps = X.copy()
    gaps[::7, 1] = np.nan if isinstance(steps[0], SimpleImputer) else 0.0
    model = make_pipeline(*steps, MKLRegressor([RBF(3.0)], C=10)).fit(gaps, Y)
    e = explain(model, gaps[:3], gaps[10:17])
    found = brute_force(outputs(model), gaps[:3], gaps[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    assert e.feature_names == ("column 0", "column 1", "column 2", "column 3")
    assert np.array_equal(e.data, gaps[:3], equal_nan=True)


def test_one_column_becomes_several():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": np.where(X[:, 2] > 0, "Ulm", "Bonn")})
    encode = make_column_transformer(
        (OneHotEncoder(), ["town"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    model = make_pipeline(encode, MKLRegressor([RBF(2.0), Linear()], norm=2.0)).fit(frame, Y)
    e = explain(model, frame[:3], frame[10:17])
    assert e.feature_names == ("a", "b", "town")
    assert list(e.data[:, 2]) == list(frame["town"][:3])

    def function(rows):
        town = np.where(rows[:, 2] > 0, "Ulm", "Bonn")
        return outputs(model)(pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "town": town}))

    found = brute_force(function, X[:3, :3], X[10:17, :3])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12


def test_steps_that_mix_columns_show_derived_ones():
    model = make_pipeline(StandardScaler(), PCA(3), MKLRegressor([RBF(2.0)])).fit(X, Y)
    e = explain(model, X[:3], X[10:17])
    assert e.feature_names == ("pca0", "pca1", "pca2")
    assert np.array_equal(e.data, model[:-1].transform(X[:3]))
    assert np.abs(e.predictions - model.predict(X[:3])).max() <= 1e-12
    whole = explain(model, X[:3], X[10:17], by={"everything": [0, 1, 2, 3]})
    assert np.abs(whole.values[:, 0] - e.values.sum(axis=1)).max() <= 1e-12


def test_tables_of_the_command_line():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=np.where(X[:, 3] > 0, "Ulm", "Bonn"))
    model = make_pipeline(TablePreparer(), MKLRegressor(C=10)).fit(frame, Y)
    with_more = frame[:3].assign(target=1.0)[["target", "town", "d", "c", "b", "a"]]
    e = explain(model, with_more, frame)
    assert e.feature_names == ("a", "b", "c", "d", "town")
    assert np.abs(e.predictions - model.predict(frame[:3])).max() <= 1e-12
    assert e.data[0, 4] == frame["town"][0]
    assert e.data[0, 0] == X[0, 0]


def test_a_search():
    search = GridSearchCV(MKLRegressor([RBF(2.0)]), {"C": [1, 10]}, cv=2).fit(X, Y)
    e = explain(search, X[:3], X[10:17])
    assert np.array_equal(e.values, explain(search.best_estimator_, X[:3], X[10:17]).values)


def test_sources_of_views():
    kernels = views({"blood": [0, 1], "image": [2]})
    model = MKLRegressor(kernels, norm=2.0, C=10).fit(X, Y)
    e = explain(model, X[:3], X[10:17], by="source")
    assert e.feature_names == ("blood", "image", "column 3")
    assert list(e.data[0, :2]) == [None, X[0, 2]]
    columns = explain(model, X[:3], X[10:17])
    sums = np.column_stack([columns.values[:, :2].sum(axis=1), columns.values[:, 2:]])
    assert np.abs(e.values - sums).max() <= 1e-12  # no kernel crosses sources
    pairs = explain(model, X[:3], X[10:17], by="source", interactions=True).interaction_values
    assert np.abs(pairs[:, 0, 1]).max() <= 1e-15


def test_sources_that_kernels_connect():
    kernels = [RBF(columns=[0, 1]), RBF(columns=[1, 2]), RBF(columns=[3])]
    model = MKLRegressor(kernels, norm=2.0, C=10).fit(X, Y)
    e = explain(model, X[:3], X[10:17], by="source")
    assert e.feature_names == ("column 0, column 1, column 2", "column 3")
    found = brute_force(outputs(model), X[:3], X[10:17], [(0, 1, 2), (3,)])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12


def test_combined_regressors_add_up():
    members = [
        ("scaled", make_pipeline(StandardScaler(), MKLRegressor([RBF(2.0)]))),
        ("linear", MKLRegressor([Linear(), RBF(columns=[0, 3])])),
    ]
    model = CombinedRegressor(members, weights=[1, 3]).fit(X, Y)
    e = explain(model, X[:3], X[10:17], interactions=True)
    assert e.n_permutations == 0
    found = brute_force(outputs(model), X[:3], X[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    assert np.abs(e.interaction_values.sum(axis=2) - e.values).max() <= 1e-12
    by_kernel = explain(model, X[:3], X[10:17], by="kernel")
    assert len(by_kernel.feature_names) == 3
    assert np.abs(by_kernel.predictions - model.predict(X[:3])).max() <= 1e-12
    assert explain(model, X[:3], X[10:17], value="independent").errors is None
    own = [explain(member, X[:3], X[10:17]).shared_errors for member in model.members_]
    assert np.allclose(e.shared_errors, 0.25 * own[0] + 0.75 * own[1], atol=1e-14)


@pytest.mark.parametrize(
    "model",
    [
        CombinedRegressor(logarithms=[(10.0, 1.0), None]),
        CombinedClassifier(),
        CombinedClassifier([("one", MKLClassifier())], calibrations=[([[2.0]], [0.5])]),
    ],
)
def test_combinations_of_few_columns_are_exact(model):
    model.fit(X, Y if "Regressor" in type(model).__name__ else Y > 0)
    e = explain(model, X[:3], X[10:17])
    assert e.n_permutations == 0
    found = brute_force(outputs(model), X[:3], X[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12


def test_pairs_of_functions_that_do_not_add_up():
    model = CombinedClassifier().fit(X, Y > 0)
    e = explain(model, X[:2], X[10:15], interactions=True)
    for k, row in enumerate(X[:2]):
        values = coalition_values(outputs(model), row, X[10:15], [(j,) for j in range(4)])
        pairs = interactions(values, 4)[..., 0]
        off = ~np.eye(4, dtype=bool)
        assert np.abs(e.interaction_values[k][off] - pairs[off] / 2).max() <= 1e-12
    assert np.abs(e.interaction_values.sum(axis=2) - e.values).max() <= 1e-12
    wide = RANDOM.standard_normal((40, 9))
    with pytest.raises(ValueError, match="interactions: of more than 8 players are not possible"):
        explain(CombinedClassifier().fit(wide, wide[:, 0] > 0), wide, interactions=True)


def test_members_whose_steps_mix_columns_are_mixed_in_the_table():
    members = [
        ("rotated", make_pipeline(PCA(3), MKLRegressor([RBF(2.0)]))),
        ("plain", MKLRegressor([RBF(2.0)])),
    ]
    model = CombinedRegressor(members, weights=[1, 3]).fit(X, Y)
    e = explain(model, X[:3], X[10:17])
    found = brute_force(outputs(model), X[:3], X[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    assert np.abs(e.predictions - model.predict(X[:3])).max() <= 1e-12


def test_networks_with_too_many_paths_are_mixed_in_the_table():
    left, right = RBF(2.0, columns=[0, 1]), RBF(2.0, columns=[2, 3])
    structure = (left + right) * (Linear() + left)
    model = SumProductMKLClassifier(structure, max_paths=2).fit(X, Y > 1)
    assert model.paths_ == []
    e = explain(model, X[:3], X[10:17], interactions=True)
    found = brute_force(outputs(model), X[:3], X[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    with pytest.raises(ValueError, match=r"'kernel' is not possible .* more than max_paths paths"):
        explain(model, X[:3], X, by="kernel")


@pytest.mark.slow
def test_combinations_of_many_columns_are_sampled():
    wide = RANDOM.standard_normal((80, 10))
    model = CombinedClassifier().fit(wide, wide[:, 0] * wide[:, 1] > 0)
    e = explain(model, wide[:2], wide[10:15])
    assert e.n_permutations == 500
    found = brute_force(outputs(model), wide[:2], wide[10:15])[..., 0]
    assert (np.abs(e.values - found) <= 4 * e.errors + 1e-12).all()
    assert np.abs(e.predictions - model.decision_function(wide[:2])).max() <= 1e-12
    again = explain(model, wide[:2], wide[10:15], n_jobs=2)
    assert np.array_equal(e.values, again.values)


def test_a_few_permutations_are_enough_where_so_few_are_asked_for():
    wide = RANDOM.standard_normal((80, 6))
    model = CombinedClassifier().fit(wide, wide[:, 0] * wide[:, 1] > 0)
    exact = explain(model, wide[:3], wide)
    rough = explain(model, wide[:3], wide, n_permutations=80)
    assert (exact.n_permutations, rough.n_permutations) == (0, 80)
    assert (np.abs(rough.values - exact.values) <= 4 * rough.errors + 1e-12).all()
    assert np.abs(rough.values - exact.values).max() > 1e-6
    narrow = CombinedClassifier().fit(X, Y > 0)
    assert explain(narrow, X[:3], X, n_permutations=len(X)).n_permutations == 0


def test_quantiles_are_explained_before_they_are_sorted():
    model = MKLRegressor([RBF(2.0)], loss="quantile", quantile=(0.1, 0.5)).fit(X, Y)
    e = explain(model, X[:3], X[10:17])
    assert e.output_names == ("quantile 0.1", "quantile 0.5")
    assert np.abs(np.sort(e.predictions, axis=1) - model.predict(X[:3])).max() <= 1e-12
    assert explain(model, X[:3], X[10:17], output=0.5).output_names == ("quantile 0.5",)


def test_several_labels_and_targets():
    labels = np.column_stack([Y > 0, X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    e = explain(MKLClassifier([RBF(2.0)]).fit(X, labels), X[:3], X[10:17])
    assert e.values.shape == (3, 4, 3)
    assert e.output_names == ("0", "1", "2")
    model = MKLRegressor([RBF(2.0)]).fit(X, X[:, :2])
    e = explain(model, X[:3], X[10:17])
    assert np.abs(e.predictions - model.predict(X[:3])).max() <= 1e-12
    assert e.output_names == ("output 0", "output 1")


def test_levels_that_are_rare_belong_to_their_column():
    """A derived column that differs in two rows of 400 only still has its player."""
    rare = pd.DataFrame({"x": np.linspace(0, 1, 400), "kind": ["a", "b"] * 200})
    rare.loc[[7, 211], "kind"] = "z"
    y = np.sin(5 * rare["x"]) + 3.0 * (rare["kind"] == "z")
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, MKLRegressor([RBF(width=1.0)], C=100)).fit(rare, y)
    found = explain(model, rare)
    assert np.abs(found.predictions - model.predict(rare)).max() < 1e-9
