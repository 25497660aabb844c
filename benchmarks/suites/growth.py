"""Time and memory as rows and kernels double, one large fit, and the choice of a model."""

from __future__ import annotations

from benchmarks.measure import Case, ratio
from benchmarks.tables import Table, megabytes, number, power, seconds

from . import Session

_COLUMNS = ["wall s", "CPU s", "ratio to Grams + SVC", "MB added", "gap", "kept", "solves"]
_LIMIT = 4e9  # bytes that the large fit may take


def run(session: Session) -> None:
    """Double n, double m, then fit 10 000 rows, and choose models for tables."""
    threads = session.threads[-1]
    rows = (250, 500, 1000) if session.quick else (500, 1000, 2000, 4000)
    features = (5, 10) if session.quick else (5, 10, 20, 40)
    fixed = 300 if session.quick else 1000
    session.tables.append(
        _grow(
            session,
            f"Growth with rows: 210 kernels, threads = {threads}",
            "n",
            [(n, n, 20) for n in rows],
            threads,
        )
    )
    session.tables.append(
        _grow(
            session,
            f"Growth with kernels: n = {fixed}, threads = {threads}",
            "kernels",
            [(10 * (d + 1), fixed, d) for d in features],
            threads,
        )
    )
    session.tables[-1].notes.append(
        "Gaussians of ten widths on all features and on each; more kernels mean more features. "
        "The last row is the exponent of a power law through the rows above. C = 1, relative gap "
        "1e-3, kernels computed in the fit."
    )
    session.tables.append(_large(session, threads))
    session.tables.append(_choices(session, threads))


def _grow(
    session: Session, title: str, name: str, sizes: list[tuple[int, int, int]], threads: int
) -> Table:
    table = Table(title, [name, *_COLUMNS])
    walls, cpus, peaks = [], [], []
    for size, n, d in sizes:
        runs = session.measure(
            f"growth, {name} = {size}",
            {
                "fit": Case("fits:whole", {"n": n, "d": d}, threads),
                "Grams + SVC": Case("fits:grams_and_svc", {"n": n, "d": d}, threads),
            },
            repeats=min(3, session.repeats),
        )
        fit = runs["fit"]
        if not fit.ok:
            table.add(size, fit.problem)
            continue
        walls.append((size, fit.wall))
        cpus.append((size, fit.cpu))
        peaks.append((size, fit.added))
        table.add(
            size,
            seconds(fit.wall),
            seconds(fit.cpu),
            ratio(fit, runs["Grams + SVC"]),
            megabytes(fit.added),
            number(fit.fact("gap"), ".1e"),
            fit.fact("kept"),
            fit.fact("solves"),
        )
    table.add("exponent", power(walls), power(cpus), "", power(peaks))
    return table


def _large(session: Session, threads: int) -> Table:
    n = 2000 if session.quick else 10_000
    table = Table(
        f"One large fit: n = {n}, 20 features, 200 one-feature kernels, threads = {threads}",
        ["what", "value", "limit"],
        notes=[f"200 dense Gram matrices would take {8e-9 * 200 * n**2:.1f} GB in float64."],
    )
    case = Case("fits:whole", {"n": n, "which": "each"}, threads, timeout=3600.0)
    fit = session.measure("growth, large", {"fit": case}, repeats=1)["fit"]
    if not fit.ok:
        table.add("fit", fit.problem)
        return table
    table.add("wall s", seconds(fit.wall), "minutes")
    table.add("CPU s", seconds(fit.cpu))
    table.add("peak memory of the process, GB", f"{fit.peak / 1e9:.2f}", f"{_LIMIT / 1e9:.0f}")
    table.add("added by the fit, GB", f"{fit.added / 1e9:.2f}")
    table.add("relative gap", number(fit.fact("gap"), ".1e"), "1e-3")
    table.add("kernels kept", fit.fact("kept"))
    table.add("SVMs solved", fit.fact("solves"))
    table.add("test accuracy", number(fit.fact("accuracy"), ".3f"))
    return table


def _choices(session: Session, threads: int) -> Table:
    """Measure `kernelweave fit` beside gradient boosting, both from a data frame to a model."""
    table = Table(
        f"Choice of a model for a mixed table of 20 columns, threads = {threads}",
        ["n", "wall s", "CPU s", "ratio to HGB", "MB added", "AUC", "AUC of HGB", "chosen"],
        notes=[
            "`fit_table` compares models on folds and fits the best to all rows; HGB is one fit."
        ],
    )
    cpus = []
    for n in (250, 500) if session.quick else (1000, 2000, 5000, 10_000):
        runs = session.measure(
            f"choice, n = {n}",
            {
                "fit": Case("tables:choose", {"n": n}, threads),
                "HGB": Case("tables:boosting", {"n": n}, threads),
            },
            repeats=min(3, session.repeats),
        )
        fit, peer = runs["fit"], runs["HGB"]
        if not fit.ok:
            table.add(n, fit.problem)
            continue
        cpus.append((n, fit.cpu))
        table.add(
            n,
            seconds(fit.wall),
            seconds(fit.cpu),
            ratio(fit, peer),
            megabytes(fit.added),
            number(fit.fact("auc"), ".3f"),
            number(peer.fact("auc"), ".3f"),
            fit.fact("chosen"),
        )
    table.add("exponent", "", power(cpus))
    return table
