"""Maps from decisions to probabilities."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.calibration import _SigmoidCalibration

from kernelweave.estimators import calibrators
from kernelweave.estimators.calibrators import Calibrator, fit_calibrator, fit_sigmoid

RANDOM = np.random.default_rng(0)
N = 200
F = RANDOM.normal(size=N) * 2 + 0.3
ONES = (RANDOM.random(N) < expit(1.5 * F - 0.4)).astype(float)
CODES3 = RANDOM.integers(0, 3, size=N)
F3 = RANDOM.normal(size=(N, 3)) + 1.5 * np.eye(3)[CODES3]
WEIGHT = RANDOM.integers(1, 4, size=N).astype(float)


def test_sigmoid_is_scikit_learns():
    theirs = _SigmoidCalibration().fit(F, ONES, sample_weight=np.ones(N))
    slope, bias = fit_sigmoid(F, ONES, np.ones(N))
    np.testing.assert_allclose(expit(slope * F + bias), theirs.predict(F), atol=1e-6)


@pytest.mark.parametrize("seed", [44, 88, 91])
def test_steps_end_where_values_cannot_tell_them_any_more(seed, monkeypatch):
    """Rounding of the value made steps of no length look like progress, up to the limit."""
    random = np.random.default_rng(seed)
    decision = random.normal(size=135)
    ones = (decision + random.normal(size=135) > 0) * 1.0
    steps = []
    monkeypatch.setattr(calibrators, "expit", lambda z: [steps.append(1), expit(z)][1])
    slope, bias = fit_sigmoid(decision, ones, np.ones(135))
    assert len(steps) <= 10
    # The derivatives at the solution are zero.
    targets = np.where(ones > 0, (ones.sum() + 1) / (ones.sum() + 2), 1 / (137 - ones.sum()))
    error = expit(slope * decision + bias) - targets
    assert abs(error.sum()) < 1e-10
    assert abs(error @ decision) < 1e-10


def test_integer_weights_are_repeated_rows():
    again = np.repeat(np.arange(N), WEIGHT.astype(int))
    np.testing.assert_allclose(
        fit_sigmoid(F, ONES, WEIGHT), fit_sigmoid(F[again], ONES[again], np.ones(len(again)))
    )
    for method in ("matrix", "vector", "temperature", "sigmoid", "isotonic"):
        one = fit_calibrator(method, F3, CODES3[:, None] * 1.0, WEIGHT, labels=False)
        codes = CODES3[again, None] * 1.0
        two = fit_calibrator(method, F3[again], codes, np.ones(len(again)), labels=False)
        np.testing.assert_allclose(one.log_proba(F3), two.log_proba(F3), atol=1e-6)


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e8, 0.0), (1e-8, 0.0), (1.0, 1e6), (1e290, 0.0), (1e-290, 0.0)]
)
def test_sigmoid_does_not_depend_on_scale_and_offset(scale, offset):
    slope, bias = fit_sigmoid(F, ONES, np.ones(N))
    moved = scale * F + offset
    other, shift = fit_sigmoid(moved, ONES, np.ones(N))
    np.testing.assert_allclose(
        expit(other * moved + shift), expit(slope * F + bias), atol=1e-7 if offset == 0 else 1e-6
    )


def test_separable_decisions_keep_a_finite_slope():
    f = np.concatenate([np.linspace(-2, -1, 20), np.linspace(1, 2, 20)])
    slope, bias = fit_sigmoid(f, (f > 0) * 1.0, np.ones(40))
    assert 0.5 < slope < 5
    assert abs(bias) < 1e-8


def test_decisions_worse_than_chance_give_the_shares_of_the_classes():
    with pytest.warns(UserWarning, match="no better than chance"):
        found = fit_calibrator("auto", F[:, None], 1 - ONES[:, None], np.ones(N), labels=False)
    assert found.slopes[0] == 0
    n_ones = (1 - ONES).sum()
    expected = (n_ones + 1) / (N + 2)
    np.testing.assert_allclose(np.exp(found.log_proba(F[:3, None]))[:, 1], expected)


def test_equal_decisions_give_the_shares():
    with pytest.warns(UserWarning, match="no better than chance"):
        found = fit_calibrator(
            "auto", np.full((N, 1), 0.7), ONES[:, None], np.ones(N), labels=False
        )
    assert found.slopes[0] == 0


def smoothed(codes, n, k):
    share = k / (n + k)
    return (1 - share) * np.eye(k)[codes] + share * (np.bincount(codes, minlength=k) + 1) / (n + k)


def test_vector_scaling_is_the_minimum():
    found = fit_calibrator("vector", F3, CODES3[:, None] * 1.0, np.ones(N), labels=False)
    assert found.method == "vector"
    target = smoothed(CODES3, N, 3)

    def value(point):
        return -(target * log_softmax(point[:3] * F3 + point[3:], axis=1)).sum()

    at = value(np.concatenate([found.slopes, found.biases]))
    other = minimize(value, np.ones(6), method="Nelder-Mead", options={"maxiter": 20000}).fun
    assert at <= other + 1e-6
    assert abs(found.biases.sum()) < 1e-10


@pytest.mark.parametrize("method", ["vector", "temperature"])
@pytest.mark.parametrize("seed", range(12))
def test_slopes_are_the_minimum_where_some_of_them_are_zero(method, seed):
    """Small and large samples, classes that are told apart entirely, not at all and backwards."""
    random = np.random.default_rng(seed)
    k, n = 3 + seed % 3, 20 + 8 * seed
    codes = random.integers(0, k, n)
    codes[:k] = np.arange(k)
    decision = random.normal(size=(n, k)) * 10.0 ** random.integers(-2, 3)
    decision[np.arange(n), codes] += (0.0, -1.0, 500.0)[seed % 3]
    decision[:, 0] *= -1.0
    weight = random.choice([0.5, 1.0, 3.0], n)
    total = weight.sum()
    counts = np.bincount(codes, weight, k)
    target = k / (total + k) * np.tile((counts + 1) / (total + k), (n, 1))
    target[np.arange(n), codes] += 1 - k / (total + k)
    width = np.abs(decision).max()

    def value(point):
        a, b = (point[:k], point[k:]) if method == "vector" else (point[0], 0.0)
        return -(weight[:, None] * target * log_softmax(a * decision / width + b, axis=1)).sum()

    found = fit_calibrator(method, decision, codes[:, None] * 1.0, weight, labels=False)
    own = width * found.slopes
    point = np.concatenate([own, found.biases]) if method == "vector" else own[:1]
    n_slopes = k if method == "vector" else 1
    bounds = [(0, None)] * n_slopes + [(None, None)] * (len(point) - n_slopes)
    options = {"maxiter": 5000, "maxfun": 100_000, "ftol": 1e-15}
    other = minimize(value, point + 0.1, method="L-BFGS-B", bounds=bounds, options=options).fun
    assert (found.slopes >= 0).all()
    assert value(point) <= other + 1e-7 * abs(other)


@pytest.mark.parametrize("seed", [17, 107, 164, 174, 247])
def test_slopes_that_are_nearly_zero_do_not_hold_up_the_others(seed):
    """Decisions that are nearly the same, or one another's negative."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(30, 1))
    x = random.normal(size=(30, 3)) * 0.2 + common * random.choice([-1, 1], 3)
    target = np.full((30, 3), 0.05 / 3)
    target[np.arange(30), random.integers(0, 3, 30)] += 0.95
    loss = calibrators._Slopes(x, target, np.ones(30))
    start = np.concatenate([np.full(3, 1e-12), random.normal(size=3)])
    found = loss.value(calibrators._minimise(loss, start))
    assert found <= loss.value(calibrators._minimise(loss, np.zeros(6))) + 1e-8


