"""Compare structured kernel combinations with flat ones: `SumProductMKLClassifier` and its rivals.

The draft that describes sum-product networks of kernels (arXiv:1402.3032) breaks off before its
experiments, so there is no table to run again; this one is our own. Data sets are read as
`kernelweave.datasets.load_dataset` does; results are kept as they come; at the end a page and a
picture show them.
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
from .store import Record, Store, Task, write
from .sum_product_data import SOURCES
from .sum_product_protocol import GRID, METHODS, N_SPLITS, evaluate, open_split
from .sum_product_report import draw, summarise, to_markdown

FIELDS = ("data", "split", "method")
QUICK_GRID = (0.1, 1.0, 10.0)
QUICK_SPLITS = 2
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the picture, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "structures-quick" if options.quick else "structures"
    grid, splits = (QUICK_GRID, QUICK_SPLITS) if options.quick else (GRID, N_SPLITS)
    names = options.methods or [m for m in METHODS if METHODS[m].quick or not options.quick]
    try:
        settings = {"grid": list(grid), "seed": options.seed}
        store = Store(options.output / f"{stem}.json", settings, FIELDS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = [
        (data, split, name)
        for data in _at_hand(options.data or list(SOURCES))
        for split in range(splits)
        for name in names
        if SOURCES[data].truth or not METHODS[name].told
    ]
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, grid, options), 1):
            line = f"[{done}/{len(missing)}] {result['data']} split {result['split']} "
            line += METHODS[result["method"]].label
            if "error" in result:
                n_failed += 1
                print(f"{line}: failed: {result['error']}", flush=True)
                continue
            store.add(result)
            print(
                f"{line}: {result['accuracy']:.1f} % with C = {result['C']:g}, "
                f"{result['n_used']} of {result['n_paths']} kernels, {result['solves']} solves, "
                f"{result['seconds']:.1f} s",
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
    splits = 1 + max(record["split"] for record in records)
    run = describe_run("make structures", f"{splits} divisions by seed {options.seed}", records)
    write(page, to_markdown(cells, grid, options.seed) + run)
    draw(cells, picture)
    print(f"The table is in {page}, the picture in {picture}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.sum_product", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_SPLITS} divisions of {N_SPLITS} and a shorter grid: a few minutes",
    )
    parser.add_argument(
        "--data", nargs="+", choices=SOURCES, metavar="NAME", help=f"of {', '.join(SOURCES)}"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)}"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--seed", type=int, default=0, help="of made-up data and divisions")
    return parser


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        source = SOURCES[name]
        try:
            if source.file is not None:
                load_dataset(source.file)
        except DataError as error:
            print(f"{source.title} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(
    tasks: list[Task], grid: tuple[float, ...], options: argparse.Namespace
) -> Iterator[Record]:
    open_split.cache_clear()  # the files may have changed since an earlier run in this process
    jobs = (delayed(_attempt)(*task, grid, options.seed) for task in tasks)
    # Few tasks are handed out ahead, so that both processes stay within a division.
    yield from Parallel(
        n_jobs=options.n_jobs,
        return_as="generator_unordered",
        pre_dispatch=options.n_jobs,
        batch_size=1,
    )(jobs)


def _attempt(data: str, split: int, method: str, grid: tuple[float, ...], seed: int) -> Record:
    """Return a result, or what went wrong: other results must not be lost to one."""
    try:
        return evaluate(data, split, method, grid, seed)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return {"data": data, "split": split, "method": method, "error": str(error)}


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
