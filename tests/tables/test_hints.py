"""Hints on copies of rows and on columns that give the target away."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import make_problem
from kernelweave.tables.hints import table_hints

RANDOM = np.random.default_rng(0)
N = 200
TABLE = pd.DataFrame(
    {
        "age": RANDOM.normal(size=N),
        "town": RANDOM.choice(["Ulm", "Bonn"], N),
        "dose": RANDOM.normal(size=N),
    }
)
TABLE["ill"] = np.where(TABLE["age"] + RANDOM.normal(size=N) > 0, "yes", "no")


def test_nothing_to_say():
    assert table_hints(make_problem(TABLE, "ill")) == []


@pytest.mark.parametrize(
    ("target", "column"),
    [
        (TABLE["ill"], np.where(TABLE["ill"] == "yes", "treated", "sent home")),
        (TABLE["dose"], 3.0 * TABLE["dose"] + 1.0),
        (TABLE["dose"], np.exp(TABLE["dose"])),
    ],
)
def test_a_column_that_gives_the_target_away(target, column):
    table = TABLE[["age", "town"]].assign(after=column, goal=target)
    (hint,) = table_hints(make_problem(table, "goal"))
    assert hint.startswith("the column 'after' alone predicts 'goal' almost perfectly; leave it")


def test_a_good_column_is_no_leak():
    table = TABLE.assign(goal=TABLE["dose"] + 0.3 * RANDOM.normal(size=N))
    assert table_hints(make_problem(table, "goal")) == []


def test_a_column_that_gives_a_rare_class_away():
    weight = np.random.default_rng(6).normal(7.0, 1.2, 700)
    frame = pd.DataFrame({"weight": weight, "goal": np.where(weight <= 5.0, "low", "not low")})
    assert 0.03 < (frame["goal"] == "low").mean() < 0.08
    leak = table_hints(make_problem(frame, "goal"))
    assert any("the column 'weight' alone predicts 'goal' almost perfectly" in one for one in leak)
    blurred = frame.assign(weight=weight + np.random.default_rng(4).normal(0, 0.5, 700))
    assert not any("alone" in one for one in table_hints(make_problem(blurred, "goal")))


def test_copies():
    table = pd.concat([TABLE, TABLE[:30], TABLE[:5].assign(ill="maybe")], ignore_index=True)
    hints = table_hints(make_problem(table, "ill"))
    assert hints[1].startswith("35 of 235 rows are copies of others, 5 of them with another target")


def test_rare_classes():
    table = TABLE.assign(ill=np.where(np.arange(len(TABLE)) < 12, "yes", "no"))
    share = 12 / len(TABLE)
    (hint,) = table_hints(make_problem(table, "ill"))
    assert hint.startswith(f"imbalanced: {100 * share:.2g}% of the rows are 'yes', and a constant")
    assert f"accuracy of {100 - 100 * share:.2g}%" in hint
    three = table.assign(ill=["a", "b"] * (len(TABLE) // 2 - 1) + ["c"] * 2)
    (hint,) = table_hints(make_problem(three, "ill"))
    assert hint.startswith("imbalanced: ")
    assert "constant" not in hint


def test_columns_that_several_rows_belong_to():
    random = np.random.default_rng(0)
    patient = random.integers(0, 40, 300)
    table = pd.DataFrame({"patient_id": patient, "grid": random.normal(size=300), "arid": patient})
    table["y"] = random.normal(size=300)
    (hint,) = table_hints(make_problem(table, "y"))
    assert "the column 'patient_id' has 40 values in 300 rows" in hint
    assert "--groups patient_id" in hint
    assert not table_hints(make_problem(table, "y", groups="patient_id"))
