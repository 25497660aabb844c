"""``kernelweave compare``."""

import json

from command_table import N, run


def test_compare(patients, capsys):
    options = ("--target", "ill", "--folds", 2, "--methods", "noisy", "--ignore", "seen")
    out, err = run(capsys, "compare", "t.csv", *options)
    assert err == ""
    for text in ("SVM", "gradient boosting", "linear model", "kernelweave noisy", "Best: "):
        assert text in out
    assert (patients / "t-compare.png").read_bytes().startswith(b"\x89PNG")
    out, _ = run(capsys, "compare", "t.csv", *options, "--json", "--no-plot")
    report = json.loads(out)
    assert report["rows"] == N
    assert {len(scores) for scores in report["scores"].values()} == {2}
    _, err = run(capsys, "compare", "t.csv", *options, "--plot", "absent/x.png", code=2)
    assert "--plot: absent/x.png is in a folder that does not exist" in err
