"""What commands write: lines, tables and JSON."""

import json

import numpy as np
import pandas as pd
import pytest

from kernelweave.cli.terminal import records, require, write_frame, write_message
from kernelweave.errors import KernelweaveError

FRAME = pd.DataFrame({"a": [1, 2], "b": [np.nan, np.inf], "c": ["x,y", "\x1b[31m"]})


def test_a_message_is_one_line_without_control_characters(capsys):
    assert write_message("a\n  b\x07", 3) == 3
    assert capsys.readouterr().err == "kernelweave: a b\\x07\n"


def test_tables_as_csv_and_json(tmp_path, capsys):
    write_frame(FRAME, str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == 'a,b,c\n1,nan,"x,y"\n2,inf,\x1b[31m\n'
    write_frame(FRAME, None, as_json=True)
    assert json.loads(capsys.readouterr().out) == records(FRAME)
    assert records(FRAME)[0] == {"a": 1, "b": None, "c": "x,y"}


def test_a_terminal_gets_no_control_characters(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    write_frame(FRAME, None)
    assert capsys.readouterr().out.endswith("2,inf,\\x1b[31m\n")


def test_packages_that_are_missing_are_named():
    with pytest.raises(KernelweaveError, match=r'This needs no_such; .*"kernelweave\[cli\]"'):
        require("no_such.part", "This")
