"""``kernelweave cluster``."""

import io
import json

import pandas as pd

from command_table import N, fit, run


def test_cluster(patients, capsys):
    hints = ["--ignore", "ill", "--ignore", "seen", "--ignore", "town", "--ignore", "dose"]
    out, err = run(capsys, "cluster", "t.csv", "--clusters", 3, *hints)
    assert len(pd.read_csv(io.StringIO(out))) == N
    assert "3 clusters of" in err
    assert run(capsys, "cluster", "t.csv", *hints, "--quiet", "--out", "c.csv") == ("", "")
    assert pd.read_csv("c.csv").columns.tolist() == ["cluster"]
    out, _ = run(capsys, "cluster", "t.csv", "--target", "ill", "--json")
    report = json.loads(out)
    assert len(report["sizes"]) == 2
    assert sum(report["sizes"]) == len(report["clusters"]) == N
    assert report["kernels"][0]["weight"] > 0
    fit(capsys, "pairs")
    _, err = run(capsys, "cluster", "t.csv", "--model", "t.kw", "--clusters", 2)
    assert "2 clusters of" in err
    _, err = run(capsys, "cluster", "t.csv", "--target", "ill", "--pairs", "p.csv", code=2)
    assert "--target and --pairs cannot be given together" in err
