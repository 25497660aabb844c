"""The command line: a demonstration, fit, predict, and a look inside a model file."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from kernelweave.errors import KernelweaveError

__all__ = ["main"]

_ABOUT = """\
Learn which kernels matter on a table, with a certificate of optimality.

  kernelweave demo                               see it work on built-in data
  kernelweave fit patients.csv --target outcome  learn, and write patients.kw
  kernelweave info patients.kw                   what was learned
  kernelweave report patients.kw                 the same as a page, patients.html
  kernelweave predict patients.kw new.csv        predictions as CSV"""

_EXITS = """\
exit codes: 0 done; 1 no convergence under --strict; 2 bad input or usage; 130 stopped by Ctrl-C;
141 the reader of the output went away; 3 a fault of kernelweave itself"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    code : int
        What the process should exit with; ``kernelweave --help`` lists them.
    """
    try:
        args = _parser().parse_args(argv)
    except SystemExit as done:  # argparse has printed its help or error
        return int(done.code or 0)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # A command's packages are loaded only when it runs.
            module = getattr(args, "module", args.command)
            code: int = import_module(f".{module}", __name__).run(args)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        return _complain("stopped", 130)
    except BrokenPipeError:
        with suppress(OSError):  # what is left in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _complain(f"error: {named}{error.strerror or error}", 2)
    except (KernelweaveError, ValueError) as error:
        return _complain(f"error: {error}", 2)
    except Exception as error:
        return _complain(f"error: a fault of kernelweave ({type(error).__name__}: {error})", 3)


def _complain(text: str, code: int) -> int:
    line = " ".join(text.split())
    with suppress(OSError):
        sys.stderr.write(f"kernelweave: {line}\n")
    return code


def _show_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
    _complain(f"warning: {message}", 0)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of repeating the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(_complain(f"error: {message} (see {self.prog} --help)", 2))


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> None:
        from kernelweave import __version__

        sys.stdout.write(f"kernelweave {__version__}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kernelweave",
        description=_ABOUT,
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_info(commands)
    _add_report(commands)
    return parser


def _add(commands: Any, name: str, summary: str, text: str) -> Any:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_demo(commands: Any) -> None:
    text = """\
Fits a classifier on scikit-learn's breast cancer data: Gaussian kernels of five widths on all
measurements together and on each alone, and the linear kernel. Prints which of them it kept, and
its accuracy on held-out tumours beside a plain SVM; writes a picture, the model and a table.

example:
  kernelweave demo --out /tmp/demo"""
    parser = _add(commands, "demo", "see it work on built-in data", text)
    parser.add_argument("--out", metavar="DIR", default="demo", help="where to write (./demo)")


def _add_fit(commands: Any) -> None:
    text = """\
Every numeric column, and all of them together, are offered as Gaussian kernels of five widths, all
together also as a linear kernel; text columns are compared by equality. The weights are learned.
The score is measured on held-out rows beside a plain SVM; the model that is written is then fitted
to all rows. Standardising is part of the model, so predict takes the raw file.

--method radius learns classes by the ratio of the margin to the radius of the smallest ball around
the rows, in place of the margin. The scale of a kernel then cannot matter, and --C means the same
for narrow, wide and mixed kernels. It takes longer, and is not more accurate as a rule.

