"""Measure learning from wrong labels: Figure 1 of Yang et al. (2012) and a comparison of our own.

Multiple kernel learning from noisy labels by stochastic programming, ICML 2012. Data sets are read
as `kernelweave.datasets.load_dataset` does; results are kept as they come; at the end a page and
pictures show them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path

from joblib import Parallel, delayed

from kernelweave.datasets import load_dataset
from kernelweave.errors import DataError, KernelweaveError

from . import noisy_labels_published as published
from .noisy_labels_data import CLASS_NOISE, COMPARED, CONDITIONS, GROUPS, SOURCES
from .noisy_labels_protocol import (
    METHODS,
    N_DRAWS,
    compare,
    estimate,
    has_cleanlab,
    needs_cleanlab,
    open_case,
)
from .noisy_labels_report import draw, to_markdown
from .page import describe_run
from .store import Record, Store, Task, write

FIELDS = ("part", "data", "split", "condition", "method")
PARTS = ("comparison", "estimates", "gap", "figure")
QUICK_CONDITIONS = ("0", "0.2", "0.4", CLASS_NOISE)
QUICK_SETS = ("sonar", "wdbc", "fourclass", "heart_statlog", "balance_scale", "ecoli")
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the pictures, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "noisy-labels-quick" if options.quick else "noisy-labels"
    try:
        settings = {"seed": options.seed, "quick": options.quick}
        store = Store(options.output / f"{stem}.json", settings, FIELDS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = list(_tasks(options))
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, options), 1):
            line = f"[{done}/{len(missing)}] {' '.join(str(result[name]) for name in FIELDS)}"
            if "error" in result:
                n_failed += 1
                print(f"{line}: failed: {result['error']}", flush=True)
                continue
            store.add(result)
            print(f"{line}: {_outcome(result)}", flush=True)
    except KeyboardInterrupt:
        print(f"Stopped; what is done is kept in {store.path}, and the same command goes on there.")
        return INTERRUPTED
    records = [record for task in wanted if (record := store.get(task))]
    if not records:
        print("There is nothing to report.", file=sys.stderr)
        return 1
    page = store.path.with_suffix(".md")
    protocol = f"all drawn from seed {options.seed}; numbers of divisions at each table"
    run = describe_run("make noisy", protocol, records)
    write(page, to_markdown(records, options.seed) + run)
    pictures = draw(records, options.output, stem)
    print(f"The tables are in {page}, the pictures in {', '.join(str(path) for path in pictures)}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.noisy_labels", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one division, fewer data sets, conditions and methods: a few minutes",
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument(
        "--data", nargs="+", choices=SOURCES, metavar="NAME", help=f"of {', '.join(SOURCES)}"
    )
    parser.add_argument(
        "--groups",
        nargs="+",
        choices=COMPARED,
        default=["held-out", "confirmation"],
        metavar="NAME",
        help=f"of data sets to compare on, of {', '.join(COMPARED)}",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="NAME",
        help=f"of the comparison, of {', '.join(METHODS)}",
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--seed", type=int, default=0, help="of divisions and wrong labels")
    return parser


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield what there is to do, the data sets that cannot be read left out."""
    quick = options.quick
    names = options.data or [name for name in SOURCES if not quick or name in QUICK_SETS]
    names = list(_at_hand(names))
    if "comparison" in options.parts:
        yield from _comparison_tasks(names, options)
    if "estimates" in options.parts:
        for name in names:
            if name in GROUPS["held-out"] or name in GROUPS["published"]:
                for condition in CONDITIONS[:-1]:
                    for number in range(2 if quick else N_DRAWS):
                        yield "estimates", name, number, condition, "both"
    if "gap" in options.parts:
        for name in published.GAP_SETS:
            for solver in published.SOLVERS:
                if name in names:
                    yield "gap", name, 0, "0", solver
    if "figure" in options.parts:
        for name in published.SETS:
            for split in range(1 if quick else published.N_SPLITS):
                for level in published.LEVELS[:: 2 if quick else 1]:
                    for family in published.FAMILIES:
                        if name in names:
                            yield "figure", name, split, level, family


def _comparison_tasks(names: list[str], options: argparse.Namespace) -> Iterator[Task]:
    quick = options.quick
    methods = options.methods or [m for m in METHODS if METHODS[m].quick or not quick]
    if any(map(needs_cleanlab, methods)) and not has_cleanlab():
        print("cleanlab is not installed, so its rows are left out: pip install cleanlab")
        methods = [method for method in methods if not needs_cleanlab(method)]
    n_splits = 1 if quick else max((METHODS[m].n_splits for m in methods), default=0)
    # A group is gone through division by division, so that a run that was stopped says something.
    for group, split in product(options.groups, range(n_splits)):
        now = [method for method in methods if split < METHODS[method].n_splits]
        here = [name for name in GROUPS[group] if name in names]
        for name, condition in product(here, QUICK_CONDITIONS if quick else CONDITIONS):
            for method in now:
                yield "comparison", name, split, condition, method


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            for table in SOURCES[name].tables:
                load_dataset(table)
        except DataError as error:
            print(f"{SOURCES[name].title} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(tasks: list[Task], options: argparse.Namespace) -> Iterator[Record]:
    open_case.cache_clear()  # the files may have changed since an earlier run in this process
    published.open_part.cache_clear()
    # One process does all methods of a cell, which share the rows and some of the tuning.
    cells = [list(cell) for _, cell in groupby(tasks, key=lambda task: task[:4])]
    jobs = (delayed(_attempt_all)(cell, options.seed, options.quick) for cell in cells)
    parallel = Parallel(
        n_jobs=options.n_jobs,
        return_as="generator_unordered",
        pre_dispatch=options.n_jobs,
        batch_size=1,
    )
    for records in parallel(jobs):
        yield from records


def _attempt_all(tasks: list[Task], seed: int, quick: bool) -> list[Record]:
    return [_attempt(task, seed, quick) for task in tasks]


def _attempt(task: Task, seed: int, quick: bool) -> Record:
    """Return a result, or what went wrong: hours of other results must not be lost to one."""
    record = dict(zip(FIELDS, task, strict=True))
    try:
        return record | _evaluate(task, seed, quick)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return record | {"error": str(error)}


def _evaluate(task: Task, seed: int, quick: bool) -> Record:
    part, data, split, condition, method = task
    if part == "comparison":
        return compare(data, split, condition, method, seed)
    if part == "estimates":
        return estimate(data, split, condition, seed)
    if part == "gap":
        limits = {"steps": 200, "seconds": 10.0} if quick else {}
        return published.run_gap(data, method, seed, **limits)
    return published.run_figure(data, split, condition, method, seed)


def _outcome(record: Record) -> str:
    if record["part"] == "comparison":
        return f"{record['accuracy']:.1f} %, {record['seconds']:.1f} s"
    if record["part"] == "estimates":
        return f"{record['truth']:.2f} wrong, {record['range']:.2f} and {record['counts']:.2f}"
    if record["part"] == "gap":
        return f"{record['steps']} steps, {record['seconds']:.1f} s"
    scores = (f"{name} {cell['accuracy']:.1f}" for name, cell in record["columns"].items())
    return f"{', '.join(scores)}, {record['seconds']:.1f} s"


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
