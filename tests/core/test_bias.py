"""The bias that minimises the loss, against a search over all kinks."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelweave import _core
from quick import examples


def loss_at(b, residual, lower, upper, ridge, dead_zone):
    """Total loss of predictions ``fitted + b``, where ``residual = target - fitted``."""
    r = residual - b
    slack = np.maximum(np.abs(r) - dead_zone, 0)
    t = np.where(r > 0, upper, -lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(ridge > 0, np.minimum(slack / ridge, t), t)
    return float(np.sum(np.where(slack > 0, t * slack - 0.5 * ridge * t**2, 0.0)))


def best_by_search(residual, lower, upper, ridge, dead_zone):
    """Minimise over every kink and, between neighbours, by the vertex of the parabola."""
    kinks = [residual - dead_zone, residual + dead_zone]
    kinks += [residual - dead_zone - ridge * upper, residual + dead_zone - ridge * lower]
    kinks = np.unique(np.concatenate(kinks))
    value = min(loss_at(b, residual, lower, upper, ridge, dead_zone) for b in kinks)
    for left, right in itertools.pairwise(kinks):
        points = np.linspace(left, right, 3)
        values = [loss_at(b, residual, lower, upper, ridge, dead_zone) for b in points]
        bend = values[0] - 2 * values[1] + values[2]
        if bend > 0:
            step = 0.5 * (values[0] - values[2]) / bend
            b = points[1] + np.clip(step, -1, 1) * (right - left) / 2
            value = min(value, loss_at(b, residual, lower, upper, ridge, dead_zone))
    return value


def call(residual, lower, upper, ridge, dead_zone):
    residual, lower, upper, ridge = (
        np.array(a, dtype=float) for a in (residual, lower, upper, ridge)
    )
    fitted = np.linspace(-1, 1, len(residual))
    return _core.best_bias(fitted, residual + fitted, lower, upper, ridge, dead_zone)


numbers = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
sizes = st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.5, 7.0])
ridges = st.sampled_from([0.0, 0.0, 0.01, 1.0, 30.0])


@st.composite
def rows(draw):
    n = draw(st.integers(1, 12))
    residual = draw(st.lists(numbers, min_size=n, max_size=n))
    lower = [-x for x in draw(st.lists(sizes, min_size=n, max_size=n))]
    upper = draw(st.lists(sizes, min_size=n, max_size=n))
    ridge = draw(st.lists(ridges, min_size=n, max_size=n))
    return residual, lower, upper, ridge, draw(st.sampled_from([0.0, 0.1, 5.0]))


@given(rows())
@example(([0.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 0.0], 0.0))
@example(([1.0, 1.0, 1.0], [-1.0] * 3, [1.0] * 3, [0.01] * 3, 0.0))
@examples(400)
def test_no_bias_is_better(case):
    residual, lower, upper, ridge, dead_zone = (np.asarray(a, dtype=float) for a in case)
    bias, loss = call(*case[:4], float(dead_zone))
    assert np.isfinite(bias)
    size = np.sum(upper - lower) * (np.ptp(residual) + 1)
    here = loss_at(bias, residual, lower, upper, ridge, dead_zone)
    assert loss == pytest.approx(here, abs=1e-9 * size)
    assert loss <= best_by_search(residual, lower, upper, ridge, dead_zone) + 1e-9 * size


@given(rows(), st.floats(-50, 50))
@examples(100)
def test_a_shift_of_the_targets_shifts_the_bias(case, shift):
    residual, *rest = case
    _, loss = call(residual, *rest)
    moved, same = call(np.asarray(residual) + shift, *rest)
    scale = np.sum(np.asarray(rest[1]) - np.asarray(rest[0])) * (np.ptp(residual) + 1 + abs(shift))
    assert same == pytest.approx(loss, abs=1e-8 * scale + 1e-12)
    if any(rest[0]) or any(rest[1]):
        # Where the loss is flat to rounding any point of the flat piece will do.
        args = [np.asarray(a, dtype=float) for a in (residual, *rest)]
        assert loss_at(moved - shift, *args) == pytest.approx(loss, abs=1e-8 * scale + 1e-12)


@pytest.mark.parametrize(
    ("residual", "lower", "upper", "ridge", "dead_zone", "bias"),
    [
        ([1, 1, -1], [0, 0, -1], [1, 1, 0], [0] * 3, 0.0, 1.0),  # hinge: two against one
        ([1, -1], [0, -1], [1, 0], [0] * 2, 0.0, 0.0),  # the middle of a flat piece
        ([1, 1, 1], [0] * 3, [1] * 3, [0] * 3, 0.0, 1.0),  # one class: the end of a half-line
        ([-1, -1], [-1] * 2, [0] * 2, [0] * 2, 0.0, -1.0),
        ([0, 0, 1], [-1] * 3, [1] * 3, [0] * 3, 0.1, 0.1),  # tube: its upper edge at two rows
        ([0, 0, 1], [-1] * 3, [1] * 3, [0] * 3, 0.7, 0.5),
        ([0, 10], [-1] * 2, [1] * 2, [1] * 2, 0.0, 5.0),  # Huber: both straight
        ([0, 0, 10], [-1] * 3, [1] * 3, [1] * 3, 0.0, 0.5),
        ([0, 3], [-1, -2], [1, 2], [1, 0.5], 0.0, 2.5),  # a weighted compromise
        ([4.0], [0], [0], [0], 0.0, 0.0),  # nothing to fit
    ],
)
def test_known_answers(residual, lower, upper, ridge, dead_zone, bias):
    assert call(residual, lower, upper, ridge, dead_zone)[0] == pytest.approx(bias, abs=1e-12)


def test_median_of_many():
    residual = np.random.default_rng(0).normal(size=1001)
    ones = np.ones(1001)
    bias, loss = call(residual, -ones, ones, 0 * ones, 0.0)
    assert bias == pytest.approx(np.median(residual), abs=1e-12)
    assert loss == pytest.approx(np.abs(residual - np.median(residual)).sum(), rel=1e-12)


def test_mean_of_many():
    residual = np.random.default_rng(1).normal(size=500)
    ones = np.ones(500)
    bias, loss = call(residual, -100 * ones, 100 * ones, ones, 0.0)
    assert bias == pytest.approx(residual.mean(), abs=1e-10)
    assert loss == pytest.approx(0.5 * np.sum((residual - residual.mean()) ** 2), rel=1e-10)


def test_no_rows():
    assert call([], [], [], [], 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scale_of_costs_does_not_matter(scale):
    residual = np.random.default_rng(2).normal(size=50)
    lower, upper = -np.ones(50), np.arange(50) % 3 + 0.5
    plain = call(residual, lower, upper, np.zeros(50), 0.1)
    scaled = call(residual, scale * lower, scale * upper, np.zeros(50), 0.1)
    assert scaled[0] == pytest.approx(plain[0], rel=1e-12)
    assert scaled[1] / scale == pytest.approx(plain[1], rel=1e-12)


@pytest.mark.parametrize(
    "kind", ["hinge", "rounded hinge", "epsilon", "rare class", "tight", "equal"]
)
def test_many_rows_are_not_all_sorted_but_the_answer_is_the_same(kind):
    rng = np.random.default_rng(3)
    n = 20_000
    y = np.where(rng.random(n) < (0.01 if kind == "rare class" else 0.5), 1.0, -1.0)
    cost = np.ones(n) if kind == "equal" else rng.uniform(0, 2, n)
    lower, upper = np.where(y > 0, 0.0, -cost), np.where(y > 0, cost, 0.0)
    ridge = np.full(n, 0.05 if kind in ("rounded hinge", "epsilon") else 0.0)
    dead_zone = 0.0
    if kind == "epsilon":
        y, lower, upper, dead_zone = rng.normal(5.0, 3.0, n), -cost, cost, 0.1
    fitted = rng.normal(size=n) * (1e-6 if kind == "tight" else 1.0)
    bias, loss = _core.best_bias(fitted, y, lower, upper, ridge, dead_zone)
    residual = y - fitted

    def value(b):
        return loss_at(b, residual, lower, upper, ridge, dead_zone)

    assert loss == pytest.approx(value(bias), rel=1e-12)
    for step in (1e-9, 1e-6, 1e-3, 0.1, 1.0):  # convex: no neighbour may be better
        assert min(value(bias - step), value(bias + step)) >= loss * (1 - 1e-12)
