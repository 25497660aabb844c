"""Hierarchical kernel learning as estimators: special cases, invariants, and what they refuse."""

import pickle
import warnings
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from hierarchy_cases import CLASSES, KERNELS, LABELS, PARENTS, X, learner, table, y
from hkl_oracles import closure, omega
from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Polynomial,
    Precomputed,
    ProductLattice,
    rbf_ladder,
)
from kernelweave.errors import InputError, InputTypeError, MemoryBudgetError, ModelFileError
from kernelweave.estimators import hierarchical_base
from kernelweave.io import load, save
from kernelweave.kernels import FromCallable
from kernelweave.solvers.dag_active_set import dag_active_set


def value_of(model, X, y, parents, costs, rho):
    """Compute the objective of a fitted classifier from what it says about itself."""
    nodes = list(costs)
    above = closure([[nodes.index(p) for p in parents.get(node, [])] for node in nodes])
    Q = np.zeros(len(nodes))
    Q[[nodes.index(node) for node in model.active_nodes_]] = model.block_norms_
    hinge = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * model.decision_function(X))
    return 0.5 * omega(Q, above, list(costs.values()), rho) ** 2 + model.C * hinge.sum()


COSTS = {"line": 1.0, "wide": 2.0, "narrow": 4.0, "square": 2.0, "cube": 4.0}


@pytest.mark.parametrize("rho", [2.0, 1.5, 1.1])
def test_the_objective_is_that_of_the_model(rho):
    model = learner(rho=rho).fit(X, y)
    assert model.converged_
    assert model.objective_ == pytest.approx(value_of(model, X, y, PARENTS, COSTS, rho), rel=1e-9)
    assert 0 <= model.duality_gap_ <= 1e-4 * model.objective_
    assert model.n_nodes_ <= 5
    named = learner(rho=rho, node_cost=COSTS).fit(X, y)
    assert named.objective_ == model.objective_
    called = learner(rho=rho, node_cost=lambda node: COSTS[node]).fit(X, y)
    assert called.objective_ == model.objective_


@pytest.mark.parametrize("rho", [2.0, 1.2])
def test_without_edges_it_is_flat_learning_with_norm_one(rho):
    kernels = [Linear(), RBF(1.0), RBF(3.0), Polynomial(2)]
    flat = MKLClassifier(kernels, C=2.0, tol=1e-5, max_iter=1000).fit(X, y)
    model = HierarchicalMKLClassifier(kernels, rho=rho, normalize="trace", C=2.0, tol=1e-5)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(flat.objective_, rel=2e-5)
    assert model.decision_function(X) == pytest.approx(flat.decision_function(X), abs=0.02)
    target = X[:, 0] ** 2
    flat = MKLRegressor(kernels, loss="square", tol=1e-5, max_iter=1000).fit(X, target)
    model = HierarchicalMKLRegressor(kernels, loss="square", normalize="trace", tol=1e-5)
    assert model.fit(X, target).objective_ == pytest.approx(flat.objective_, rel=2e-5)


@pytest.mark.parametrize("rho", [2.0, 1.5])
def test_for_its_weights_it_is_a_support_vector_machine(rho):
    model = learner(rho=rho, tol=1e-6).fit(X, y)
    svc = SVC(kernel="precomputed", C=3.0, tol=1e-8).fit(model.kernel(X), y)
    assert model.decision_function(X) == pytest.approx(
        svc.decision_function(model.kernel(X)), abs=5e-3
    )
    block = model.kernel(X[:7], X[model.support_])
    expected = block @ model.dual_coef_.T + model.intercept_
    assert model.decision_function(X[:7]) == pytest.approx(expected.ravel(), abs=1e-10)


def test_the_optimum_falls_with_rho_and_is_concave_in_C():
    values = [learner(rho=rho).fit(X, y).objective_ for rho in (1.1, 1.4, 1.7, 2.0)]
    assert all(b <= a * (1 + 1e-4) for a, b in pairwise(values))
    Cs = [1.0, 2.0, 3.0, 4.0]
    values = np.array([m.objective_ for m in learner().fit_path(X, y, Cs)])
    assert (np.diff(values) >= -1e-4 * values[-1]).all()
    assert (np.diff(values, 2) <= 2e-4 * values[-1]).all()


