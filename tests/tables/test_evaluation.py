"""Scores of an evaluation are found by their names."""

import pytest

from kernelweave.errors import InputError
from kernelweave.tables.evaluation import Difference, Evaluation, GroupScores, Score

R2 = Score("r2", "R2", 0.5, (0.4, 0.6), False, 0.0, (0.3, 0.7))
RMSE = Score("rmse", "root mean squared error", 123.456, None, False, 200.0, None)
FOUND = Evaluation("values", ("y",), 90, "rmse", (R2, RMSE))


def test_the_main_score_is_the_usual_one():
    assert FOUND.score() is RMSE
    assert FOUND.score("r2") is R2
    with pytest.raises(InputError, match="name: must be one of r2, rmse, got 'auc'"):
        FOUND.score("auc")


def test_values_are_shown_as_their_score():
    assert RMSE.show(RMSE.value) == "123.5"
    assert R2.show(float("nan")) == "-"
    assert Difference("accuracy", "accuracy", 0.9, 0.8, None, True).show(0.9) == "90.0%"


def test_blocks_are_those_that_were_asked_for():
    assert FOUND.blocks() == []
    part = GroupScores("Ulm", 9, (R2, RMSE), True)
    found = Evaluation("values", ("y",), 90, "r2", (R2, RMSE), groups=(part,), by="town")
    (block,) = found.blocks()
    assert block.title == "By town"
    assert block.rows[0][:3] == ["Ulm (few rows)", "9", R2.show(0.5)]
