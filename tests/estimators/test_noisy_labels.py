"""Kernel learning from wrong labels: optimum, certificates, structure, and life as an estimator."""

import pickle
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    NoisyLabelMKLClassifier,
    Polynomial,
    Precomputed,
    polynomial_ladder,
    rbf_ladder,
)
from kernelweave._threads import threads
from kernelweave.errors import InputError
from noisy_label_cases import KERNELS, make_data
from noisy_oracles import (
    capped_oracle,
    plain_mkl_oracle,
    random_noisy_problem,
    structure_oracle,
)
from quick import every

TIGHT = 1e-6


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


def rows_of(p):
    return np.arange(len(p.y))[:, None]


def fit(p, **options):
    """Fit to a random problem, in its own units."""
    defaults = {"lam": p.lam, "cap": p.cap, "fit_intercept": False, "tol": TIGHT, "max_iter": 4000}
    kernels = [Precomputed(gram) for gram in p.grams]
    model = NoisyLabelMKLClassifier(kernels, normalize=None, **(defaults | options))
    return model.fit(rows_of(p), p.y)


def decide(model, X):
    values = model.decision_function(X)
    return values.reshape(len(values), -1)


def functions(model, X):
    """Return f itself; with several classes decisions are in units of gamma."""
    values = decide(model, X)
    return values * model.gamma_ if values.shape[1] > 1 else values


