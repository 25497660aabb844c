"""The classifier on structures: optima, special cases, invariants, and what it refuses."""

import pickle
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave.banks.paths as pieces
from kernelweave import (
    RBF,
    Laplacian,
    Linear,
    MKLClassifier,
    Polynomial,
    Precomputed,
    SumProductMKLClassifier,
    group,
    rbf_ladder,
)
from kernelweave.errors import InputError, InputTypeError, MemoryBudgetError
from kernelweave.io import load, save
from kernelweave.kernels import FromCallable, Sum
from kernelweave.kernels.network import Network
from quick import every
from spn_oracles import (
    as_dict,
    fig1,
    flat,
    joint_oracle,
    lp_cost,
    spn_instance,
    spn_instances,
    tree,
    two_level_penalty,
)

INSTANCES = spn_instances()


def kernels_of(instance):
    return [Precomputed(K, name=f"k{k}") for k, K in enumerate(instance.grams)]


def numbers(n):
    return np.arange(n)[:, None]


def model_of(instance, **options):
    given = {
        "C": instance.C,
        "lam": instance.lam,
        "p": instance.p,
        "normalize": None,
        "fit_intercept": instance.intercept,
        "max_iter": 1000,
    }
    return SumProductMKLClassifier(
        as_dict(instance.structure, kernels_of(instance)), **given | options
    )


def fit(instance, **options):
    return model_of(instance, **options).fit(numbers(len(instance.y)), instance.y)


@cache
def optimum(name):
    return joint_oracle(*INSTANCES[name].arguments)


@cache
def fitted(name):
    return fit(INSTANCES[name], tol=1e-4)


def objective(model, X, y, C=1.0, lam=1.0, weight=None):
    """Return problem (2) at a model, from what it predicts."""
    Y = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    Y = Y[:, 1:] if len(model.classes_) == 2 else Y
    f = model.decision_function(X).reshape(Y.shape)
    weight = np.ones(len(y)) if weight is None else weight
    hinge = C * np.sum(weight[:, None] * np.maximum(0.0, 1 - Y * f))
    norm = 0.0
    if len(model.support_):
        K = model.kernel(X[model.support_])
        norm = np.einsum("oi,ij,oj->", model.dual_coef_, K, model.dual_coef_)
    network = model.network_
    counts = dict.fromkeys(network.products, 0.0)
    for path in network.paths(10_000):
        for v, a in path.exponents:
            counts[v] += path.count * float(a)
    p = dict(zip(network.products, model._exponents(model.network_), strict=True))
    beta = {v: model.node_weights_[network.names[v]] for v in network.products}
    return 0.5 * norm + hinge + lam * sum(counts[v] * beta[v] ** p[v] for v in counts)


# Optima


@pytest.mark.filterwarnings("ignore:SumProductMKLClassifier. the best weights are zero:UserWarning")
@pytest.mark.parametrize("name", every(2, INSTANCES))
def test_objectives(name):
    model, sol = fitted(name), optimum(name)
    assert model.converged_
    assert model.objective_ == pytest.approx(sol.value, rel=1e-4)
    assert 0 <= model.duality_gap_ <= 1e-4 * model.objective_
    # No gap is smaller than the true one.
    assert model.duality_gap_ >= model.objective_ - sol.value - 1e-9 * sol.value
    loose = fit(INSTANCES[name])
    assert loose.duality_gap_ <= 1e-3 * loose.objective_
    assert loose.duality_gap_ >= loose.objective_ - sol.value - 1e-9 * sol.value
    assert loose.n_iter_ <= model.n_iter_


@pytest.mark.filterwarnings("ignore:SumProductMKLClassifier. the best weights are zero:UserWarning")
@pytest.mark.parametrize("name", INSTANCES)
def test_models_have_the_objective_they_say(name):
    instance, model = INSTANCES[name], fitted(name)
    rows = numbers(len(instance.y))
    value = objective(model, rows, instance.y, instance.C, instance.lam)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.history_[-1].upper == model.objective_
    assert model.history_[-1].solves == model.n_iter_


def oracle_weights(name):
    """Return the optimal weights of nodes that the oracle and the library name alike."""
    sol = optimum(name)
    return {k: v for k, v in sol.weights.items() if not k.startswith("k")}


@pytest.mark.parametrize("name", ["fig1_p2", "fig1_mix", "fig1_half", "fig1_raw", "deep_p3"])
def test_weights_of_nodes(name):
    """Where they are unique: a strictly convex penalty, and SVMs that determine the norms."""
    model = fit(INSTANCES[name], tol=1e-8)
    wanted = oracle_weights(name)
    assert set(wanted) == set(model.node_weights_)
    top = max(wanted.values())
    for node, weight in wanted.items():
        assert model.node_weights_[node] == pytest.approx(weight, rel=2e-3, abs=2e-3 * top)


