"""A table with two wrong labels, and ways to run commands on it."""

import numpy as np
import pandas as pd

from kernelweave.cli import main
from kernelweave.tables import METHODS

N = 100
RANDOM = np.random.default_rng(3)
GROUP = np.arange(N) % 3
TABLE = pd.DataFrame(
    {
        "case_id": RANDOM.permutation(N) * 7,
        "age": np.where(RANDOM.random(N) < 0.1, np.nan, 30 + 20 * GROUP + RANDOM.normal(0, 3, N)),
        "dose": RANDOM.normal(size=N),
        "town": RANDOM.choice(["Ulm", "Köln"], N),
        "seen": [f"2024-{1 + i % 12:02d}-07" for i in range(N)],
        "unit": "mg",
        "ill": np.where(GROUP > 0, "yes", "no"),
    }
)
WRONG = [4, 40]


def run(capsys, *argv, code=0):
    """Return standard output and standard error of a command that ends with ``code``."""
    capsys.readouterr()
    found = main([str(arg) for arg in argv])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


def fit(capsys, method, *options):
    """Fit a method without a comparison, unless the options ask for a share of rows to test on."""
    cost = ["--C", 1] if METHODS[method].cost else []
    arguments = ("--target", "ill", "--method", method, *cost, "--quiet", "--no-report")
    arguments += () if "--test-share" in options else ("--test-share", 0)
    run(capsys, "fit", "t.csv", *arguments, *options)
