"""The chart of the search."""

from types import SimpleNamespace

import numpy as np

from kernelweave.report.convergence import _chart
from kernelweave.solvers import Step


def history(lower, n=9):
    """Return steps whose upper bounds fall."""
    return [Step(2.0 + 1.0 / (k + 1), lower, k + 1, k, 1.0) for k in range(n)]


def drawn(steps):
    model = SimpleNamespace(history_=steps, tol=1e-3)
    return _chart(model, SimpleNamespace(short="converged"))


def test_a_long_history_is_thinned(monkeypatch):
    monkeypatch.setattr("kernelweave.report.convergence._POINTS", 4)
    solves, gaps = drawn(history(1.0, 40)).line
    assert solves.tolist() == [1.0, 14.0, 27.0, 40.0]
    assert (np.diff(gaps) < 0).all()


def test_without_a_bound_the_objective_is_drawn():
    chart = drawn(history(-np.inf))
    assert chart.line[1].tolist() == [step.upper for step in history(-np.inf)]
    same = [Step(2.0, -np.inf, k + 1, k, 1.0) for k in range(5)]
    assert drawn(same) is None
    assert drawn(history(1.0, 1)) is None
