"""``kernelweave completion``: let a shell complete commands and options."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .parsing import add_command, make_parser

_HELP = """\
Prints a script for your shell. It is made from the parser itself, so it knows every option.

examples:
  source <(kernelweave completion bash)                    # in ~/.bashrc
  source <(kernelweave completion zsh)                     # in ~/.zshrc, after compinit
  kernelweave completion fish > ~/.config/fish/completions/kernelweave.fish"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "completion", "print a script for the shell", _HELP)
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="which shell")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write(_SCRIPTS[args.shell](make_parser()))
    return 0


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Return the summary and the parser of every command."""
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    summaries = {action.dest: action.help or "" for action in group._choices_actions}
    return {name: (summaries[name], own) for name, own in group.choices.items()}


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _words(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def _bash(parser: argparse.ArgumentParser) -> str:
    commands = _commands(parser)
    lines = [
        "_kernelweave() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '  local command="${COMP_WORDS[1]}" words=""',
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word"))',
        "    return",
        "  fi",
        '  case "$command $before" in',
    ]
    for name, (_, own) in commands.items():
        for action in own._actions:
            if action.choices and action.option_strings:
                keys = "|".join(f'"{name} {option}"' for option in action.option_strings)
                lines.append(f'    {keys}) words="{_words(action)}" ;;')
            elif action.choices:
                lines.append(f'    "{name} {name}") words="{_words(action)}" ;;')
    lines += [
        "  esac",
        '  if [ -z "$words" ] && [[ "$word" == -* ]]; then',
        '    case "$command" in',
    ]
    for name, (_, own) in commands.items():
        flags = " ".join(o for action in _options(own) for o in action.option_strings)
        lines.append(f'      {name}) words="{flags}" ;;')
    lines += [
        "    esac",
        "  fi",
        '  if [ -n "$words" ]; then',
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "  else",
        '    COMPREPLY=($(compgen -f -- "$word"))',
        "  fi",
        "}",
        "complete -o filenames -F _kernelweave kernelweave",
    ]
    return "\n".join(lines) + "\n"


def _zsh(parser: argparse.ArgumentParser) -> str:
    lines = ["#compdef kernelweave", "_kernelweave() {", "  local -a commands", "  commands=("]
    commands = _commands(parser)
    lines += [
        f"    {_quoted(f'{name}:{_zsh_text(about)}')}" for name, (about, _) in commands.items()
    ]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe command commands"]
    lines += ["    return", "  fi", '  local command="$words[2]"', "  shift words"]
    lines += ["  (( CURRENT-- ))", '  case "$command" in']
    for name, (_, own) in commands.items():
        specs = [_quoted(_zsh_option(o, a)) for a in _options(own) for o in a.option_strings]
        given = [a for a in own._actions if not a.option_strings]
        specs += [
            _quoted(f":{a.dest}:({_words(a)})" if a.choices else f":{a.dest}:_files") for a in given
        ]
        lines.append(f"    {name}) _arguments {' '.join(specs)} ;;")
    lines += ["  esac", "}", "compdef _kernelweave kernelweave"]
    return "\n".join(lines) + "\n"


def _zsh_option(option: str, action: argparse.Action) -> str:
    text = f"{option}[{_zsh_text(action.help or '')}]"
    if action.nargs == 0:
        return text
    return f"{text}:{action.dest}:" + (f"({_words(action)})" if action.choices else "_files")


def _zsh_text(text: str) -> str:
    for letter in "[]:":
        text = text.replace(letter, f"\\{letter}")
    return text


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = []
    for name, (about, own) in _commands(parser).items():
        lines.append(
            f"complete -c kernelweave -n __fish_use_subcommand -f -a {name} -d {_quoted(about)}"
        )
        seen = f"-n {_quoted(f'__fish_seen_subcommand_from {name}')}"
        for action in own._actions:
            words = f" -x -a {_quoted(_words(action))}" if action.choices else ""
            if not action.option_strings:
                lines += [f"complete -c kernelweave {seen} -f -a {_quoted(_words(action))}"] * bool(
                    words
                )
                continue
            flags = [_fish_flag(option) for option in action.option_strings]
            needs = "" if action.nargs == 0 else words or " -r"
            about_it = f" -d {_quoted(action.help or '')}"
            lines.append(f"complete -c kernelweave {seen} {' '.join(flags)}{needs}{about_it}")
    return "\n".join(lines) + "\n"


def _fish_flag(option: str) -> str:
    return f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"


def _quoted(text: str) -> str:
    """Quote for a shell; a quote inside ends the string, is written alone, and begins it again."""
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
