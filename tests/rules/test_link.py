"""Probabilities in exported programs."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from kernelweave.errors import InputError
from kernelweave.rules import Link, Proposition, Rule, to_python, to_sql
from rule_models import run_python, run_sqlite

X = pd.DataFrame({"x": np.linspace(-4, 4, 9)})
WEIGHTS = np.array([[1.0, -0.5, 0.25], [300.0, 2.0, -4000.0]])
CUTS = (-1.5, 2.5)
STEPS = tuple(((-1.0, 0.5, 2.0), (0.1 * (t + 1), 0.4, 0.9)) for t in range(3))
SLOPES, BIASES = np.array([0.5, 2.0, 1.5]), np.array([0.1, -0.2, 0.3])


def model(n_outputs):
    rules = [
        Rule((Proposition("x", 0, ">", cut),), tuple(w[:n_outputs]), 0.5)
        for cut, w in zip(CUTS, WEIGHTS, strict=True)
    ]
    holds = X.to_numpy() > np.array(CUTS)
    return rules, holds @ WEIGHTS[:, :n_outputs]


def shares_of(form, f):
    values = SLOPES[: f.shape[1]] * f + BIASES[: f.shape[1]]
    if form == "softmax":
        return softmax(values, axis=1)
    ones = expit(values)
    if form == "steps":
        columns = zip(f.T, STEPS, strict=False)
        ones = np.column_stack([np.interp(c, *steps) for c, steps in columns])
    return ones / ones.sum(axis=1, keepdims=True) if form == "shares" else ones


@pytest.mark.parametrize("form", ["sigmoid", "softmax", "shares", "steps"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_probabilities(form, n_outputs):
    if form in ("softmax", "shares") and n_outputs == 1:
        return
    rules, f = model(n_outputs)
    steps = STEPS[:n_outputs] if form == "steps" else ()
    link = Link(
        tuple(SLOPES[:n_outputs]),
        tuple(BIASES[:n_outputs]),
        softmax=form == "softmax",
        shares=form == "shares",
        steps=steps,
    )
    expected = shares_of(form, f)
    separate = n_outputs > 1 and form in ("sigmoid", "steps")
    classes = ["a", "b", "c"] if n_outputs > 1 and not separate else ["a", "b"]
    start = [0.0] * n_outputs
    given = {"classes": classes, "separate": separate, "link": link}
    found = run_python(to_python(rules, start, **given), X)
    python = np.array([answer[-1] for answer in found]).reshape(len(X), -1)
    np.testing.assert_allclose(python, expected, rtol=1e-13, atol=1e-300)
    query = to_sql(rules, start, dialect="sqlite", keep=["the key"], **given)
    found = np.array([row[-n_outputs:] for row in run_sqlite(query, X)])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)
    name = "probability" if n_outputs == 1 else "probability_2"
    assert f"AS `{name}`" in query


def test_bad_links():
    rules, _ = model(1)
    link = Link((1.0, 1.0), (0.0, 0.0))
    with pytest.raises(InputError, match=r"link: probabilities need classes and 1 output"):
        to_sql(rules, 0.0, classes=[0, 1], link=link)
    with pytest.raises(InputError, match="link: probabilities need classes"):
        to_python(rules, 0.0, link=Link((1.0,), (0.0,)))
