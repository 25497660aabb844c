"""``kernelweave completion``: let a shell complete commands and options."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from .commands import COMPLETE, command, make_program, repeat_methods

_HELP = """\
The script asks the program itself, so that it knows every option.

examples:
  source <(kernelweave completion bash)                    # in ~/.bashrc
  source <(kernelweave completion zsh)                     # in ~/.zshrc, after compinit
  kernelweave completion fish > ~/.config/fish/completions/kernelweave.fish"""


@command("completion", _HELP)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(args: Any) -> int:
    """Print the script."""
    sys.stdout.write(_for_shell(args.shell, make_program()).source())
    return 0


def complete(program: click.Command, instruction: str) -> int:
    """Print what the last word on the command line may become, for the script of click."""
    shell = instruction.partition("_")[0]
    asked = _for_shell(shell, program)
    words, last = asked.get_completion_args()
    # bash splits --option=value into three words; zsh and fish replace all of it.
    words = repeat_methods([*(word for word in words if word != "="), last])[:-1]
    prefix = f"{last.partition('=')[0]}=" if last.startswith("--") and "=" in last else ""
    for item in asked.get_completions(words, last):
        if item.type == "plain":
            item = CompletionItem(f"{prefix}{item.value}", help=item.help)
        sys.stdout.write(f"{asked.format_completion(item)}\n")
    return 0


def _for_shell(shell: str, program: click.Command) -> Any:
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"The shell {shell!r} is not supported.")
    return kind(program, {}, "kernelweave", COMPLETE)