def assert_near(found, wanted, rtol):
    assert_allclose(found, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


def binary(seed, **changes):
    return random_noisy_problem(seed, n_classes=2, **changes)


@dataclass(frozen=True)
class Case:
    """A random problem, the same for the library and the reference."""

    seed: int
    slack: float = 0.0
    exact: bool = False
    constant: bool = False

    @property
    def problem(self):
        size = {"n": 24, "m": 4, "spread": 0} if self.exact else {}
        return random_noisy_problem(self.seed, **size)

    def __str__(self):
        marks = [f"{self.seed}", f"{len(np.unique(self.problem.y))} classes"]
        marks += [f"slack {self.slack:g}"] * (self.slack > 0) + ["exact"] * self.exact
        return ", ".join(marks + ["constant"] * self.constant)

    @property
    def options(self):
        uncertainty = "exact" if self.exact else "relaxed"
        return {"slack": self.slack, "uncertainty": uncertainty, "fit_intercept": self.constant}

    @property
    def oracle(self):
        return oracle_of(self)

    @property
    def model(self):
        return model_of(self)


@cache
def oracle_of(case):
    p = case.problem
    constant = 1.0 if case.constant else None
    return capped_oracle(p.grams, p.Y, p.lam, p.cap, case.slack, case.exact, constant)


@cache
def model_of(case):
    return fit(case.problem, **case.options)


CASES = [
    *(Case(seed, 0.3 * (seed % 3 == 2), constant=seed % 2 == 1) for seed in range(23)),
    *(Case(seed, 0.3, True, seed % 2 == 1) for seed in (3, 6, 7, 17, 18, 22)),
]


@pytest.mark.parametrize("case", every(3, CASES), ids=str)
def test_value_and_certificate(case):
    p, oracle, model = case.problem, case.oracle, case.model
    assert model.converged_
    assert model.objective_ == pytest.approx(oracle.value, rel=1e-5)
    rounding = 1e-9 * oracle.value
    assert model.objective_ >= oracle.lower - rounding
    assert model.objective_ - model.duality_gap_ <= oracle.upper + rounding
    assert model.objective_ <= p.Y.shape[1] * (p.cap + case.slack) * (1 + 1e-12)
    for step in model.history_[-1:]:
        assert step.lower <= oracle.upper + rounding
        assert step.upper >= oracle.lower - rounding
    assert model.weights_.sum() + model.bias_weight_ == pytest.approx(1)
    assert (model.bias_weight_ == 0) or case.constant


@pytest.mark.parametrize("tol", [0.3, 0.03])
@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_rough_fits_certify_what_they_have(case, tol):
    p, oracle = case.problem, case.oracle
    model = fit(p, tol=tol, **case.options)
    rounding = 1e-9 * oracle.value
    assert model.objective_ >= oracle.lower - rounding
    assert model.objective_ - model.duality_gap_ <= oracle.upper + rounding
    taken = np.sum((1 - np.atleast_1d(model.gamma_)) * (p.cap + case.slack))
    if case.exact:
        taken -= np.sum((1 - np.atleast_1d(model.gamma_)) * case.slack)
    rest = model.objective_ - taken  # what the tolerance is relative to
    assert model.duality_gap_ <= tol * max(rest, 1e-3 * model.objective_) * (1 + 1e-9)


@pytest.mark.parametrize("case", every(3, CASES), ids=str)
def test_classifier_and_multipliers(case):
    p, oracle, model = case.problem, case.oracle, case.model
    gamma, wanted = np.atleast_1d(model.gamma_), 1 - oracle.th
    assert_allclose(gamma, wanted, rtol=0, atol=1e-3)
    assert_near(functions(model, rows_of(p)), oracle.f, 3e-3)
    # The dual weights belong to the set, and reach the cap where it has a multiplier.
    alpha = model.dual_weights_.reshape(p.Y.shape)
    assert alpha.min() >= 0
    assert alpha.max() <= (1 + case.slack) * (1 + 1e-12)
    counted = np.maximum(0, alpha - case.slack) if case.exact else alpha
    limit = p.cap if case.exact else min(p.cap + case.slack, 1 + case.slack)
    means = counted.mean(axis=0)
    assert (means <= limit * (1 + 1e-12)).all()
    assert_allclose(means[gamma < 1 - 1e-6], limit, rtol=1e-4)
    assert_allclose(gamma[means < limit * (1 - 1e-3)], 1.0)
    # They give the decision, with the weights.
    combined = np.tensordot(model.weights_, p.grams, axes=1) + model.bias_weight_
    values = combined @ (alpha * p.Y) / (len(p.y) * p.lam)
    assert_near(functions(model, rows_of(p)), values, 1e-9)


def test_cases_have_caps_that_bind_and_that_do_not():
    gammas = np.concatenate([1 - case.oracle.th for case in CASES])
    assert (gammas < 0.9).sum() > 10
    assert (gammas == 1).sum() > 10
    assert {len(np.unique(case.problem.y)) for case in CASES} == {2, 3}
    for slack, exact in [(0.0, False), (0.3, False), (0.3, True)]:
        kind = [c for c in CASES if (c.slack, c.exact) == (slack, exact)]
        assert {c.constant for c in kind} == {True, False}
        assert (1 - kind[0].oracle.th).min() <= 1


@pytest.mark.parametrize("solver", ["paper", "vi"])
@pytest.mark.parametrize("case", [CASES[1], CASES[5], CASES[16], CASES[23]], ids=str)
def test_first_order_solvers_agree_within_their_gaps(case, solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(case.problem, solver=solver, max_iter=200, **case.options)
    fast = case.model
    assert model.n_iter_ <= 200
    assert 0 <= model.duality_gap_ < fast.objective_
    assert model.objective_ >= fast.objective_ - fast.duality_gap_
    assert model.objective_ - model.duality_gap_ <= fast.objective_
    assert all(step.lower <= case.oracle.upper * (1 + 1e-9) for step in model.history_)
    assert all(step.upper >= case.oracle.lower * (1 - 1e-9) for step in model.history_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{"noise_level": 0.0}, {"cap": 1.0}, {"cap": 1}])
def test_no_cap_is_plain_learning(n_classes, options):
    X, y = make_data(45, n_classes)
    lam = 0.02
    plain = MKLClassifier(
        KERNELS, norm=1, C=1 / (45 * lam), fit_intercept=False, tol=1e-7, max_iter=1000
    ).fit(X, y)
    model = NoisyLabelMKLClassifier(KERNELS, lam=lam, fit_intercept=False, tol=1e-7, **options)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(lam * plain.objective_, rel=1e-6)
    assert_near(decide(model, X), decide(plain, X), 1e-3)
    assert_allclose(model.weights_, plain.weights_, atol=1e-3)
    assert np.all(model.gamma_ == 1)
    assert_allclose(model.cap_, 1.0)
    assert np.array_equal(model.predict(X), plain.predict(X))


def test_slack_without_a_cap_is_plain_learning_with_a_larger_box():
    p = random_noisy_problem(4)
    model = fit(p, cap=1.0, slack=0.3)
    plain = plain_mkl_oracle(p.grams, p.Y, p.lam / 1.3)
    assert model.objective_ == pytest.approx(1.3 * plain.value, rel=1e-5)
    assert_near(functions(model, rows_of(p)), plain.f, 3e-3)


@pytest.mark.parametrize("seed", [1, 3, 6])
def test_the_box_can_be_absorbed(seed):
    p, slack = random_noisy_problem(seed), 0.4
    wide = fit(p, slack=slack)
    narrow = fit(p, lam=p.lam / (1 + slack), cap=(p.cap + slack) / (1 + slack))
    assert wide.objective_ == pytest.approx((1 + slack) * narrow.objective_, rel=2e-6)
    assert_near(functions(wide, rows_of(p)), functions(narrow, rows_of(p)), 3e-3)
    assert_allclose(wide.gamma_, narrow.gamma_, atol=1e-3)
    assert_allclose(wide.dual_weights_, (1 + slack) * narrow.dual_weights_, atol=5e-2)


@cache
def structured():
    """A problem with a cap that binds, and what the plain path says of it."""
    p = binary(3, n=26, m=4, spread=0, cap=0.4)
    return p, structure_oracle(p.grams, p.Y, p.lam, p.cap)


@pytest.mark.parametrize("factor", [1.0, 10.0, 1e4])
def test_structure_theorem(factor):
    p, path = structured()
    assert 0 < path.gamma < 1
    model = fit(p, lam=factor * p.lam)
    assert factor * model.gamma_ == pytest.approx(path.gamma, rel=1e-3)
    assert_near(factor * decide(model, rows_of(p))[:, 0], path.f, 2e-3)
    # Over gamma it is plain learning at lam gamma.
    n = len(p.y)
    mu = factor * p.lam * model.gamma_
    plain = MKLClassifier(
        [Precomputed(gram) for gram in p.grams],
        norm=1,
        C=1 / (n * mu),
        normalize=None,
        fit_intercept=False,
        tol=1e-7,
    ).fit(rows_of(p), p.y)
    values = plain.decision_function(rows_of(p))
    assert_near(model.decision_function(rows_of(p)) / model.gamma_, values, 5e-3)


def test_a_cap_that_is_not_reached_does_nothing():
    p, path = structured()
    lam = 0.5 * path.mu
    free, capped = fit(p, lam=lam, cap=1.0), fit(p, lam=lam)
    assert capped.gamma_ == pytest.approx(1, abs=1e-6)
    assert capped.objective_ == pytest.approx(free.objective_, rel=2e-6)
    assert_near(decide(capped, rows_of(p)), decide(free, rows_of(p)), 3e-3)
    assert capped.dual_weights_.sum() < 0.99 * len(p.y) * p.cap


def test_cap_has_the_meaning_of_nu():
    p, _ = structured()
    model = fit(p)
    n = len(p.y)
    margins = p.Y[:, 0] * model.decision_function(rows_of(p)) / model.gamma_
    assert np.sum(margins < 1 - 1e-4) <= n * p.cap
    assert len(model.support_) >= n * p.cap
    assert model.dual_weights_.sum() == pytest.approx(n * p.cap)


def test_value_is_monotone_in_the_cap_and_concave_in_lam():
    p, _ = structured()
    for options in ({}, {"slack": 0.2}):
        by_cap = [fit(p, cap=c, **options).objective_ for c in (0.1, 0.3, 0.5, 0.8, 1.0)]
        assert (np.diff(by_cap) > 0).all()
        by_lam = [fit(p, lam=t * p.lam, **options).objective_ for t in (0.1, 0.2, 0.3, 0.4, 0.5)]
        assert (np.diff(by_lam) > 0).all()
        assert (np.diff(by_lam, 2) < 1e-6 * by_lam[0]).all()
        assert max(by_lam) <= p.cap + options.get("slack", 0.0)


def test_one_kernel():
    p = binary(8, m=1, spread=0, lam=0.05)
    for cap in (1.0, 0.4):
        oracle, model = capped_oracle(p.grams, p.Y, p.lam, cap), fit(p, cap=cap)
        assert model.objective_ == pytest.approx(oracle.value, rel=2e-6)
        assert_near(decide(model, rows_of(p)), oracle.f, 2e-3)
        assert model.weights_ == pytest.approx([1.0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_symmetries(n_classes):
    p = random_noisy_problem(3, n_classes=n_classes, n=28, m=4, spread=0, cap=0.4)
    index, model = rows_of(p), fit(p)
    f = functions(model, index)
    kernels = [Precomputed(gram) for gram in p.grams]
    options = {"lam": p.lam, "cap": p.cap, "fit_intercept": False, "tol": TIGHT, "normalize": None}

    def again(kernels, y=p.y, X=index, **changes):
        return NoisyLabelMKLClassifier(kernels, **(options | changes)).fit(X, y)

    doubled = again([*kernels, kernels[0], kernels[2]])
    assert doubled.objective_ == pytest.approx(model.objective_, rel=2e-6)
    assert_near(functions(doubled, index), f, 3e-3)
    together = doubled.weights_[:4] + doubled.weights_[[4, 1, 5, 3]] * [1, 0, 1, 0]
    assert_allclose(together, model.weights_, atol=3e-3)
    nothing = again([*kernels, Precomputed(np.zeros_like(p.grams[0]))])
    assert nothing.objective_ == pytest.approx(model.objective_, rel=2e-6)
    assert nothing.weights_[-1] == 0
    reversed_ = again(kernels[::-1])
    assert_allclose(reversed_.weights_[::-1], model.weights_, atol=3e-3)
    assert_near(functions(reversed_, index), f, 3e-3)
    order = np.random.default_rng(0).permutation(len(p.y))
    shuffled = again(kernels, p.y[order], index[order])
    assert_near(functions(shuffled, index), f, 3e-3)
    assert_allclose(shuffled.dual_weights_, model.dual_weights_[order], atol=2e-2)
    scaled = again([9.0 * kernel for kernel in kernels], lam=9.0 * p.lam)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=2e-6)
    assert_near(functions(scaled, index), f, 3e-3)
    if n_classes == 2:
        flipped = again(kernels, 1 - p.y)
        assert flipped.objective_ == pytest.approx(model.objective_, rel=2e-6)
        assert_near(-functions(flipped, index), f, 3e-3)
        assert_allclose(flipped.dual_weights_, model.dual_weights_, atol=2e-2)


def test_path_equals_separate_fits():
    X, y = make_data(40)
    base = NoisyLabelMKLClassifier(KERNELS, tol=1e-5, fit_intercept=False)
    lams, caps = [0.1, 0.003, 0.03, 1.0], [0.9, 0.35, 0.5]
    models = base.fit_path(X, y, lams, caps)
    pairs = [(lam, cap) for lam in lams for cap in caps]
    assert [(m.lam, m.cap) for m in models] == pairs
    solves = 0
    for model, (lam, cap) in zip(models, pairs, strict=True):
        alone = clone(base).set_params(lam=lam, cap=cap).fit(X, y)
        solves += alone.n_iter_
        slack = 1e-5 * max(model.objective_, alone.objective_)
        assert abs(model.objective_ - alone.objective_) <= slack
        assert model.converged_
        assert_near(decide(model, X), decide(alone, X), 2e-2)
        assert model.gamma_ == pytest.approx(alone.gamma_, rel=2e-2)
        assert_allclose(model.cap_, cap)
    assert sum(m.n_iter_ for m in models) < 0.6 * solves
    assert sum(m.gamma_ < 0.99 for m in models) >= 4
    # Where the cap binds the classifiers agree up to a factor.
    tight = [m for m in models if m.cap == 0.35 and m.gamma_ < 0.99]
    assert len(tight) > 1
    for model in tight[1:]:
        assert_near(decide(model, X) / model.gamma_, decide(tight[0], X) / tight[0].gamma_, 2e-2)


def test_path_without_caps_and_with_several_classes():
    X, y = make_data(45, 3)
    base = NoisyLabelMKLClassifier(KERNELS, noise_level=0.3, tol=1e-5)
    models = base.fit_path(X, y, iter([0.2, 0.01]))
    for model, lam in zip(models, [0.2, 0.01], strict=True):
        alone = clone(base).set_params(lam=lam).fit(X, y)
        assert (model.lam, model.cap) == (lam, None)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-5)
        assert_allclose(model.cap_, alone.cap_)
        assert np.mean(model.predict(X) == alone.predict(X)) > 0.97
        assert list(model.classes_) == list(alone.classes_)
        assert model.n_features_in_ == 3


@pytest.mark.parametrize("seed", [2, 3, 5])
@pytest.mark.parametrize("cap", [0.35, 0.9])
def test_starting_from_the_solution_stops_at_once(cap, seed):
    X, y = make_data(40, seed=seed)
    model = NoisyLabelMKLClassifier(KERNELS, tol=1e-4)
    first, second = model.fit_path(X, y, [0.05, 0.05], [cap])
    assert first.n_iter_ > 3
    assert (first.gamma_ < 0.9) == (cap == 0.35)
    assert second.n_iter_ <= 2
    assert second.objective_ == pytest.approx(first.objective_, rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cap", [0.6, 0.85])
def test_best_case_objective_falls(n_classes, cap):
    X, y = make_data(45, n_classes)
    model = NoisyLabelMKLClassifier(KERNELS, robust="best", cap=cap, lam=0.01, tol=1e-6).fit(X, y)
    values = [step.upper for step in model.history_]
    assert len(values) > 1
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert model.objective_ == pytest.approx(values[-1], rel=1e-12)
    assert model.duality_gap_ == np.inf
    assert np.all(model.gamma_ == 1)
    worst = clone(model).set_params(robust="worst").fit(X, y)
    assert model.objective_ < worst.objective_
    # Rows left out have no weight.
    left = (model.dual_weights_.reshape(45, -1) == 0).all(axis=1)
    assert left.sum() >= int(45 * (1 - cap))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{"noise_level": 0.0}, {"cap": 1.0}])
