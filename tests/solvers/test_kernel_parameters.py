"""Families of Gaussians: derivatives, ranges, and widths against a search over a grid."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_classification, make_moons

from kernelweave._threads import threads
from kernelweave.errors import InputError
from kernelweave.kernels import ARD, RBF
from kernelweave.solvers import Limits
from kernelweave.solvers.kernel_parameters import (
    ARDFamily,
    MixtureFamily,
    WidthFamily,
    learn_family,
)
from kernelweave.solvers.radius.criteria import RadiusMargin
from radius_oracles import radius_margin_value

MAKERS = {"width": WidthFamily, "ard": ARDFamily, "mixture": lambda rows: MixtureFamily(rows, 3)}


@pytest.fixture(autouse=True)
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


def signed(labels):
    classes = np.unique(labels)
    classes = classes[1:] if len(classes) == 2 else classes
    return np.where(labels[:, None] == classes, 1.0, -1.0)


@dataclass(frozen=True)
class Case:
    """Rows, targets and costs."""

    seed: int = 0
    n_classes: int = 2
    C: float = 1.0
    intercept: bool = True
    weighted: bool = False
    offset: float = 0.0

    def __str__(self):
        marks = [f"{self.n_classes} classes", f"C={self.C:g}"]
        marks += ["weighted"] * self.weighted + ["no intercept"] * (not self.intercept)
        marks += [f"offset {self.offset:g}"] * (self.offset != 0)
        return ", ".join(marks)

    def draw(self, n=24):
        rng = np.random.default_rng(self.seed)
        X = rng.normal(size=(n, 3)) * [1.0, 3.0, 0.2]
        signal = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
        Y = signed(np.argsort(np.argsort(signal)) * self.n_classes // n)
        cost = np.full(Y.shape, self.C)
        if self.weighted:
            cost *= rng.choice([0.5, 1.0, 3.0], n)[:, None]
        return X + self.offset, Y, cost


CASES = [
    Case(0, 2, 0.3),
    Case(1, 2, 1.0, weighted=True),
    Case(2, 2, 100.0, intercept=False),
    Case(3, 3, 10.0),
    Case(4, 3, 1.0, intercept=False, weighted=True),
    Case(5, 2, 10.0, offset=1e6),
    Case(6, 2, 1.0, offset=-3e5),
]


def at_random(family, seed):
    lowest, highest = family.bounds()
    start = family.start(0.4)
    return np.clip(start + np.random.default_rng(seed).normal(size=len(start)), lowest, highest)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients(case, name):
    X, Y, cost = case.draw()
    family, criterion = MAKERS[name](X), RadiusMargin(case.intercept)
    parameters = at_random(family, case.seed)
    point = criterion.evaluate(family.combine(parameters), Y, cost, tol=1e-12)

    def value(p):
        return criterion.evaluate(family.combine(p), Y, cost, tol=1e-13, start=point).value

    slopes = np.empty(len(parameters))
    for k in range(len(slopes)):
        step = 1e-4 * np.eye(len(slopes))[k]
        near = value(parameters + step) - value(parameters - step)
        far = value(parameters + 2 * step) - value(parameters - 2 * step)
        slopes[k] = (8 * near - far) / (12 * 1e-4)
    allowed = 1e-6 * np.abs(slopes).max() + 1e-7 * point.value
    np.testing.assert_allclose(family.gradient(parameters, point), slopes, atol=allowed)
    assert np.abs(slopes).max() > 100 * allowed  # something to see


@pytest.mark.parametrize("name", MAKERS)
def test_gradient_does_not_change_what_it_reads(name):
    X, Y, cost = CASES[1].draw()
    family = MAKERS[name](X)
    parameters = at_random(family, 1)
    point = RadiusMargin().evaluate(family.combine(parameters), Y, cost, tol=1e-8)
    dense = point.kernel.dense().copy()
    first = family.gradient(parameters, point)
    np.testing.assert_array_equal(family.gradient(parameters, point), first)
    np.testing.assert_array_equal(point.kernel.dense(), dense)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("case", [CASES[3], CASES[6]], ids=str)
def test_the_kernel_on_training_rows_is_the_written_one(case, name):
    X, Y, cost = case.draw()
    family = MAKERS[name](X)
    for seed in range(3):
        parameters = at_random(family, seed)
        kernels, weights = family.kernels(parameters)
        expected = np.tensordot(weights, [kernel(X) for kernel in kernels], axes=1)
        combined = family.combine(parameters)
        np.testing.assert_allclose(combined.dense(), expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(combined.diag(), weights.sum(), rtol=1e-12)
    value = RadiusMargin().evaluate(combined, Y, cost, tol=1e-10).value
    assert value == pytest.approx(radius_margin_value(expected, Y, cost), rel=1e-7)


def test_weights_of_a_mixture_have_no_scale():
    X, Y, cost = CASES[1].draw()
    family = MixtureFamily(X, 3)
    parameters = at_random(family, 0)
    point = RadiusMargin().evaluate(family.combine(parameters), Y, cost, tol=1e-11)
    slopes = family.gradient(parameters, point)[3:]
    assert abs(slopes.sum()) <= 1e-9 * point.value
    assert np.abs(slopes).max() > 1e-4 * point.value
    shifted = parameters + np.repeat([0.0, 2.0], 3)
    other = RadiusMargin().evaluate(family.combine(shifted), Y, cost, tol=1e-11)
    assert other.value == pytest.approx(point.value, rel=1e-9)


# Ranges


@pytest.mark.parametrize("factor", [1e-90, 1e-5, 1.0, 1e7, 1e90])
@pytest.mark.parametrize("name", MAKERS)
def test_ranges_follow_the_data(name, factor):
    X, _, _ = CASES[0].draw()
    plain, scaled = MAKERS[name](X), MAKERS[name](factor * X)
    rates = slice(3) if name == "mixture" else slice(None)
    shift = 2 * np.log(factor)
    for one, two in zip(plain.bounds(), scaled.bounds(), strict=True):
        np.testing.assert_allclose(two[rates] + shift, one[rates], atol=1e-9 * (1 + abs(shift)))
    for share in (0.03, 1.0, 3.0):
        start, (lowest, highest) = scaled.start(share), scaled.bounds()
        assert (lowest <= start).all()
        assert (start <= highest).all()
        np.testing.assert_allclose(start[rates] + shift, plain.start(share)[rates], atol=1e-7)
    distances = np.square(X[:, None] - X)
    if name == "ard":
        typical = np.array([np.median(d[d > 0]) for d in np.moveaxis(distances, 2, 0)])
        np.testing.assert_allclose(plain.bounds()[1], np.log(1e3 / typical))
        np.testing.assert_allclose(plain.start(1.0), np.log(1 / typical / 3))
    else:
        whole = distances.sum(axis=2)
        np.testing.assert_allclose(
            plain.bounds()[1][rates], np.log(1e3 / np.median(whole[whole > 0]))
        )


class Watched:
    """Remembers every choice of parameters that was looked at."""

    def __init__(self, family):
        self.family, self.seen = family, []

    def __getattr__(self, name):
        return getattr(self.family, name)

    def combine(self, parameters):
        self.seen.append(parameters.copy())
        return self.family.combine(parameters)


def noise(seed, n=40):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), signed(rng.integers(0, 2, n))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_no_parameter_leaves_its_range(name, C):
    # With labels of no meaning the best rate may be as large as is allowed.
    X, Y = noise(4)
    family = Watched(MAKERS[name](X))
    options = {"n_starts": 2, "limits": Limits(1e-3, 150)}
    result, _ = learn_family(family, Y, np.full(Y.shape, C), RadiusMargin(), **options)
    lowest, highest = family.bounds()
    seen = np.array(family.seen)
    assert (seen >= lowest - 1e-12).all()
    assert (seen <= highest + 1e-12).all()
    assert len(seen) == result.history[-1].solves <= 150
    # The first step is short: from the plateau of large rates there is no way back.
    if C == 100.0:
        assert np.abs(seen[6] - seen[5]).max() <= 0.5 + 1e-9


# Columns and rows without information


@pytest.mark.parametrize("value", [0.0, 1e9])
def test_a_constant_column_is_left_out(value):
    X, Y, cost = CASES[1].draw()
    more = np.insert(X, 1, value, axis=1)
    options = {"n_starts": 1, "limits": Limits(1e-3, 100)}
    for name, maker in MAKERS.items():
        plain, _ = learn_family(maker(X), Y, cost, RadiusMargin(), **options)
        result, kernel = learn_family(maker(more), Y, cost, RadiusMargin(), **options)
        assert result.objective == pytest.approx(plain.objective, rel=1e-4)
        if name == "ard":
            widths = np.array(kernel.bank.kernels[0].widths)
            assert np.isinf(widths).tolist() == [False, True, False, False]


def test_nothing_to_learn():
    same = np.ones((5, 2))
    for maker in (WidthFamily, MAKERS["mixture"]):
        with pytest.raises(InputError, match="all rows are equal"):
            maker(same)
    with pytest.raises(InputError, match="every column is constant"):
        ARDFamily(same)


@pytest.mark.parametrize("factor", [1e-150, 1e-110, 1e110, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("name", MAKERS)
def test_distances_that_are_no_numbers(name, factor):
    X, _, _ = CASES[0].draw()
    with pytest.raises(InputError, match="too large or too small"):
        MAKERS[name](factor * X)


# What is found


def data(kind, seed=0, n=50):
    if kind == "moons":
        X, y = make_moons(n, noise=0.25, random_state=seed)
    elif kind == "circles":
        X, y = make_circles(n, noise=0.15, factor=0.5, random_state=seed)
    else:
        X, y = make_classification(n, 5, n_informative=3, flip_y=0.1, random_state=seed)
    return X, signed(y)


@pytest.mark.parametrize(("kind", "C"), [("moons", 1.0), ("circles", 10.0), ("flat", 30.0)])
def test_no_width_of_a_fine_grid_is_better(kind, C):
    X, Y = data(kind)
    cost, criterion, family = np.full(Y.shape, C), RadiusMargin(), WidthFamily(X)
    grid = np.linspace(*(b[0] for b in family.bounds()), 200)
    values, last = [], None
    for rate in grid:
        last = criterion.evaluate(family.combine(np.array([rate])), Y, cost, tol=1e-6, start=last)
        values.append(last.value)
    best = int(np.argmin(values))
    assert 5 < best < 195  # inside, so that there is a slope to follow
    result, kernel = learn_family(family, Y, cost, criterion, Limits(1e-4, 200), n_starts=2)
    assert result.converged
    assert result.objective <= min(values) * (1 + 1e-5)
    (found,) = kernel.bank.kernels
    near = np.exp(-0.5 * (grid[[best + 2, best - 2]] + np.log(2)))
    assert near[0] <= found.width <= near[1]
    assert kernel.weights.tolist() == [1.0]
    assert type(found) is RBF


def relative_slopes(family, kernel, Y, cost, criterion):
    """Return slopes relative to the value, those that point out of the range left out."""
    kernels, weights = kernel.bank.kernels, kernel.weights
    if isinstance(kernels[0], ARD):
        widths = np.array(kernels[0].widths)[family.varying]
    else:
        widths = np.array([k.width for k in kernels])
    parameters = -2 * np.log(widths) - np.log(2)
    if isinstance(family, MixtureFamily):
        parameters = np.concatenate([parameters, np.log(weights)])
    point = criterion.evaluate(family.combine(parameters), Y, cost, tol=1e-10)
    slopes = family.gradient(parameters, point) / point.value
    lowest, highest = family.bounds()
    slopes[(parameters <= lowest + 1e-9) & (slopes > 0)] = 0.0
    slopes[(parameters >= highest - 1e-9) & (slopes < 0)] = 0.0
    return slopes, point.value


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("kind", "C"),
    [("moons", 1.0), ("moons", 100.0), ("circles", 0.1), ("flat", 10.0), ("noise", 187.0)],
)
def test_converged_means_that_no_step_pays(kind, C, name):
    # The criterion falls by two orders of magnitude on labels of no meaning.
    X, Y = noise(4, 50) if kind == "noise" else data(kind, 1)
    cost, family, tol = np.full(Y.shape, C), MAKERS[name](X), 1e-3
    result, kernel = learn_family(family, Y, cost, RadiusMargin(), Limits(tol, 400), n_starts=2)
    slopes, value = relative_slopes(family, kernel, Y, cost, RadiusMargin())
    assert value == pytest.approx(result.objective, rel=1e-4)
    if result.converged:
        assert np.abs(slopes).max() <= 1.5 * tol
    assert result.converged or kind == "noise"


def test_columns_that_matter_get_the_smaller_widths():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = signed((np.sin(2 * X[:, 2]) > 0).astype(int))
    options = {"n_starts": 2, "limits": Limits(1e-3, 300)}
    cost = np.full(Y.shape, 10.0)
    result, kernel = learn_family(ARDFamily(X), Y, cost, RadiusMargin(), **options)
    widths = np.array(kernel.bank.kernels[0].widths)
    assert widths.argmin() == 2
    assert np.delete(widths, 2).min() > 3 * widths[2]
    alone, _ = learn_family(WidthFamily(X), Y, cost, RadiusMargin(), **options)
    assert result.objective < 0.8 * alone.objective


def test_more_starts_are_never_worse():
    X, Y = data("flat", 3, n=30)
    cost = np.full(Y.shape, 10.0)
    for maker in MAKERS.values():
        values = []
        for n_starts in (1, 3):
            options = {"n_starts": n_starts, "limits": Limits(1e-2, 500)}
            values.append(learn_family(maker(X), Y, cost, RadiusMargin(), **options)[0].objective)
        assert values[1] <= values[0] * (1 + 1e-9)


@pytest.mark.parametrize("max_iter", [1, 3, 5, 7])
def test_a_short_search_says_so(max_iter):
    X, Y = data("moons")
    steps = []
    result, kernel = learn_family(
        ARDFamily(X),
        Y,
        np.ones(Y.shape),
        RadiusMargin(),
        n_starts=2,
        limits=Limits(1e-6, max_iter, steps.append),
    )
    assert not result.converged
    assert len(steps) == len(result.history) == max_iter
    uppers = [step.upper for step in steps]
    assert uppers == sorted(uppers, reverse=True)
    assert result.objective == uppers[-1]
    assert result.lower_bound == -np.inf
    assert kernel.dense().shape == (50, 50)


@pytest.mark.parametrize("name", MAKERS)
def test_scale_and_offset_of_the_rows(name):
    X, Y = data("moons", 2, n=30)
    cost, options = np.full(Y.shape, 5.0), {"n_starts": 1, "limits": Limits(1e-3, 300)}
    plain, _ = learn_family(MAKERS[name](X), Y, cost, RadiusMargin(), **options)
    for rows in (X + 1e8, 1e80 * X, 1e-80 * X - 1e-74):
        other, _ = learn_family(MAKERS[name](rows), Y, cost, RadiusMargin(), **options)
        assert other.converged
        assert other.objective == pytest.approx(plain.objective, rel=1e-3)
