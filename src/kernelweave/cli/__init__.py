"""The command line: learn from a table, look inside, predict, compare, group."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from kernelweave.errors import KernelweaveError

from .parsing import complain, make_parser

__all__ = ["main"]


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
        args = make_parser().parse_args(argv)
    except SystemExit as done:  # argparse has printed its help or error
        return int(done.code or 0)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return complain("stopped", 130)
    except BrokenPipeError:
        with suppress(OSError):  # what is left in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return complain(f"error: {named}{error.strerror or error}", 2)
    except (KernelweaveError, ValueError) as error:
        return complain(f"error: {error}", 2)
    except Exception as error:
        return complain(f"error: a fault of kernelweave ({type(error).__name__}: {error})", 3)


def _run(args: Namespace) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code: int = import_module(f".{args.command}", __name__).run(args)
        sys.stdout.flush()
        return code


def _show_warning(
    message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any
) -> None:
    text = str(message)
    if category.__name__ == "ConvergenceWarning":  # its hint names parameters, not options
        text = text.partition(" Hint: ")[0]
    complain(f"warning: {text}", 0)