@pytest.mark.parametrize("name", ["fig1_p1", "tree_p1", "weak_p1", "nested_p1"])
def test_decisions_are_those_of_the_oracle(name):
    model = fit(INSTANCES[name], tol=1e-7)  # decisions differ by the root of the gap
    found = model.decision_function(numbers(len(INSTANCES[name].y)))
    np.testing.assert_allclose(found, optimum(name).decision.ravel(), atol=3e-3)


def test_components_vanish_whole():
    sol = optimum("tree_p1")
    found = fit(INSTANCES["tree_p1"], tol=1e-6).node_weights_
    dead = {k for k, v in sol.weights.items() if v == 0}
    assert dead in ({"10", "1", "2", "3"}, {"11", "6", "7"})
    assert max(found[k] for k in dead) < 1e-3 * max(found.values())
    assert min(found[k] for k in set(found) - dead) > 1e-3 * max(found.values())


def test_zero_is_reached_below_the_smallest_cost():
    fitted.cache_clear()
    with pytest.warns(UserWarning, match="the best weights are zero"):
        model = fitted("zero_p1")
    sol = optimum("zero_p1")
    assert not sol.beta.any()
    assert max(model.node_weights_.values()) < 1e-2
    assert model.objective_ == pytest.approx(INSTANCES["zero_p1"].C * 36, rel=1e-4)


def test_three_classes():
    instance, model, sol = INSTANCES["fig1_mc3"], fitted("fig1_mc3"), optimum("fig1_mc3")
    rows = numbers(len(instance.y))
    assert model.decision_function(rows).shape == (30, 3)
    assert model.dual_coef_.shape[0] == 3
    np.testing.assert_allclose(model.decision_function(rows), sol.decision, atol=1e-2)
    np.testing.assert_array_equal(model.predict(rows), model.decision_function(rows).argmax(axis=1))
    # Names of classes do not matter, only their order does.
    named = np.array(["a", "b", "c"])[instance.y]
    other = model_of(instance, tol=1e-4).fit(rows, named)
    np.testing.assert_array_equal(other.dual_coef_, model.dual_coef_)
    assert set(other.predict(rows)) <= {"a", "b", "c"}


# Special cases


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_flat_structures_are_norm_penalties(seed, p):
    instance = spn_instance(seed, flat(5), 5, n=40, p=p)
    kernels, rows = kernels_of(instance), numbers(40)
    options = {"normalize": None, "max_iter": 3000}
    model = SumProductMKLClassifier(kernels, p=p, tol=1e-11, **options).fit(rows, instance.y)
    K = model.kernel(rows[model.support_])
    norm = (model.dual_coef_ @ K @ model.dual_coef_.T).item()
    norms = np.sqrt(model.weights_ * model.contributions_ * norm)
    C = lp_cost(1.0, 1.0, p, norms)
    other = MKLClassifier(kernels, norm=p, C=C, tol=1e-9, **options).fit(rows, instance.y)
    found, wanted = model.decision_function(rows), other.decision_function(rows)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    ratio = model.weights_.sum() / other.weights_.sum()
    np.testing.assert_allclose(model.weights_, ratio * other.weights_, atol=1e-4 * ratio)


def test_two_levels_are_a_mixed_norm():
    """R1 + R2 at the optimum is the mixed norm of the functions."""
    instance = spn_instance(10, tree(), 7, n=40)
    model = fit(instance, tol=1e-8)
    rows = numbers(40)
    f = model.decision_function(rows)
    hinge = np.maximum(0, 1 - instance.Y[:, 0] * f).sum()
    K = model.kernel(rows[model.support_])
    norm = (model.dual_coef_ @ K @ model.dual_coef_.T).item()
    norms = np.sqrt(model.weights_ * model.contributions_ * norm)
    texts = [model.network_.describe(m) for m in model.paths_]
    places = [[texts.index(f"k{k}") for k in some] for some in ((0, 1, 2), (5, 6))]
    assert model.objective_ - hinge == pytest.approx(
        two_level_penalty(norms, places, 1.0), rel=1e-5
    )


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("t", [0.25, 3.0])
def test_one_parameter_is_enough_where_p_is_common(p, t):
    instance = spn_instance(1, fig1(), 7, p=p)
    one = fit(instance, tol=1e-7)
    other = fit(instance, tol=1e-7, C=t, lam=t ** (p + 1))
    assert other.objective_ == pytest.approx(t * one.objective_, rel=1e-6)
    rows = numbers(32)
    np.testing.assert_allclose(
        other.decision_function(rows), one.decision_function(rows), atol=1e-3
    )
    for node, weight in one.node_weights_.items():
        assert other.node_weights_[node] * t == pytest.approx(weight, rel=1e-2, abs=1e-4)