def test_best_case_without_noise_is_plain(n_classes, options):
    X, y = make_data(45, n_classes)
    common = {"kernels": KERNELS, "lam": 0.01, "tol": 1e-7} | options
    best = NoisyLabelMKLClassifier(robust="best", **common).fit(X, y)
    plain = NoisyLabelMKLClassifier(**common).fit(X, y)
    assert best.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert_near(decide(best, X), decide(plain, X), 2e-3)


def test_classes_are_compared_in_the_same_units():
    """Outputs whose gamma is small have small functions, and would never win."""
    p = random_noisy_problem(5, n_classes=3, spread=0, lam=0.5, cap=0.45)
    oracle = capped_oracle(p.grams, p.Y, p.lam, p.cap)
    gamma = 1 - oracle.th
    assert gamma.max() > 1.3 * gamma.min()
    model = fit(p)
    values = oracle.f / gamma
    assert_near(decide(model, rows_of(p)), values, 5e-3)
    assert_allclose(model.gamma_, gamma, rtol=1e-3)
    clear = np.ptp(np.sort(values, axis=1)[:, -2:], axis=1) > 0.05
    assert clear.sum() > 15
    predicted = model.predict(rows_of(p))
    assert np.array_equal(predicted[clear], values.argmax(axis=1)[clear])
    assert (predicted != oracle.f.argmax(axis=1)).any()


