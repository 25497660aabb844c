"""Text from data, made safe to show."""

import pandas as pd

from kernelweave import (
    Linear,
    MKLClassifier,
)
from kernelweave._summary import (
    count,
    listed,
)
from kernelweave._text import clip, visible
from report_models import TWO, X


def test_words():
    assert [count(n, "row") for n in (0, 1, 1234)] == ["0 rows", "1 row", "1,234 rows"]
    assert listed(["a"]) == "a"
    assert listed("abc") == "a, b and c"
    assert listed("ab", last="or") == "a or b"
    assert listed(range(9), 2) == "0, 1, \u2026 (9 in all)"
    assert clip("aaabbbbccc", 5) == "aa\u2026cc"
    assert clip("aaabbbbccc", 6) == "aaa\u2026cc"
    assert clip("aaaaa", 5) == "aaaaa"
    assert clip("b" * 300) == "b" * 60 + "\u2026" + "b" * 59


def test_control_characters_are_written_out():
    assert visible("\x1b[31m\x07\x7f\x9b\n\t") == r"\x1b[31m\x07\x7f\x9b\n\t"
    assert visible("\u202ea\u2066\u200f\u2028\ud800") == r"\u202ea\u2066\u200f\u2028\ud800"
    assert visible("a\nb\tc\r\x0b", lines=True) == "a\nb\tc\\r\\x0b"
    plain = "K\u00f6ln \u65e5\u672c \u0645\u06cc\u200c\u062e\u0648 \U0001f9d1\u200d\U0001f52c"
    assert visible(plain) == plain
    assert visible(visible("\x1b")) == r"\x1b"
    table = pd.DataFrame({"x\x1b[31m": X[:, 0], "z" * 5000: X[:, 1]})
    model = MKLClassifier([Linear(columns=name) for name in table], norm="uniform").fit(table, TWO)
    page = model._repr_html_()
    assert "\x1b" not in page.rpartition("kernelweave-summary")[2]
    assert "z" * 200 not in page.rpartition("kernelweave-summary")[2]
