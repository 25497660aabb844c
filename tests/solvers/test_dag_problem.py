"""The problem on the active nodes: its data, its bounds, and both solvers of it."""

import numpy as np
import pytest

from kernelweave.banks.rules import PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.losses import Hinge, Square
from kernelweave.solvers.dag_active_set import SOLVERS, DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import ActiveProblem, DagProblem, DualStart, lower_bound
from kernelweave.solvers.problem import Limits


def problem_of(relation=None, loss=None):
    rng = np.random.default_rng(0)
    lattice = ConjunctionLattice(PackedRows.of(rng.random((40, 5)) < 0.5), max_length=2)
    Y = np.where(rng.random((40, 2)) < 0.5, -1.0, 1.0)
    return DagProblem(lattice, Y, np.full((40, 2), 2.0), loss or Hinge(), 1.5, relation)


def test_the_root_squared_is_the_relation():
    B = np.array([[2.0, 1.0], [1.0, 2.0]])
    problem = problem_of(B)
    np.testing.assert_allclose(problem.root @ problem.root.T, B)
    V = np.random.default_rng(1).normal(size=(40, 2))
    np.testing.assert_allclose(problem.related(V) @ problem.related(V).T, V @ B @ V.T)
    assert problem_of(np.ones((2, 2))).root.shape == (2, 1)
    assert problem_of().related(V) is V


def test_multiples_of_a_dual_point_are_bounded_by_the_box():
    assert lower_bound(Hinge(), 1.0, 0.0, 0.0) == 1.0
    assert lower_bound(Hinge(), 1.0, 2.0, 2.0) == pytest.approx(0.125)  # a fourth of the point
    assert lower_bound(Hinge(), 1.0, 0.25, 0.25) == pytest.approx(0.75)  # no further than the box
    assert lower_bound(Square(), 1.0, 0.25, 0.25) == pytest.approx(1.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("relation", [None, np.eye(2) + 1.0], ids=["apart", "related"])
def test_bounds_of_both_solvers_enclose_the_same_value(solver, relation):
    problem = problem_of(relation)
    active, bounds = ActiveProblem.of(problem, exact=True), Limits(1e-3).bounds()
    norms = np.ones(len(problem.graph.nodes))
    bound, norms = SOLVERS[solver](active, bounds, 1e-3, 500, norms, None)
    assert 0.0 <= bounds.upper - bound.value <= 1e-3 * bounds.size
    assert (norms >= 0).all()
    again = active.bound(bound.dual_coef, np.full(len(norms), 1 / len(norms)), 0.0)
    assert again.value <= bounds.upper
    assert 0.0 <= active.upper_rounding(bounds) <= 1e-9 * bounds.upper
    assert 0.0 <= active.lower_rounding(bounds, bound) <= 1e-9 * bounds.upper


def test_a_fit_begins_where_another_ended():
    problem = problem_of()
    cold = dag_active_set(problem, Limits(1e-4, 500), max_nodes=100)
    start = DagWarmStart.at(cold)
    warm = dag_active_set(problem, Limits(1e-4, 500), max_nodes=100, start=start)
    assert warm.converged
    assert warm.history[-1].solves < cold.history[-1].solves
    zero = dag_active_set(
        DagProblem(problem.graph, problem.Y, 1e-9 * problem.cost, Hinge(), 1.5),
        Limits(1e-4, 500),
        max_nodes=100,
    )
    assert zero.objective <= 1e-9 * problem.cost.sum() * (1 + 1e-9)


def test_bounds_that_cannot_matter_are_not_refined():
    problem = problem_of()
    active = ActiveProblem.of(problem, True)
    n = len(problem.graph.nodes)
    V, eta = 0.5 * problem.Y, np.full(n, 1.0 / n)
    steps, slopes = [], type(active.hierarchy).slopes
    with pytest.MonkeyPatch.context() as patch:
        counted = lambda *args: steps.append(1) or slopes(*args)  # noqa: E731
        patch.setattr(type(active.hierarchy), "slopes", counted)
        tight = active.bound(V, eta, 1e-9)
        n_tight = len(steps)
        for useful in ((tight.value + 1.0, np.inf), (-np.inf, tight.value + 1e6)):
            steps.clear()
            assert active.bound(V, eta, 1e-9, useful).value <= tight.value
            assert len(steps) <= 2 < n_tight
        steps.clear()  # one that may be the best, and enough, is refined
        useful = tight.value - 1.0, tight.value - 1e-6
        assert active.bound(V, eta, 1e-9, useful).value == tight.value
        assert len(steps) == n_tight


def test_bounds_begin_where_the_last_one_ended_once_one_was_cut():
    active = ActiveProblem.of(problem_of(), True)
    n = len(active.problem.graph.nodes)
    eta, V = np.full(n, 1.0 / n), 0.5 * active.problem.Y
    start = DualStart()
    start.note(active.bound(V, eta, 0.5))
    assert start.choose(eta) is eta
    cut = active.bound(V, eta, 0.0)
    assert cut.norm.is_cut
    start.note(cut)
    assert start.choose(eta) is cut.norm.eta
    rough = active.bound(V, eta, 0.5)
    start.note(rough)
    assert start.choose(eta) is rough.norm.eta