def test_one_kernel_is_a_support_vector_machine_with_a_scale():
    """R1 = p R2, so that the only weight is known from the norm."""
    instance = spn_instance(1, flat(1), 1, p=2.0)
    model = fit(instance, tol=1e-7)
    K = model.kernel(numbers(32)[model.support_])
    norm = (model.dual_coef_ @ K @ model.dual_coef_.T).item()
    (weight,) = model.node_weights_.values()
    assert 0.5 * norm == pytest.approx(2 * weight**2, rel=1e-3)
    assert model.contributions_.tolist() == [1.0]


# Not convex


@cache
def halves(n_starts, seed=0, p=0.5):
    return fit(spn_instance(1, fig1(), 7, p=p), n_starts=n_starts, random_state=seed)


def test_without_a_certificate():
    model = halves(1)
    assert model.duality_gap_ == np.inf
    assert model.converged_
    instance = spn_instance(1, fig1(), 7, p=0.5)
    value = objective(model, numbers(32), instance.y)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    # Exponents below one may have a certificate all the same.
    assert fitted("fig1_half").duality_gap_ < 1e-3


def test_the_best_start_is_kept():
    one, many = halves(1), halves(4)
    assert many.objective_ <= one.objective_
    assert min(halves(4, seed).objective_ for seed in range(3)) < one.objective_ - 1e-3


def test_starts_are_drawn_from_the_random_state():
    one, other = halves(4), fit(spn_instance(1, fig1(), 7, p=0.5), n_starts=4, random_state=0)
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert len({halves(4, seed).objective_ for seed in range(3)}) > 1


def test_convex_problems_need_one_start():
    one = fit(INSTANCES["fig1_p1"], n_starts=5, random_state=1)
    assert one.n_iter_ == fit(INSTANCES["fig1_p1"]).n_iter_


@pytest.mark.parametrize("name", ["fig1_p2", "fig1_mix", "square_p1"])
def test_projected_gradients(name):
    model, sol = fit(INSTANCES[name], solver="projected"), optimum(name)
    assert model.converged_
    assert model.objective_ == pytest.approx(sol.value, rel=1e-3)
    assert model.duality_gap_ >= model.objective_ - sol.value - 1e-9 * sol.value


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_projected_gradients_without_a_certificate(p):
    instance = spn_instance(1, fig1(), 7, p=p)
    model = fit(instance, solver="projected")
    assert model.converged_
    assert model.duality_gap_ == np.inf
    assert model.objective_ == pytest.approx(objective(model, numbers(32), instance.y), rel=1e-6)
    assert model.objective_ == pytest.approx(halves(1, p=p).objective_, rel=1e-3)
    assert all(a.upper >= b.upper for a, b in pairwise(model.history_))
    with pytest.warns(ConvergenceWarning):
        cut = fit(instance, solver="projected", max_iter=4)
    assert not cut.converged_
    assert cut.duality_gap_ == np.inf


# Data


def table(n=60, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=n) > 0).astype(int)
    return X, y


X, Y = table()
NEW = table(25, seed=1)[0]
STRUCTURE = group(RBF(1.0, columns=[0]) + Linear(), name="T") + RBF(2.0, columns=[0, 1]) * (
    Polynomial(2) + RBF(1.0, columns=[1])
)


def train(structure=STRUCTURE, X=X, y=Y, **options):
    return SumProductMKLClassifier(structure, **options).fit(X, y)


# Too many paths


def wide():
    kernels = [RBF(w, columns=[c]) for c in range(3) for w in (0.7, 2.0)]
    return (kernels[0] + kernels[1]) * (kernels[2] + kernels[3]) * (kernels[4] + kernels[5])


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_too_many_paths_are_not_written_out(p):
    written, factored = train(wide(), p=p, tol=1e-5), train(wide(), p=p, max_paths=7, tol=1e-5)
    assert len(written.paths_) == 8
    assert factored.paths_ == []
    assert factored.weights_.size == factored.contributions_.size == 0
    assert factored.to_frame().empty
    assert factored.converged_
    assert factored.objective_ == pytest.approx(written.objective_, rel=1e-5)
    np.testing.assert_allclose(
        factored.decision_function(NEW), written.decision_function(NEW), atol=2e-2
    )
    np.testing.assert_allclose(factored.kernel(X, NEW), written.kernel(X, NEW), atol=2e-2)
    value = objective(factored, X, Y)
    assert factored.objective_ == pytest.approx(value, rel=1e-6)


def test_huge_structures():
    kernels = [RBF(w, columns=[c]) for c in range(4) for w in (0.7, 1.5, 3.0)]
    factors = [sum(kernels[3 * c + 1 : 3 * c + 3], kernels[3 * c]) for c in range(4)]
    everything = factors[0] ** 3 * factors[1] ** 3 * factors[2] ** 3 * factors[3] ** 3
    model = train(everything, p=2.0)
    assert model.network_.count_paths() == 3**12
    assert model.converged_
    assert model.score(X, Y) > 0.8


