"""Building blocks beside the plainest way to do the same."""

from __future__ import annotations

from typing import Any

from benchmarks.measure import Case, ratio
from benchmarks.tables import Table, megabytes, number, seconds

from . import Session


def run(session: Session) -> None:
    """Measure banks, passes over them, and the SVM solver."""
    shrink = 4 if session.quick else 1
    banks = Table(
        "Building blocks: banks",
        ["ours", "reference", "threads", "ours s", "reference s", "ratio (spread)", "MB added"],
        notes=[
            "rbf_kernel is scikit-learn's. One pass: float64 matrix times vector over as many "
            "bytes as the bank holds, with as many threads. 60 x: one, times 60."
        ],
    )
    solvers = Table(
        "Building blocks: one SVM on the final kernel of the headline problem",
        ["solver", "n", "threads", "wall s", "over SVC (spread)", "objective", "updates"],
        notes=[
            "Ours stops at the relative duality gap in its name, SVC at its default tolerance of "
            "1e-3 on the optimality conditions; the objectives tell how far each came. Warm: from "
            "the solution of this kernel mixed with a tenth of another."
        ],
    )
    for threads in session.threads:
        _banks(session, banks, shrink, threads)
        _solvers(session, solvers, shrink, threads)
    session.tables += [banks, solvers]


def _banks(session: Session, table: Table, shrink: int, threads: int) -> None:
    large, middle, small = 10_000 // shrink, 4000 // shrink, 2000 // shrink
    one_column = ("parts:dense_gram", {"n": large, "columns": 1})
    one_dense = ("parts:dense_gram", {"n": middle})
    comparisons: list[tuple[str, str, Any, Any, float]] = [
        (
            f"60 one-column Gaussians, n = {large}",
            "60 x rbf_kernel",
            ("parts:one_column_bank", {"n": large}),
            one_column,
            60.0,
        ),
        (
            f"8 widths, distances only, n = {middle}",
            "one rbf_kernel",
            ("parts:ladder_bank", {"n": middle}),
            one_dense,
            1.0,
        ),
        (
            f"8 widths, distances + combined Gram, n = {middle}",
            "one rbf_kernel",
            ("parts:ladder_combined", {"n": middle}),
            one_dense,
            1.0,
        ),
        (
            f"8 widths, distances + all forms, n = {middle}",
            "one rbf_kernel",
            ("parts:ladder_forms", {"n": middle}),
            one_dense,
            1.0,
        ),
    ]
    for name, which in (
        ("200 factored", "each"),
        ("10 on all features", "all"),
        ("all 210", "both"),
    ):
        comparisons.append(
            (
                f"forms of kernels: {name}, n = {small}",
                "one pass",
                ("parts:forms", {"n": small, "which": which}),
                ("parts:one_pass", {"n": small, "which": which}),
                1.0,
            )
        )
    for name, against, ours, reference, times in comparisons:
        runs = session.measure(
            f"banks, {name}, {threads} threads",
            {"ours": Case(*ours, threads), "reference": Case(*reference, threads)},
        )
        one, other = runs["ours"], runs["reference"]
        if not (one.ok and other.ok):
            table.add(name, against, threads, one.problem or other.problem)
            continue
        table.add(
            name,
            against,
            threads,
            seconds(one.wall),
            seconds(times * other.wall),
            ratio(one, other, times=times),
            megabytes(one.added),
        )


def _solvers(session: Session, table: Table, shrink: int, threads: int) -> None:
    for n in (2000 // shrink, 4000 // shrink):
        cases = {
            f"ours, {start}, gap {tol:.0e}": Case(
                "parts:smo", {"n": n, "warm": start == "warm", "tol": tol}, threads
            )
            for tol in (1e-3, 1e-5)
            for start in ("cold", "warm")
        }
        cases |= {
            "SVC": Case("parts:libsvm", {"n": n}, threads),
        }
        runs = session.measure(f"banks, SVM n = {n}, {threads} threads", cases)
        for name, run in runs.items():
            if not run.ok:
                table.add(name, n, threads, run.problem)
                continue
            table.add(
                name,
                n,
                threads,
                seconds(run.wall),
                "" if name == "SVC" else ratio(run, runs["SVC"]),
                number(run.fact("objective"), ".4f"),
                run.fact("updates"),
            )
