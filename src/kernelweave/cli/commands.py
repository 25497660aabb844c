"""The commands of the program and the options that they share; loads neither numpy nor pandas."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from .startup import defer

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "demo": "see it work on built-in data",
    "fit": "learn from a table",
    "predict": "predict the rows of a table, as CSV",
    "evaluate": "score a model on new rows",
    "info": "show what a model has learned",
    "explain": "show which columns made a prediction",
    "report": "write a page about a model",
    "rules": "show the rules of a model, as text, SQL or code",
    "suspects": "show labels that look wrong",
    "review": "write a page on which a person decides on doubtful labels",
    "cluster": "group similar rows of a table",
    "compare": "compare our methods with an SVM, a linear model and gradient boosting",
    "completion": "print a completion script for the shell",
}

COMPLETE = "_KERNELWEAVE_COMPLETE"  # set by the script when the shell asks for completions

_ABOUT = """\
Learn which kernels matter on a table, with a certificate of optimality.

  kernelweave demo                                   see it work on built-in data
  kernelweave fit patients.csv --target outcome      learn, and write patients.kw
  kernelweave info patients.kw                       what was learned
  kernelweave report patients.kw                     the same as a page, patients.html
  kernelweave evaluate patients.kw new.csv           how good it is on new rows
  kernelweave predict patients.kw new.csv            predictions as CSV
  kernelweave explain patients.kw new.csv            which columns made them
  kernelweave compare patients.csv --target outcome  beside methods of scikit-learn"""

_EXITS = """\
exit codes: 0 done; 1 no convergence under --strict; 2 bad input or usage; 130 stopped by Ctrl-C;
141 the reader of the output has closed it; 3 an internal error of kernelweave"""

_ARGUMENTS = {
    "file": "a .csv, .tsv, .txt (or .gz) or .parquet file",
    "model": "a file that fit or save wrote",
    "shell": "bash, zsh or fish",
}


class Command(click.Command):
    """A command that shows its help as written and gets its options as one namespace."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, repeat_methods(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{self.help}\n")
        names = [p.name for p in self.params if isinstance(p, click.Argument) and p.name]
        if names:
            with formatter.section("Arguments"):
                formatter.write_dl([(name.upper(), _ARGUMENTS[name]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        defer()
        return self.callback and self.callback(SimpleNamespace(**ctx.params))


class Program(click.Group):
    """The program. The file of a command is imported when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(import_module(f".{cmd_name}", __package__), cmd_name)
        return found

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{self.help}\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{self.epilog}\n")


def _show_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from kernelweave import __version__

        click.echo(f"kernelweave {__version__}")
        ctx.exit()


def make_program() -> Program:
    """Return the program with all commands."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help="show the version and exit",
    )
    return Program(
        "kernelweave",
        params=[version],
        help=_ABOUT,
        epilog=_EXITS,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def command(name: str, text: str) -> Callable[[Callable[..., int]], Command]:
    """Return the decorator that makes a command of a function of one namespace."""
    summary = COMMANDS[name]
    return click.command(
        name, cls=Command, help=f"{summary[0].upper()}{summary[1:]}.\n\n{text}", short_help=summary
    )


def exclude(args: Any, *names: str) -> None:
    """Refuse options that exclude each other."""
    given = [f"--{name}" for name in names if getattr(args, name)]
    if len(given) > 1:
        raise click.UsageError(
            f"{given[0]} and {given[1]} cannot be given together.", click.get_current_context()
        )


def repeat_methods(words: list[str]) -> list[str]:
    """Write ``--methods a b``, which click does not know, as ``--methods a --methods b``."""
    option, within = "--methods", False
    found: list[str] = []
    for word in words:
        if word.startswith("-"):
            within = word == option
        elif within and found[-1] != option:
            found.append(option)
        found.append(word)
    return found


def check_output(option: str, path: Path) -> None:
    """Refuse a file that cannot be written."""
    if not path.parent.is_dir() or path.is_dir():
        from kernelweave.errors import DataError

        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise DataError(f"{option}: {path} {what}.")


def number(
    expected: str, accepts: Callable[[Any], bool], word: str = "", kind: type = float
) -> Callable[[Any], Any]:
    """Return the type of an option: a number in a range, or one word in its place."""

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value == word:
            return value
        with suppress(ValueError):
            if accepts(found := kind(value)):
                return found
        raise click.BadParameter(f"must be {expected}, got {value!r}")

    return read


COUNT = number("a whole number > 0", lambda n: n > 0, kind=int)
POSITIVE = number("a number > 0", lambda x: 0 < x < math.inf)
SHARE = number("a number from 0 to below 1", lambda x: 0 <= x < 1)
COVERAGE = number("a number between 0 and 1", lambda x: 0 < x < 1)
COST = number("a number > 0 or 'auto'", lambda x: 0 < x < math.inf, "auto")
NORM = number("a number >= 1 or 'uniform'", lambda x: 1 <= x < math.inf, "uniform")

FILE = click.Path()
Decorator: TypeAlias = Callable[[Any], Any]


def option(
    name: str, text: str, metavar: str | None = None, type: Any = None, **more: Any
) -> Decorator:
    """Return the decorator that adds an option."""
    return click.option(*name.split(), help=text, metavar=metavar, type=type, **more)


def together(*decorators: Decorator) -> Decorator:
    """Return one decorator for several, the first outermost."""
    return lambda function: reduce(lambda f, decorate: decorate(f), decorators[::-1], function)


file_argument = click.argument("file", type=FILE)
model_argument = click.argument("model", type=FILE)
ignore_option = option("--ignore", "leave out; may be repeated", "COLUMN", multiple=True)
groups_option = option(
    "--groups", "rows with the same value stay together when rows are left out", "COLUMN"
)
seed_option = option(
    "--seed", "seed of all random draws (0)", "NUMBER", click.IntRange(0, 2**32 - 1), default=0
)
quiet_option = option("--quiet", "print nothing but warnings", is_flag=True)
output_options = together(option("--json", "print the result as JSON", is_flag=True), quiet_option)


def _named_columns(text: str) -> tuple[str, list[str]]:
    name, equals, columns = text.partition("=")
    if not (name and equals and columns):
        raise click.BadParameter(f"must be NAME=COLUMN,COLUMN or NAME=PATTERN, got {text!r}")
    return name, columns.split(",")


def read_sources(args: Any) -> dict[str, list[str]]:
    """Return the columns of each source; an option that is given again adds columns."""
    found: dict[str, list[str]] = {}
    for name, columns in args.source:
        found.setdefault(name, []).extend(columns)
    return found


gap_options = together(
    option(
        "--source",
        "columns that are measured, and missing, together, as in lab=hdl,ldl or scan=scan_*; may "
        "be repeated; each source has kernels of its own",
        "NAME=COLUMNS",
        _named_columns,
        multiple=True,
    ),
    option(
        "--missing",
        "fill: medians, marked (default); refuse: an error; off: a source that a row lacks does "
        "not count; complete: it is estimated from the other sources",
        type=click.Choice(["fill", "refuse", "off", "complete"]),
        default="fill",
    ),
)
table_options = together(
    file_argument,
    option("--target", "what to predict", "COLUMN", required=True),
    ignore_option,
    groups_option,
    option(
        "--task",
        "auto: regression if the target has decimals or more than 20 different numbers",
        type=click.Choice(["auto", "classification", "regression"]),
        default="auto",
    ),
)
