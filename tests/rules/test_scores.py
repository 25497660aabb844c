"""Scores of rules and explanations of rows."""

import numpy as np
import pandas as pd

from kernelweave.rules import (
    Proposition,
    Rule,
    cover_rules,
    explain_rows,
    score_rules,
)


def x(operator, value):
    return Proposition("x", 0, operator, value)


def colour(operator, value):
    return Proposition("colour", 1, operator, value)


class TestScores:
    rules = (
        Rule((x("<=", 2),), 0.1, 0.5),
        Rule((x("<=", 2), colour("==", "red")), 0.2, 0.5),
        Rule((), -0.3, 1.0),
    )
    X = pd.DataFrame({"x": [1, 1, 3, None], "colour": ["red", "blue", "red", "red"]})

    def test_cover(self):
        covered = cover_rules(self.rules, self.X)
        assert covered.astype(int).tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]]
        assert cover_rules([], self.X).shape == (4, 0)

    def test_sums_are_taken_in_order(self):
        scores = score_rules(self.rules, 1.0, self.X)
        assert scores.tolist() == [1 + ((0.1 + 0.2) - 0.3), 1 + (0.1 - 0.3), 0.7, 0.7]
        assert score_rules([], 0.5, self.X).tolist() == [0.5] * 4

    def test_several_outputs(self):
        rules = [Rule(r.conditions, (r.weight, -r.weight, 0.0), r.coverage) for r in self.rules]
        scores = score_rules(rules, [1.0, 0.0, 2.0], self.X)
        assert scores.shape == (4, 3)
        np.testing.assert_array_equal(scores[:, 0], score_rules(self.rules, 1.0, self.X))
        np.testing.assert_array_equal(scores[:, 1], -score_rules(self.rules, 0.0, self.X))
        np.testing.assert_array_equal(scores[:, 2], 2)
        assert score_rules(self.rules, np.array([1.0]), self.X).shape == (4, 1)

    def test_many_rules(self):
        rng = np.random.default_rng(0)
        weights = rng.normal(size=1000)
        X = rng.normal(size=(20, 5))
        rules = [
            Rule((Proposition(f"column {j % 5}", j % 5, "<=", rng.normal()),), w, 0.5)
            for j, w in enumerate(weights)
        ]
        expected = cover_rules(rules, X) @ weights + 0.25
        np.testing.assert_allclose(score_rules(rules, 0.25, X), expected, atol=1e-12)

    def test_explanations(self):
        explained = explain_rows(self.rules, 1.0, self.X)
        assert [[rule.weight for rule in e.rules] for e in explained] == [
            [-0.3, 0.2, 0.1],
            [-0.3, 0.1],
            [-0.3],
            [-0.3],
        ]
        np.testing.assert_array_equal(
            [e.scores[0] for e in explained], score_rules(self.rules, 1.0, self.X)
        )
        assert str(explained[1]).split("\n") == [
            "      -0.3  always",
            "      +0.1  x <= 2",
            "        +1  intercept",
            "      +0.8  score",
        ]
        (alone,) = explain_rows([], [0.5, 1.0], [[1]])
        assert alone.rules == ()
        assert alone.scores == alone.intercept == (0.5, 1.0)

    def test_inputs_stay_as_they_are(self):
        before = self.X.copy(deep=True)
        explain_rows(self.rules, 0.0, self.X)
        pd.testing.assert_frame_equal(self.X, before)
