"""Names and values from files cannot steer a terminal, fill the screen or pass for markup."""

import os
import pty
import re
import threading

import numpy as np
import pandas as pd
import pytest

from kernelweave.cli import main
from kernelweave.io import load
from quick import every

N = 60
RANDOM = np.random.default_rng(0)
SCORE = RANDOM.normal(size=N)
LONG = "n" * 5000
TARGET = "y\x1b[4m"
YES, NO = "\x1b[2Jyes", "[red]no[/red]"
TABLE = pd.DataFrame(
    {
        "\x1b[31mred\x1b]0;pwn\x07": SCORE,
        "[bold]x[/bold]": RANDOM.normal(size=N),
        "a\u202egnp.exe": RANDOM.normal(size=N),
        "\x9b31mc1\x7f": RANDOM.choice(["u\x1b[2J", "[red]v[/red]"], N),
        LONG: RANDOM.normal(size=N) + SCORE,
        "$\\frac$": RANDOM.normal(size=N),
        "const\x1b[5m": 1,
        "gap\x1b[5m": np.where(np.arange(N) % 5, 1.0 * RANDOM.integers(0, 9, N), np.nan),
        "text\x1b[9m": [f"words \x1b[8m of {i} many {i * i}" for i in range(N)],
        "m" * 3000: ["z" * 4000 + str(i % 5) for i in range(N)],
        TARGET: np.where(SCORE + 0.3 * RANDOM.normal(size=N) > 0, YES, NO),
    }
)
FILE = "ta\x1b[1mble.csv"
# What rich itself writes: colours, and the line of a live display that is rewritten.
OWN = re.compile(
    r"\x1b\[(0|1|2|3|31|32|33|35|36|38;5;\d+|1;\d\d|38;2;[\d;]+)?m|\x1b\[(\?25[hl]|2K|1A)"
)
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SEQUENCES = (
    "\x1b[31mred",
    "\x1b[4m",
    "\x1b[5m",
    "\x1b[8m",
    "\x1b[9m",
    "\x1b[2J",
    "\x1b[1m",
    "\x1b]0",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a hostile table and hostile models of it."""
    folder = tmp_path_factory.mktemp("hostile")
    before = os.getcwd()
    os.chdir(folder)
    try:
        TABLE.to_csv(FILE, index=False)
        TABLE.head(20).to_csv("new.csv", index=False)
        common = ["--target", TARGET, "--test-share", "0", "--quiet", "--no-report"]
        for method, C in (("mkl", "1"), ("rules", "1"), ("noisy", "auto")):
            args = [
                "fit",
                FILE,
                *common,
                "--C",
                C,
                "--method",
                method,
                "--out",
                f"{method}\x1b[1m.kw",
            ]
            assert main(args) == 0
    finally:
        os.chdir(before)
    return folder


SHARE = ("--test-share", "0.3")  # one comparison in place of ten folds
COMMANDS = {
    "fit": ["fit", FILE, "--target", TARGET, "--out", "other\x1b[1m.kw", "--C", "1", *SHARE],
    "fit rules": ["fit", FILE, "--target", TARGET, "--method", "rules", "--C", "1", "--no-report"],
    "fit long target": ["fit", FILE, "--target", LONG, "--C", "1", "--ignore", TARGET],
    "info": ["info", "mkl\x1b[1m.kw"],
    "info rules": ["info", "rules\x1b[1m.kw"],
    "rules": ["rules", "rules\x1b[1m.kw"],
    "rules as SQL": ["rules", "rules\x1b[1m.kw", "--sql"],
    "rules as Python": ["rules", "rules\x1b[1m.kw", "--python"],
    "suspects": ["suspects", "noisy\x1b[1m.kw", "--data", FILE],
    "predict": ["predict", "mkl\x1b[1m.kw", "new.csv", "--decision"],
    "explain": ["explain", "mkl\x1b[1m.kw", FILE],
    "explain rows": ["explain", "rules\x1b[1m.kw", "new.csv", "--background", FILE, "--rows", "0"],
    "explain by rule": ["explain", "rules\x1b[1m.kw", FILE, "--by", "rule"],
    "cluster": ["cluster", FILE, "--target", TARGET],
    "compare": ["compare", FILE, "--target", TARGET, "--folds", "2", "--methods", "mkl"],
    "report": ["report", "rules\x1b[1m.kw", "--data", FILE, "--cv", "2"],
}
REFUSED = {
    "no such file": ["info", "absent\x1b[1m.kw"],
    "no such table": ["fit", "absent\x1b[1m.csv", "--target", "y"],
    "no such column": ["fit", FILE, "--target", "absent\x1b[1m"],
    "no such folder": ["fit", FILE, "--target", TARGET, "--out", "absent\x1b[1m/m.kw"],
    "no such option": ["fit", FILE, "--target", TARGET, "--tol", "\x1b[1m"],
    "no such command": ["\x1b[1mfit"],
    "not a model": ["info", FILE],
    "no rules": ["rules", "mkl\x1b[1m.kw"],
    "columns missing": ["predict", "mkl\x1b[1m.kw", "lacking.csv"],
    "long name": ["fit", FILE, "--target", "x" * 5000],
}


def on_terminal(argv, monkeypatch):
    """Run a command with both outputs on a terminal; return the code and all that reached it."""
    master, slave = pty.openpty()
    found = []

    def read():
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                return
            if not piece:
                return
            found.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    try:
        with (
            open(slave, "w", encoding="utf-8", closefd=True) as stream,
            monkeypatch.context() as patched,
        ):
            patched.setattr("sys.stdout", stream)
            patched.setattr("sys.stderr", stream)
            code = main(argv)
    finally:
        reader.join(timeout=20)
        os.close(master)
    return code, b"".join(found).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def assert_harmless(text, own=False):
    """Check that no control character but line ends, and rich's own if allowed, is in a text."""
    for sequence in SEQUENCES:
        # Rich writes bold as well, but never in front of these names.
        where = [text[m.end() : m.end() + 4] for m in re.finditer(re.escape(sequence), text)]
        assert not [w for w in where if w in (".kw", ".csv", "ble.")] if own else not where
    rest = OWN.sub("", text) if own else text
    assert not UNSEEN.search(rest), UNSEEN.search(rest)
    assert "n" * 300 not in rest  # long names are shortened
    assert max(map(len, rest.split("\n"))) < 1000


@pytest.mark.parametrize("argv", every(3, COMMANDS.values()), ids=COMMANDS)
def test_on_a_terminal(folder, argv, monkeypatch):
    monkeypatch.chdir(folder)
    code, text = on_terminal(argv, monkeypatch)
    assert code == 0, text
    if argv[0] in ("predict", "rules") and len(argv) > 2:
        text = re.sub("n{300,}", "n", text)  # results are not shortened
        text = "\n".join(line[:900] for line in text.split("\n"))
    assert_harmless(text, own=True)


PIPED = {name: argv for name, argv in COMMANDS.items() if name not in ("predict", "rules as SQL")}
PIPED["compare"] = PIPED.pop("compare")  # the longest, at a place that is left to the slow run


@pytest.mark.parametrize("argv", every(3, PIPED.values()), ids=PIPED)
def test_in_a_pipe(folder, argv, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert_harmless(err)
    if argv[0] == "report":  # a path, for a program to read
        assert out == "rules\x1b[1m.html\n"
    elif "--python" not in argv:
        assert_harmless(out)
    else:
        assert "\x1b" not in out


@pytest.mark.parametrize("argv", REFUSED.values(), ids=REFUSED)
def test_errors(folder, argv, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    TABLE.iloc[:, 1:3].to_csv("lacking.csv", index=False)
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert_harmless(err)
    code, text = on_terminal(argv, monkeypatch)
    assert code == 2
    assert_harmless(text, own=True)


def test_names_are_shown_written_out(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["info", "mkl\x1b[1m.kw"]) == 0
    out = capsys.readouterr().out
    for name in (
        r"\x1b[31mred\x1b]0;pwn\x07",
        "[bold]x[/bold]",
        r"a\u202egnp.exe",
        r"\x9b31mc1\x7f",
    ):
        assert name in out
    assert "nnn\u2026nnn" in out
    assert r"\x1b[2Jyes, [red]no[/red]" in out


def test_results_in_a_pipe_or_a_file_are_as_they_are(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    expected = load("mkl\x1b[1m.kw").predict(pd.read_csv("new.csv"))
    assert {YES, NO} == set(expected)
    assert main(["predict", "mkl\x1b[1m.kw", "new.csv"]) == 0
    assert capsys.readouterr().out.split("\n")[1:-1] == expected.tolist()
    assert main(["predict", "mkl\x1b[1m.kw", "new.csv", "--out", "out.csv"]) == 0
    assert pd.read_csv("out.csv")[TARGET].tolist() == expected.tolist()
    _, text = on_terminal(["predict", "mkl\x1b[1m.kw", "new.csv"], monkeypatch)
    assert r"\x1b[2Jyes" in text
