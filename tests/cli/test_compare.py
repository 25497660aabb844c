"""``kernelweave compare``."""

import json

import pytest

from command_table import N, run

OPTIONS = ("--target", "ill", "--folds", 2, "--methods", "noisy", "--ignore", "seen")


def test_compare(patients, capsys):
    out, err = run(capsys, "compare", "t.csv", *OPTIONS)
    assert err == ""
    for text in ("SVM", "gradient boosting", "linear model", "kernelweave noisy", "Best: "):
        assert text in out
    assert (patients / "t-compare.png").read_bytes().startswith(b"\x89PNG")
    _, err = run(capsys, "compare", "t.csv", *OPTIONS, "--plot", "absent/x.png", code=2)
    assert "--plot: absent/x.png is in a folder that does not exist" in err


@pytest.mark.slow
def test_compare_as_json(patients, capsys):
    out, _ = run(capsys, "compare", "t.csv", *OPTIONS, "--json", "--no-plot")
    report = json.loads(out)
    assert report["rows"] == N
    assert {len(scores) for scores in report["scores"].values()} == {2}
