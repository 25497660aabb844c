"""Cluster linked documents by kernels learned from links: Yang, Jin and Jain (2012) run again.

Learning kernel combination from noisy pairwise constraints, IEEE SSP. Data sets are read as
`kernelweave.datasets.load_dataset` does; results are kept as they come; at the end a page and
pictures show ours beside the published numbers.
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
from .pairwise_data import DATA, FIRST_SEED, N_TRIALS, open_trial
from .pairwise_methods import METHODS
from .pairwise_pictures import draw
from .pairwise_protocol import KINDS, SIZES, evaluate
from .pairwise_report import to_markdown
from .store import Record, Store, Task, write

FIELDS = ("part", "data", "method", "trial")
PARTS = ("table", "figure")
QUICK_TRIALS = 2
QUICK_SIZES = SIZES[:2]
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the pictures, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "pairs-quick" if options.quick else "pairs"
    try:
        store = Store(options.output / f"{stem}.json", {"seed": options.seed}, FIELDS)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = list(_tasks(options))
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, options), 1):
            line = f"[{done}/{len(missing)}] {result['part']} {result['data']} "
            line += f"trial {result['trial']} {result['method']}"
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
    last = max(record["trial"] for record in records) + options.seed
    protocol = f"trials by seeds {options.seed} to {last}"
    write(page, to_markdown(records, options.seed) + describe_run("make pairs", protocol, records))
    pictures = draw(records, options.output, stem)
    print(f"The tables are in {page}, the pictures in {', '.join(str(path) for path in pictures)}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.pairwise", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_TRIALS} trials of {N_TRIALS} and the quick systems: a minute",
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="NAME",
        help=f"of the part 'table': {', '.join(METHODS)}",
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first trial")
    return parser


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield what there is to do, the most telling first, so that a run may be stopped early."""
    names = {
        "table": options.methods or [m for m in METHODS if METHODS[m].quick or not options.quick],
        "figure": [
            f"{kind}@{size}" for size in (QUICK_SIZES if options.quick else SIZES) for kind in KINDS
        ],
    }
    at_hand = list(_at_hand(options.data))
    for part in PARTS:
        for method in names[part] if part in options.parts else ():
            for data in at_hand:
                for trial in range(QUICK_TRIALS if options.quick else N_TRIALS):
                    yield part, data, method, trial


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            load_dataset(name)
        except DataError as error:
            print(f"{DATA[name]} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(tasks: list[Task], options: argparse.Namespace) -> Iterator[Record]:
    open_trial.cache_clear()  # the files may have changed since an earlier run in this process
    parallel = Parallel(
        n_jobs=options.n_jobs,
        return_as="generator_unordered",
        pre_dispatch=options.n_jobs,
        batch_size=1,
    )
    yield from parallel(delayed(_attempt)(*task, options.seed) for task in tasks)


def _attempt(part: str, data: str, method: str, trial: int, seed: int) -> Record:
    """Return a result, or what went wrong: other results must not be lost to one."""
    try:
        return evaluate(part, data, method, trial, seed)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return {"part": part, "data": data, "method": method, "trial": trial, "error": str(error)}


def _outcome(record: Record) -> str:
    if "refused" in record:
        return f"refused: {record['refused']}"
    return f"{record['nmi']:.3f}, {record['seconds']:.1f} s"


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
