"""The reference solver for hierarchical kernel learning against definitions and closed forms."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

import hkl_oracles
from hkl_oracles import (
    arguments,
    brute_price,
    closure,
    conjunctions,
    dag_instances,
    dual_norm,
    hkl_instances,
    lattice_instances,
    omega,
    solve_dag,
    split_bound,
    sufficient_kernel,
    sufficient_sum,
)
from oracles import OracleError, random_problem, solve_fixed, solve_mkl

pytestmark = pytest.mark.slow

INSTANCES = {instance["id"]: instance for instance in hkl_instances()}
RHOS = [2.0, 1.5, 1.1]
SOLVED = {}


def solved(name):
    if name not in SOLVED:
        SOLVED[name] = solve_dag(**arguments(INSTANCES[name]))
    return SOLVED[name]


def first(kind, **wanted):
    """Return the first instance of a kind with these entries."""
    return next(
        i
        for i in INSTANCES.values()
        if i["kind"] == kind and all(i[key] == value for key, value in wanted.items())
    )


def changed(instance, **entries):
    return solve_dag(**{**arguments(instance), **entries})


def stated(instance):
    """Return the problem of an instance with its two objectives."""
    given = arguments(instance)
    given["loss"] = hkl_oracles.LOSSES[given["loss"]](given.pop("epsilon"))
    return hkl_oracles._Problem(**given)


def lattice(p=3, base=2.0):
    made = conjunctions(np.ones((1, p), dtype=bool))
    return closure(made.parents), base**made.lengths


def exponents(rho):
    """Return rhohat and rhobar of section 1."""
    return np.inf if rho == 2 else rho / (2 - rho), rho / (2 * (rho - 1))


def zeta(eta, ancestors, d, rho):
    return (ancestors.T @ (d**rho * eta ** (1 - rho))) ** (1 / (1 - rho))


def slopes(eta, M, ancestors, d, rho):
    """``G_v`` of section 4."""
    _, rhobar = exponents(rho)
    weighted = zeta(eta, ancestors, d, rho) ** rho * M**rhobar
    return d**rho * eta ** (-rho) * (ancestors @ weighted)


def spread(eta, M, ancestors, d, rho):
    """``N(eta, alpha)`` of (13)."""
    _, rhobar = exponents(rho)
    return np.sum(zeta(eta, ancestors, d, rho) * M**rhobar) ** (1 / rhobar)


# Graphs and norms


def test_the_closure_follows_all_paths_in_any_order():
    ancestors = closure([[1, 3], [2], [], [2]])  # 2 above 1 and 3, which are above 0
    wanted = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 1]]
    np.testing.assert_array_equal(ancestors, np.array(wanted, dtype=bool))


def test_bad_graphs_are_refused():
    with pytest.raises(ValueError, match="cycle"):
        closure([[2], [0], [1]])
    broken = closure([[], [0], [1]])
    broken[0, 2] = False
    for ancestors, d, rho in [
        (broken, np.ones(3), 2.0),
        (~np.eye(2, dtype=bool), np.ones(2), 2.0),
        (closure([[]]), np.zeros(1), 2.0),
        (closure([[]]), np.ones(1), 1.0),
        (closure([[]]), np.ones(1), 2.5),
    ]:
        with pytest.raises(ValueError, match="must be"):
            dual_norm(np.ones(len(d)), ancestors, d, rho)


@pytest.mark.parametrize("rho", RHOS)
def test_omega_is_the_norm_of_the_definition(rho):
    ancestors, d = lattice(3, 1.7)
    rng = np.random.default_rng(0)
    Q, other = rng.exponential(size=(2, 8))
    direct = 0.0
    for v in range(8):
        direct += d[v] * sum(Q[w] ** rho for w in range(8) if ancestors[v, w]) ** (1 / rho)
    assert omega(Q, ancestors, d, rho) == pytest.approx(direct, rel=1e-13)
    assert omega(3 * Q, ancestors, d, rho) == pytest.approx(3 * direct, rel=1e-13)
    assert omega(Q + other, ancestors, d, rho) < direct + omega(other, ancestors, d, rho)
    smaller = np.nextafter(1.0, 2.0) if rho == 2 else 2.0
    assert (omega(Q, ancestors, d, smaller) < direct) == (smaller > rho)


@pytest.mark.parametrize("rho", RHOS)
def test_the_variational_forms_of_section_3(rho):
    rng = np.random.default_rng(1)
    ancestors, d = lattice(3, 1.7)
    Q = rng.exponential(size=8)
    total = omega(Q, ancestors, d, rho)
    rhohat, _ = exponents(rho)
    r = (ancestors @ Q**rho) ** (1 / rho)

    def lemma(gamma, share):
        return np.sum(ancestors * Q**2 * (d**2 / gamma)[:, None] / share)

    def with_eta(eta):
        return np.sum(ancestors.T @ (d**rho * eta ** (1 - rho)) * Q**rho) ** (2 / rho)

    gamma = d * r / total
    share = np.where(ancestors, (Q / r[:, None]) ** (2 - rho), 1.0)
    assert lemma(gamma, share) == pytest.approx(total**2, rel=1e-13)
    assert with_eta(gamma) == pytest.approx(total**2, rel=1e-13)
    for _ in range(50):
        eta = rng.dirichlet(np.ones(8))
        assert with_eta(eta) >= total**2
        other = np.where(ancestors, rng.exponential(size=(8, 8)), 0.0)
        if rho == 2:
            other /= other.max(axis=1, keepdims=True)
        else:
            other /= np.sum(other**rhohat, axis=1, keepdims=True) ** (1 / rhohat)
        assert lemma(eta, np.where(ancestors, other, 1.0)) >= total**2


# The dual norm


@pytest.mark.parametrize("rho", RHOS)
def test_dual_norms_in_closed_form(rho):
    ancestors, d = lattice(3, 1.7)
    for w in range(8):
        # Of all norms at a node alone, those of its ancestors count.
        found = dual_norm(2.0 * np.eye(8)[w], ancestors, d, rho)
        assert found.value == pytest.approx(2 / d[ancestors[:, w]].sum(), rel=1e-8)
    sigma = np.random.default_rng(0).exponential(size=8)
    apart = dual_norm(sigma, np.eye(8, dtype=bool), d, rho)
    assert apart.value == pytest.approx(np.max(sigma / d), rel=1e-8)
    assert dual_norm(np.zeros(8), ancestors, d, rho).value == 0.0


@pytest.mark.parametrize("rho", RHOS)
def test_a_root_of_two_leaves(rho):
    # Nothing at the root: Omega = d_0 |Q|_rho + d_1 Q_1 + d_2 Q_2, whose dual norm is the root of
    # |(sigma - t d)_+|_{rho*} = t d_0.
    ancestors, d, sigma = closure([[], [0], [0]]), np.array([1.5, 1.0, 2.0]), np.array([0, 3.0, 4])
    conjugate = rho / (rho - 1)
    low, high = 0.0, 10.0
    for _ in range(200):
        t = 0.5 * (low + high)
        left = np.sum(np.maximum(sigma - t * d, 0)[1:] ** conjugate) ** (1 / conjugate)
        low, high = (t, high) if left > t * d[0] else (low, t)
    assert dual_norm(sigma, ancestors, d, rho).value == pytest.approx(t, rel=1e-8)


@pytest.mark.parametrize(("p", "rho"), list(product([2, 3, 4], RHOS)))
def test_the_dual_norm_is_held_by_both_sides(p, rho):
    rng = np.random.default_rng(p)
    ancestors, d = lattice(p, 2.0)
    n = len(d)
    sigma = rng.exponential(size=n) * (rng.random(n) < 0.7) * d
    found = dual_norm(sigma, ancestors, d, rho)
    assert found.upper - found.lower <= 1e-7 * found.upper
    assert omega(found.Q, ancestors, d, rho) == pytest.approx(1.0)
    np.testing.assert_allclose(found.kappa.sum(axis=0), 1.0)
    assert not found.kappa[~ancestors].any()
    for _ in range(100):
        Q = rng.exponential(size=n) ** rng.uniform(0.5, 5)
        assert sigma @ Q <= found.upper * omega(Q, ancestors, d, rho) * (1 + 1e-12)
        kappa = np.where(ancestors, rng.exponential(size=(n, n)), 0.0)
        kappa /= kappa.sum(axis=0)
        assert split_bound(sigma, kappa, d, rho) >= found.lower * (1 - 1e-12)


@pytest.mark.parametrize(("seed", "rho"), list(product(range(3), RHOS)))
def test_the_largest_N_over_eta_is_the_squared_dual_norm(seed, rho):
    """The reading of Theorem 3, by the multiplicative step of section 6.3."""
    rng = np.random.default_rng(seed)
    ancestors, d = lattice(3, 1.5)
    sigma = rng.exponential(size=8) * d
    found = dual_norm(sigma, ancestors, d, rho)
    M = sigma**2 / np.max(sigma) ** 2
    _, rhobar = exponents(rho)
    eta = np.full(8, 1 / 8)
    values = []
    for _ in range(300):
        G = slopes(eta, M, ancestors, d, rho)
        values.append(spread(eta, M, ancestors, d, rho))
        # the gradient, the residual and the bound of section 4 at once
        assert eta @ G == pytest.approx(values[-1] ** rhobar, rel=1e-12)
        bound = np.max(sigma) ** 2 * G.max() ** (1 / rhobar)
        assert bound >= found.lower**2 * (1 - 1e-12)
        eta = eta * G ** (1 / rho)
        eta = np.maximum(eta / eta.sum(), 1e-12)
        eta /= eta.sum()
    assert np.max(sigma) ** 2 * values[-1] == pytest.approx(found.value**2, rel=1e-8)
    assert bound == pytest.approx(found.value**2, rel=1e-8)
    # kappa of eta gives the same bound, as the specification says
    z = zeta(eta, ancestors, d, rho)
    kappa = np.where(ancestors, (d**rho * eta ** (1 - rho))[:, None] * z ** (rho - 1), 0.0)
    np.testing.assert_allclose(kappa.sum(axis=0), 1.0)
    at_eta = np.max(sigma) ** 2 * slopes(eta, M, ancestors, d, rho).max() ** (1 / rhobar)
    assert split_bound(sigma, kappa, d, rho) ** 2 == pytest.approx(at_eta, rel=1e-10)


@pytest.mark.parametrize("rho", RHOS)
def test_the_slopes_of_N_are_differences(rho):
    rng = np.random.default_rng(5)
    ancestors, d = lattice(3, 1.5)
    M, eta = rng.exponential(size=8), rng.dirichlet(np.ones(8) * 3)
    _, rhobar = exponents(rho)
    wanted = spread(eta, M, ancestors, d, rho) ** (1 - rhobar) / rhobar
    wanted = wanted * slopes(eta, M, ancestors, d, rho)
    for v in range(8):
        step = 1e-6 * eta[v] * np.eye(8)[v]
        up, down = (spread(eta + s, M, ancestors, d, rho) for s in (step, -step))
        assert (up - down) / (2 * step[v]) == pytest.approx(wanted[v], rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(("seed", "rho"), list(product(range(4), RHOS)))
def test_the_bounds_outside_an_active_set(seed, rho):
    """Sections 7.1 and 7.2: both are bounds of the whole dual norm."""
    rng = np.random.default_rng(seed)
    ancestors, d = lattice(4, 2.0)
    sigma = rng.exponential(size=16) * np.where(rng.random(16) < 0.3, d, 0.5)
    seeds = rng.choice(16, size=3)
    inside = ancestors[:, seeds].any(axis=1)  # closed upwards
    W = np.ix_(inside, inside)
    own = dual_norm(sigma[inside], ancestors[W], d[inside], rho)
    whole = dual_norm(sigma, ancestors, d, rho)
    tight = max(own.upper**2, np.max((sigma / d)[~inside] ** 2))
    assert whole.lower**2 <= tight * (1 + 1e-12)
    assert own.lower**2 <= whole.upper**2 * (1 + 1e-12)
    proper = ancestors & ~np.eye(16, dtype=bool)
    sources = [u for u in np.flatnonzero(~inside) if inside[proper[:, u]].all()]
    wide = max(sufficient_sum(sigma**2, ancestors, d, u) for u in sources)
    assert whole.lower**2 <= max(own.upper**2, wide) * (1 + 1e-12)


# The problem


@pytest.mark.parametrize("name", INSTANCES)
def test_the_value_is_that_of_the_definition(name):
    i, found = INSTANCES[name], solved(name)
    assert found.gap < 1e-8
    inverse = np.linalg.pinv(i["B"], hermitian=True)
    F = np.zeros_like(i["Y"]) - found.bias
    Q = np.zeros(len(i["d"]))
    for w, (phi, f) in enumerate(zip(i["features"], found.f, strict=True)):
        F += phi @ f
        Q[w] = np.sqrt(max(0.0, np.trace(inverse @ f.T @ f)))
        np.testing.assert_allclose(f @ inverse @ i["B"], f, atol=1e-9)  # in the range of B
    np.testing.assert_allclose(F, found.decision, atol=1e-9)
    np.testing.assert_allclose(Q, found.Q, atol=1e-9)
    total = sum(
        d_v * np.sum(Q[below] ** i["rho"]) ** (1 / i["rho"])
        for d_v, below in zip(i["d"], i["ancestors"], strict=True)
    )
    residual = np.abs(i["Y"] - F)
    losses = {
        "hinge": np.maximum(0, 1 - i["Y"] * F),
        "square": residual**2 / 2,
        "huber": np.where(residual < 0.2, residual**2 / 2, 0.2 * residual - 0.02),
        "epsilon_insensitive": np.maximum(0, residual - 0.2),
    }
    value = total**2 / 2 + np.sum(i["cost"] * losses[i["loss"]])
    assert value == pytest.approx(found.upper, rel=1e-9)
    assert found.omega == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("name", INSTANCES)
def test_the_dual_point_is_feasible_and_has_its_value(name):
    """Section 10, with a dual norm that is computed again."""
    i, found = INSTANCES[name], solved(name)
    S, cost, present = found.S, i["cost"], i["cost"] > 0
    assert np.abs(S.sum(axis=0)).max() < 1e-12 * cost.sum()
    assert not S[~present].any()
    M = np.array([np.sum((phi.T @ S @ i["B"]) * (phi.T @ S)) for phi in i["features"]])
    np.testing.assert_allclose(found.M, M, atol=1e-9 * M.max())
    again = dual_norm(np.sqrt(np.maximum(M, 0)), i["ancestors"], i["d"], i["rho"])
    assert again.value == pytest.approx(found.dual_norm, rel=1e-5)
    gain = np.sum(i["Y"] * S)
    tolerance = 1e-9 * cost.max()
    if i["loss"] == "hinge":
        assert np.all((i["Y"] * S >= -tolerance) & (i["Y"] * S <= cost + tolerance))
    elif i["loss"] == "huber":
        assert np.all(np.abs(S) <= 0.2 * cost + tolerance)
    elif i["loss"] == "epsilon_insensitive":
        assert np.all(np.abs(S) <= cost + tolerance)
        gain -= 0.2 * np.abs(S).sum()
    if i["loss"] in ("square", "huber"):
        gain -= np.sum(S[present] ** 2 / cost[present]) / 2
    assert gain - again.value**2 / 2 == pytest.approx(found.value, rel=1e-6)
    # At the optimum the dual norm of sigma is the norm of f.
    assert found.dual_norm == pytest.approx(found.omega, rel=1e-3)
    if i["loss"] == "hinge":
        loss = found.value - found.omega**2 / 2
        assert gain == pytest.approx(found.omega**2 + loss, rel=1e-4)


@pytest.mark.parametrize("name", INSTANCES)
def test_blocks_follow_from_the_dual_variables(name):
    """(A.9) with Lemma 1: ``f_w = delta_w Phi_w' S B`` and ``Q_w = delta_w sigma_w``."""
    i, found = INSTANCES[name], solved(name)
    rho, Q, d = i["rho"], found.Q, i["d"]
    live = found.Q > 1e-3 * found.Q.max()
    r = np.array([np.sum(Q[below] ** rho) ** (1 / rho) for below in i["ancestors"]])
    for w in np.flatnonzero(live):
        above = i["ancestors"][:, w]
        slope = np.sum(d[above] * r[above] ** (1 - rho)) * Q[w] ** (rho - 2)
        delta = 1 / (found.omega * slope)
        wanted = delta * i["features"][w].T @ found.S @ i["B"]
        scale = max(np.abs(f).max() for f in found.f)
        np.testing.assert_allclose(found.f[w], wanted, atol=0.01 * scale)


