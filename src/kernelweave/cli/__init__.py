"""The command line: learn from a table, look inside, predict, compare, group."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .terminal import write_message

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
        The exit code of the process; ``kernelweave --help`` lists them.
    """
    try:
        import click
    except ImportError:
        needs = 'The command line needs click; install it with pip install "kernelweave[cli]".'
        return write_message(f"error: {needs}", 2)
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except click.exceptions.Exit as done:  # after --help or --version
        return done.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "kernelweave"
        message = error.format_message().rstrip(".")
        return write_message(f"error: {message} (see {path} --help)", 2)
    except KeyboardInterrupt:
        return write_message("stopped", 130)
    except BrokenPipeError:
        with suppress(OSError):  # the buffer cannot be flushed any more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return write_message(f"error: {named}{error.strerror or error}", 2)
    except Exception as error:
        from kernelweave.errors import KernelweaveError

        if isinstance(error, KernelweaveError | ValueError):
            return write_message(f"error: {error}", 2)
        what = f"{type(error).__name__}: {error}"
        return write_message(f"error: an internal error of kernelweave ({what})", 3)


def _run(argv: Sequence[str]) -> int:
    from .commands import COMPLETE, make_program
    from .startup import rare_collections

    program = make_program()
    if instruction := os.environ.get(COMPLETE):
        from .completion import complete

        return complete(program, instruction)
    with warnings.catch_warnings(), rare_collections():
        warnings.showwarning = _show_warning
        with program.make_context("kernelweave", list(argv)) as context:
            code: int = program.invoke(context)
        sys.stdout.flush()
        return code


def _show_warning(
    message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any
) -> None:
    text = str(message)
    if category.__name__ == "ConvergenceWarning":  # its hint names parameters, not options
        text = text.partition(" Hint: ")[0]
    write_message(f"warning: {text}", 0)
