"""The referee sees what it is there to see."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fuzz import sureness
from fuzz.instances import Instance, draw
from fuzz.referee import check_fit, squares_overflow
from kernelweave import RBF, Laplacian, MKLClassifier, MKLRegressor
from kernelweave.estimators import base

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def instance():
    """Return an ordinary problem, with everything that can be checked."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40) > 0
    model = MKLClassifier([RBF(1.0), Laplacian(2.0)], tol=1e-2, C=10.0, n_jobs=1)
    fit = {"X": X[:35], "y": y[:35], "sample_weight": None}
    return Instance(0, model, fit, X[35:], oracle=True, repeat=True)


def kinds(instance):
    return {kind for kind, _ in check_fit(instance).findings}


def test_squares_overflow():
    frame = pd.DataFrame({"a": [1.0, 1e155], "b": ["x", "y"]})
    assert squares_overflow(frame)
    assert squares_overflow(sparse.csr_array([[0.0, 1e155]]))
    assert not squares_overflow(frame[:1])


def after_fit(monkeypatch, change):
    """Let a change of the estimator follow every fit."""
    store = MKLClassifier._store

    def changed(self, *arguments):
        store(self, *arguments)
        change(self)

    monkeypatch.setattr(MKLClassifier, "_store", changed)


def test_a_sound_fit_passes(instance):
    outcome = check_fit(instance)
    assert not outcome.findings
    assert outcome.conic


@pytest.mark.parametrize("seed", [1, 2, 5, 6, 7, 9, 10, 11, 19, 23, 38, 40])
def test_some_seeds_pass(seed):
    assert not check_fit(draw(seed)).findings


def test_draws_repeat():
    one, two = draw(3), draw(3)
    assert repr(one.model.get_params()) == repr(two.model.get_params())
    assert repr(one.fit) == repr(two.fit)


def set_gap(model):
    model.duality_gap_ = 0.0


def lower_objective(model):
    model.objective_ *= 1 - 1e-6
    model.duality_gap_ = 0.5 * model.tol * model.objective_


def raise_objective(model):
    model.objective_ = model.duality_gap_ = 1e6
    model.converged_ = False


def widen_gap(model):
    model.duality_gap_ = 2 * model.tol * model.objective_


def spoil_weights(model):
    model.weights_[0] = np.nan


def rescale(model):
    model.scales_ = 1.0001 * model.scales_


def draw_intercept(model):
    model.intercept_ = model.intercept_ + 1e-15 * np.random.default_rng().normal()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (set_gap, "false certificate"),
        (lower_objective, "false certificate"),
        (raise_objective, "bad model"),
        (raise_objective, "silent"),
        (widen_gap, "false convergence"),
        (spoil_weights, "not finite"),
        (rescale, "wrong scale"),
        (draw_intercept, "not reproducible"),
    ],
)
def test_wrong_claims_are_seen(instance, monkeypatch, change, kind):
    after_fit(monkeypatch, change)
    assert kind in kinds(instance)


def test_a_wrong_kernel_is_seen(instance, monkeypatch):
    block = base.cross_block
    monkeypatch.setattr(base, "cross_block", lambda *arguments: block(*arguments) * (1 + 1e-9))
    assert kinds(instance) == {"wrong kernel", "wrong values"}


def test_a_wrong_kernel_inside_a_fit_is_seen(instance, monkeypatch):
    from kernelweave.banks import on_demand

    distances = on_demand.distances

    def wrong(*arguments, **options):
        return distances(*arguments, **options) * 1.001

    monkeypatch.setattr(on_demand, "distances", wrong)
    instance.model.set_params(normalize=None, tol=1e-8, kernels=[Laplacian(0.5)])
    assert "false certificate" in kinds(instance)


def test_foreign_exceptions_are_seen(instance, monkeypatch):
    after_fit(monkeypatch, lambda model: 1 / 0)
    outcome = check_fit(instance)
    assert outcome.status == "foreign"
    assert outcome.findings == [("foreign exception", "ZeroDivisionError: division by zero")]


def test_exceptions_of_predict_are_seen(instance, monkeypatch):
    monkeypatch.setattr(MKLClassifier, "decision_function", lambda self, X: {}["missing"])
    assert kinds(instance) == {"foreign exception"}


def test_sentences_are_refusals(instance):
    instance.model.set_params(C=-1.0)
    outcome = check_fit(instance)
    assert (outcome.status, outcome.findings) == ("refused", [])


def test_changed_inputs_are_seen(instance, monkeypatch):
    fit = MKLClassifier.fit

    def careless(self, X, y, sample_weight=None):
        fit(self, X, y, sample_weight)
        X[0, 0] = np.nextafter(X[0, 0], 1)
        return self

    monkeypatch.setattr(MKLClassifier, "fit", careless)
    assert "changed input" in kinds(instance)


ENDLESS = """
from fuzz.run import hunt
from kernelweave import MKLClassifier

def spin(self, *arguments):
    while True:
        pass

MKLClassifier._store = spin
print(hunt(5, minutes=1, n_processes=1, most=3, only="MKLClassifier", limit=0.3), "failures")
"""


@pytest.mark.slow
def test_a_fit_without_end_is_ended():
    # In a process of its own: the pool forks, which is safe only before anything was computed.
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], cwd=TESTS, capture_output=True, text=True, timeout=120
    )
    slow = done.stdout.count("MKLClassifier slow: the fit was ended")
    assert slow > 0, done.stderr
    assert done.stdout.endswith(f"{slow} failures\n")
    assert "    python -m tests.fuzz --replay 5 --only MKLClassifier" in done.stdout


def spoil_probabilities(monkeypatch):
    monkeypatch.setattr(MKLClassifier, "predict_proba", lambda self, X: np.full((len(X), 2), 0.4))


def spoil_sets(monkeypatch):
    small = [[True, True]]
    chosen = {0.5: True, 0.8: False, 0.95: True}
    monkeypatch.setattr(
        MKLClassifier, "predict_set", lambda self, X, c: np.repeat(small, len(X), 0) & chosen[c]
    )


def spoil_weights_by_calibration(monkeypatch):
    leave_out = MKLClassifier._leave_out

    def changed(self, *arguments):
        leave_out(self, *arguments)
        self.weights_ = self.weights_ * (1 + 1e-15)

    monkeypatch.setattr(MKLClassifier, "_leave_out", changed)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda monkeypatch: None, None),
        (spoil_probabilities, "wrong probability"),
        (spoil_sets, "wrong set"),
        (spoil_weights_by_calibration, "changed model"),
    ],
)
def test_wrong_probabilities_and_sets_are_seen(instance, monkeypatch, spoil, kind):
    monkeypatch.setattr(sureness, "SHARE", 1.0)
    spoil(monkeypatch)
    assert kinds(instance) == ({kind} if kind else set())


def test_wrong_intervals_are_seen(instance, monkeypatch):
    monkeypatch.setattr(sureness, "SHARE", 1.0)
    X, y = instance.fit["X"], instance.fit["X"][:, 0]
    model = MKLRegressor([RBF(1.0)], tol=1e-2, n_jobs=1)
    number = Instance(0, model, {"X": X, "y": y, "sample_weight": None}, instance.new)
    assert kinds(number) == set()
    monkeypatch.setattr(
        MKLRegressor, "predict_interval", lambda self, X, c: np.tile([c, 1 - c], (len(X), 1))
    )
    assert kinds(number) == {"wrong interval"}