def test_labels_of_any_kind():
    X, y = make_data(45, 3)
    named = NoisyLabelMKLClassifier(KERNELS).fit(X, y)
    assert list(named.classes_) == ["no", "very", "yes"]
    numbers = np.select([y == "no", y == "very"], [-7, 0], 3)
    other = NoisyLabelMKLClassifier(KERNELS).fit(X, numbers)
    assert np.array_equal(
        other.predict(X),
        np.select([named.predict(X) == "no", named.predict(X) == "very"], [-7, 0], 3),
    )
    two = NoisyLabelMKLClassifier(KERNELS).fit(X, numbers > 0)
    assert two.predict(X).dtype == bool
    assert two.decision_function(X).shape == (45,)


@pytest.mark.parametrize(
    ("n_classes", "larger"), [(2, "a"), (2, "b"), (3, "a"), (3, "b"), (3, "c")]
)
def test_a_tie_goes_to_the_larger_class(n_classes, larger):
    names = ["a", "b", "c"][:n_classes]
    X, _ = make_data(42)
    angle = np.arange(42) % n_classes * 2 * np.pi / n_classes
    X[:, :2] += 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    y = np.array(names)[np.arange(42) % n_classes]
    mine = np.flatnonzero(y == larger)
    X, y = np.vstack([X, X[mine[:5]] + 0.1]), np.append(y, [larger] * 5)
    model = NoisyLabelMKLClassifier([Linear()], fit_intercept=False, lam=0.1).fit(X, y)
    zero = np.zeros((2, 3))
    assert not model.decision_function(zero).any()
    assert list(model.predict(zero)) == [larger] * 2
    assert set(model.predict(X)) == set(names)