MANY = """
import numpy as np
from kernelweave import RBF, SumProductMKLClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 8))
y = X[:, 0] * X[:, 2] + 0.5 * np.sin(2 * X[:, 4]) * X[:, 6] > 0
factors = []
for k in range(4):
    kernels = [RBF(s, columns=[2 * k, 2 * k + 1]) for s in np.geomspace(0.4, 5, 10)]
    factors.append(sum(kernels[1:], kernels[0]))
structure = factors[0] * factors[1] * factors[2] * factors[3]
model = SumProductMKLClassifier(structure).fit(X, y)
assert len(model.paths_) == 10_000 and len(model.kernels_) == 40 and model.converged_
# Not ru_maxrss: a process inherits that of the one it was forked from.
status = open("/proc/self/status").read()
print(1024 * int(status.split("VmHWM:")[1].split()[0]))
"""


@pytest.mark.slow
def test_ten_thousand_paths_stay_below_a_gigabyte():
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc")
    command = [sys.executable, "-c", MANY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1e9


def test_too_many_paths_of_other_structures_are_refused():
    T = group(RBF(1.0) + Linear())
    with pytest.raises(InputError, match=r"structure: has 6 paths, more than max_paths=5\. Hint"):
        train(T + T * T, max_paths=5)
    assert len(train(T + T * T, max_paths=6).paths_) == 5


# What a model tells


@pytest.mark.parametrize("normalize", ["cosine", "trace", "diagonal", "radius", None])
def test_predictions_follow_the_training(normalize):
    """What is predicted on training rows has the objective, whatever is normalised."""
    model = train(normalize=normalize, C=3.0)
    assert objective(model, X, Y, C=3.0) == pytest.approx(model.objective_, rel=1e-6)
    K = model.kernel(X)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    f = K[:, model.support_] @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)
    block = model.kernel(NEW, X[model.support_])
    f = block @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(NEW), f, atol=1e-9)
    np.testing.assert_allclose(model.kernel(X, NEW), model.kernel(NEW, X).T, atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), (f > 0).astype(int))


def test_cosine_products_keep_a_unit_diagonal():
    model = train()
    np.testing.assert_allclose(np.diag(model.kernel(NEW)), model.weights_.sum(), rtol=1e-9)


def test_kernel_is_the_weighted_sum_of_path_kernels():
    model = train(normalize=None)
    total = np.zeros((25, 60))
    for weight, path in zip(model.weights_, model.paths_, strict=True):
        kernels = [model.network_.nodes[i].kernel for i in path.leaves]
        total += weight * np.prod([kernel(NEW, X) for kernel in kernels], axis=0)
    np.testing.assert_allclose(model.kernel(NEW, X), total, rtol=1e-9, atol=1e-12)


def test_path_weights_are_geometric_means():
    T = group(RBF(1.0) + Linear())
    model = train(T + T * T)
    for weight, path in zip(model.weights_, model.paths_, strict=True):
        names = [model.network_.names[v] for v, _ in path.exponents]
        means = [model.node_weights_[v] for v in names]
        g = np.prod(np.power(means, [float(a) for _, a in path.exponents]))
        assert weight == pytest.approx(path.count * g, rel=1e-9)
    assert {path.count for path in model.paths_} == {1, 2}


def test_contributions_and_frame():
    model = train()
    assert model.contributions_.sum() == pytest.approx(1.0)
    assert model.contributions_.min() >= 0
    frame = model.to_frame()
    assert list(frame.columns) == ["path", "weight", "contribution"]
    assert len(frame) == len(model.paths_) == 4
    assert frame["weight"].is_monotonic_decreasing
    assert sorted(frame["weight"]) == sorted(model.weights_)
    assert set(frame["path"]) == {model.network_.describe(m) for m in model.paths_}
    top = frame.set_index("path")["contribution"]
    for m, share in zip(model.paths_, model.contributions_, strict=True):
        assert top[model.network_.describe(m)] == share
    # The share of a path in the squared norm, by hand.
    plain = train(normalize=None)
    dual_coef, rows = plain.dual_coef_[0], X[plain.support_]
    parts = []
    for weight, m in zip(plain.weights_, plain.paths_, strict=True):
        kernels = [plain.network_.nodes[i].kernel for i in m.leaves]
        parts.append(weight * dual_coef @ np.prod([k(rows) for k in kernels], axis=0) @ dual_coef)
    np.testing.assert_allclose(plain.contributions_, np.array(parts) / sum(parts), rtol=1e-6)


def test_node_weights_have_the_names_of_products():
    model = train()
    assert list(model.node_weights_) == [model.network_.names[i] for i in model.network_.products]
    assert "T" in model.node_weights_
    assert all(w > 0 for w in model.node_weights_.values())