examples:
  kernelweave fit patients.csv --target outcome
  kernelweave fit patients.csv --target outcome --method radius --C 10
  kernelweave fit houses.parquet --target price --ignore id --norm 2 --C 10 --out houses.kw"""
    parser = _add(commands, "fit", "learn from a table", text)
    parser.add_argument("file", metavar="FILE", help="a .csv, .csv.gz or .parquet file")
    parser.add_argument("--target", metavar="COLUMN", required=True, help="what to predict")
    parser.add_argument(
        "--ignore", metavar="COLUMN", action="append", default=[], help="leave out; may be repeated"
    )
    parser.add_argument("--out", metavar="MODEL", help="the model file (FILE with ending .kw)")
    _add_method(parser)
    _add_evaluation(parser)


def _add_method(parser: Any) -> None:
    group = parser.add_argument_group("method")
    group.add_argument(
        "--method",
        choices=("auto", "classifier", "regressor", "radius"),
        default="auto",
        help="auto: a regressor for a target of numbers with decimals or more than 20 values, else "
        "a classifier; radius: a classifier by margin and radius",
    )
    group.add_argument(
        "--norm",
        type=_norm,
        metavar="P",
        default=1.0,
        help="1 keeps few kernels (default), above 1 all of them, 'uniform' averages them; radius: "
        "1 or 2, by which the same weights are scaled, or 'uniform'",
    )
    group.add_argument(
        "--C",
        type=_positive,
        metavar="NUMBER",
        default=1.0,
        help="cost of errors (1.0); regression: in units of the target's standard deviation; "
        "radius: for a kernel of unit radius",
    )
    number: dict[str, Any] = {"metavar": "NUMBER"}
    group.add_argument(
        "--tol", type=_positive, default=1e-3, help="relative gap to stop at (0.001)", **number
    )
    group.add_argument(
        "--max-iter", type=int, default=200, help="machines solved at most (200)", **number
    )
    yes_or_no = argparse.BooleanOptionalAction
    group.add_argument(
        "--per-feature", action=yes_or_no, default=True, help="offer kernels on single columns"
    )
    group.add_argument(
        "--standardize", action=yes_or_no, default=True, help="put numeric columns on one scale"
    )


def _add_evaluation(parser: Any) -> None:
    group = parser.add_argument_group("evaluation and output")
    group.add_argument(
        "--test-share",
        type=_share,
        metavar="SHARE",
        default=0.25,
        help="share of rows held out for the score (0.25); 0 skips it",
    )
    group.add_argument("--seed", type=int, metavar="NUMBER", default=0, help="of the split (0)")
    group.add_argument("--strict", action="store_true", help="exit with 1 if tol is not reached")
    group.add_argument("--quiet", action="store_true", help="print nothing but warnings")
    group.add_argument("--json", action="store_true", help="print the report as JSON")


def _add_predict(commands: Any) -> None:
    text = """\
The table needs the columns the model was fitted to, in any order; others are ignored.

examples:
  kernelweave predict patients.kw new.csv > predictions.csv
  kernelweave predict patients.kw new.parquet --decision --out predictions.csv"""
    parser = _add(commands, "predict", "predict the rows of a table, as CSV", text)
    parser.add_argument("model", metavar="MODEL", help="a file that fit or save wrote")
    parser.add_argument("file", metavar="FILE", help="a .csv, .csv.gz or .parquet file")
    parser.add_argument("--out", metavar="CSV", help="where to write; standard output by default")
    parser.add_argument(
        "--decision", action="store_true", help="add decision values (classifiers only)"
    )


def _add_info(commands: Any) -> None:
    text = """\
Reads the model file only: which kernels were kept, how close to the optimum the fit stopped, what
columns it needs.

example:
  kernelweave info patients.kw --json"""
    parser = _add(commands, "info", "show what a model has learned", text)
    parser.add_argument("model", metavar="MODEL", help="a file that fit or save wrote")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def _add_report(commands: Any) -> None:
    text = """\
Writes one HTML page that needs no network: what was learned, weights, convergence, what belongs to
the method (rules, structure, suspect labels, pairs, radius), and how to reproduce it. With a table
that has the target, the model is fitted again on folds of it, and its performance is measured.

examples:
  kernelweave report patients.kw
  kernelweave report patients.kw --data patients.csv --out patients.html
  kernelweave report rules.kw --data patients.csv --target outcome --cv 10"""
    parser = _add(commands, "report", "write a page about a model", text)
    parser.set_defaults(module="page")  # cli/page.py; kernelweave.report is the library
    parser.add_argument("model", metavar="MODEL", help="a file that fit or save wrote")
    parser.add_argument("--data", metavar="FILE", help="a .csv, .csv.gz or .parquet file")
    parser.add_argument(
        "--target", metavar="COLUMN", help="what is predicted (the column that fit was told)"
    )
    parser.add_argument("--out", metavar="HTML", help="where to write (MODEL with ending .html)")
    parser.add_argument(
        "--cv", type=int, metavar="NUMBER", default=5, help="folds (5); 0 skips the measurement"
    )
    parser.add_argument("--title", metavar="TEXT", help="heading of the page")
    parser.add_argument("--quiet", action="store_true", help="print nothing but warnings")


def _norm(text: str) -> float | str:
    if text == "uniform":
        return text
    with suppress(ValueError):
        if 1 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number >= 1 or 'uniform', got {text!r}")


def _positive(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to below 1, got {text!r}")
