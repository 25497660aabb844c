"""Which solver learns the weights of a radius criterion."""

import numpy as np
import pytest

from kernelweave import (
    MKLClassifier,
    RadiusMKLClassifier,
    enclosing_ball,
)
from kernelweave._threads import threads
from kernelweave.banks import solve_ball
from radius_cases import (
    KERNELS,
    assert_same_decisions,
    make_data,
)
from radius_problems import CASES, TIGHT, assert_same_kernel, radii_of


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


@pytest.mark.parametrize("solver", ["lbfgs", "projection"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_norms_only_scale_the_weights(n_classes, solver):
    X, y = make_data(n_classes=n_classes)
    models = {
        norm: RadiusMKLClassifier(KERNELS, norm=norm, solver=solver, tol=1e-3).fit(X, y)
        for norm in (None, 1, 2)
    }
    free = models[None]
    gram = np.tensordot(free.weights_ * free.scales_, [k(X) for k in free.kernels_], axes=1)
    assert enclosing_ball(gram).squared_radius == pytest.approx(1, rel=1e-5)
    assert free.squared_radius_ == pytest.approx(1, rel=1e-12)
    for norm in (1, 2):
        model = models[norm]
        assert np.linalg.norm(model.weights_, norm) == pytest.approx(1, rel=1e-12)
        ratio = model.weights_ / np.linalg.norm(model.weights_)
        np.testing.assert_allclose(ratio, free.weights_ / np.linalg.norm(free.weights_), atol=1e-9)
        np.testing.assert_allclose(model.kernel(X), free.kernel(X), rtol=1e-9)
        np.testing.assert_allclose(model.decision_function(X), free.decision_function(X), rtol=1e-7)
        assert model.objective_ == pytest.approx(free.objective_, rel=1e-12)
        np.testing.assert_allclose(model.contributions_, free.contributions_, atol=1e-9)


def centred_traces(grams):
    n = grams.shape[1]
    return np.trace(grams, axis1=1, axis2=2) / n - grams.sum(axis=(1, 2)) / n**2


@pytest.mark.parametrize("norm", [None, 1, 2])
@pytest.mark.parametrize("radius", ["upper", "trace"])
@pytest.mark.parametrize("case", CASES[2::5], ids=str)
def test_bounds_of_the_radius_are_flat_learning(case, radius, norm):
    grams = case.problem.grams
    sizes = radii_of(case) if radius == "upper" else centred_traces(grams)
    peer = case.fit(grams / sizes[:, None, None], learner=MKLClassifier, normalize=None)
    for normalize in ("radius", None):
        model = case.fit(radius=radius, norm=norm, normalize=normalize)
        assert model.objective_ == pytest.approx(peer.objective_, rel=3 * TIGHT)
        assert_same_kernel(peer, model, case.rows)
        assert_same_decisions(peer, model, case.rows)
        if norm is not None:
            assert np.linalg.norm(model.weights_, norm) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", "projection"])
def test_do_takes_the_ball_of_the_learned_kernel_once(solver, monkeypatch):
    X, y = make_data()
    balls = []

    def counted(K, **options):
        balls.append(K)
        return solve_ball(K, **options)

    monkeypatch.setattr("kernelweave.solvers.radius.criteria.solve_ball", counted)
    model = RadiusMKLClassifier(KERNELS, criterion="do", norm=1, solver=solver).fit(X, y)
    assert model.n_iter_ > 1
    assert len(balls) == 1
    # The kernel is divided by its squared radius.
    assert enclosing_ball(model.kernel(X)).squared_radius == pytest.approx(1, rel=1e-4)