def test_the_optimum_falls_as_the_graph_grows():
    few = ["line", "wide", "square"]
    small = HierarchicalMKLClassifier(
        {node: KERNELS[node] for node in few},
        parents={node: above for node, above in PARENTS.items() if node in few},
        C=3.0,
        tol=1e-4,
    )
    assert learner().fit(X, y).objective_ <= small.fit(X, y).objective_ * (1 + 1e-4)


def test_order_of_nodes_and_rows_does_not_matter():
    model = learner(tol=1e-6).fit(X, y)
    turned = HierarchicalMKLClassifier(
        dict(reversed(KERNELS.items())), parents=PARENTS, C=3.0, tol=1e-6
    ).fit(X[::-1], y[::-1])
    assert turned.objective_ == pytest.approx(model.objective_, rel=2e-6)
    assert turned.decision_function(X) == pytest.approx(model.decision_function(X), abs=5e-3)


def test_a_row_given_twice_is_a_row_of_weight_two():
    twice = learner().fit(np.vstack([X, X[:9]]), np.append(y, y[:9]))
    weight = np.where(np.arange(len(y)) < 9, 2.0, 1.0)
    assert learner().fit(X, y, sample_weight=weight).objective_ == twice.objective_
    half = learner(C=1.5).fit(np.vstack([X, X]), np.append(y, y))
    assert half.objective_ == pytest.approx(learner().fit(X, y).objective_, rel=1e-4)


@pytest.mark.parametrize("kind", ["dict", "lattice"])
def test_published_solver_and_condition_end_at_the_same_value(kind):
    kernels = KERNELS if kind == "dict" else ProductLattice(max_order=2)
    options = {"parents": PARENTS if kind == "dict" else None, "C": 3.0, "tol": 1e-2}
    reference = HierarchicalMKLClassifier(kernels, **(options | {"tol": 1e-4})).fit(X, y)
    for other in ({"solver": "mirror"}, {"certificate": "paper"}):
        model = HierarchicalMKLClassifier(kernels, **options, **other).fit(X, y)
        assert model.converged_
        assert model.objective_ == pytest.approx(reference.objective_, rel=1.01e-2)
        assert model.objective_ - model.duality_gap_ <= reference.objective_ * (1 + 1e-9)


def test_the_default_lattice_finds_an_interaction():
    X, y = table(120, 6, seed=1)
    model = HierarchicalMKLClassifier(C=30.0, tol=1e-3).fit(X, y)
    assert model.converged_
    first = model.to_frame()
    assert list(first.columns) == ["node", "kernel", "weight", "norm", "contribution"]
    assert ((0, 1), (1, 1)) in first["node"][:3].tolist()
    assert first["contribution"].sum() == pytest.approx(1.0)
    assert () not in model.active_nodes_
    assert model.score(*table(200, 6, seed=2)) > 0.7
    above = {node for w in model.active_nodes_ for node in (((j, r),) for j, r in w)}
    assert above <= set(model.active_nodes_)
    without = HierarchicalMKLClassifier(C=30.0, fit_intercept=False).fit(X, y)
    assert () in without.active_nodes_
    assert without.intercept_.tolist() == [0.0]


def test_a_ladder_in_a_lattice():
    lattice = ProductLattice(rbf_ladder([4.0, 1.0], per_feature=True), base=1.5, max_order=2)
    model = HierarchicalMKLClassifier(lattice, C=10.0).fit(X, y)
    assert all(((j, 1),) in model.active_nodes_ for ((j, r), *_) in model.active_nodes_ if r == 2)
    cheaper = HierarchicalMKLClassifier(lattice, C=10.0, node_cost=1.2).fit(X, y)
    assert cheaper.objective_ < model.objective_
    products = [k for k, w in zip(model.kernels_, model.active_nodes_, strict=True) if len(w) == 2]
    assert all(" * " in str(kernel) for kernel in products)


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_insensitive"])
def test_regression(loss):
    target = X[:, 0] * X[:, 1] + X[:, 2]
    model = HierarchicalMKLRegressor(C=100.0, loss=loss, epsilon=0.3).fit(X, target)
    assert model.converged_
    assert model.score(X, target) > 0.9
    assert model.predict(X[:3]).shape == (3,)


