"""Progress on the terminal, and to a listener."""

import numpy as np

from kernelweave._progress import Counter, Progress, listening
from kernelweave.solvers import Step


class Listener:
    def __init__(self):
        self.heard = []

    def step(self, step, tol):
        self.heard.append((step, tol))

    def count(self, done, total):
        self.heard.append((done, total))


def step(lower):
    return Step(upper=2.0, lower=lower, solves=3, work=1, n_passes=1.0)


def test_a_bar_with_and_without_a_bound(capsys):
    with Progress(1, 1e-3) as progress:
        progress(step(1.9))
        progress(step(-np.inf))
    shown = capsys.readouterr().err
    assert "gap 5.0e-02 of 1e-03, 3 solves" in shown
    assert "value 2, 3 solves" in shown
    assert shown.endswith("\n")


def test_counting(capsys):
    count = Counter(1, 2, "folds")
    count()
    count()
    assert capsys.readouterr().err == "\rkernelweave: 1 of 2 folds\rkernelweave: 2 of 2 folds\n"


def test_a_listener_hears_instead(capsys):
    listener = Listener()
    with listening(listener), Progress(1, 1e-3) as progress:
        progress(step(1.9))
        Counter(1, 2, "folds")()
    assert listener.heard == [(step(1.9), 1e-3), (1, 2)]
    assert not capsys.readouterr().err
