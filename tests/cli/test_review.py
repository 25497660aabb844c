"""``kernelweave review``, and what fit makes of its decisions and of answers of several people."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from command_table import TABLE, WRONG, fit, run


def test_review_and_fit_with_decisions(patients, capsys):
    fit(capsys, "noisy")
    out, _ = run(capsys, "review", "t.kw", "--data", "t.csv", "--top", 2)
    assert out.strip() == "t.review.html"
    page = Path("t.review.html").read_text(encoding="utf-8")
    assert all(f'"place":[{row}]' in page for row in WRONG)
    given = pd.read_csv("t.csv", sep=";", encoding="latin-1")["ill"]
    lines = [f"{row},change,{given[row]},{TABLE['ill'][row]}" for row in WRONG]
    Path("d.csv").write_text("\n".join(["row,decision,given,label", *lines]), encoding="utf-8")
    fit(capsys, "noisy", "--decisions", "d.csv")
    out, _ = run(capsys, "suspects", "t.kw", "--json")
    assert not {found["row"] for found in json.loads(out)["suspects"]} & set(WRONG)
    run(capsys, "review", "t.kw", "--data", "t.csv", "--decisions", "d.csv", "--out", "r.html")
    assert all(f'"row":{row}' in Path("r.html").read_text(encoding="utf-8") for row in WRONG)
    Path("d.csv").write_text("row,decision,given,label\n0,keep,maybe,maybe\n", encoding="utf-8")
    _, err = run(
        capsys,
        "fit",
        "t.csv",
        "--target",
        "ill",
        "--method",
        "noisy",
        "--decisions",
        "d.csv",
        code=2,
    )
    assert "was labelled 'maybe' when it was reviewed" in err


def test_pairs_of_a_file(patients, capsys):
    fit(capsys, "pairs")
    Path("p.csv").write_text("a,b\n0,1\n0,2\n3,9\n", encoding="utf-8")
    run(capsys, "review", "t.kw", "--data", "t.csv", "--pairs", "p.csv")
    assert '"place":[3,9]' in Path("t.review.html").read_text(encoding="utf-8")


def test_answers_of_several_people(patients, capsys):
    rng = np.random.default_rng(0)
    rows = [
        (TABLE["case_id"][i], f"p{j}", TABLE["ill"][i] if rng.random() < 0.85 else "no")
        for i in range(len(TABLE))
        for j in rng.permutation(4)[:2]
    ]
    pd.DataFrame(rows, columns=["case_id", "who", "said"]).to_csv("a.csv", index=False)
    words = ("fit", "t.csv", "--target", "ill", "--method", "annotators")
    out, _ = run(capsys, *words, "--answers", "a.csv", "--json")
    assert {one["annotator"] for one in json.loads(out)["annotators"]} == {"p0", "p1", "p2", "p3"}
    assert "p2" in Path("t.html").read_text(encoding="utf-8")
    out, _ = run(capsys, *words, "--answers", "a.csv", "--class-prior", "equal", "--no-report")
    assert "accuracy" in out
    out, _ = run(capsys, "suspects", "t.kw", "--data", "t.csv", "--top", 3)
    assert "suspicious answers" in out
    assert "annotator" in out
    run(capsys, "review", "t.kw", "--data", "t.csv", "--quiet")
    run(capsys, "report", "t.kw", "--quiet")
    assert "must be given together" in run(capsys, *words, code=2)[1]
    assert "only with" in run(capsys, *words[:4], "--class-prior", "equal", code=2)[1]