def test_frames_of_mixed_types():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 2] > 0, "u", "v")})
    for made in (frame, pl.from_pandas(frame)):
        model = HierarchicalMKLClassifier(C=10.0).fit(made, CLASSES)
        assert "overlap on kind" in " ".join(str(kernel) for kernel in model.kernels_)
        assert list(model.feature_names_in_) == ["a", "b", "kind"]
        assert model.predict(made[:5]).shape == (5,)


def test_default_kernels_take_dates_and_gaps_unless_told_otherwise():
    random = np.random.default_rng(1)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 365, 80), unit="D")
    frame = pd.DataFrame(
        {"x": random.normal(size=80), "day": day, "kind": ["a", "b", None, "b"] * 20}
    )
    late = (frame.day.dt.month > 6).to_numpy()
    y = 2.0 * late + frame.kind.isna()
    frame.loc[::9, "x"] = np.nan
    model = HierarchicalMKLRegressor(C=100).fit(frame, y)
    assert model.score(frame, y) > 0.9
    blind = HierarchicalMKLRegressor(C=100).fit(frame[["x"]], y)
    assert blind.score(frame[["x"]], y) < 0.7
    with pytest.raises(InputError, match="issing"):
        HierarchicalMKLRegressor(missing="refuse").fit(frame, y)
    off = HierarchicalMKLRegressor(missing="off").fit(frame[["x", "kind"]], y)
    assert np.isfinite(off.predict(frame[["x", "kind"]])).all()


def test_the_number_of_threads_does_not_matter():
    one, two = (HierarchicalMKLClassifier(C=30.0, n_jobs=n).fit(*table(150, 5)) for n in (1, 2))
    assert one.objective_ == two.objective_
    assert (one.dual_coef_ == two.dual_coef_).all()
    assert one.active_nodes_ == two.active_nodes_


def test_clones_pickles_and_searches():
    model = learner().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert clone(model).kernels["wide"] is KERNELS["wide"]
    lattice = ProductLattice(max_order=2)
    search = GridSearchCV(HierarchicalMKLClassifier(lattice, tol=1e-2), {"C": [1, 10]}, cv=2)
    assert search.fit(X, y).best_estimator_.kernels is lattice
    with pytest.raises(NotFittedError):
        learner().predict(X)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (learner(node_cost=lambda node: COSTS[node]), CLASSES),
        (HierarchicalMKLClassifier(C=10.0, fit_intercept=False), LABELS),
        (HierarchicalMKLClassifier(ProductLattice(rbf_ladder([3, 1], per_feature=True))), y),
        (HierarchicalMKLRegressor([Linear(), RBF()], parents={1: [0]}), X[:, 0]),
        (HierarchicalMKLRegressor(task_correlation=np.eye(2) + 0.5, loss="square"), X[:, :2]),
    ],
)
def test_models_survive_their_files(model, target, tmp_path):
    fitted = clone(model).fit(X, target)
    save(fitted, tmp_path / "model.kw")
    loaded = load(tmp_path / "model.kw")
    assert (loaded.predict(X) == fitted.predict(X)).all()
    assert loaded.active_nodes_ == fitted.active_nodes_
    assert loaded.to_frame().equals(fitted.to_frame())
    assert clone(loaded).fit(X, target).objective_ == fitted.objective_


