"""Run Tables 2, 4 and 5 of Jawanpuria, Nath and Ramakrishnan (2015) again: rule ensembles.

Generalized hierarchical kernel learning, JMLR 16. Data sets are read as
`kernelweave.datasets.load_dataset` does; results are kept as they come; at the end a page and
pictures show ours beside the published numbers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from joblib import Parallel, delayed

from kernelweave.errors import DataError, KernelweaveError

from .page import describe_run
from .rules_cells import summarise
from .rules_data import N_SPLITS, SOURCES, check_source, n_splits, read_source
from .rules_pictures import draw
from .rules_protocol import GRID, METHODS, evaluate, has_imodels
from .rules_report import to_markdown
from .store import Record, Store, Task, write

FIELDS = ("data", "split", "method")
QUICK_GRID = (0.1, 10.0, 1000.0)
QUICK_SPLITS = 2
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the pictures, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "rules-quick" if options.quick else "rules"
    grid, splits = (QUICK_GRID, QUICK_SPLITS) if options.quick else (GRID, N_SPLITS)
    try:
        settings = {"grid": list(grid), "seed": options.seed}
        store = Store(options.output / f"{stem}.json", settings, FIELDS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = list(_tasks(options, splits))
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, store, grid, options), 1):
            line = f"[{done}/{len(missing)}] {result['data']} split {result['split']} "
            line += METHODS[result["method"]].label
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
    cells = summarise(records, grid)
    page = store.path.with_suffix(".md")
    last = options.seed + splits - 1
    protocol = f"{splits} divisions by seeds {options.seed} to {last}, a tenth of the rows each"
    run = describe_run("make rules", protocol, records)
    write(page, to_markdown(cells, grid, options.seed) + run)
    pictures = draw(cells, options.output, stem)
    print(f"The tables are in {page}, the pictures in {', '.join(str(path) for path in pictures)}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.rules", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_SPLITS} divisions of {N_SPLITS}, a shorter grid and fewer systems: minutes",
    )
    parser.add_argument(
        "--data", nargs="+", choices=SOURCES, metavar="NAME", help=f"of {', '.join(SOURCES)}"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)}"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--seed", type=int, default=0, help="of the first division")
    return parser


def _tasks(options: argparse.Namespace, splits: int) -> Iterator[Task]:
    """Yield what there is to do, division by division, so that a run may be stopped early."""
    methods = options.methods or [m for m in METHODS if METHODS[m].quick or not options.quick]
    if "rulefit-imodels" in methods and not has_imodels():
        print("imodels is not installed, so its RuleFit is left out: pip install imodels six")
        methods = [method for method in methods if method != "rulefit-imodels"]
    needed = {name for method in methods for name in METHODS[method].needs}
    methods = [method for method in METHODS if method in methods or method in needed]
    names = list(_at_hand(options.data or list(SOURCES)))
    for split in range(splits):
        for data in names:
            for method in methods if split < n_splits(data) else ():
                if SOURCES[data].binary or not METHODS[method].binary_only:
                    yield data, split, method


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            check_source(name)
        except DataError as error:
            print(f"{SOURCES[name].title} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(
    tasks: list[Task], store: Store, grid: tuple[float, ...], options: argparse.Namespace
) -> Iterator[Record]:
    read_source.cache_clear()  # the files may have changed since an earlier run in this process
    # One process does all systems of a division, since some take numbers of rules from others.
    parts = [(*cell, list(of)) for cell, of in groupby(tasks, key=lambda task: task[:2])]
    jobs = (
        delayed(_attempt_all)(
            of,
            {m: r for m in METHODS if (r := store.get((data, split, m))) is not None},
            grid,
            options.seed,
        )
        for data, split, of in parts
    )
    parallel = Parallel(
        n_jobs=options.n_jobs,
        return_as="generator_unordered",
        pre_dispatch=options.n_jobs,
        batch_size=1,
    )
    for records in parallel(jobs):
        yield from records


def _attempt_all(
    tasks: list[Task], known: dict[str, Record], grid: tuple[float, ...], seed: int
) -> list[Record]:
    records = []
    for data, split, method in tasks:
        needed = [known.get(name, {}).get("rules") or 1 for name in METHODS[method].needs]
        record = _attempt(data, split, method, grid, seed, max(needed, default=1))
        known[method] = record
        records.append(record)
    return records


def _attempt(
    data: str, split: int, method: str, grid: tuple[float, ...], seed: int, n_rules: int
) -> Record:
    """Return a result, or what went wrong: other results must not be lost to one."""
    try:
        return evaluate(data, split, method, grid, seed, n_rules)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return {"data": data, "split": split, "method": method, "error": str(error)}


def _outcome(record: Record) -> str:
    rules = "" if record["rules"] is None else f" with {record['rules']:g} rules"
    return f"{record['score']:.3f}{rules}, {record['seconds']:.1f} s"


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