SOME = [name for k, name in enumerate(INSTANCES) if k % 5 == 0]


@pytest.mark.parametrize("name", SOME)
def test_no_other_point_passes_the_bounds(name):
    i, found = INSTANCES[name], solved(name)
    problem = stated(i)
    rng = np.random.default_rng(0)
    uppers, lowers = [], []
    G0 = np.vstack(found.f) @ np.linalg.pinv(problem.L.T)
    assert problem.primal(G0) == pytest.approx(found.upper, rel=1e-9)
    for k in range(60):
        G = G0 + 10.0 ** -(k % 6) * rng.normal(size=G0.shape) * np.abs(G0).max()
        uppers.append(problem.primal(G))
        noise = 10.0 ** -(k % 6) * rng.normal(size=found.S.shape) * np.abs(found.S).max()
        S = problem.rows.feasible(found.S + noise)
        assert np.abs(S.sum(axis=0)).max() < 1e-9 * i["cost"].sum()
        if k % 6 in (1, 4):
            norm = dual_norm(np.sqrt(problem.quadratic_forms(S)), i["ancestors"], i["d"], i["rho"])
            lowers.append(problem.dual(S, norm.upper)[0])
    assert min(uppers) >= found.lower * (1 - 1e-10)
    assert max(lowers) <= found.upper * (1 + 1e-10)
    assert max(lowers) >= 0.97 * found.value


