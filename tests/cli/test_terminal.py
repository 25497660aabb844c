"""What commands write: lines, tables and JSON."""

import json
import os
import signal
import subprocess
import sys

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


KILLED = """
import os, signal, sys
import pandas as pd
from kernelweave.cli.terminal import write_frame

class Deadly:
    def __str__(self):
        os.kill(os.getpid(), signal.SIGKILL)

rows = [*range(100_000), Deadly()]
write_frame(pd.DataFrame({"value": pd.Series(rows, dtype=object)}), sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_a_killed_command_leaves_the_old_table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old\n"
    write_frame(FRAME, str(path))  # and what the killed one left is removed
    assert path.read_text() != "old\n"
    assert [item.name for item in tmp_path.iterdir()] == ["table.csv"]


def test_tables_reach_pipes_and_devices(tmp_path):
    write_frame(FRAME, os.devnull)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_frame(FRAME, str(pipe))
    assert len(os.read(reader, 10_000)) > 0
    os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_frame(FRAME, str(tmp_path))
