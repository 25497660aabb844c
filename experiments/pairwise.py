"""Cluster linked documents by kernels learned from links: Yang, Jin and Jain (2012) run again.

Data sets are read as `kernelweave.datasets.load_dataset` does; results are kept as they come; at
the end a page and a picture show them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed

from kernelweave.datasets import load_dataset
from kernelweave.errors import DataError, KernelweaveError

from .pairwise_protocol import (
    CLASSIFIED,
    DATA,
    METHODS,
    N_TRIALS,
    SIZES,
    evaluate,
    open_trial,
)
from .pairwise_report import draw, to_markdown
from .store import Record, Store, Task, write

FIELDS = ("part", "data", "method", "trial")
PARTS = ("table", "figure", "classes")
QUICK = ("lk", "lkcnpc", "naive", "lk-tfidf")
RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the picture, and return an exit status."""
    options = _parser().parse_args(arguments)
    store = Store(
        options.output / ("pairs-quick.json" if options.quick else "pairs.json"), {}, FIELDS
    )
    wanted = list(_wanted(options))
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    open_trial.cache_clear()  # the files may have changed since an earlier run in this process
    try:
        jobs = (delayed(_attempt)(*task) for task in missing)
        found = Parallel(n_jobs=options.n_jobs, return_as="generator_unordered", batch_size=1)(jobs)
        for done, result in enumerate(found, 1):
            line = f"[{done}/{len(missing)}] {result['part']} {result['data']} {result['method']} "
            line += f"trial {result['trial']}"
            if "error" in result:
                n_failed += 1
                print(f"{line}: failed: {result['error']}", flush=True)
                continue
            store.add(result)
            score = result.get("nmi", result.get("accuracy"))
            print(f"{line}: {score:.3f}, {result['seconds']:.1f} s", flush=True)
    except KeyboardInterrupt:
        print(f"Stopped; what is done is kept in {store.path}, and the same command goes on there.")
        return INTERRUPTED
    records = [record for task in wanted if (record := store.get(task))]
    if not records:
        print("There is nothing to report.", file=sys.stderr)
        return 1
    page, picture = (store.path.with_suffix(suffix) for suffix in (".md", ".png"))
    write(page, to_markdown(records))
    draw(records, picture)
    print(f"The tables are in {page}, the picture in {picture}.")
    return 1 if n_failed else 0


def _wanted(options: argparse.Namespace) -> Iterator[Task]:
    trials = range(2 if options.quick else N_TRIALS)
    names = {
        "table": options.methods or (QUICK if options.quick else list(METHODS)),
        "figure": [
            f"{kind}@{size}"
            for size in (SIZES[:2] if options.quick else SIZES)
            for kind in ("true", "noise", "naive")
        ],
        "classes": list(CLASSIFIED)[:2] if options.quick else list(CLASSIFIED),
    }
    for data in _at_hand(options.data or list(DATA)):
        for part in options.parts or PARTS:
            for trial in trials[:2] if part == "classes" else trials:
                for method in names[part]:
                    yield part, data, method, trial


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.pairwise", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two trials of the simple methods")
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    parser.add_argument("--data", nargs="+", choices=DATA)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="of the part 'table'")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    return parser


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the data sets that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            load_dataset(name)
        except DataError as error:
            print(f"{DATA[name][0]} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _attempt(part: str, data: str, method: str, trial: int) -> Record:
    """Return a result, or what went wrong: other results must not be lost to one."""
    try:
        return evaluate(part, data, method, trial)
    except (KernelweaveError, ArithmeticError, ValueError) as error:
        return {"part": part, "data": data, "method": method, "trial": trial, "error": str(error)}


if __name__ == "__main__":
    sys.exit(main())