def test_graphs_become_dicts_in_files_and_functions_are_refused(tmp_path):
    graph = nx.DiGraph()
    graph.add_node("a", kernel=Linear())
    graph.add_node("b", kernel=RBF(2.0))
    graph.add_edge("a", "b")
    fitted = HierarchicalMKLClassifier(graph).fit(X, y)
    save(fitted, tmp_path / "model.kw")
    loaded = load(tmp_path / "model.kw")
    assert loaded.kernels == {"a": Linear(), "b": RBF(2.0)}
    assert loaded.parents == {"a": [], "b": ["a"]}
    fitted = HierarchicalMKLClassifier({"f": FromCallable(lambda a, b: a @ b.T)}).fit(X, y)
    with pytest.raises(ModelFileError, match="use Precomputed"):
        save(fitted, tmp_path / "other.kw")


def test_limits_are_told_with_what_to_do():
    with pytest.warns(ConvergenceWarning, match=r"stopped with \d+ nodes .* raise max_nodes"):
        few = HierarchicalMKLClassifier(C=100.0, max_nodes=1).fit(X, y)
    assert not few.converged_
    assert np.isfinite(few.duality_gap_)
    assert few.n_iter_ < 100  # a large gap alone is no reason to go on
    full = HierarchicalMKLClassifier(C=100.0, tol=1e-5).fit(X, y)
    assert few.objective_ - few.duality_gap_ <= full.objective_ <= few.objective_ * (1 + 1e-5)
    cut = HierarchicalMKLClassifier(ProductLattice(max_visited=2), C=100.0)
    with pytest.warns(ConvergenceWarning, match=r"cut after 2 products.*Hint: lower max_order"):
        cut.fit(X, y)
    assert cut.duality_gap_ == np.inf
    assert not cut.converged_
    assert cut.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        learner(max_iter=1, tol=1e-6).fit(X, y)
    with pytest.raises(MemoryBudgetError, match="A lattice of 4 kernels needs"):
        HierarchicalMKLClassifier(memory_limit=1000).fit(X, y)


def test_columns_that_say_nothing():
    with pytest.warns(UserWarning, match="the best function is zero but for its bias"):
        model = HierarchicalMKLClassifier().fit(np.ones((20, 2)) * [3.0, 0.0], y[:20])
    assert len(set(model.predict(np.ones((4, 2))))) == 1
    small = learner(C=1e-9, tol=1e-3).fit(X, np.r_[np.zeros(30), np.ones(20)])
    assert (small.predict(X) == 0).all()
    line = HierarchicalMKLClassifier(node_cost=50.0, C=1.0).fit(X, y)
    assert all(len(node) <= 1 for node in line.active_nodes_)


