"""Mistakes that people made: answers of several, one label a row, and the gain of a review.

Gold labels stand for the truth, and in the review for the person who decides. Results are kept as
they come; at the end a page shows them. cleanlab is compared where it is installed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from .page import describe_run
from .people_pictures import draw
from .people_protocol import PARTS, measure
from .people_report import to_markdown
from .store import Store, write

FIELDS = ("part", "data", "method", "seed")
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, write the page, and return an exit status."""
    options = _parser().parse_args(arguments)
    store = Store(options.output / "people.json", {"draws": 5}, FIELDS)
    wanted = [
        (part, data, method, seed)
        for part in options.parts
        for data in PARTS[part].data
        if not options.data or data.split()[0] in options.data
        for seed in range(options.draws or PARTS[part].draws)
        for method in PARTS[part].methods
    ]
    missing = [task for task in wanted if task not in store]
    print(f"{len(wanted)} results are wanted, {len(wanted) - len(missing)} are there.")
    for done, task in enumerate(missing, 1):
        result = _attempt(task)
        if result is not None:
            store.add(dict(zip(FIELDS, task, strict=True)) | result)
            shown = ", ".join(f"{k} {v:.3f}" for k, v in result.items() if isinstance(v, float))
            print(f"[{done}/{len(missing)}] {' '.join(map(str, task))}: {shown}", flush=True)
    page = options.page or store.path.with_suffix(".md")
    records = store.records()
    last = max((record["seed"] for record in records), default=0)
    run = describe_run("make people", f"draws by seeds 0 to {last}", records) if records else ""
    write(page, to_markdown(records) + run)
    picture = draw(records, page.with_name(f"{page.stem}-review.png"))
    print(f"The tables are in {page}{f', the curves in {picture}' if picture else ''}.")
    return 0


def _attempt(task: tuple[str, str, str, int]) -> dict[str, object] | None:
    """Return a result, or None where a package or a file is missing."""
    run: Callable[..., dict[str, object]] = measure
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(*task)
    except (ImportError, FileNotFoundError) as error:
        print(f"{' '.join(map(str, task))} is left out. {error}", file=sys.stderr)
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.people", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="sets to run, all by default")
    parser.add_argument("--draws", type=int, help="draws or divisions, in place of those of a part")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--page", type=Path, help="where to write the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
