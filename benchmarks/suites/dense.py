"""Kernels on all columns, 5000 to 100 000 rows, beside the support vector machines of others."""

from __future__ import annotations

from benchmarks.measure import Case, Run, ratio
from benchmarks.tables import Table, megabytes, number, power, seconds

from . import Session

_SVC = "SVC"
_PEERS = {
    _SVC: ("dense:svc", {}),
    "SVC of scikit-learn-intelex": ("dense:svc", {"package": "sklearnex"}),
    "Nystroem(500) + LinearSVC": ("dense:nystroem", {}),
    "HistGradientBoosting": ("dense:boosting", {}),
}
_OURS = {
    "kernelweave, one Gaussian": "dense:gaussian",
    "kernelweave, five widths": "dense:ladder",
}


def run(session: Session) -> None:
    """Measure one problem in depth, other kinds of data, and growth."""
    n = 3000 if session.quick else 25_000
    table = Table(
        f"Dense kernels: n = {n}, 20 columns, one thread",
        ["C", "method", "CPU s", "of SVC (spread)", "MB added", "acc.", "gap", "decision"],
        notes=[
            "One Gaussian is the problem of SVC, with its default width; five widths learn "
            "weights of norm 1. The gap is that of the exact kernels. Decision: largest "
            "difference to SVC in the decision values of 5000 other rows."
        ],
    )
    for C in (1.0, 10.0):
        _compare(session, table, n, C)
    session.tables.append(table)
    session.tables.append(_kinds(session, n))
    session.tables.append(_regression(session, n))
    sizes = (2000, 4000) if session.quick else (5000, 10_000, 25_000, 50_000, 100_000)
    session.tables.append(_growth(session, sizes))


def _compare(session: Session, table: Table, n: int, C: float) -> None:
    size = {"n": n, "C": C}
    ours = _OURS | {"kernelweave, default kernels": "dense:default"}
    cases = {name: Case(task, size, timeout=1200) for name, task in ours.items()}
    cases |= {name: Case(task, size | more, timeout=1200) for name, (task, more) in _PEERS.items()}
    runs = session.measure(f"dense, C = {C:g}", cases, repeats=min(3, session.repeats))
    for name, found in runs.items():
        if not found.ok:
            table.add(f"{C:g}", name, found.problem)
            continue
        gap = found.fact("gap")
        table.add(
            f"{C:g}",
            name,
            seconds(found.cpu),
            "" if name == _SVC else ratio(found, runs[_SVC], cpu=True),
            megabytes(found.added),
            number(found.fact("accuracy"), ".3f"),
            "" if gap is None else number(gap, ".1e"),
            _difference(name, found, runs[_SVC]),
        )
    for found in runs.values():  # thousands of numbers, of no use in the file of results
        found.facts.pop("decision", None)


def _difference(name: str, found: Run, other: Run) -> str:
    one, two = found.fact("decision"), other.fact("decision")
    other_problem = "five" in name or "default" in name
    if name == _SVC or other_problem or one is None or two is None:
        return ""
    return number(max(abs(a - b) for a, b in zip(one, two, strict=True)), ".1e")


def _kinds(session: Session, n: int) -> Table:
    table = Table(
        f"Dense kernels: other data, n = {n}, C = 1, one thread",
        ["data", "method", "CPU s", "of SVC", "acc.", "gap", "support vectors"],
        notes=["Easy: few support vectors. Wide: 200 columns, 20 of them informative."],
    )
    for kind in ("easy", "wide"):
        size = {"n": n, "C": 1.0, "kind": kind}
        cases = {name: Case(task, size, timeout=1200) for name, task in _OURS.items()}
        cases[_SVC] = Case("dense:svc", size, timeout=1200)
        runs = session.measure(f"dense, {kind}", cases, repeats=1)
        for name, found in runs.items():
            if not found.ok:
                table.add(kind, name, found.problem)
                continue
            gap = found.fact("gap")
            table.add(
                kind,
                name,
                seconds(found.cpu),
                "" if name == _SVC else ratio(found, runs[_SVC], cpu=True),
                number(found.fact("accuracy"), ".3f"),
                "" if gap is None else number(gap, ".1e"),
                found.fact("support"),
            )
            found.facts.pop("decision", None)
    return table


def _regression(session: Session, n: int) -> Table:
    table = Table(
        f"Dense kernels: regression, n = {n}, C = 1, one thread",
        ["method", "CPU s", "of SVR (spread)", "MB added", "R2", "gap", "support vectors"],
        notes=["Epsilon 0.1; one Gaussian is the problem of SVR, with its default width."],
    )
    size = {"n": n, "C": 1.0}
    cases = {
        "SVR": Case("dense:svr", size, timeout=1200),
        "kernelweave, one Gaussian": Case("dense:regression", size, timeout=1200),
        "kernelweave, five widths": Case("dense:regression", size | {"widths": 5}, timeout=1200),
    }
    runs = session.measure("dense, regression", cases, repeats=min(3, session.repeats))
    for name, found in runs.items():
        if not found.ok:
            table.add(name, found.problem)
            continue
        gap = found.fact("gap")
        table.add(
            name,
            seconds(found.cpu),
            "" if name == "SVR" else ratio(found, runs["SVR"], cpu=True),
            megabytes(found.added),
            number(found.fact("accuracy"), ".3f"),
            "" if gap is None else number(gap, ".1e"),
            found.fact("support"),
        )
    return table


def _growth(session: Session, sizes: tuple[int, ...]) -> Table:
    table = Table(
        "Dense kernels: growth with rows, C = 1, one thread",
        ["n", "one: CPU s", "MB", "gap", "acc.", "five: CPU s", "MB", "gap", "acc.", "SVC: CPU s"],
        notes=["SVC up to 25 000 rows. The last row is the exponent of a power law."],
    )
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in (*_OURS, _SVC)}
    for n in sizes:
        size = {"n": n, "C": 1.0}
        cases = {name: Case(task, size, timeout=1800) for name, task in _OURS.items()}
        if n <= 25_000:
            cases[_SVC] = Case("dense:svc", size, timeout=1200)
        runs = session.measure(f"dense, n = {n}", cases, repeats=1)
        cells: list[str] = []
        for name in _OURS:
            found = runs[name]
            cells += [
                seconds(found.cpu) if found.ok else str(found.problem),
                megabytes(found.added),
                number(found.fact("gap"), ".1e") if found.ok else "",
                number(found.fact("accuracy"), ".3f") if found.ok else "",
            ]
        cells.append(seconds(runs[_SVC].cpu) if _SVC in runs and runs[_SVC].ok else "")
        for name, found in runs.items():
            found.facts.pop("decision", None)
            if found.ok:
                times[name].append((n, found.cpu))
        table.add(n, *cells)
    one, five, svc = (power(values) for values in times.values())
    table.add("exponent", one, "", "", "", five, "", "", "", svc)
    return table
