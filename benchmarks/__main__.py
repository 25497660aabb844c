"""Run benchmarks and print, keep or typeset their tables."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from .machine import describe_machine, machine_lines
from .measure import ROOT
from .suites import (
    Session,
    banks,
    dense,
    explain,
    growth,
    headline,
    peers,
    probabilities,
    radius,
    rules,
    scale,
)
from .tables import Table

SUITES: dict[str, Callable[[Session], None]] = {
    "headline": headline.run,
    "peers": peers.run,
    "growth": growth.run,
    "banks": banks.run,
    "radius": radius.run,
    "rules": rules.run,
    "scale": scale.run,
    "dense": dense.run,
    "probabilities": probabilities.run,
    "explain": explain.run,
}


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:  # a log has no width of its own
        console = Console(width=160)
    if options.read:
        results = _read(options.read)
        _show(results, console)
    else:
        results = _measure(options, console)
    if options.markdown:
        _write(options.markdown, to_markdown(results))
        console.print(f"Tables are in {options.markdown}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats")
    parser.add_argument(
        "--only", action="append", choices=SUITES, metavar="NAME", help=f"of {', '.join(SUITES)}"
    )
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=sorted({1, min(2, os.cpu_count() or 1)}),
        help="thread counts to report; peers always run with one (default: 1 and 2)",
    )
    parser.add_argument("--repeats", type=int, help="rounds per comparison (default: 5, quick: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: benchmarks/results/")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables here")
    parser.add_argument(
        "--read",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="show results of earlier runs in place of measuring",
    )
    return parser


def _measure(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    names = options.only or list(SUITES)
    machine = describe_machine()
    for line in machine_lines(machine):
        console.print(line, highlight=False)
    console.print()
    results: dict[str, Any] = {"machine": machine, "quick": options.quick, "suites": {}}
    stem = "-".join(names) if options.only else "all"
    target = options.json or ROOT / "benchmarks" / "results" / (
        f"{stem}-quick.json" if options.quick else f"{stem}.json"
    )
    repeats = options.repeats or (2 if options.quick else 5)
    for name in names:
        with console.status(name) as status:
            session = Session(options.quick, options.threads, repeats, note=status.update)
            SUITES[name](session)
        for table in session.tables:
            table.show(console)
        results["suites"][name] = {
            "tables": [table.to_json() for table in session.tables],
            "runs": session.runs,
        }
        # After every suite, so that an interrupted run leaves what it has.
        _write(target, json.dumps(results, indent=1))
    console.print(f"Results are in {target}")
    return results


def _read(files: list[Path]) -> dict[str, Any]:
    """Join results; a suite that is in several files is taken from the last."""
    parts = [json.loads(file.read_text()) for file in files]
    joined: dict[str, Any] = {**parts[-1], "suites": {}}
    for part in parts:
        joined["suites"] |= part["suites"]
    return joined


def _show(results: dict[str, Any], console: Console) -> None:
    for line in machine_lines(results["machine"]):
        console.print(line, highlight=False)
    for suite in results["suites"].values():
        for table in suite["tables"]:
            Table(**table).show(console)


def to_markdown(results: dict[str, Any]) -> str:
    """Return all tables with a description of the machine."""
    blocks = ["# Measurements\n", "\n\n".join(machine_lines(results["machine"])) + "\n"]
    if results["quick"]:
        blocks.append("Small sizes (`--quick`): a check that the benchmarks run, no evidence.\n")
    for name in SUITES:
        if name in results["suites"]:
            blocks.append(f"## {name.capitalize()}\n")
            tables = results["suites"][name]["tables"]
            blocks += [Table(**table).to_markdown() for table in tables]
    return "\n".join(blocks)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


if __name__ == "__main__":
    main()