@pytest.mark.parametrize("name", SOME)
def test_both_formulations_agree(name):
    i, found = INSTANCES[name], solved(name)
    problem = stated(i)
    for form in (hkl_oracles._PrimalForm, hkl_oracles._DualForm):
        search = hkl_oracles._Search(problem)
        search.attempt(form)
        assert search.lower <= found.upper * (1 + 1e-10)
        assert search.upper >= found.lower * (1 - 1e-10)
        assert search.gap < 1e-6


def test_unsolved_problems_are_not_answers(monkeypatch):
    monkeypatch.setattr(hkl_oracles, "_solve", lambda problem: "solver_error")
    with pytest.raises(OracleError, match=r"Lower bound 0, upper bound .*solver_error"):
        solve_dag(**arguments(first("dag", loss="hinge")))


# Special cases


@pytest.mark.parametrize("loss", ["hinge", "square", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("rho", [2.0, 1.1])
def test_without_edges_it_is_multiple_kernel_learning(loss, rho):
    i = first("dag", loss="hinge")
    rng = np.random.default_rng(0)
    n, n_nodes = len(i["Y"]), len(i["d"])
    Y = (
        np.where(rng.random((n, 2)) < 0.5, 1.0, -1.0)
        if loss == "hinge"
        else rng.normal(size=(n, 2))
    )
    cost = rng.choice([0.0, 1.0, 2.0], size=Y.shape)
    apart = np.eye(n_nodes, dtype=bool)
    grams = np.stack([phi @ phi.T for phi in i["features"]])
    d = np.ones(n_nodes)
    found = solve_dag(i["features"], Y, cost, apart, d, rho, None, loss, 0.3)
    wanted = solve_mkl(grams, Y, cost, p=1, loss=loss, epsilon=0.3)
    assert found.value == pytest.approx(wanted.objective, rel=1e-8)
    np.testing.assert_allclose(found.decision, wanted.decision, atol=1e-3)
    np.testing.assert_allclose(found.Q / found.omega, wanted.weights, atol=1e-3)
    # A penalty is a scale of the kernel.
    found = solve_dag(i["features"], Y, cost, apart, i["d"], rho, None, loss, 0.3)
    scaled = solve_mkl(grams / i["d"][:, None, None] ** 2, Y, cost, p=1, loss=loss, epsilon=0.3)
    assert found.value == pytest.approx(scaled.objective, rel=1e-8)


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_full_rank_kernels_of_the_other_oracles(kind):
    problem = random_problem(0, kind=kind, n=20, m=3)
    loss = "hinge" if kind == "binary" else "square"
    features = [np.linalg.cholesky(K + 1e-12 * np.eye(20)) for K in problem.grams]
    apart = np.eye(3, dtype=bool)
    found = solve_dag(features, problem.Y, problem.cost, apart, np.ones(3), 1.5, loss=loss)
    wanted = solve_mkl(problem.grams, problem.Y, problem.cost, p=1, loss=loss)
    assert found.value == pytest.approx(wanted.objective, rel=1e-8)


def test_one_node_with_the_square_loss_is_a_linear_system():
    rng = np.random.default_rng(0)
    phi, y, C, d = rng.normal(size=(15, 3)), rng.normal(size=15), 2.0, 1.7
    one = np.ones((1, 1), dtype=bool)
    found = solve_dag([phi], y, np.full(15, C), one, [d], 1.5, loss="square")
    system = np.block(
        [[phi @ phi.T / d**2 + np.eye(15) / C, -np.ones((15, 1))], [np.ones((1, 15)), 0]]
    )
    *alpha, b = np.linalg.solve(system, np.r_[y, 0.0])
    np.testing.assert_allclose(found.S[:, 0], alpha, atol=1e-6)
    assert found.bias[0] == pytest.approx(b, abs=1e-6)
    np.testing.assert_allclose(found.f[0][:, 0], phi.T @ alpha / d**2, atol=1e-6)


def test_a_chain_with_features_at_its_end_is_one_kernel():
    i = first("dag", loss="hinge", rho=1.5)
    n, (phi, *_) = len(i["Y"]), i["features"]
    ancestors, d = closure([[], [0], [1]]), np.array([0.5, 1.0, 2.0])
    empty = np.zeros((n, 2))
    found = changed(i, features=[empty, empty, phi], ancestors=ancestors, d=d)
    wanted = changed(i, features=[phi], ancestors=closure([[]]), d=[3.5])
    assert found.value == pytest.approx(wanted.value, rel=1e-8)
    assert not found.Q[:2].any()


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("kind", ["lattice", "dag"])
def test_one_task_is_a_machine_with_the_weighted_kernel(kind, rho):
    """Lemma 2: the best weights give the optimum, and all others of Lemma 1 or (13) no less."""
    i = next(
        i
        for i in INSTANCES.values()
        if i["kind"] == kind and i["rho"] == rho and i["Y"].shape[1] == 1 and len(i["d"]) > 4
    )
    found, rng = solved(i["id"]), np.random.default_rng(0)
    ancestors, d = i["ancestors"], i["d"]
    grams = np.stack([phi @ phi.T for phi in i["features"]])
    _, rhobar = exponents(rho)

    def machine(delta):
        K = np.tensordot(delta, grams, axes=1)
        return solve_fixed(K, i["Y"], i["cost"], loss=i["loss"], epsilon=i["epsilon"]).objective

    r = np.array([np.sum(found.Q[below] ** rho) ** (1 / rho) for below in ancestors])
    best = np.maximum(d * r / found.omega, 1e-9)
    best /= best.sum()
    for trial in range(4):
        eta = best if trial == 0 else rng.dirichlet(np.ones(len(d)))
        if rho == 2:
            value = machine(zeta(eta, ancestors, d, rho))
        else:
            # weighted l_rho norm: theta at its best for the norms of the minimiser, by steps
            Q = found.Q + 1e-9 * found.Q.max()
            weight = ancestors.T @ (d**rho * eta ** (1 - rho))
            theta = (weight * Q**rho / np.sum(weight * Q**rho)) ** ((2 - rho) / rho)
            value = machine(theta * zeta(eta, ancestors, d, rho) ** (1 / rhobar))
        assert value >= found.lower * (1 - 1e-9)
        if trial == 0:
            assert value == pytest.approx(found.value, rel=1e-5)


@pytest.mark.parametrize("name", SOME[::3])
def test_scales(name):
    i, found = INSTANCES[name], solved(name)
    c = 2.5
    features = [c * phi for phi in i["features"]]
    other = changed(i, features=features, cost=i["cost"] / c**2)
    assert other.value == pytest.approx(found.value / c**2, rel=1e-8)
    other = changed(i, d=c * i["d"], cost=i["cost"] * c**2)
    assert other.value == pytest.approx(found.value * c**2, rel=1e-8)
    other = changed(i, B=c**2 * i["B"], cost=i["cost"] / c**2)
    assert other.value == pytest.approx(found.value / c**2, rel=1e-8)


@pytest.mark.parametrize("rho", RHOS)
def test_task_matrices(rho):
    i = first("lattice", rho=rho, base=0.8)
    n_tasks = i["Y"].shape[1]
    alone = changed(i, B=None)
    far = changed(i, B=np.eye(n_tasks) + 1e-9)
    assert far.value == pytest.approx(alone.value, rel=1e-7)
    same = changed(i, B=np.ones((n_tasks, n_tasks)))  # singular: the tasks share f
    near = changed(i, B=np.ones((n_tasks, n_tasks)) + 1e-6 * np.eye(n_tasks))
    assert near.value == pytest.approx(same.value, rel=1e-4)
    assert near.value <= same.upper
    for f in same.f:
        assert np.ptp(f, axis=1).max() < 1e-9
    # (8): the norm by the mean of the tasks
    mu, found = 0.2, solved(i["id"])
    for f, Q in zip(found.f, found.Q, strict=True):
        centre = f.sum(axis=1, keepdims=True) / (n_tasks + mu)
        direct = mu * np.sum(centre**2) + np.sum((f - centre) ** 2)
        assert Q**2 == pytest.approx(direct, rel=1e-9, abs=1e-15)
        closed = np.sum(f**2) - np.sum(f.sum(axis=1) ** 2) / (n_tasks + mu)
        assert Q**2 == pytest.approx(closed, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("rho", RHOS)
def test_identical_tasks_have_identical_functions(rho):
    i = first("lattice", rho=rho, loss="square")
    three = [np.repeat(i[key], 3, axis=1) for key in ("Y", "cost")]
    found = solve_dag(i["features"], *three, i["ancestors"], i["d"], rho, loss="square")
    # sqrt(3) times the norm and three times the loss of one task
    assert found.value == pytest.approx(3 * solved(i["id"]).value, rel=1e-8)
    for f in found.f:
        assert np.ptp(f, axis=1).max() < 1e-4


@pytest.mark.parametrize("name", SOME[1::3])
def test_rows_and_order_do_not_matter(name):
    i, found = INSTANCES[name], solved(name)
    rng = np.random.default_rng(0)
    features = [np.vstack([phi, phi]) for phi in i["features"]]
    doubled = changed(
        i, features=features, Y=np.vstack([i["Y"]] * 2), cost=np.vstack([i["cost"] / 2] * 2)
    )
    assert doubled.value == pytest.approx(found.value, rel=1e-8)
    gone = changed(
        i,
        features=[np.vstack([phi, rng.normal(size=phi.shape)]) for phi in i["features"]],
        Y=np.vstack([i["Y"], -i["Y"]]),
        cost=np.vstack([i["cost"], 0 * i["cost"]]),
    )
    assert gone.value == pytest.approx(found.value, rel=1e-8)
    nodes, rows = rng.permutation(len(i["d"])), rng.permutation(len(i["Y"]))
    tasks = rng.permutation(i["Y"].shape[1])
    moved = changed(
        i,
        features=[i["features"][w][rows] for w in nodes],
        ancestors=i["ancestors"][np.ix_(nodes, nodes)],
        d=i["d"][nodes],
        Y=i["Y"][np.ix_(rows, tasks)],
        cost=i["cost"][np.ix_(rows, tasks)],
        B=i["B"][np.ix_(tasks, tasks)],
    )
    assert moved.value == pytest.approx(found.value, rel=1e-8)
    np.testing.assert_allclose(moved.Q, found.Q[nodes], atol=1e-3 * found.Q.max())


def test_values_fall_with_rho_and_with_more_nodes():
    for number in range(len(lattice_instances()) // 3):
        names = [name for name in INSTANCES if name.startswith(f"lattice{number:02}_")]
        lower, middle, upper = (solved(name) for name in names)
        assert lower.lower <= middle.upper
        assert middle.lower <= upper.upper
    for rho in RHOS:
        i = first("lattice", rho=rho, loss="epsilon_insensitive")
        values = []
        for longest in (0, 1, 2, 4):
            keep = np.array([len(rule) <= longest for rule in i["rules"]])
            features = [phi for phi, kept in zip(i["features"], keep, strict=True) if kept]
            part = i["ancestors"][np.ix_(keep, keep)]
            values.append(changed(i, features=features, ancestors=part, d=i["d"][keep]).value)
        assert values[-1] == pytest.approx(solved(i["id"]).value, rel=1e-9)
        assert np.all(np.diff(values) <= 1e-9 * values[0])
        assert values[1] < 0.99 * values[0]


@pytest.mark.parametrize("rho", RHOS)
def test_the_value_rises_with_C_and_is_concave(rho):
    i = first("dag", rho=rho, loss="square")
    C = np.array([0.1, 0.4, 0.7, 1.0])
    values = np.array([changed(i, cost=c * i["cost"]).value for c in C])
    assert np.all(np.diff(values) > 0)
    assert np.all(np.diff(values, 2) < 0)


def test_huber_without_outliers_is_the_square():
    i = first("dag", loss="huber")
    big, square = changed(i, epsilon=100.0), changed(i, loss="square")
    assert big.value == pytest.approx(square.value, rel=1e-8)
    assert changed(i, epsilon=0.2).value < square.value


def test_a_task_of_one_class_needs_no_function():
    i = first("lattice", rho=1.5, loss="hinge", base=0.8)
    Y = i["Y"].copy()
    Y[:, 0] = 1.0
    found = changed(i, Y=Y, B=None)
    assert max(np.abs(f[:, 0]).max() for f in found.f) < 1e-4
    assert found.value == pytest.approx(
        changed(i, Y=Y[:, 1:], cost=i["cost"][:, 1:], B=None).value, rel=1e-8
    )


def test_bad_problems_are_refused():
    i = first("lattice", rho=2.0, base=0.8)
    with pytest.raises(ValueError, match="positive semidefinite"):
        changed(i, B=np.diag([1.0, 1.0, -0.5]))
    with pytest.raises(ValueError, match="positive semidefinite"):
        changed(i, B=np.triu(np.ones((3, 3))))
    with pytest.raises(ValueError, match="7 feature matrices for 8 nodes"):
        changed(i, features=i["features"][1:])


@pytest.mark.parametrize("rho", RHOS)
def test_a_general_purpose_optimiser_finds_nothing_better(rho):
    """Smooth loss, all blocks alive: quasi-Newton steps from a random start arrive there."""
    i = first("dag", rho=rho, loss="square")
    found = solved(i["id"])
    problem = stated(i)
    shape = (problem.Phi.shape[1], problem.L.shape[1])
    start = np.random.default_rng(0).normal(size=shape).ravel()
    end = minimize(lambda g: problem.primal(g.reshape(shape)), start, options={"maxiter": 400})
    assert end.fun >= found.lower * (1 - 1e-9)
    assert end.fun == pytest.approx(found.value, rel=0.02)


# Conjunctions


def test_conjunctions_are_all_subsets():
    rng = np.random.default_rng(0)
    P = rng.random((9, 4)) < 0.6
    made = conjunctions(P)
    assert len(made.rules) == len(set(made.rules)) == 16
    assert made.rules[:6] == [(), (0,), (1,), (2,), (3,), (0, 1)]
    for w, rule in enumerate(made.rules):
        for i in range(9):
            assert made.support[i, w] == all(P[i, c] for c in rule)
        above = {made.rules[v] for v in made.parents[w]}
        assert above == {r for r in made.rules if set(r) < set(rule) and len(r) == len(rule) - 1}
    ancestors = closure(made.parents)
    for v, w in product(range(16), repeat=2):
        assert ancestors[v, w] == (set(made.rules[v]) <= set(made.rules[w]))
    short = conjunctions(P, 2)
    assert short.rules == made.rules[:11]
    assert conjunctions(P[:, :0]).rules == [()]
    with pytest.raises(ValueError, match="8 propositions"):
        conjunctions(np.ones((2, 9)))


@pytest.mark.parametrize(("base", "n_tasks"), list(product([0.6, 1.0, 2.0], [1, 3])))
def test_priced_rules_are_those_over_their_limit(base, n_tasks):
    rng = np.random.default_rng(2)
    P, S = rng.random((12, 7)) < 0.7, rng.normal(size=(12, n_tasks))
    L = rng.normal(size=(n_tasks, 2))
    B = L @ L.T
    every = brute_price(P, S, B, -1.0, base)
    level = 1.01 * np.quantile([M / base ** (2 * len(rule)) for rule, M in every.items()], 0.6)
    found = brute_price(P, S, B, level, base)
    made = conjunctions(P)
    for rule, covered in zip(made.rules, made.support.T, strict=True):
        M = sum(
            B[t, u] * S[i, t] * S[j, u]
            for t, u in product(range(n_tasks), repeat=2)
            for i, j in product(np.flatnonzero(covered), repeat=2)
        )
        assert (rule in found) == (M > level * base ** (2 * len(rule)))
        if rule in found:
            assert found[rule] == pytest.approx(M, rel=1e-10)
        # what section 7.2 prunes with
        below = [w for w, other in enumerate(made.rules) if set(rule) <= set(other)]
        z = made.support[:, below].astype(float).T @ S
        inside = S[covered]
        b = np.maximum(np.maximum(inside, 0).sum(axis=0), np.maximum(-inside, 0).sum(axis=0))
        quadratic_forms = np.einsum("wt,tu,wu->w", z, B, z)
        assert quadratic_forms.max() <= b @ np.abs(B) @ b * (1 + 1e-12)
    assert len(every) == 128
    assert 0 < len(found) <= 64


@pytest.mark.parametrize(("p", "a"), list(product([2, 4, 6], [0.5, 1.0, 2.0])))
def test_the_closed_form_of_the_sufficient_kernel(p, a):
    """Section 7.1 for propositions, and for any kernels of which nodes are Hadamard products."""
    rng = np.random.default_rng(p)
    P = rng.random((8, p)) < 0.7
    factors = rng.normal(size=(p, 8, 2))
    grams = factors @ factors.transpose(0, 2, 1)
    shared = P.astype(int) @ P.T.astype(int)
    q = 1 + 1 / (1 + a) ** 2
    for u in [(), (0,), (p - 1, 0), tuple(range(p))]:
        inside = P[:, list(u)].all(axis=1)
        power = a ** (-2 * len(u)) * q ** (shared - len(u))
        closed = np.outer(inside, inside) * power
        np.testing.assert_allclose(sufficient_kernel(P, u, a), closed, rtol=1e-12, atol=1e-14)
        closed, wide = np.ones((8, 8)), np.ones((8, 8))
        for c in range(p):
            closed = closed * (grams[c] / a**2 if c in u else 1 + grams[c] / (1 + a) ** 2)
            wide = wide * (grams[c] / a**2 if c in u else 1 + grams[c] / a**2)
        found = sufficient_kernel(grams, u, a)
        np.testing.assert_allclose(found, closed, rtol=1e-9, atol=1e-12 * np.abs(closed).max())
        # the bound that prunes a subtree of such kernels
        s = rng.normal(size=8)
        rules = [rule for rule in conjunctions(np.ones((1, p))).rules if set(u) <= set(rule)]
        quadratic_forms = [
            s @ np.prod([np.ones((8, 8)), *grams[list(rule)]], axis=0) @ s / a ** (2 * len(rule))
            for rule in rules
        ]
        assert s @ wide @ s >= max(quadratic_forms) * (1 - 1e-10)


def test_the_sufficient_kernel_of_a_grid_is_a_product():
    """Section 11: nodes (i, j), i and j from 0 to 2, below all that are no larger."""
    a, rng = 1.7, np.random.default_rng(0)
    nodes = list(product(range(3), repeat=2))
    ancestors = np.array([[v[0] <= w[0] and v[1] <= w[1] for w in nodes] for v in nodes])
    d = np.array([a ** (i + j) for i, j in nodes])
    factors = rng.normal(size=(2, 3, 6, 2))
    k = factors @ factors.transpose(0, 1, 3, 2)
    kernels = [k[0, i] * k[1, j] for i, j in nodes]
    for number, u in enumerate(nodes):
        parts = [
            sum(k[axis, m] / sum(a**x for x in range(l, m + 1)) ** 2 for m in range(l, 3))
            for axis, l in enumerate(u)
        ]
        found = sufficient_sum(kernels, ancestors, d, number)
        np.testing.assert_allclose(found, parts[0] * parts[1], rtol=1e-10, atol=1e-12)


# Instances


def test_instances_are_many_and_the_same_every_time():
    assert len(lattice_instances()) >= 39
    assert len(dag_instances()) >= 12
    assert len(INSTANCES) == len(hkl_instances())
    for one, other in zip(hkl_instances(), INSTANCES.values(), strict=True):
        for key in ("Y", "cost", "B", "d", "ancestors"):
            np.testing.assert_array_equal(one[key], other[key])
        for phi, again in zip(one["features"], other["features"], strict=True):
            np.testing.assert_array_equal(phi, again)
    ranks = {np.linalg.matrix_rank(i["B"]) - len(i["B"]) for i in INSTANCES.values()}
    assert ranks == {0, -1}
    for kind, loss in product(["lattice", "dag"], hkl_oracles.LOSSES):
        assert any(i["kind"] == kind and i["loss"] == loss for i in INSTANCES.values())
    for i in dag_instances():
        assert {phi.shape[1] for phi in i["features"]} == {3}


def test_instances_have_something_to_find():
    deep = 0
    for name, i in INSTANCES.items():
        live = solved(name).Q > 1e-4 * solved(name).Q.max()
        assert live.any()
        if i["kind"] == "lattice":
            deep += any(len(rule) > 1 for rule, on in zip(i["rules"], live, strict=True) if on)
    assert deep >= 30
