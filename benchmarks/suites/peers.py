"""Other packages on the same Gram matrices, at sizes where they finish."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import Case, Run, ratio, short
from benchmarks.tables import Table, megabytes, number, seconds

from . import Session

_FIRST = "kernelweave, norm=1"
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    _FIRST: ("ours", {}),
    "kernelweave, norm=2": ("ours", {"norm": 2.0}),
    'kernelweave, norm="uniform"': ("ours", {"norm": "uniform"}),
    "SimpleMKL on SVC, gap 1e-2": ("simplemkl", {"tol": 1e-2}),
    "SimpleMKL on SVC, gap 1e-3": ("simplemkl", {"tol": 1e-3}),
    "MKLpy AverageMKL + SVC": ("mklpy", {"algorithm": "AverageMKL"}),
    "MKLpy EasyMKL + SVC": ("mklpy", {"algorithm": "EasyMKL"}),
    "multimodal MKL (l2, ridge)": ("multimodal", {}),
    "himalaya MultipleKernelRidgeCV": ("himalaya", {}),
}
_FEATURES = "kernelweave, norm=1, kernels counted"
_UNIT = "average kernel + SVC"
_NOTES = [
    "Fit only: all methods get the same ready Gram matrices (ten Gaussian widths on all features, "
    "then ten on each feature in turn; mean centred diagonal one), whose computation is not timed. "
    "Only the row with kernels counted starts from the features. C = 1, nothing tuned, one "
    "thread.",
    "Times the SVC: against averaging the kernels and one SVC, measured in turns with each method. "
    "Times ours: the same ratio over that of kernelweave with norm 1.",
    "Objective: 1/2 |w|^2 + C hinge, for methods whose weights sum to one and which minimise it or "
    "fix the weights; EasyMKL, the ridge methods and norm 2 minimise something else. kernelweave: "
    "what the fit reports, at a gap of at most 1e-3. Others: that of an SVC solved to 1e-6 at "
    "their weights.",
    "MB added: peak of the fit beyond the process with the Gram matrices in it; MB peak: the whole "
    "process (MKLpy loads torch). SimpleMKL is our own version of the published algorithm, see "
    "benchmarks/simplemkl.py. multimodal: lambda = 1/C. himalaya: 20 random candidates, regression "
    "on -1 and 1.",
]


def run(session: Session) -> None:
    """Run every method on every problem."""
    sizes = [("cancer", 398, 20), ("cancer", 398, 40)]
    sizes += [("additive", n, m) for n in (500, 1000) for m in (20, 40)]
    if session.quick:
        sizes = [("cancer", 398, 20), ("additive", 500, 20)]
    for data, n, m in sizes:
        session.tables.append(_compare(session, data, n, m))
    session.tables[-1].notes += _NOTES


def _compare(session: Session, data: str, n: int, m: int) -> Table:
    what = {"cancer": "breast cancer", "additive": "make_additive"}[data]
    table = Table(
        f"Peers: {what}, n = {n}, m = {m}",
        [
            "method",
            "wall s",
            "CPU s",
            "times the SVC",
            "times ours",
            "MB added",
            "MB peak",
            "objective",
            "gap",
            "kept",
            "test accuracy",
        ],
    )
    problem = {"data": data, "n": n, "m": m}
    limit = 60.0 if session.quick else 180.0
    unit = Case("peers:method", {"name": "average", **problem})
    cases = {
        name: Case("peers:method", {"name": kind, **problem, **options}, timeout=limit)
        for name, (kind, options) in _METHODS.items()
    }
    cases[_FEATURES] = Case("peers:from_features", problem)
    done: dict[str, tuple[Run, Run]] = {}
    for name, case in cases.items():
        runs = session.measure(
            f"peers, {what} n={n} m={m}, {name}",
            {name: case, _UNIT: unit},
            repeats=min(3, session.repeats),
        )
        done[name] = runs[name], runs[_UNIT]
    ours = ratio(*done[_FIRST]).value
    for name in (_FEATURES, *_METHODS):
        _add(table, name, done[name][0], str(ratio(*done[name])), ratio(*done[name]).value / ours)
        if name == _FEATURES:
            _add(table, _UNIT, done[_FIRST][1], "1", 1.0 / ours)
    return table


def _add(table: Table, name: str, run: Run, against: str, ours: float) -> None:
    if not run.ok:
        table.add(name, run.problem)
        return
    table.add(
        name,
        seconds(run.wall),
        seconds(run.cpu),
        against,
        short(ours),
        megabytes(run.added),
        megabytes(run.peak),
        number(run.fact("objective"), ".4f"),
        number(run.fact("gap"), ".1e"),
        run.fact("kept"),
        number(run.fact("accuracy"), ".3f"),
    )
