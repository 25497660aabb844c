"""The published method for capped losses, as printed."""

import numpy as np
import pytest

from capped_cases import KINDS, setting
from noisy_oracles import group_prox_oracle


def published_bound(s, steps):
    """The bound of Theorem 2 for equal steps, from the largest possible ``|f*|``."""
    p, outputs = s.problem, s.problem.Y.shape[1]
    top = p.grams.diagonal(axis1=1, axis2=2).max()  # B^2
    box = 1 + s.slack
    length = np.sqrt(s.n / (2 * len(p.grams) * top))
    # The step is one that the theorem covers.
    lipschitz = np.sqrt(np.linalg.eigvalsh(p.grams.sum(axis=0))[-1]) / s.n
    assert length * lipschitz <= 1
    rho = min(s.n * (p.cap + s.slack), s.n * box)
    function = outputs * rho**2 * top / (s.n * p.lam) ** 2
    return (function + outputs * box * rho) / (2 * length * steps)


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_published_method_keeps_its_bound(seed, slack, exact):
    s = setting(seed, slack, exact)
    oracle = s.oracle
    result = s.run(restarts=False, max_iter=200)
    lam = s.problem.lam
    own = result.history[:-1]  # the last line is that of the classifier returned
    assert [step.solves for step in own] == list(range(10, 201, 10))
    gaps = np.array([lam * (step.upper - step.lower) for step in own])
    bounds = np.array([published_bound(s, step.solves) for step in own])
    assert (gaps <= bounds).all()
    assert (gaps >= -1e-12 * oracle.value).all()
    assert all(lam * step.lower <= oracle.upper * (1 + 1e-12) for step in own)
    assert all(lam * step.upper >= oracle.lower * (1 - 1e-12) for step in own)


@pytest.mark.parametrize("seed", [0, 3])
def test_gap_of_the_published_method_falls_like_one_over_the_steps(seed):
    s = setting(seed)
    own = s.run(restarts=False, max_iter=800).history[:-1]
    gaps = {step.solves: step.upper - step.lower for step in own}
    # From 50 to 800 steps a factor of 16 is expected.
    assert gaps[800] <= gaps[50] / 5
    assert gaps[800] <= 1.5 * max(steps * gaps[steps] for steps in (50, 100, 200)) / 800


def reference_steps(s, steps):
    """The published algorithm as written, in functions on factors of the kernels."""
    p = s.problem
    game = s.game()
    top = p.grams.diagonal(axis1=1, axis2=2).max()
    g = np.sqrt(s.n / (2 * len(p.grams) * top))
    values, vectors = np.linalg.eigh(p.grams)
    factors = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    w = np.zeros((len(p.grams), s.n, p.Y.shape[1]))
    beta = np.zeros_like(p.Y)
    means = np.zeros_like(w), np.zeros_like(beta)
    for _ in range(steps):
        f = np.einsum("jnr,jro->no", factors, w)
        alpha = game.project(beta + g * (1 - p.Y * f) / s.n)
        half = w + g * np.einsum("jnr,no->jro", factors, p.Y * alpha) / s.n
        norms = np.linalg.norm(half, axis=(1, 2))
        w = half * (group_prox_oracle(norms, g * p.lam) / norms)[:, None, None]
        f = np.einsum("jnr,jro->no", factors, w)
        beta = game.project(beta + g * (1 - p.Y * f) / s.n)
        means[0][:] += w / steps
        means[1][:] += alpha / steps
    F = np.einsum("jnr,jro->no", factors, means[0])
    omega = np.linalg.norm(means[0], axis=(1, 2)).sum()
    losses = [k.worst(d)[0] for k, d in zip(game.sets, (1 - p.Y * F).T, strict=True)]
    primal = p.lam / 2 * omega**2 + sum(losses) / s.n
    v = np.einsum("jnr,no->jro", factors, p.Y * means[1]) / s.n
    dual = means[1].mean(axis=0).sum() - np.max((v**2).sum(axis=(1, 2))) / (2 * p.lam)
    return primal, dual


@pytest.mark.parametrize(("slack", "exact"), KINDS)
def test_published_method_is_the_algorithm_as_written(slack, exact):
    s = setting(3, slack, exact)
    step = s.run(restarts=False, max_iter=20).history[1]
    primal, dual = reference_steps(s, 20)
    assert s.problem.lam * step.upper == pytest.approx(primal, rel=1e-9)
    assert s.problem.lam * step.lower == pytest.approx(dual, rel=1e-9)
