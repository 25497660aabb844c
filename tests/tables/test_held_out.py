"""Scores on held-out rows and their intervals."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import fit_table
from kernelweave.tables.held_out import evaluate_model

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(120, 2))
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": RANDOM.choice(list("pq"), 120)})
SIGNAL = np.sin(2 * X[:, 0]) + 0.5 * (TABLE["kind"] == "p") + 0.2 * RANDOM.normal(size=120)
TABLE["ill"] = np.where(SIGNAL > 0, "yes", "no")
TABLE["level"] = SIGNAL


class Answers:
    """A model that is right for some rows."""

    def __init__(self, answers):
        self.answers = answers

    def predict(self, rows):
        return self.answers[: len(rows)]


def evaluate(target, answers):
    found = fit_table(TABLE, target, C=1.0, ignore=["ill" if target == "level" else "level"])
    problem = found.problem
    return evaluate_model(Answers(answers), "mkl", problem, problem, 1.0, 0)


def test_the_interval_of_a_share():
    """Wilson's: 90 of 120, worked out by hand."""
    y = TABLE["ill"].to_numpy().copy()
    y[:30] = "?"
    held_out = evaluate("ill", y)
    assert held_out["score"] == 0.75
    assert held_out["interval"] == pytest.approx((0.66559, 0.81890), abs=1e-5)
    perfect = evaluate("ill", TABLE["ill"].to_numpy())
    assert perfect["interval"][0] < 1.0 == perfect["interval"][1]


def test_the_interval_of_a_quantity():
    y = TABLE["level"].to_numpy()
    held_out = evaluate("level", y + 0.3 * RANDOM.normal(size=120))
    low, high = held_out["interval"]
    assert low < held_out["score"] < high
    assert high - low < 0.2
    exact = evaluate("level", y)
    assert exact["interval"] == (1.0, 1.0)