# Structures


def test_structures_in_all_forms():
    network = Network.of(STRUCTURE)
    one = train(max_iter=50)
    for same in (network.to_dict(), network.to_graph(), network, [STRUCTURE]):
        other = train(same, max_iter=50)
        assert other.network_ == one.network_
        np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)


def test_lists_and_families():
    model = train(rbf_ladder([1.0, 3.0]))
    assert model.network_ == Network.of([RBF(1.0), RBF(3.0)])
    model = train([rbf_ladder([1.0, 3.0]), Linear()])
    assert model.network_ == Network.of(RBF(1.0) + RBF(3.0) + Linear())
    default = train(None)
    assert [str(k) for k in MKLClassifier().fit(X, Y).kernels_] == [
        str(default.network_.nodes[i].kernel) for i in default.network_.leaves
    ]


def test_exponents_by_name():
    a, b = RBF(1.0, name="a"), Linear(name="b")
    T = group(a, b, name="T", p=3)
    model = train(T + a * b, p={"a": 2.0, "a * b": 1.5})
    network = model.network_
    names = [network.names[i] for i in network.products]
    assert dict(zip(names, model._exponents(model.network_), strict=True)) == {
        "a": 2.0,
        "b": 1.0,
        "T": 3.0,
        "a * b": 1.5,
    }
    stronger = train(T + a * b, p={"T": 2.0})
    assert dict(zip(names, stronger._exponents(stronger.network_), strict=True))["T"] == 2.0
    model = train(T + a * b, p=2.0)
    assert model._exponents(model.network_).tolist() == [2.0, 2.0, 3.0, 2.0]


def test_multiples_change_the_model_where_nothing_is_normalised():
    a, b = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])
    one = train(a + b, normalize=None, tol=1e-6)
    other = train(4.0 * a + b, normalize=None, tol=1e-6)
    assert other.objective_ < one.objective_ - 1e-3


@pytest.mark.parametrize("normalize", ["cosine", "trace", "diagonal", "radius", None])
def test_multiples_of_products_are_kept(normalize):
    """A truncated series: 4 (a * b) is the path a * b with four times the kernel."""
    a, b, c = RBF(1.0, columns=[0]), RBF(1.0, columns=[1]), RBF(1.0, columns=[2])
    model = train(4.0 * (a * b) + c, normalize=normalize, tol=1e-6)
    assert objective(model, X, Y) == pytest.approx(model.objective_, rel=1e-6)
    plain = train(a * b + c, normalize=normalize, tol=1e-6)
    assert model.objective_ < plain.objective_ - 1e-3
    assert len(model.node_weights_) == len(plain.node_weights_) == 2


# Kernels that are zero


def zero(n=60):
    return Precomputed(np.zeros((n, n)), name="zero")


def grams():
    return [Precomputed(RBF(1.0, columns=[c])(X), name=f"k{c}") for c in range(4)]


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda z, k: z + k[0] + k[1], lambda k: k[0] + k[1]),
        (lambda z, k: z * k[0] + k[1], lambda k: k[1]),
        (lambda z, k: z * k[0] + k[1] + group(k[0] + k[2]), lambda k: k[1] + group(k[0] + k[2])),
        (lambda z, k: group(z) * k[0] + k[2] * (k[1] + z * k[3]), lambda k: k[2] * Sum((k[1],))),
    ],
    ids=["summand", "a kernel without paths", "another order", "inside"],
)
def test_zero_kernels_are_left_out(build, left):
    k = grams()
    options = {"normalize": None, "tol": 1e-6}
    with pytest.warns(UserWarning, match=r"zero on all training rows.*with its paths: zero\."):
        model = train(build(zero(), k), numbers(60), **options)
    assert model.contributions_.sum() == pytest.approx(1.0)
    assert objective(model, numbers(60), Y) == pytest.approx(model.objective_, rel=1e-6)
    leaves = [str(model.network_.nodes[i].kernel) for i in model.network_.leaves]
    assert [str(kernel) for kernel in model.kernels_] == leaves
    assert "zero" not in leaves
    same = train(left(k), numbers(60), **options)
    assert model.network_ == same.network_
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-9)
    assert model.node_weights_ == pytest.approx(same.node_weights_, rel=1e-6)


def test_only_zero_kernels():
    with pytest.raises(InputError, match="every path has a kernel that is zero on all rows"):
        train(zero() * grams()[0], numbers(60), normalize=None)


# Rows


def test_memory_limit():
    with pytest.raises(MemoryBudgetError, match=r"A structure of 5 kernels over 60 rows needs \d"):
        train(memory_limit=1000)
    assert train(memory_limit="1GB").converged_