def penalised(matrix, biases, decision, codes, ridge):
    """The loss of the definition, with decisions in units of their spread within columns."""
    n, k = decision.shape
    scale = np.sqrt(np.mean(decision.var(axis=0)))
    own = scale * matrix
    fit = -(smoothed(codes, n, k) * log_softmax(decision @ matrix + biases, axis=1)).sum()
    return fit + 0.5 * ridge * ((own - np.trace(own) / k * np.eye(k)) ** 2).sum()


def test_a_matrix_of_several_classes_is_the_minimum():
    found = fit_calibrator("auto", F3, CODES3[:, None] * 1.0, np.ones(N), labels=False)
    assert found.method == "matrix"

    def value(point):
        return penalised(point[:9].reshape(3, 3), point[9:], F3, CODES3, calibrators._RIDGE)

    at = value(np.concatenate([found.mixing.ravel(), found.biases]))
    start = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    other = minimize(value, start, method="BFGS", options={"gtol": 1e-6}).fun
    assert at <= other + 1e-7
    assert abs(found.biases.sum()) < 1e-10
    values = F3 @ found.mixing + found.biases
    np.testing.assert_allclose(found.log_proba(F3), log_softmax(values, axis=1))


@pytest.mark.parametrize(("scale", "offset"), [(1e8, 0.0), (1e-8, 0.0), (1.0, 1e5)])
def test_a_matrix_does_not_depend_on_scale_and_offset(scale, offset):
    codes = CODES3[:, None] * 1.0
    one = fit_calibrator("matrix", F3, codes, np.ones(N), labels=False)
    two = fit_calibrator("matrix", scale * F3 + offset, codes, np.ones(N), labels=False)
    np.testing.assert_allclose(
        one.log_proba(F3), two.log_proba(scale * F3 + offset), rtol=1e-6, atol=1e-6
    )