def test_weights_say_which_class_is_the_larger_one():
    X, _ = make_data(40)
    y = np.resize(["a", "b"], 40)
    X[:, 0] += np.where(y == "a", 2, -2)
    model = NoisyLabelMKLClassifier([Linear()], fit_intercept=False)
    for heavy in "ab":
        model.fit(X, y, sample_weight=np.where(y == heavy, 1.5, 1.0))
        assert model.predict(np.zeros((1, 3))) == [heavy]


def contradictory(n=20, n_classes=2):
    """Every row once with each label, the first row once more."""
    X, _ = make_data(n)
    names = ["a", "b", "c"][:n_classes]
    X = np.vstack([X] * n_classes + [X[:1]])
    return X, np.append(np.repeat(names, n), "a")


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_cap_too_small_for_the_kernels(fit_intercept):
    X, y = contradictory()
    model = NoisyLabelMKLClassifier(KERNELS, cap=0.4, lam=0.1, fit_intercept=fit_intercept)
    message = "cap=0.4 the best function is zero, and the larger class is predicted everywhere"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.objective_ == pytest.approx(0.4, rel=1e-9)
    assert model.duality_gap_ <= 1e-6
    assert model.gamma_ == pytest.approx(0, abs=1e-9)
    assert set(model.predict(X)) == {"a"}
    assert not model.decision_function(X).any()
    assert model.converged_
    assert model.n_iter_ < 60
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit_path(X, y, [0.1, 1.0])
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("solver", ["paper", "vi"])
@pytest.mark.parametrize("lam", [0.1, 0.01])
def test_the_zero_function_is_never_beaten_downwards(solver, lam):
    """First-order methods end near zero there, and not above its objective."""
    X, y = contradictory()
    model = NoisyLabelMKLClassifier(KERNELS, cap=0.4, lam=lam, solver=solver, max_iter=30)
    with pytest.warns(UserWarning, match="after 30 solves|best function is zero"):
        model.fit(X, y)
    assert model.objective_ <= 0.4 * (1 + 1e-12)
    assert model.objective_ - model.duality_gap_ <= 0.4 * (1 + 1e-12)
    assert -1e-12 <= model.gamma_ <= 1
    assert set(model.predict(X)) == {"a"}


def test_a_zero_function_has_its_own_objective():
    for seed, cap, lam in [(2, 0.1, 1e-3), (3, 0.1, 10.0), (4, 0.3, 1e3)]:
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 1)), rng.integers(2, size=20)
        model = NoisyLabelMKLClassifier([RBF(1.0), Linear()], cap=cap, lam=lam, tol=1e-2)
        with pytest.warns(UserWarning, match="the best function is zero"):
            model.fit(X, y)
        assert not model.decision_function(X).any()
        assert model.objective_ >= cap * (1 - 1e-14)


def test_a_cap_too_small_with_three_classes():
    X, y = contradictory(n_classes=3)
    model = NoisyLabelMKLClassifier([Linear()], cap=0.2, lam=0.1)
    with pytest.warns(UserWarning, match="the best function is zero"):
        model.fit(X, y)
    assert set(model.predict(X)) == {"a"}
    assert_allclose(model.gamma_, 0, atol=1e-9)
    assert model.objective_ == pytest.approx(3 * 0.2)


def test_no_warning_where_the_cap_is_large_enough():
    X, y = make_data(30)
    model = NoisyLabelMKLClassifier([RBF(0.3)], cap=0.05, lam=10.0).fit(X, y)
    assert 0 < model.gamma_ < 0.01
    assert set(model.predict(X)) == set(y)


@pytest.mark.parametrize("solver", ["fast", "paper", "vi"])
@pytest.mark.parametrize("m", [1, 2])
def test_kernels_that_are_all_zero(m, solver):
    y = np.resize(["a", "b", "b"], 20)
    index = np.arange(20)[:, None]
    kernels = [Precomputed(np.zeros((20, 20)))] * m
    model = NoisyLabelMKLClassifier(
        kernels, cap=0.5, fit_intercept=False, solver=solver, max_iter=200
    )
    # Averages of the published method come near their limit only.
    message = "after 200 solves" if solver == "paper" else "the best function is zero"
    with pytest.warns(UserWarning, match=message):
        model.fit(index, y)
    assert set(model.predict(index)) == {"b"}
    assert model.objective_ == pytest.approx(0.5)
    assert model.duality_gap_ <= (0.01 if solver == "paper" else 1e-9)
    assert model.converged_ == (solver != "paper")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_a_weight_of_two_is_a_row_given_twice(solver, n_classes):
    X, y = make_data(36, n_classes)
    twice = np.arange(36) % 3 == 0
    options = {"kernels": KERNELS, "noise_level": 0.3, "lam": 0.05, "solver": solver}
    if solver == "paper":
        options |= {"tol": 0.5}
    weighted = NoisyLabelMKLClassifier(**options).fit(X, y, sample_weight=1.0 + twice)
    X2, y2 = np.vstack([X, X[twice]]), np.append(y, y[twice])
    given = NoisyLabelMKLClassifier(**options).fit(X2, y2)
    assert weighted.objective_ == given.objective_
    assert np.array_equal(decide(weighted, X), decide(given, X))
    assert_allclose(weighted.cap_, given.cap_)
    assert np.array_equal(weighted.dual_weights_, given.dual_weights_[:36])
    assert np.array_equal(given.dual_weights_[36:], weighted.dual_weights_[twice])


