"""The parser of the command line; nothing here, nor in the files of the commands, loads numpy."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from kernelweave._text import clip, visible

COMMANDS = "demo fit predict info report rules suspects cluster compare completion".split()

_ABOUT = """\
Learn which kernels matter on a table, with a certificate of optimality.

  kernelweave demo                                   see it work on built-in data
  kernelweave fit patients.csv --target outcome      learn, and write patients.kw
  kernelweave info patients.kw                       what was learned
  kernelweave report patients.kw                     the same as a page, patients.html
  kernelweave predict patients.kw new.csv            predictions as CSV
  kernelweave compare patients.csv --target outcome  beside methods of scikit-learn"""

_EXITS = """\
exit codes: 0 done; 1 no convergence under --strict; 2 bad input or usage; 130 stopped by Ctrl-C;
141 the reader of the output went away; 3 a fault of kernelweave itself"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands; each file of a command adds its own part."""
    parser = _Parser(
        prog="kernelweave",
        description=_ABOUT,
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f".{name}", __package__).add_parser(commands)
    return parser


def complain(text: str, code: int) -> int:
    """Write one line to standard error, and return the code."""
    line = shown(" ".join(text.split()))
    with suppress(OSError):
        sys.stderr.write(f"kernelweave: {line}\n")
    return code


def shown(text: Any, most: int = 600) -> str:
    """Return text from anywhere as a terminal may be given it, not longer than some lines."""
    return clip(visible(text), most)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of repeating the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(complain(f"error: {message} (see {self.prog} --help)", 2))


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from kernelweave import __version__

        sys.stdout.write(f"kernelweave {__version__}\n")
        parser.exit()


def add_command(commands: Any, name: str, summary: str, text: str) -> Any:
    """Add a command with its summary and the text of its help."""
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_output(parser: Any, what: str = "result") -> None:
    """Add the options that every command has that prints a result."""
    parser.add_argument("--json", action="store_true", help=f"print the {what} as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings")


def add_table(parser: Any) -> None:
    """Add the options of commands that learn from a table."""
    parser.add_argument("file", metavar="FILE", help="a .csv, .tsv, .txt (or .gz) or .parquet file")
    parser.add_argument("--target", metavar="COLUMN", required=True, help="what to predict")
    add_ignore(parser)
    parser.add_argument(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="auto: a target of numbers with decimals or of more than 20 values is a quantity",
    )


def add_ignore(parser: Any) -> None:
    """Add the option that leaves columns out."""
    parser.add_argument(
        "--ignore", metavar="COLUMN", action="append", default=[], help="leave out; may be repeated"
    )


def add_seed(parser: Any) -> None:
    """Add the option that makes what is drawn repeatable."""
    parser.add_argument(
        "--seed", type=int, metavar="NUMBER", default=0, help="for everything drawn (0)"
    )


def norm(text: str) -> float | str:
    """Read the norm of the weights."""
    if text == "uniform":
        return text
    with suppress(ValueError):
        if 1 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number >= 1 or 'uniform', got {text!r}")


def positive(text: str) -> float:
    """Read a number above zero."""
    with suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")


def cost(text: str) -> float | str:
    """Read a C: a number above zero, or auto."""
    if text == "auto":
        return text
    try:
        return positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be a number > 0 or 'auto', got {text!r}") from None


def share(text: str) -> float:
    """Read a share below one."""
    with suppress(ValueError):
        if 0 <= float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, got {text!r}")


def count(text: str) -> int:
    """Read a whole number above zero."""
    with suppress(ValueError):
        if int(text) > 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number > 0, got {text!r}")


def named_file(text: str) -> tuple[str, str]:
    """Read NAME=FILE."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f"must be NAME=FILE.npy, got {text!r}")
    return name, file
