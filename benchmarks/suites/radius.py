"""What weighing the margin against the radius costs, beside the margin alone."""

from __future__ import annotations

from benchmarks.measure import Case, ratio
from benchmarks.tables import Table, megabytes, number, seconds

from . import Session

_METHODS = {
    "MKLClassifier, norm=1": "margin",
    "RadiusMKLClassifier": "radius",
    'RadiusMKLClassifier, solver="projection"': "projection",
    'RadiusMKLClassifier, radius="upper"': "upper",
    'RadiusMKLClassifier, norm="uniform"': "uniform",
}
_COLUMNS = ["method", "C", "wall s", "times MKL", "MB added", "solves", "gap", "kept", "accuracy"]


def run(session: Session) -> None:
    """Fit every method on every problem for several C."""
    sizes = [("cancer", 398), ("additive", 500), ("additive", 1000)]
    if session.quick:
        sizes = [("cancer", 200)]
    costs = (1.0,) if session.quick else (0.1, 1.0, 10.0, 100.0)
    for data, n in sizes:
        table = Table(f"Radius and margin: {data}, n = {n}, 20 kernels on all features", _COLUMNS)
        for C in costs:
            _compare(session, table, data, n, C)
        session.tables.append(table)
    session.tables[-1].notes.append(
        "Ten Gaussians and polynomials of degree 1 to 10, computed in the fit. Relative gap 1e-3, "
        "one thread. A solve is a support vector machine, with a ball for the radius methods. "
        "Times MKL: against the margin alone, measured in turns."
    )


def _compare(session: Session, table: Table, data: str, n: int, C: float) -> None:
    cases = {
        label: Case("radius:fit", {"name": name, "data": data, "n": n, "C": C})
        for label, name in _METHODS.items()
    }
    runs = session.measure(f"radius, {data}, n = {n}, C = {C:g}", cases)
    margin = runs["MKLClassifier, norm=1"]
    for label, run in runs.items():
        if not run.ok:
            table.add(label, f"{C:g}", run.problem)
            continue
        table.add(
            label,
            f"{C:g}",
            seconds(run.wall),
            ratio(run, margin),
            megabytes(run.added),
            run.fact("solves"),
            number(run.fact("gap"), ".1e"),
            run.fact("kept"),
            number(run.fact("accuracy"), ".3f"),
        )