def test_weighted_rows_are_those_of_the_definition():
    p = binary(3, n=24, m=4, spread=0, cap=0.4)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(p.y))
    index = np.repeat(np.arange(len(p.y)), weight)
    oracle = capped_oracle(p.grams[:, index][:, :, index], p.Y[index], p.lam, p.cap)
    kernels = [Precomputed(gram) for gram in p.grams]
    model = NoisyLabelMKLClassifier(
        kernels, normalize=None, lam=p.lam, cap=p.cap, fit_intercept=False, tol=TIGHT
    ).fit(rows_of(p), p.y, sample_weight=weight)
    assert model.objective_ == pytest.approx(oracle.value, rel=2e-6)
    assert model.dual_weights_.max() <= 1 + 1e-12
    assert weight @ model.dual_weights_ <= weight.sum() * p.cap * (1 + 1e-12)


def test_a_weight_of_zero_is_no_row():
    X, y = make_data(40)
    keep = np.arange(40) % 4 > 0
    model = NoisyLabelMKLClassifier(KERNELS, cap=0.4, lam=0.1)
    weighted = clone(model).fit(X, y, sample_weight=keep.astype(float))
    given = clone(model).fit(X[keep], y[keep])
    assert weighted.objective_ == pytest.approx(given.objective_, rel=1e-3)
    assert_near(decide(weighted, X), decide(given, X), 5e-2)
    assert not weighted.dual_weights_[~keep].any()


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_a_common_factor_of_the_weights_does_nothing(solver):
    X, y = make_data(30)
    model = NoisyLabelMKLClassifier(KERNELS, cap=0.5, lam=0.1, tol=0.3, solver=solver)
    one, many, few = (clone(model).fit(X, y, np.full(30, w)) for w in (1.0, 16.0, 0.0625))
    for other in (many, few):
        assert other.n_iter_ == one.n_iter_
        assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
        assert other.duality_gap_ == pytest.approx(one.duality_gap_, rel=1e-6)


def test_class_weights_are_factors_of_the_losses():
    X, y = make_data(40)
    factors = {"no": 1.0, "yes": 3.0}
    each = np.array([factors[label] for label in y])
    options = {"kernels": KERNELS, "normalize": None, "cap": 0.5, "tol": 1e-7}
    lam = 0.1
    by_class = NoisyLabelMKLClassifier(lam=lam, class_weight=factors, **options).fit(X, y)
    # Rows of these weights have another mean.
    by_row = NoisyLabelMKLClassifier(lam=lam / each.mean(), **options).fit(X, y, each)
    assert by_class.objective_ == pytest.approx(by_row.objective_ * each.mean(), rel=1e-6)
    assert_near(decide(by_class, X), decide(by_row, X), 2e-3)
    assert by_class.gamma_ == pytest.approx(by_row.gamma_, rel=1e-3)
    plain = NoisyLabelMKLClassifier(lam=lam, **options).fit(X, y)
    assert (by_class.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    balanced = NoisyLabelMKLClassifier(lam=lam, class_weight="balanced", **options).fit(X, y)
    sizes = {label: 40 / (2 * np.sum(y == label)) for label in ("no", "yes")}
    same = NoisyLabelMKLClassifier(lam=lam, class_weight=sizes, **options).fit(X, y)
    assert np.array_equal(decide(balanced, X), decide(same, X))


def test_intercept_is_a_constant_kernel():
    X, y = make_data(40)
    y = np.where(np.arange(40) < 25, "yes", y)  # more of one class
    options = {"lam": 0.02, "cap": 0.6, "tol": 1e-7}
    model = NoisyLabelMKLClassifier(KERNELS, **options).fit(X, y)
    constant = Precomputed(np.ones((40, 40)), columns=3)
    wide = np.column_stack([X, np.arange(40)])
    columns = [0, 1, 2]
    kernels = [RBF(0.8, columns=columns), Linear(columns=columns), Polynomial(2, columns=columns)]
    other = NoisyLabelMKLClassifier(
        [*kernels, RBF(0.5, columns=0), constant], fit_intercept=False, **options
    ).fit(wide, y)
    assert model.bias_weight_ > 0
    assert other.weights_[-1] == pytest.approx(model.bias_weight_, abs=1e-3)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)
    assert_near(decide(model, X), decide(other, wide), 2e-3)
    assert model.intercept_ == pytest.approx(
        model.bias_weight_ * model.dual_coef_.sum(axis=1), rel=1e-12
    )
    without = NoisyLabelMKLClassifier(KERNELS, fit_intercept=False, **options).fit(X, y)
    assert without.intercept_ == 0
    assert without.bias_weight_ == 0
    assert without.weights_.sum() == pytest.approx(1)
    assert model.objective_ < without.objective_


def test_frames():
    X, y = make_data(40)
    names = ["age", "bmi", "dose"]
    kernels = [RBF(0.8), Linear(), RBF(0.5, columns=["age"])]
    plain = NoisyLabelMKLClassifier([RBF(0.8), Linear(), RBF(0.5, columns=[0])]).fit(X, y)
    for table in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = NoisyLabelMKLClassifier(kernels).fit(table, y)
        assert list(model.feature_names_in_) == names
        assert model.objective_ == plain.objective_
        assert np.array_equal(model.decision_function(table), plain.decision_function(X))
        assert np.array_equal(model.predict(table), plain.predict(X))


