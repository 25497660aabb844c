"""Large n: one SVM beside liblinear, and weights of sixty kernels as rows double."""

from __future__ import annotations

from benchmarks.measure import Case, Run, ratio
from benchmarks.tables import Table, megabytes, number, power, seconds

from . import Session

_PEER = "LinearSVC, hinge, tol 1e-2"


def run(session: Session) -> None:
    """Measure SVMs on features, then whole fits."""
    rows, ranks = (20_000, (200,)) if session.quick else (100_000, (200, 1000))
    table = Table(
        f"Scale: one SVM on features, n = {rows}, C = 1, one thread",
        ["rank", "method", "CPU s", "of LinearSVC", "limit", "objective", "gap"],
        notes=[
            "Features of one-column Gaussians, the same for all. LinearSVC penalises the bias and "
            "proves no gap; its objective is that of the hinge loss at the best bias."
        ],
    )
    for rank in ranks:
        _svms(session, table, rows, rank)
    session.tables.append(table)
    sizes = (10_000, 20_000) if session.quick else (25_000, 50_000, 100_000, 200_000)
    session.tables.append(_weights(session, sizes))
    session.tables.append(
        _places(session, (10_000, 20_000) if session.quick else (10_000, 100_000, 1_000_000))
    )


def _svms(session: Session, table: Table, n: int, rank: int) -> None:
    size = {"n": n, "rank": rank}
    cases = {
        "kernelweave, gap 1e-3": Case("scale:svm", {**size, "tol": 1e-3}),
        "kernelweave, gap 1e-5": Case("scale:svm", {**size, "tol": 1e-5}),
        _PEER: Case("scale:linear_svc", {**size, "tol": 1e-2}),
    }
    limits = dict(zip(cases, ("1", "2", ""), strict=True))
    runs = session.measure(f"scale, rank {rank}", cases, repeats=min(3, session.repeats))
    for name, found in runs.items():
        if not found.ok:
            table.add(rank, name, found.problem)
            continue
        gap = found.fact("gap")
        table.add(
            rank,
            name,
            seconds(found.cpu),
            "" if name == _PEER else ratio(found, runs[_PEER], cpu=True),
            limits[name],
            number(found.fact("value"), ".2f"),
            "" if gap is None else number(gap, ".1e"),
        )


def _weights(session: Session, sizes: tuple[int, ...]) -> Table:
    table = Table(
        "Scale: weights of 60 one-column kernels, norm 1, C = 1, gap 1e-3, one thread",
        [
            "n",
            "wall s",
            "CPU s",
            "MB added",
            "gap",
            "kept",
            "solves",
            "passes / first",
            "acc.",
            "others: acc. (CPU s)",
        ],
        notes=[
            "The gap is that of the exact kernels. Passes: over the features, by the fit and "
            "by one SVM with equal weights at the same gap; the limit of their ratio is 5. "
            "Others: 300 random landmarks of one Gaussian on all columns, then LinearSVC (hinge) "
            "or SGDClassifier. The data are a sum of curves of single columns, which is what the "
            "sixty kernels are for; no ranking follows. The last row is the exponent of a power "
            "law through the rows above."
        ],
    )
    cpus, walls, peaks = [], [], []
    for n in sizes:
        runs = session.measure(
            f"scale, n = {n}",
            {
                "fit": Case("scale:weights", {"n": n}, timeout=1800),
                "passes": Case("scale:passes", {"n": n}, timeout=1800),
                "LinearSVC": Case("scale:nystroem", {"n": n}, timeout=1800),
                "SGD": Case("scale:nystroem", {"n": n, "last": "sgd"}, timeout=1800),
            },
            repeats=1,
        )
        fit = runs["fit"]
        if not fit.ok:
            table.add(n, fit.problem)
            continue
        cpus.append((n, fit.cpu))
        walls.append((n, fit.wall))
        peaks.append((n, fit.added))
        others = [
            f"{name} {number(runs[name].fact('accuracy'), '.3f')} ({seconds(runs[name].cpu)})"
            for name in ("LinearSVC", "SGD")
            if runs[name].ok
        ]
        table.add(
            n,
            seconds(fit.wall),
            seconds(fit.cpu),
            megabytes(fit.added),
            number(fit.fact("gap"), ".1e"),
            fit.fact("kept"),
            fit.fact("solves"),
            _passes(runs["passes"]),
            number(fit.fact("accuracy"), ".3f"),
            ", ".join(others),
        )
    table.add("exponent", power(walls), power(cpus), power(peaks))
    return table


def _passes(found: Run) -> str:
    if not found.ok:
        return found.problem
    fit, first = found.fact("fit"), found.fact("first")
    return f"{fit:.0f} / {first:.0f} = {fit / first:.1f}"


_PLACES = {"memory": "in memory", "file": "in a file", "dask": "on Dask, 2 workers"}


def _places(session: Session, sizes: tuple[int, ...]) -> Table:
    """Measure the same fit where features may be."""
    table = Table(
        "Scale: the same fit by where its features are, 60 kernels, gap 1e-3",
        ["n", "features", "wall s", "MB added", "MB of workers", "gap", "objective", "acc."],
        notes=[
            "In a file: a tenth above the smallest memory_limit, at which all features are "
            "mapped; pages of the file count as memory while they are held. On Dask: processes of "
            "one thread, the table is there already; what is added is in the client. SVC: one "
            "Gaussian on all columns, where it ends in reasonable time."
        ],
    )
    for n in sizes:
        places = ["memory", "file", "dask"] if n <= 200_000 else ["file", "dask"]
        cases = {
            _PLACES[where]: Case("scale:elsewhere", {"n": n, "where": where}, timeout=3600)
            for where in places
        }
        if n <= 20_000:
            cases["SVC"] = Case("scale:svc", {"n": n}, timeout=1800)
        for name, found in session.measure(f"places, n = {n}", cases, repeats=1).items():
            if not found.ok:
                table.add(n, name, found.problem)
                continue
            known = name != "SVC"
            workers = found.fact("workers") if known else None
            table.add(
                n,
                name,
                seconds(found.wall),
                megabytes(found.added),
                " + ".join(megabytes(peak) for peak in workers) if workers else "",
                number(found.fact("gap"), ".1e") if known else "",
                number(found.fact("objective"), ".4f") if known else "",
                number(found.fact("accuracy"), ".3f"),
            )
    return table
