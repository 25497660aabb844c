"""``kernelweave suspects``."""

import json
import warnings

import pandas as pd

from command_table import WRONG, fit, run


def test_suspects(patients, capsys):
    fit(capsys, "noisy")
    out, _ = run(capsys, "suspects", "t.kw")
    assert all(str(row) in out for row in WRONG)
    out, _ = run(
        capsys, "suspects", "t.kw", "--top", 2, "--json", "--data", "t.csv", "--out", "s.csv"
    )
    report = json.loads(out)
    assert {found["row"] for found in report["suspects"]} == set(WRONG)
    assert 0 <= report["noise_level"] < 0.3
    assert 0 <= report["counted_noise_level"] < 0.4
    assert set(pd.read_csv("s.csv")["row"]) == set(WRONG)
    assert "town" in pd.read_csv("s.csv").columns

    fit(capsys, "mkl")
    assert "with --data, or fit again" in run(capsys, "suspects", "t.kw", code=2)[1]
    out, _ = run(capsys, "suspects", "t.kw", "--top", 2, "--data", "t.csv", "--json")
    assert {found["row"] for found in json.loads(out)["suspects"]} == set(WRONG)


def test_hints_for_python_are_not_printed(patients, capsys):
    """Other commands than fit cannot change the tolerance of a model."""
    fit(capsys, "mkl", "--max-iter", 1, "--tol", 1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, err = run(capsys, "suspects", "t.kw", "--data", "t.csv", "--json")
    assert "stopped after" in err
    assert "Hint" not in err
    assert "max_iter" not in err