def test_cross_validation_of_precomputed_kernels():
    X, y = make_data(60, wrong=0.0)
    grams = [Precomputed(kernel(X)) for kernel in (RBF(0.8), Linear())]
    model = NoisyLabelMKLClassifier(grams, normalize=None)
    scores = cross_val_score(model, np.arange(60)[:, None], y, cv=3)
    direct = cross_val_score(
        NoisyLabelMKLClassifier([RBF(0.8), Linear()], normalize=None), X, y, cv=3
    )
    assert_allclose(scores, direct)
    assert scores.mean() > 0.7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pickle_and_clone(n_classes):
    X, y = make_data(40, n_classes)
    model = NoisyLabelMKLClassifier(KERNELS, cap=0.5, slack=0.1, lam=0.1, class_weight="balanced")
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.predict(X), model.predict(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "weights_")
    assert np.array_equal(fresh.fit(X, y).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "options",
    [
        {"cap": 0.4, "lam": 0.1},
        {"cap": 0.4, "lam": 0.1, "slack": 0.2, "uncertainty": "exact", "tol": 0.05},
        {"solver": "paper", "tol": 0.5},
        {"robust": "best"},
    ],
    ids=str,
)
def test_threads_do_not_change_a_bit(options, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    X, y = make_data(300, 3)
    models = [NoisyLabelMKLClassifier(KERNELS, n_jobs=k, **options).fit(X, y) for k in (1, 2)]
    one, two = models
    assert one.objective_ == two.objective_
    assert np.array_equal(one.weights_, two.weights_)
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_running_out_of_steps_is_said_once_with_the_gap():
    X, y = make_data(40)
    model = NoisyLabelMKLClassifier(KERNELS, solver="paper", max_iter=15, tol=1e-4)
    with pytest.warns(ConvergenceWarning, match=r"15 solves.*duality gap of .*tol=0\.0001") as seen:
        model.fit(X, y)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert not model.converged_
    assert model.n_iter_ == 15
    assert set(model.predict(X)) <= set(y)
    assert 0 < model.duality_gap_ < model.objective_
    with pytest.warns(ConvergenceWarning, match="solves") as seen:
        model.fit_path(X, y, [0.1])
    assert seen[0].filename == __file__


def test_defaults():
    X, y = make_data(60, wrong=0.1)
    model = NoisyLabelMKLClassifier().fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.8
    assert model.contributions_.sum() == pytest.approx(1)
    assert len(model.to_frame()) == len(model.weights_)
    assert model.duality_gap_ <= 1e-3 * model.objective_


N = 20
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(N, 3))
LABELS = np.resize([0, 1], N)
ROWS = np.arange(N)[:, None]


def spoiled(value):
    table = TABLE.copy()
    table[3, 1] = value
    return table


def gram(i, j, value):
    matrix = np.eye(N)
    matrix[i, j] = value
    return matrix


def indefinite():
    matrix = np.eye(N)
    matrix[0, 1] = matrix[1, 0] = 2.0
    return matrix


def refused(kernels=None, table=TABLE, y=LABELS, sample_weight=None, **options):
    return lambda model: model.set_params(kernels=kernels, **options).fit(table, y, sample_weight)


def path(lams, caps=None):
    return lambda model: model.fit_path(TABLE, LABELS, lams, caps)


REFUSED = {
    "noise level of a half": (refused(noise_level=0.5), "'noise_level' parameter.*0.5"),
    "negative noise level": (refused(noise_level=-0.1), "'noise_level' parameter"),
    "nan noise level": (refused(noise_level=np.nan), "'noise_level' parameter"),
    "noise level by name": (refused(noise_level="high"), "'noise_level' parameter.*'high'"),
    "no noise level": (refused(noise_level=None), "'noise_level' parameter"),
    "cap of zero": (refused(cap=0.0), "'cap' parameter.*0.0"),
    "cap above one": (refused(cap=1.1), "'cap' parameter.*1.1"),
    "negative cap": (refused(cap=-1), "'cap' parameter"),
    "nan cap": (refused(cap=np.nan), "'cap' parameter"),
    "lam of zero": (refused(lam=0), "'lam' parameter"),
    "negative lam": (refused(lam=-1.0), "'lam' parameter"),
    "nan lam": (refused(lam=np.nan), "'lam' parameter"),
    "infinite lam": (refused(lam=np.inf), "lam"),
    "negative slack": (refused(slack=-0.1), "'slack' parameter"),
    "nan slack": (refused(slack=np.nan), "'slack' parameter"),
    "infinite slack": (refused(slack=np.inf), "slack"),
    "tol of zero": (refused(tol=0.0), "'tol' parameter"),
    "no steps": (refused(max_iter=0), "'max_iter' parameter"),
    "uncertainty": (refused(uncertainty="total"), "'uncertainty' parameter.*'total'"),
    "robust": (refused(robust="average"), "'robust' parameter.*'average'"),
    "solver": (refused(solver="slow"), "'solver' parameter.*'slow'"),
    "one class": (refused(y=np.zeros(N)), "two classes or more.*one class only: 0"),
    "one class of weight": (refused(sample_weight=LABELS), "one class only: 1 among the rows"),
    "nan label": (refused(y=np.where(LABELS, 1.0, np.nan)), "y.*NaN"),
    "continuous labels": (refused(y=RNG.normal(size=N)), "continuous"),
    "no labels": (refused(y=None), "requires y"),
    "fewer labels": (refused(y=LABELS[:-1]), r"inconsistent.*\[20, 19\]"),
    "nan": (refused([Linear()], table=spoiled(np.nan)), "X.*NaN.*row 3, column 1"),
    "infinity": (refused([Linear()], table=spoiled(np.inf)), "X.*infinity.*row 3, column 1"),
    "one row": (refused(table=TABLE[:1], y=LABELS[:1]), "1 sample.*minimum of 2"),
    "no rows": (refused(table=TABLE[:0], y=LABELS[:0]), "0 sample"),
    "negative weight": (refused(sample_weight=np.full(N, -1.0)), "[Nn]egative"),
    "no weight": (refused(sample_weight=np.zeros(N)), "at least one"),
    "class weight of zero": (refused(class_weight={0: 0.0, 1: 1.0}), "class_weight"),
    "no kernels": (refused(kernels=[]), "kernels"),
    "wrong kernel": (refused(kernels=[Linear(), 3]), r"kernels\[1\]"),
    "row numbers": (refused([Precomputed(np.eye(5))], ROWS), "row numbers from 0 to 4"),
    "no lams": (path([]), "lams: must be one or more finite numbers > 0"),
    "lams of zero": (path([0.1, 0.0]), "lams: must be one or more finite numbers > 0"),
    "infinite lams": (path([np.inf]), "lams: must be"),
    "lams by name": (path(["much"]), "lams: must be"),
    "lams that are none": (path(0.1), "lams: must be"),
    "no caps": (path([0.1], []), "caps: must be one or more finite numbers > 0 and at most 1"),
    "caps above one": (path([0.1], [0.5, 1.5]), "caps: must be.*at most 1"),
    "nan caps": (path([0.1], [np.nan]), "caps: must be"),
}


