"""The line that tells how far a long command has come."""

import io
import types

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from rich.text import Text

from kernelweave.cli import live as module
from kernelweave.cli import main
from kernelweave.cli.live import LiveDisplay, live, make_progress, show_nothing
from kernelweave.solvers import Step


class Screen:
    """A display on a terminal of text, with a clock that is moved by hand."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(module, "time", clock)
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=True, width=120, highlight=False)
        self.progress = make_progress(console)
        self.display = LiveDisplay(self.progress)

    def line(self):
        """Return the line as it stands on the terminal now."""
        console = Console(file=io.StringIO(), force_terminal=True, width=120)
        console.print(self.progress.get_renderable())
        return " ".join(Text.from_ansi(console.file.getvalue()).plain.split())


@pytest.fixture
def screen(monkeypatch):
    return Screen(monkeypatch)


def step(gap, solves=3):
    return Step(1.0, 1.0 - gap, solves, 0, 0.0)


def test_it_begins_with_the_table(screen):
    assert "reading the table" in screen.line()
    assert "left" not in screen.line()


def test_the_gap_and_the_time_left(screen):
    screen.display("fitting to 500 rows", 0.0)
    screen.display.step(step(0.1), tol=1e-3)
    assert "fitting to 500 rows" in screen.line()
    assert "gap 1.0e-01, to 1e-03" in screen.line()
    assert "left" not in screen.line()
    screen.now += 30.0
    screen.display.step(step(0.01), tol=1e-3)  # half of the way, in powers of ten
    assert "gap 1.0e-02, to 1e-03" in screen.line()
    assert "about 30 s left" in screen.line()
    assert screen.progress.tasks[0].completed == pytest.approx(0.5)
    screen.now += 570.0
    screen.display.step(step(0.01), tol=1e-3)
    assert "about 10 min left" in screen.line()
    screen.display.step(step(5e-4), tol=1e-3)
    assert "left" not in screen.line()
    assert screen.progress.tasks[0].completed == 1.0


def test_nothing_is_foretold_at_once(screen):
    screen.display("fitting to 500 rows", 0.0)
    screen.display.step(step(0.1), tol=1e-3)
    screen.now += 0.5
    screen.display.step(step(0.01), tol=1e-3)
    assert "left" not in screen.line()


def test_a_new_stage_forgets_the_last(screen):
    screen.display("fitting to 500 rows", 0.0)
    screen.display.step(step(0.1), tol=1e-3)
    screen.now += 30.0
    screen.display.step(step(0.01), tol=1e-3)
    screen.display("evaluating on 100 rows", 0.0)
    assert "evaluating on 100 rows" in screen.line()
    assert "gap" not in screen.line()
    assert "left" not in screen.line()


def test_the_search_for_C_counts_folds_not_gaps(screen):
    screen.display("choosing C, fold 1 of 3", 0.0)
    screen.now += 20.0
    screen.display.step(step(0.1), tol=1e-2)
    screen.display.step(step(0.02), tol=1e-2)
    assert "gap 2.0e-02, to 1e-02" in screen.line()
    assert "left" not in screen.line()
    screen.display("choosing C, fold 2 of 3", 1 / 3)
    assert "about 40 s left" in screen.line()
    screen.display.step(step(0.02), tol=1e-2)
    assert "about 40 s left" in screen.line()


def test_without_a_bound_the_value_is_shown(screen):
    screen.display("fitting to 500 rows", 0.0)
    screen.display.step(Step(12.5, -np.inf, 7, 0, 0.0), tol=1e-3)
    assert "value 12.5, 7 solves" in screen.line()
    assert "gap" not in screen.line()


def test_parts_of_a_fit_are_counted(screen):
    screen.display("fitting to 500 rows", 0.0)
    screen.now += 20.0
    screen.display.count(2, 10)
    assert "2 of 10 kernels" in screen.line()
    assert "about 80 s left" in screen.line()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
def test_a_terminal_sees_the_stages_of_a_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-3, 3, 60)
    pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "out", "in")}).to_csv("t.csv", index=False)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    monkeypatch.setattr(module, "LiveDisplay", _recording(shown))
    assert main(["fit", "t.csv", "--target", "y"]) == 0
    stages = [what for what, _ in shown]
    assert "fold 1 of 10: learned metric" in stages
    assert stages[-1] == "fitting to all 60 rows"
    shown.clear()
    assert main(["fit", "t.csv", "--target", "y", "--method", "mkl", "--C", "1"]) == 0
    stages = [what for what, _ in shown]
    assert "fold 1 of 10: multiple kernels" in stages
    assert stages[-1] == "fitting to all 60 rows"
    assert any(state.startswith("gap ") for _, state in shown)
    assert "fitting to all 60 rows" in terminal.getvalue()
    assert "\x1b" not in capsys.readouterr().out


def _recording(shown):
    class Recording(LiveDisplay):
        def __call__(self, what, done):
            super().__call__(what, done)
            shown.append((what, ""))
            self.progress.refresh()

        def step(self, step, tol):
            super().step(step, tol)
            task = self.progress.tasks[0]
            shown[-1] = (task.description, task.fields["state"])

    return Recording


def test_nothing_is_shown_without_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    with live(quiet=True) as announce:
        assert announce is show_nothing
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with live(quiet=False) as announce:
        announce("anything", 0.5)
        assert announce is show_nothing