@pytest.mark.parametrize("graph", [{}, {"kernels": [RBF(1.0), RBF(3.0)], "parents": {1: [0]}}])
@pytest.mark.parametrize(
    ("loss", "target"),
    [
        ("epsilon_insensitive", np.full(50, 3.0)),
        ("epsilon_insensitive", 0.01 * X[:, 0]),
        ("huber", np.full(50, 3.0)),
        ("square", np.full(50, 3.3)),
    ],
)
def test_targets_that_need_no_function(loss, target, graph):
    # No row has a coefficient, so that a search has nothing to sum; or rounding alone has some.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the best function is zero but for its bias")
        model = HierarchicalMKLRegressor(loss=loss, target_scale=None, **graph).fit(X, target)
    assert model.converged_
    assert model.n_iter_ <= 3
    assert model.objective_ <= 1e-25
    assert model.duality_gap_ <= model.objective_
    assert np.abs(model.predict(X) - target).max() <= (0.1 if loss[0] == "e" else 1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rho": 1.0}, ValueError, "'rho' parameter"),
        ({"rho": 2.5}, ValueError, "'rho' parameter"),
        ({"C": 0.0}, ValueError, "'C' parameter"),
        ({"solver": "newton"}, ValueError, "'solver' parameter"),
        ({"certificate": "none"}, ValueError, "'certificate' parameter"),
        ({"max_nodes": 0}, ValueError, "'max_nodes' parameter"),
        ({"kernels": {}}, InputError, "kernels: the graph is empty"),
        ({"kernels": {"a": np.eye(3)}}, InputTypeError, r"kernels\['a'\].*Precomputed"),
        ({"kernels": {"a": "rbf"}}, InputTypeError, r"kernels\['a'\]: must be a kernel, got str"),
        ({"kernels": "rbf"}, InputTypeError, "kernels: must be a kernel"),
        ({"parents": ["a"]}, InputTypeError, "parents: must be a dict"),
        ({"parents": {"wide": "line"}}, InputTypeError, r"parents\['wide'\]: must be a list"),
        ({"parents": {"none": []}}, InputError, "parents: there is no node 'none'"),
        ({"parents": {"wide": ["up"]}}, InputError, r"parents\['wide'\]: there is no node 'up'"),
        (
            {"parents": {"wide": ["line"], "line": ["wide"]}},
            InputError,
            "parents: the graph has a cycle, '(line|wide)' -> '(line|wide)' -> '(line|wide)'",
        ),
        ({"node_cost": 0.0}, InputError, "node_cost: must be a finite number > 0, got 0.0"),
        (
            {"node_cost": {"line": 1.0}},
            InputError,
            "node_cost: there is no cost for the node 'wide",
        ),
        ({"node_cost": COSTS | {"cube": -1.0}}, InputError, "node_cost of 'cube': must be"),
        ({"node_cost": lambda node: None}, InputError, "node_cost of 'line': must be"),
        ({"node_cost": [1.0]}, InputTypeError, "node_cost: must be a number, a dict"),
        ({"kernels": ProductLattice()}, InputError, "parents: a lattice has its own order"),
        ({"kernels": nx.DiGraph()}, InputError, "parents: a graph has its own edges"),
        (
            {"kernels": ProductLattice(), "parents": None, "node_cost": COSTS},
            InputError,
            "node_cost: in a lattice the cost must be a power of a base",
        ),
        ({"task_correlation": -1.0}, InputError, "task_correlation"),
        ({"task_correlation": np.eye(3)}, InputError, "task_correlation"),
        ({"task_correlation": [[-1.0]]}, InputError, "task_correlation"),
        ({"memory_limit": "much"}, InputError, "memory_limit"),
    ],
)
def test_bad_parameters_get_one_sentence(options, error, message):
    model = learner().set_params(**options)
    with pytest.raises(error, match=message) as caught:
        model.fit(X, y)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "active_nodes_")


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (np.where(X > 2.0, np.nan, X), y, "X: contains NaN or infinity, first in row"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X, np.zeros(50), "one class only"),
        (X, LABELS[:-1], "inconsistent numbers of samples"),
        (X, None, "requires y"),
    ],
)
def test_bad_data_gets_one_sentence(data, target, message):
    with pytest.raises(ValueError, match=message):
        learner().fit(data, target)


def test_no_model_is_worse_than_zero():
    """Values of 1e20 leave no digits to a model: few solves must tell, and zero is returned."""
    rng = np.random.default_rng(0)
    rows = 1e3 * rng.normal(size=(11, 3)) + 1e3 * (np.arange(11) % 2)[:, None]
    signs = rng.permutation(np.arange(11) % 2)
    kernels = {"a": Polynomial(3, 0.0), "b": Linear()}
    model = HierarchicalMKLClassifier(
        kernels, parents={"a": [], "b": ["a"]}, C=64.0, fit_intercept=False, normalize=None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, signs)
    assert model.objective_ <= 64.0 * 11
    assert model.n_iter_ < 500


def test_a_small_norm_in_a_large_kernel_is_kept(monkeypatch):
    """The values of a function are as large as its norm times the root of the diagonal."""

    def learned(*args, **options):
        found = {"weights": np.array([1e-26, 1.0]), "quadratic_forms": np.array([1e26, 1.0])}
        return replace(dag_active_set(*args, **options), **found)

    monkeypatch.setattr(hierarchical_base, "dag_active_set", learned)
    kernels = [Precomputed(scale * np.outer(X[:, 0], X[:, 0])) for scale in (1e26, 1.0)]
    model = HierarchicalMKLClassifier(kernels, parents={}, normalize=None, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(np.arange(len(X))[:, None], y)
    assert model.block_norms_ == pytest.approx([1e-13, 1.0])
    assert model.active_nodes_ == [0, 1]