@pytest.mark.parametrize(("act", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_one_sentence(act, message):
    for model in (NoisyLabelMKLClassifier(), fitted()):
        before = {k: v for k, v in vars(model).items() if k.endswith("_") or k.startswith("_")}
        with pytest.raises((ValueError, TypeError), match=message) as caught:
            act(model)
        text = str(caught.value)
        assert "\n" not in text
        assert 10 < len(text) < 300
        after = {k: v for k, v in vars(model).items() if k.endswith("_") or k.startswith("_")}
        assert before.keys() == after.keys()
        assert all(after[name] is before[name] for name in before)


def fitted():
    return pickle.loads(stored())


@cache
def stored():
    return pickle.dumps(NoisyLabelMKLClassifier([Linear()]).fit(TABLE, LABELS))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (gram(2, 3, np.nan), "NaN|finite"),
        (gram(2, 2, np.inf), "finite|infinit"),
        (gram(0, 1, 0.5), "symmetric"),
        (indefinite(), "definite|eigenvalue"),
        (np.ones((3, 4)), r"\(3, 4\)|square"),
    ],
)
def test_matrices_that_are_no_kernels(matrix, message):
    with pytest.raises(InputError, match=message):
        NoisyLabelMKLClassifier([Linear(), Precomputed(matrix)]).fit(ROWS, LABELS)


def test_a_slightly_indefinite_matrix_is_taken():
    values = np.linalg.qr(RNG.normal(size=(N, N)))[0]
    spectrum = np.append(np.linspace(0.5, 2, N - 1), -1e-12)
    matrix = (values * spectrum) @ values.T
    model = NoisyLabelMKLClassifier([Precomputed(0.5 * (matrix + matrix.T))]).fit(ROWS, LABELS)
    assert np.isfinite(model.decision_function(ROWS)).all()


def test_prediction_checks_its_rows():
    with pytest.raises(NotFittedError):
        NoisyLabelMKLClassifier().predict(TABLE)
    with pytest.raises(ValueError, match=r"2 features.*expecting 3"):
        fitted().predict(TABLE[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        fitted().decision_function(spoiled(np.nan))


@pytest.mark.parametrize("seed", [3, 7, 10])
def test_one_huge_value(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    y = (np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200) > 0).astype(int)
    X[seed, seed % 3] = 1e10
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the best function is zero")
        # Widths that the value itself is typical of: all other rows are nearly equal.
        model = NoisyLabelMKLClassifier([rbf_ladder([2.5e8, 1e9, 4e9]), Linear()]).fit(X, y)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-12 * model.objective_


@pytest.mark.parametrize("lam", [20.7, 1e9])
def test_steps_that_explode(lam):
    rng = np.random.default_rng(2)
    X = 1e3 * rng.normal(size=(50, 3))
    y = (X[:, 0] + 500 * rng.normal(size=50) > 0).astype(int)
    model = NoisyLabelMKLClassifier(
        solver="vi", uncertainty="exact", slack=0.3, lam=lam, normalize=None, max_iter=200
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*the best function is zero")
        model.fit(X, y)
    assert np.isfinite([model.objective_, model.duality_gap_]).all()
    assert model.objective_ <= 1.3  # that of no function


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_offset_does_not_make_a_kernel_indefinite():
    """Centring cancels entries of 1e24, whose rounding is no negative eigenvalue."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    kernels = [RBF(1.0), polynomial_ladder([1, 2], per_feature=True)]
    model = NoisyLabelMKLClassifier(kernels, normalize=None, tol=1e-4, max_iter=20)
    model.fit(X + 1e6, X[:, 0] > 0)
    assert np.isfinite(model.decision_function(X + 1e6)).all()
