"""210 kernels on 2000 rows: the fit in units of plain scikit-learn work."""

from __future__ import annotations

from benchmarks.measure import Case, Run, ratio
from benchmarks.tables import Table, megabytes, number, seconds

from . import Session

_N_KERNELS = 210


def run(session: Session) -> None:
    """Measure the fit whole and in parts, then other ways to use the same kernels."""
    n = 500 if session.quick else 2000
    speed = Table(
        f"Headline: n = {n}, 20 features, {_N_KERNELS} kernels, C = 1, relative gap 1e-3",
        [
            "what",
            "threads",
            "wall s",
            "CPU s",
            "ratio (spread)",
            "CPU ratio (spread)",
            "limit",
            "aim",
        ],
        notes=[
            "Kernels: Gaussians of ten widths on all features and on each feature. Grams + SVC: "
            "scikit-learn's rbf_kernel for the ten widths on all features, then one "
            'SVC(kernel="precomputed") on the kernel that the fit ends with. Ratios are of medians '
            "of repeats taken in turns; the spread is over neighbouring repeats.",
            "Some BLAS libraries do the thin products of rbf_kernel more slowly with several "
            "threads than with one, so the reference is also measured with one.",
            "Peak memory is what the fit adds to the process, against 210 dense Gram matrices in "
            "float64.",
        ],
    )
    outcome = Table(
        "Headline: the result",
        ["threads", "objective", "gap", "kept", "solves", "updates", "passes", "test accuracy"],
        notes=["Solves: SVMs. Updates: pairs of coefficients. Passes: over all kernels."],
    )
    for threads in session.threads:
        runs = session.measure(f"headline, {threads} threads", _cases(n, threads))
        _add_speed(speed, runs, n, threads, limits=not session.quick)
        fit = runs["fit"]
        if fit.ok:
            outcome.add(
                threads,
                number(fit.fact("objective"), ".4f"),
                number(fit.fact("gap"), ".1e"),
                fit.fact("kept"),
                fit.fact("solves"),
                fit.fact("updates"),
                number(fit.fact("passes"), ".1f"),
                number(fit.fact("accuracy"), ".3f"),
            )
    session.tables += [speed, outcome, _other_ways(session, n)]


def _cases(n: int, threads: int) -> dict[str, Case]:
    tasks = {
        "fit": "fits:whole",
        "Grams + SVC": "fits:grams_and_svc",
        "bank": "fits:bank",
        "solver": "fits:solve",
        "SVC": "fits:svc",
    }
    cases = {name: Case(task, {"n": n}, threads) for name, task in tasks.items()}
    if threads > 1:
        args = {"n": n, "blas_threads": 1}
        cases["Grams + SVC, 1 BLAS thread"] = Case("fits:grams_and_svc", args, threads)
    return cases


def _add_speed(table: Table, runs: dict[str, Run], n: int, threads: int, *, limits: bool) -> None:
    fit, unit, bank, solver, svc = (
        runs[k] for k in ("fit", "Grams + SVC", "bank", "solver", "SVC")
    )
    single = runs.get("Grams + SVC, 1 BLAS thread")
    extra = []
    if single is not None:
        extra.append(("whole fit / (Grams + SVC, 1 BLAS thread)", fit, single, "", ""))
        extra.append(("Grams + SVC, 1 BLAS thread", single, None, "", ""))
    for name, run, other, limit, aim in (
        ("whole fit / (Grams + SVC)", fit, unit, "2", "1"),
        ("after the bank / SVC", solver, svc, "30", "10"),
        ("building the bank / (Grams + SVC)", bank, unit, "", ""),
        ("Grams + SVC", unit, None, "", ""),
        ("SVC", svc, None, "", ""),
        *extra,
    ):
        if not run.ok:
            table.add(name, threads, run.problem)
            continue
        against = ("", "")
        if other is not None:
            against = (str(ratio(run, other)), str(ratio(run, other, cpu=True)))
        table.add(
            name,
            threads,
            seconds(run.wall),
            seconds(run.cpu),
            *against,
            *((limit, aim) if limits else ()),
        )
    if fit.ok:
        stack = 8.0 * _N_KERNELS * n**2
        told = f"{megabytes(fit.added)} MB / {megabytes(stack)} MB"
        share = number(fit.added / stack, ".3f")
        table.add(
            "peak memory / dense stack", threads, told, "", share, "", "0.1" if limits else ""
        )


def _other_ways(session: Session, n: int) -> Table:
    threads = session.threads[-1]
    table = Table(
        f"The same {_N_KERNELS} kernels, n = {n}, from features to model, threads = {threads}",
        ["method", "wall s", "CPU s", "MB added", "objective", "gap", "kept", "test accuracy"],
        notes=[
            "Kernel computation counts for all. The objective is that of norm 1, over weights that "
            "sum to one; norm 2 minimises another one. The average with SVC computes one dense "
            "Gram matrix at a time with rbf_kernel."
        ],
    )
    cases = {
        "kernelweave, norm=1": Case("fits:whole", {"n": n}, threads),
        "kernelweave, norm=2": Case("fits:whole", {"n": n, "norm": 2.0}, threads),
        'kernelweave, norm="uniform"': Case("fits:whole", {"n": n, "norm": "uniform"}, threads),
        "average kernel + SVC": Case("fits:average_and_svc", {"n": n}, threads),
    }
    runs = session.measure("headline, other ways", cases, repeats=min(3, session.repeats))
    for name, run in runs.items():
        if not run.ok:
            table.add(name, run.problem)
            continue
        same = "norm=2" not in name
        table.add(
            name,
            seconds(run.wall),
            seconds(run.cpu),
            megabytes(run.added),
            number(run.fact("objective"), ".4f") if same else "",
            number(run.fact("gap"), ".1e"),
            run.fact("kept"),
            number(run.fact("accuracy"), ".3f"),
        )
    return table