def test_decisions_that_are_worse_than_chance_give_the_shares_of_the_classes():
    found = fit_calibrator("matrix", -5 * F3, CODES3[:, None] * 1.0, np.ones(N), labels=False)
    assert not found.mixing.any()
    counts = np.bincount(CODES3)
    shares = np.tile((counts + 1) / (N + 3), (2, 1))
    np.testing.assert_allclose(np.exp(found.log_proba(np.array([[1.0, 2, 3], [9, 0, 0]]))), shares)


def test_many_classes_have_a_slope_each():
    random = np.random.default_rng(0)
    codes = np.arange(240) % 12
    decision = random.normal(size=(240, 12)) + 2 * np.eye(12)[codes]
    found = fit_calibrator("auto", decision, codes[:, None] * 1.0, np.ones(240), labels=False)
    assert found.method == "vector"
    assert found.mixing is None


@pytest.mark.parametrize(
    "method", ["auto", "sigmoid", "matrix", "vector", "temperature", "isotonic"]
)
@pytest.mark.parametrize("decision", [F[:, None], F3])
def test_probabilities_are_probabilities(method, decision):
    codes = ONES[:, None] if decision.shape[1] == 1 else CODES3[:, None] * 1.0
    found = fit_calibrator(method, decision, codes, np.ones(N), labels=False)
    wide = np.vstack([decision, 1e3 * decision, -1e3 * decision])
    p = np.exp(found.log_proba(wide))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.isfinite(found.log_proba(wide)).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert (found.slopes >= 0).all()
    if decision.shape[1] == 1:
        ordered = np.exp(found.log_proba(np.sort(wide, axis=0)))[:, 1]
        assert (np.diff(ordered) >= 0).all()


def test_few_rows_are_not_enough_for_steps():
    with pytest.warns(UserWarning, match="too few for a step function"):
        fit_calibrator("isotonic", F[:30, None], ONES[:30, None], np.ones(30), labels=False)


def test_labels_have_a_sigmoid_each():
    ones = np.column_stack([ONES, np.where(np.arange(N) < 50, -1, 1 - ONES)])
    decision = np.column_stack([F, -F])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_calibrator("auto", decision, ones, np.ones(N), labels=True)
    slope, bias = fit_sigmoid(-F[50:], 1 - ONES[50:], np.ones(N - 50))
    assert (found.slopes[1], found.biases[1]) == (slope, bias)
    np.testing.assert_allclose(np.exp(found.log_proba(decision))[:, 1], expit(-slope * F + bias))


def test_calibrators_are_values():
    one = Calibrator("sigmoid", np.ones(1), np.zeros(1))
    np.testing.assert_allclose(np.exp(one.log_proba(np.zeros((1, 1)))), 0.5)
