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
    """Measure one problem in depth, regression, and growth on three kinds of data."""
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
    session.tables.append(_regression(session, n))
    sizes = (2000, 4000) if session.quick else (5000, 10_000, 25_000, 50_000, 100_000)
    session.tables += [_growth(session, kind, sizes) for kind in ("noisy", "easy", "wide")]


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


def _growth(session: Session, kind: str, sizes: tuple[int, ...]) -> Table:
    table = Table(
        f"Dense kernels: growth with rows, {kind} data, C = 1, one thread",
        ["n", "method", "CPU s", "MB added", "acc.", "gap", "support vectors"],
        notes=[
            "Easy: few support vectors. Wide: 200 columns, 20 of them informative. The SVCs up to "
            "25 000 rows. The last rows are exponents of power laws."
        ],
    )
    times: dict[str, list[tuple[int, float]]] = {}
    for n in sizes:
        size = {"n": n, "C": 1.0, "kind": kind}
        cases = {name: Case(task, size, timeout=1800) for name, task in _OURS.items()}
        for name, (task, more) in _PEERS.items():
            if n <= 25_000 or task != "dense:svc":
                cases[name] = Case(task, size | more, timeout=1200)
        runs = session.measure(f"dense, {kind}, n = {n}", cases, repeats=1)
        for name, found in runs.items():
            found.facts.pop("decision", None)
            if not found.ok:
                table.add(n, name, found.problem)
                continue
            times.setdefault(name, []).append((n, found.cpu))
            gap = found.fact("gap")
            table.add(
                n,
                name,
                seconds(found.cpu),
                megabytes(found.added),
                number(found.fact("accuracy"), ".3f"),
                "" if gap is None else number(gap, ".1e"),
                found.fact("support") or "",
            )
    for name, values in times.items():
        table.add("exponent", name, power(values))
    return table
