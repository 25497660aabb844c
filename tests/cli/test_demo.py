"""The demonstration on example data."""

from io import StringIO

import pandas as pd

from command_table import run


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, err = run(capsys, "demo", "--out", "new/demo")
    assert err == ""
    for text in ("rbf(width=", "of 156 kernels are in use", "SVM baseline", "certified within"):
        assert text in out
    assert (tmp_path / "new/demo/kernels.png").read_bytes().startswith(b"\x89PNG")
    # The commands it suggests work as they stand.
    _, predict, explain = (line.split()[1:] for line in out.splitlines()[-3:])
    out, err = run(capsys, *predict)
    assert err == ""
    assert set(pd.read_csv(StringIO(out))["diagnosis"]) == {"malignant", "benign"}
    out, _ = run(capsys, *explain)
    assert "worst" in out
    assert "values describe the model, not causes" in out


def test_demo_in_a_place_that_cannot_be(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").touch()
    _, err = run(capsys, "demo", "--out", "table.csv/demo", code=2)
    assert err == "kernelweave: error: table.csv/demo: Not a directory\n"
