"""Run Table 1 of Gai, Chen and Zhang (2010) again: radius-based kernel learning and its rivals.

Learning Kernels with Radiuses of Minimum Enclosing Balls, NIPS 2010. Data sets are read as
`kernelweave.datasets.load_dataset` does; results are kept as they come; at the end a page and a
picture show ours beside the published numbers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed

from kernelweave.datasets import load_dataset
from kernelweave.errors import DataError, KernelweaveError

from .page import describe_run
from .radius_protocol import GRID, METHODS, N_FOLDS, evaluate, open_fold
from .radius_published import SETS, source
from .radius_report import draw, summarise, to_markdown
from .store import Record, Store, write

QUICK_GRID = (0.1, 1.0, 10.0, 100.0)
QUICK_FOLDS = 3
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the picture, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "radius-quick" if options.quick else "radius"
    grid, folds = (QUICK_GRID, QUICK_FOLDS) if options.quick else (GRID, N_FOLDS)
    names = options.methods or [m for m in METHODS if METHODS[m].quick or not options.quick]
    try:
        settings = {"grid": list(grid), "seed": options.seed}
        store = Store(options.output / f"{stem}.json", settings, ("data", "fold", "method"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = [
        (data, fold, name)
        for data in _at_hand(options.data or list(SETS))
        for fold in range(folds)
        for name in names
    ]
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, grid, options), 1):
            line = f"[{done}/{len(missing)}] {result['data']} fold {result['fold']} "
            line += METHODS[result["method"]].label
            if "error" in result:
                n_failed += 1
                print(f"{line}: failed: {result['error']}", flush=True)
                continue
            store.add(result)
            print(
                f"{line}: {result['accuracy']:.1f} % with C = {result['C']:g}, "
                f"{result['kernels']} kernels, {result['seconds']:.1f} s",
                flush=True,
            )
    except KeyboardInterrupt:
        print(f"Stopped; what is done is kept in {store.path}, and the same command goes on there.")
        return INTERRUPTED
    records = [record for task in wanted if (record := store.get(task))]
    if not records:
        print("There is nothing to report.", file=sys.stderr)
        return 1
    cells = summarise(records, grid)
    page, picture = (store.path.with_suffix(suffix) for suffix in (".md", ".png"))
    protocol = f"{N_FOLDS} stratified folds by seed {options.seed}, the same seed for inner folds"
    run = describe_run("make radius", protocol, records)
    write(page, to_markdown(cells, grid, options.seed) + run)
    draw(cells, picture)
    print(f"The table is in {page}, the picture in {picture}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.radius", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_FOLDS} folds of {N_FOLDS}, a shorter grid, fewer methods: about ten minutes",
    )
    parser.add_argument(
        "--data", nargs="+", choices=SETS, metavar="NAME", help=f"of {', '.join(SETS)}"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)}"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    return parser


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            load_dataset(source(name))
        except DataError as error:
            print(f"{SETS[name]} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(
    tasks: list[tuple[str, int, str]], grid: tuple[float, ...], options: argparse.Namespace
) -> Iterator[Record]:
    open_fold.cache_clear()  # the files may have changed since an earlier run in this process
    jobs = (delayed(_attempt)(*task, grid, options.seed) for task in tasks)
    # Few tasks are handed out ahead, so that both processes stay within a fold and its kernels.
    yield from Parallel(
        n_jobs=options.n_jobs,
        return_as="generator_unordered",
        pre_dispatch=options.n_jobs,
        batch_size=1,
    )(jobs)


def _attempt(data: str, fold: int, method: str, grid: tuple[float, ...], seed: int) -> Record:
    """Return a result, or what went wrong: hours of other results must not be lost to one."""
    try:
        return evaluate(data, fold, method, grid, seed)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return {"data": data, "fold": fold, "method": method, "error": str(error)}


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
