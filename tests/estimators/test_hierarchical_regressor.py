"""Tasks with their own inputs on graphs of kernels."""

import numpy as np
import pytest

from hkl_oracles import closure, solve_dag
from kernelweave import RBF, HierarchicalMKLClassifier, HierarchicalMKLRegressor, Linear
from kernelweave.errors import InputError
from kernelweave.io import load, save
from kernelweave.kernels import Polynomial

PARENTS = {2: [0, 1]}
KERNELS = [Linear(columns=[0]), Linear(columns=[1]), Linear(columns=[2, 3])]
COLUMNS = ([0], [1], [2, 3])


def data(seed=0, n=36):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 4)), np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    slopes = {"a": [1, 0, 1, 0], "b": [1, 0.5, 1, 0], "c": [-1, 0, 0.3, 1]}
    score = np.array([X[i] @ slopes[t] for i, t in enumerate(task)])
    return X, score + 0.3 * rng.normal(size=n), task


def own(task, y):
    """Return one column of targets and costs for each task."""
    mine = task[:, None] == np.array(["a", "b", "c"])
    return np.where(mine, y[:, None], 1.0), mine.astype(float)


def oracle(model, X, Y, cost, B, **options):
    """Solve the problem of a fitted model by a convex solver that knows no task."""
    features = [X[:, columns] for columns in COLUMNS]
    d = np.array([1.0, 1.0, 2.0])
    ancestors = closure([[], [], [0, 1]])
    return solve_dag(features, Y, cost * model.C, ancestors, d, model.rho, B, **options)


@pytest.mark.parametrize("mu", [None, 2.0])
@pytest.mark.parametrize("loss", ["square", "epsilon_insensitive"])
def test_regression_tasks_against_a_convex_solver(mu, loss):
    X, y, task = data()
    model = HierarchicalMKLRegressor(
        KERNELS,
        parents=PARENTS,
        loss=loss,
        target_scale=None,
        normalize=None,
        C=2.0,
        task_correlation=mu,
        tol=1e-7,
    ).fit(X, y, task=task)
    B = None if mu is None else np.eye(3) + 1 / mu
    best = oracle(model, X, *own(task, y), B, loss=loss)
    assert model.objective_ == pytest.approx(best.upper, rel=1e-5)
    assert model.tasks_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("mu", [None, 0.5])
def test_classification_tasks_against_a_convex_solver(mu):
    X, y, task = data(1)
    model = HierarchicalMKLClassifier(
        KERNELS, parents=PARENTS, normalize=None, C=3.0, task_correlation=mu, tol=1e-7
    ).fit(X, y > 0, task=task)
    B = None if mu is None else np.eye(3) + 1 / mu
    best = oracle(model, X, *own(task, np.where(y > 0, 1.0, -1.0)), B, loss="hinge")
    assert model.objective_ == pytest.approx(best.upper, rel=1e-5)


@pytest.mark.parametrize("kind", [HierarchicalMKLClassifier, HierarchicalMKLRegressor])
def test_one_task_is_the_plain_fit(kind):
    X, y, _ = data(2)
    y = y > 0 if kind is HierarchicalMKLClassifier else y
    plain = kind(KERNELS, parents=PARENTS, C=5.0).fit(X, y)
    one = kind(KERNELS, parents=PARENTS, C=5.0).fit(X, y, task=np.full(len(y), "only"))
    assert one.objective_ == plain.objective_
    np.testing.assert_array_equal(one.predict(X, "only"), plain.predict(X))


def test_tasks_are_predicted_by_their_own_functions(tmp_path):
    X, y, task = data(3, 150)
    model = HierarchicalMKLRegressor(KERNELS, parents=PARENTS, C=50.0, intervals="auto")
    model.fit(X, y, task=task)
    assert np.corrcoef(model.predict(X, task), y)[0, 1] > 0.9
    by_task = {t: model.predict(X, t) for t in "abc"}
    expected = [by_task[t][i] for i, t in enumerate(task)]
    np.testing.assert_array_equal(model.predict(X, task), expected)
    ends = model.predict_interval(X, 0.9, task)
    assert ends.shape == (150, 2)
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.8
    again = load(save(model, tmp_path / "m.kw"))
    np.testing.assert_array_equal(again.predict(X, task), model.predict(X, task))
    model.fit(X, y)
    assert not hasattr(model, "tasks_")


def test_the_unit_of_the_target_is_that_of_its_own_rows():
    """Columns of other tasks hold no targets."""
    X, y, task = data(4, 90)
    plain = HierarchicalMKLRegressor(KERNELS).fit(X, 1000 * y)
    tasks = HierarchicalMKLRegressor(KERNELS).fit(X, 1000 * y, task=task)
    assert tasks.target_scale_ == pytest.approx(plain.target_scale_, rel=1e-12)


def test_classes_and_probabilities_of_tasks():
    X, y, task = data(5, 150)
    labels = np.where(y > 0, "yes", "no")
    model = HierarchicalMKLClassifier(KERNELS, parents=PARENTS, C=20.0, calibration="sigmoid")
    model.fit(X, labels, task=task)
    assert np.mean(model.predict(X, task) == labels) > 0.85
    decision, proba = model.decision_function(X, task), model.predict_proba(X, task)
    np.testing.assert_array_equal(model.predict(X, task), model.classes_[(decision > 0) * 1])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    own_rows = task == "a"
    order = np.argsort(decision[own_rows])
    assert (np.diff(proba[own_rows, 1][order]) >= 0).all()


def test_bad_tasks():
    X, y, task = data()
    model = HierarchicalMKLRegressor(KERNELS)
    with pytest.raises(InputError, match="task: y must have one column"):
        model.fit(X, np.column_stack([y, y]), task=task)
    with pytest.raises(InputError, match="task: only two classes"):
        HierarchicalMKLClassifier(KERNELS).fit(X, np.arange(36) % 3, task=task)
    with pytest.raises(InputError, match="task: the model was fitted without tasks"):
        model.fit(X, y).predict(X, "a")
    with pytest.raises(InputError, match="predict needs the task of the rows"):
        model.fit(X, y, task=task).predict(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_kernel_that_matters_is_kept_where_the_gap_is_wide():
    """Coefficients of the square loss are its slopes at the optimum only."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), 6e-4 * rng.standard_normal(40)
    X[:6, 1] = 3e9 * (1.0 + 1e-3 * rng.random(6))
    y[:6] -= 3e-3
    graph = {"a": RBF(8e8), "b": Polynomial(2, coef0=2e18)}
    model = HierarchicalMKLRegressor(
        graph, parents={"b": ["a"]}, loss="square", normalize=None, target_scale=None, node_cost=4.0
    ).fit(X, y)
    assert "b" in model.active_nodes_
    loss = 0.5 * model.C * ((y - model.predict(X)) ** 2).sum()
    assert model.objective_ == pytest.approx(loss, rel=1e-6)