@pytest.mark.parametrize("normalize", ["cosine", "trace", None])
def test_a_weight_of_two_is_a_row_twice(normalize):
    weight = np.ones(60)
    weight[:10] = 2.0
    one = SumProductMKLClassifier(STRUCTURE, normalize=normalize).fit(X, Y, sample_weight=weight)
    twice = np.concatenate([X, X[:10]]), np.concatenate([Y, Y[:10]])
    other = SumProductMKLClassifier(STRUCTURE, normalize=normalize).fit(*twice)
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.decision_function(NEW), other.decision_function(NEW))
    assert objective(one, X, Y, weight=weight) == pytest.approx(one.objective_, rel=1e-6)
    none = SumProductMKLClassifier(STRUCTURE, normalize=normalize).fit(
        X, Y, sample_weight=(weight > 1).astype(float)
    )
    assert set(none.support_) <= set(range(10))


def test_class_weights_are_costs():
    balanced = train(class_weight={0: 1.0, 1: 3.0})
    weighted = SumProductMKLClassifier(STRUCTURE).fit(X, Y, sample_weight=np.where(Y == 1, 3.0, 1))
    assert balanced.objective_ == pytest.approx(weighted.objective_, rel=2e-3)
    assert balanced.predict(NEW).sum() >= train().predict(NEW).sum()


def test_frames():
    names = ["a", "b", "c", "d"]
    structure = RBF(1.0, columns="a") * RBF(1.0, columns=["b", "c"]) + Linear(columns="d")
    by_place = RBF(1.0, columns=0) * RBF(1.0, columns=[1, 2]) + Linear(columns=3)
    wanted = train(by_place)
    for frame in (pd.DataFrame, pl.DataFrame):
        model = train(structure, frame(dict(zip(names, X.T, strict=True))))
        new = frame(dict(zip(names, NEW.T, strict=True)))
        np.testing.assert_allclose(
            model.decision_function(new), wanted.decision_function(NEW), atol=1e-9
        )
        assert list(model.feature_names_in_) == names
        np.testing.assert_allclose(model.kernel(new), wanted.kernel(NEW), atol=1e-9)
    chosen = RBF(1.0, columns=lambda X: [0]) * Linear(columns=[1])
    assert train(chosen).kernels_[0].columns == (0,)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 1.0)  # many pieces of few rows
    data = table(150, seed=4)
    for options in ({}, {"max_paths": 3}):
        structure = STRUCTURE if not options else wide()
        one = SumProductMKLClassifier(structure, n_jobs=1, **options).fit(*data)
        two = SumProductMKLClassifier(structure, n_jobs=2, **options).fit(*data)
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
        assert one.node_weights_ == two.node_weights_
        assert one.objective_ == two.objective_
        np.testing.assert_array_equal(one.decision_function(NEW), two.decision_function(NEW))


# scikit-learn


def test_clone_and_pickle():
    model = train(p=2.0, C=3.0, lam=0.5)
    copy = clone(model)
    assert copy.get_params()["structure"] == STRUCTURE
    assert not hasattr(copy, "dual_coef_")
    np.testing.assert_array_equal(copy.fit(X, Y).dual_coef_, model.dual_coef_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.network_ == model.network_
    graph = train(Network.of(STRUCTURE).to_graph())
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(graph)).decision_function(NEW), graph.decision_function(NEW)
    )


@pytest.mark.parametrize(
    ("structure", "options"),
    [
        (STRUCTURE, {}),
        (Network.of(STRUCTURE).to_dict(), {"p": {"T": 2.0}}),
        (Network.of(STRUCTURE).to_graph(), {"normalize": "trace"}),
        (rbf_ladder([1.0, 2.0]), {"p": 0.5, "n_starts": 2, "random_state": 0}),
        (wide(), {"max_paths": 5}),
        (0.5 * (RBF(1.0) * Linear()) + Linear(), {}),
        (None, {}),
    ],
    ids=["expression", "dict", "graph", "family", "factored", "multiple", "default"],
)
def test_saved_and_loaded(tmp_path, structure, options):
    model = train(structure, **options)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.network_ == model.network_
    assert again.paths_ == model.paths_
    assert again.node_weights_ == model.node_weights_
    pd.testing.assert_frame_equal(again.to_frame(), model.to_frame())
    assert again.duality_gap_ == model.duality_gap_
    assert again.get_params().keys() == model.get_params().keys()
    # What was loaded can be fitted again.
    np.testing.assert_allclose(
        clone(again).fit(X, Y).decision_function(NEW), model.decision_function(NEW), atol=1e-6
    )


