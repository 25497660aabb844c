"""Predictions for a table."""

from io import StringIO

import pandas as pd

from command_table import N, fit, run


def test_predictions_to_a_file_are_those_of_standard_output(patients, capsys):
    fit(capsys, "mkl", "--out", "m.kw")
    out, _ = run(capsys, "predict", "m.kw", "t.csv")
    found = pd.read_csv(StringIO(out))
    assert len(found) == N
    assert set(found["ill"]) <= {"yes", "no"}
    run(capsys, "predict", "m.kw", "t.csv", "--out", "p.csv")
    pd.testing.assert_frame_equal(pd.read_csv("p.csv"), found)
