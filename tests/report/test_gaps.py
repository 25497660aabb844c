"""What is missing where, as pictures, tables and text."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import MKLClassifier
from kernelweave.report import to_html
from kernelweave.report.gaps import find_gaps, gap_chart, pattern_table, summarize_gaps
from source_table import source_table

NAN = float("nan")
FRAME = pd.DataFrame(
    {
        "a": [1.0, NAN, NAN, 4.0],
        "b": ["x", None, None, "y"],
        "c": [1.0, 2.0, 3.0, 4.0],
        "d": [NAN, 2.0, NAN, np.inf],
    }
)


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas])
def test_columns_that_are_missing_together(convert):
    found = find_gaps(convert(FRAME), list("abcd"))
    assert [gaps.columns for gaps in found] == [("a", "b"), ("d",)]
    assert found[0].rows.tolist() == [False, True, True, False]
    assert found[1].rows.tolist() == [True, False, True, True]  # infinite is missing
    assert summarize_gaps(found) == "d: 75.0%; a, b: 50.0%"
    assert find_gaps(convert(FRAME[["c"]]), ["c"]) == []


def test_many_columns_are_counted():
    X = np.zeros((5, 9))
    X[0, :6], X[1, 6], X[2:4, 7], X[2:, 8] = NAN, NAN, NAN, NAN
    found = find_gaps(X, [f"column {j}" for j in range(9)])
    assert found[0].name == "column 0, \u2026, column 5 (6 columns)"
    assert summarize_gaps(found) == (
        "column 8: 60.0%; column 7: 40.0%; column 0, \u2026, column 5 (6 columns): 20.0%; "
        "and 1 column more"
    )


@pytest.mark.parametrize("n", [4, 120, 1007])
def test_strips_cover_the_rows_that_lack_values(n):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, 2)) < [0.3, 0.9], NAN, 1.0)
    X[0, 0] = X[1, 1] = NAN
    found = find_gaps(X, ["a", "b"])
    chart = gap_chart(found)
    for strip, gaps in zip(chart.strips, found, strict=True):
        assert strip.text == f"{100 * gaps.rows.mean():.1f}%"
        area = sum(width * shade for _, width, shade in strip.pieces) / chart.strip_width
        step = 1e-9 if n <= 120 else 1 / 8  # shades of groups of rows are rounded up
        assert gaps.rows.mean() - 1e-9 <= area <= gaps.rows.mean() + step
        assert all(shade > 0 for _, _, shade in strip.pieces)  # full rows are not drawn
        starts = [x for x, _, _ in strip.pieces]
        ends = [x + width for x, width, _ in strip.pieces]
        assert starts[0] >= chart.left - 1e-9
        assert ends[-1] <= chart.left + chart.strip_width + 1e-9
        assert all(a <= b + 1e-9 for a, b in zip(ends, starts[1:], strict=False))


def test_patterns_are_counted():
    table = pattern_table(find_gaps(FRAME, list("abcd")))
    rows = {row[0]: row[1].text for row in table.values}
    assert rows == {"d": "2", "a, b": "1", "a, b; d": "1"}
    assert pattern_table(find_gaps(FRAME[["a", "b"]], ["a", "b"])) is None


def test_the_page_shows_gaps_and_names_are_escaped():
    frame = source_table().drop(columns="remark").rename(columns={"age": "<b>age"})
    X, y = frame.drop(columns="ill"), frame["ill"]
    page = to_html(MKLClassifier().fit(X, y), X, y, cv=None)
    section = page[page.index("What is missing where") :]
    assert section.count("scan_0, scan_1, scan_2") >= 2
    assert "&lt;b&gt;age" in section
    assert "<b>age" not in section
    assert len(re.findall(r'class="cell wrong"', section)) > 50
    full = X.fillna(0.0)
    assert "What is missing where" not in to_html(MKLClassifier().fit(full, y), full, y, cv=None)
    array = X.to_numpy()
    assert "column 3" in to_html(MKLClassifier().fit(array, y), array, y, cv=None)


def test_model_files_and_info_say_what_was_missing(tmp_path, monkeypatch, capsys):
    from kernelweave.cli import main

    monkeypatch.chdir(tmp_path)
    frame = source_table().drop(columns="remark")
    frame.to_csv("s.csv", index=False)
    fit = ["fit", "s.csv", "--target", "ill", "--C", "1", "--test-share", "0", "--quiet"]
    assert main([*fit, "--no-report"]) == 0
    assert main(["info", "s.kw"]) == 0
    share = f"{100 * frame['scan_0'].isna().mean():.1f}%"
    assert f"scan_0, scan_1, scan_2: {share}" in capsys.readouterr().out
    assert main(["info", "s.kw", "--json"]) == 0
    assert share in json.loads(capsys.readouterr().out)["missing"]
    assert main([*fit, "--no-report", "--ignore", "age", "--ignore", "hdl"]) == 0