def test_cross_validation_on_matrices():
    K = RBF(1.0, columns=[0])(X), RBF(1.0, columns=[1])(X), Linear(columns=[2])(X)
    a, b, c = (Precomputed(gram, name=name) for gram, name in zip(K, "abc", strict=True))
    ready = SumProductMKLClassifier(a * b + c)
    plain = SumProductMKLClassifier(
        RBF(1.0, columns=[0]) * RBF(1.0, columns=[1]) + Linear(columns=[2])
    )
    one, other = cross_val_score(ready, numbers(60), Y, cv=3), cross_val_score(plain, X, Y, cv=3)
    np.testing.assert_allclose(one, other)
    assert one.mean() > 0.5


def test_pipelines_and_grids():
    model = make_pipeline(StandardScaler(), SumProductMKLClassifier(STRUCTURE))
    search = GridSearchCV(model, {"sumproductmklclassifier__C": [1.0, 10.0]}, cv=2).fit(X, Y)
    assert search.best_params_["sumproductmklclassifier__C"] in (1.0, 10.0)


def test_paths_over_costs():
    models = SumProductMKLClassifier(STRUCTURE).fit_path(X, Y, [3.0, 0.3])
    assert [model.C for model in models] == [3.0, 0.3]
    np.testing.assert_array_equal(models[0].dual_coef_, train(C=3.0).dual_coef_)


def test_refits_forget():
    model = train()
    model.fit(X[:30], Y[:30])
    np.testing.assert_array_equal(model.dual_coef_, train(X=X[:30], y=Y[:30]).dual_coef_)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.set_params(structure=group(RBF(), name="T") + group(Linear(), name="T")).fit(X, Y)
    assert model.dual_coef_ is before["dual_coef_"]


def test_too_few_solves_are_told():
    with pytest.warns(
        ConvergenceWarning, match=r"stopped after 2 solves at a relative duality gap"
    ):
        model = fit(INSTANCES["fig1_p1"], max_iter=2)
    assert not model.converged_
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="stopped after 2 solves before it was stationary"):
        fit(INSTANCES["fig1_p1"], p=0.5, max_iter=2)


# Refused


def refused(match, structure=STRUCTURE, X=X, y=Y, error=InputError, **options):
    with pytest.raises(error, match=match):
        train(structure, X, y, **options)


@pytest.mark.parametrize("name", ["C", "lam", "p", "tol"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1"])
def test_parameters_are_positive(name, value):
    refused(
        f"The '{name}' parameter of SumProductMKLClassifier must be",
        error=ValueError,
        **{name: value},
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"solver": "cccp"}, "'solver' parameter .* must be a str among"),
        ({"normalize": "unit"}, "'normalize' parameter .* must be a str among"),
        ({"max_paths": 0}, "'max_paths' parameter .* must be an int"),
        ({"n_starts": 0}, "'n_starts' parameter .* must be an int"),
        ({"max_iter": 0}, "'max_iter' parameter .* must be an int"),
        ({"random_state": "x"}, "'random_state' parameter"),
        ({"p": {"T": 0.0}}, r"p\['T'\]: must be a finite number > 0, got 0\.0"),
        ({"p": {"T": np.inf}}, r"p\['T'\]: must be a finite number > 0, got inf"),
        ({"p": {"T": np.nan}}, r"p\['T'\]: must be a finite number > 0, got nan"),
        ({"p": {"T": "1"}}, r"p\['T'\]: must be a finite number > 0, got '1'"),
        ({"p": {"S": 1.0}}, "p: there is no product 'S'; the first are "),
    ],
)
def test_other_parameters(options, match):
    refused(match, error=ValueError, **options)


def test_structures_are_refused_in_fit():
    refused("structure: must be a kernel expression", 3, error=InputTypeError)
    refused("the list is empty", [])
    refused("two nodes have the name 'T'", group(RBF(), name="T") + group(Linear(), name="T"))
    refused(
        "needs exactly one node without parents",
        {
            "nodes": {
                "a": {"kind": "leaf", "kernel": RBF()},
                "b": {"kind": "leaf", "kernel": Linear()},
            }
        },
    )
    refused(
        "has a cycle",
        {
            "nodes": {
                "a": {"kind": "sum", "children": ["b"]},
                "b": {"kind": "product", "children": ["a"]},
            }
        },
    )
    refused("the graph must be directed", nx.Graph([(0, 1)]))
    unreached = Network.of(STRUCTURE).to_dict()
    unreached["nodes"]["lost"] = {"kind": "leaf", "kernel": RBF(9.0)}
    with pytest.warns(UserWarning, match="1 of 15 nodes are not reached from the root"):
        model = train(unreached)
    assert model.network_ == Network.of(STRUCTURE)


def test_one_class():
    refused("needs two classes or more in y, but got one class only: 1", y=np.ones(60, int))


def matrix(**changes):
    K = np.eye(60) + 0.1
    for (i, j), value in changes.get("at", {}).items():
        K[i, j] = value
    return K


def test_matrices():
    for K, sentence in [
        (np.ones((60, 59)), r"gram must be square with at least one row, got shape \(60, 59\)"),
        (matrix(at={(3, 4): np.nan}), r"gram\[3, 4\] is nan, but every entry must be finite"),
        (matrix(at={(3, 4): 0.2}), r"gram is not symmetric, gram\[3, 4\] and gram\[4, 3\] differ"),
        (matrix(at={(3, 4): 2.0, (4, 3): 2.0}), "gram is not positive semi-definite"),
    ]:
        with pytest.raises(InputError, match=sentence):
            Precomputed(K)
    small = Precomputed(np.eye(30), name="small")
    refused(
        "small: column 0 must hold row numbers from 0 to 29, but row 30 has 30",
        small,
        numbers(60),
        normalize=None,
    )
    model = train(Precomputed(np.eye(60) + 0.1, name="k"), numbers(60), normalize=None)
    with pytest.raises(InputError, match=r"k: column 0 must hold row numbers from 0 to 59"):
        model.predict([[60]])


def distance(A, B, power):
    return 10.0 - np.abs(A[:, :1] - B[:, :1].T) ** power


def cubes(A, B):
    return distance(A, B, 3)


def fourth_powers(A, B):
    return distance(A, B, 4)  # a matrix of low rank


def bent():
    K = matrix(at={(3, 4): 2.0, (4, 3): 2.0})
    return Precomputed(K, check=False, name="bent")


def test_indefinite_kernels():
    sentence = r"structure: {} is not positive semi-definite \(an eigenvalue is -"
    refused(sentence.format("bent"), bent(), numbers(60), normalize=None)
    refused(sentence.format("bent"), bent() * bent() + Linear(), numbers(60), normalize=None)


def test_indefinite_kernels_in_multiples():
    refused("bent is not positive semi-definite", 2.0 * bent(), numbers(60), normalize=None)


@pytest.mark.parametrize("function", [cubes, fourth_powers])
def test_indefinite_functions(function):
    assert np.linalg.eigvalsh(function(X, X))[0] < -1
    refused("is not positive semi-definite", FromCallable(function) + Linear(), normalize=None)


def minus(A, B):
    return -np.exp(-((A[:, None] - B) ** 2).sum(axis=-1))


@pytest.mark.parametrize("normalize", ["cosine", "trace", "diagonal", "radius", None])
def test_negative_kernels(normalize):
    structure = FromCallable(minus, name="minus") * Linear() + RBF()
    refused(r"minus: k\(x, x\) is negative, so", structure, normalize=normalize)


def test_before_fit():
    model = SumProductMKLClassifier(STRUCTURE)
    for ask in (model.predict, model.decision_function, model.kernel):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.to_frame()


def test_shapes_of_new_rows():
    with pytest.raises(ValueError, match="X has 3 features, but SumProductMKLClassifier is expect"):
        train().predict(NEW[:, :3])
    with pytest.raises(InputError, match="expected a 2D array"):
        train().predict(NEW[0])


def hinge_loss(model, X, y):
    return np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * model.decision_function(X)).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_factors_multiply_the_exact_kernels():
    """What a low-rank factor leaves out of one kernel may be multiplied by another, huge one."""
    rng = np.random.default_rng(3)
    X = rng.lognormal(0, 3, (35, 2))
    y = np.argsort(np.argsort(X[:, 0])) % 7 > 3
    structure = Laplacian(6.6) * Polynomial(3, 10.0) + Laplacian(0.9, columns=[1])
    model = SumProductMKLClassifier(structure, normalize=None, p=1.5, lam=0.5, C=20).fit(X, y)
    assert 20 * hinge_loss(model, X, y) <= model.objective_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_small_weight_of_a_large_kernel_is_not_pruned():
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((42, 2)) ** 3
    y = X[:, 0] > 0
    structure = RBF(1.0) + 1e12 * (Linear() * Laplacian(1.0))
    model = SumProductMKLClassifier(structure, normalize=None, C=900, lam=3e-3).fit(X, y)
    assert 900 * hinge_loss(model, X, y) <= model.objective_ + model.duality_gap_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_pruned_does_not_matter_at_large_costs():
    rng = np.random.default_rng(3)
    X = rng.integers(-5, 6, (9, 2)).astype(float)
    y = rng.random(9) < 0.3
    y[:2] = True, False
    model = SumProductMKLClassifier(C=1e8, fit_intercept=False, lam=11.4).fit(X, y)
    assert objective(model, X, y, C=1e8, lam=11.4) == pytest.approx(model.objective_, rel=1e-7)


def test_products_that_overflow_are_refused():
    X = 1e80 * np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(InputError, match="structure: products of its kernels overflow"):
        SumProductMKLClassifier(Polynomial(1) * Linear() * Linear(), normalize=None).fit(
            X, X[:, 0] > 0
        )
