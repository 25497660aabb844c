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


def _names_file(action: argparse.Action) -> bool:
    """Tell by its name in the help whether a value is a file; else a shell has nothing to offer."""
    return str(action.metavar).rpartition("=")[2] in {"FILE", "MODEL", "CSV", "HTML", "PNG"}


def _bash(parser: argparse.ArgumentParser) -> str:
    commands = _commands(parser)
    lines = [
        "_kernelweave() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words="" files=yes',
        "  local at=$((COMP_CWORD - 1)) before",
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$word"))',
        "    return",
        "  fi",
        "  # --option=value comes in three words",
        '  if [ "$word" = "=" ]; then word=""; elif [ "${COMP_WORDS[at]}" = "=" ]; then',
        "    at=$((at - 1))",
        "  fi",
        '  before="${COMP_WORDS[at]}"',
        '  while [ "$at" -gt 1 ] && [[ "${COMP_WORDS[at]}" != -* ]]; do at=$((at - 1)); done',
        '  case "$command ${COMP_WORDS[at]}" in',
    ]
    several: list[str] = []
    single: list[str] = []
    flags: list[str] = []
    for name, (_, own) in commands.items():
        for action in own._actions:
            keys = "|".join(f'"{name} {option}"' for option in action.option_strings or [name])
            if action.choices:
                found = several if action.nargs == "+" else single
                found.append(f'    {keys}) words="{_words(action)}" ;;')
            elif action.option_strings and action.nargs != 0 and not _names_file(action):
                single.append(f"    {keys}) files= ;;")
        listed = " ".join(o for action in _options(own) for o in action.option_strings)
        flags.append(f'      {name}) words="{listed}" ;;')
    lines += [*several, "  esac", '  case "$command $before" in', *single, "  esac"]
    lines += [
        '  if [[ "$word" == -* ]]; then',
        '    case "$command" in',
        *flags,
        "    esac",
        "  fi",
    ]
    lines += [
        '  if [ -n "$words" ]; then',
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        '  elif [ -n "$files" ]; then',
        '    COMPREPLY=($(compgen -f -- "$word"))',
        "  else",
        "    COMPREPLY=()",
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
    top = [_quoted(_zsh_option(o, a)) for a in _options(parser) for o in a.option_strings]
    lines += ["  )", "  if (( CURRENT == 2 )); then", '    if [[ "$words[2]" == -* ]]; then']
    lines += [f"      _arguments {' '.join(top)}", "    else", "      _describe command commands"]
    lines += ["    fi", "    return", "  fi", '  local command="$words[2]"', "  shift words"]
    lines += ["  (( CURRENT-- ))", *_zsh_several(commands), '  case "$command" in']
    for name, (_, own) in commands.items():
        specs = [_quoted(_zsh_option(o, a)) for a in _options(own) for o in a.option_strings]
        given = [a for a in own._actions if not a.option_strings]
        specs += [
            _quoted(f":{a.dest}:({_words(a)})" if a.choices else f":{a.dest}:_files") for a in given
        ]
        lines.append(f"    {name}) _arguments {' '.join(specs)} ;;")
    lines += ["  esac", "}", "compdef _kernelweave kernelweave"]
    return "\n".join(lines) + "\n"


def _zsh_several(commands: dict[str, tuple[str, argparse.ArgumentParser]]) -> list[str]:
    """Return what completes the second value of an option and those after it."""
    lines = ['  local before="${${(@)words[1,CURRENT-1]}[(R)-*]}"']
    for name, (_, own) in commands.items():
        for action in own._actions:
            if action.nargs == "+":
                key = f"{name} {action.option_strings[0]}"
                lines += [
                    f'  if [[ "$command $before" == "{key}" && "$words[CURRENT]" != -* ]]; then',
                    f"    compadd -- {_words(action)}",
                    "    return",
                    "  fi",
                ]
    return lines


def _zsh_option(option: str, action: argparse.Action) -> str:
    text = f"[{_zsh_text(action.help or '')}]"
    if action.nargs == 0:
        return f"{option}{text}"
    often = "*" if isinstance(action, argparse._AppendAction) else ""
    equals = "=" if option.startswith("--") else ""
    value = f"({_words(action)})" if action.choices else "_files" if _names_file(action) else " "
    return f"{often}{option}{equals}{text}:{action.dest}:{value}"


def _zsh_text(text: str) -> str:
    for letter in "[]:":
        text = text.replace(letter, f"\\{letter}")
    return text


_FISH = """\
function __kernelweave_within
    for word in (commandline -opc)[-1..1]
        if string match -q -- '-*' $word
            test $word = $argv[1]
            return
        end
    end
    return 1
end
"""


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = [
        f"complete -c kernelweave -n __fish_use_subcommand {_fish_option(action)}"
        for action in _options(parser)
    ]
    for name, (about, own) in _commands(parser).items():
        lines.append(
            f"complete -c kernelweave -n __fish_use_subcommand -f -a {name} -d {_quoted(about)}"
        )
        seen = f"__fish_seen_subcommand_from {name}"
        for action in own._actions:
            words = f"-f -a {_quoted(_words(action))}"
            if action.option_strings:
                lines.append(f"complete -c kernelweave -n {_quoted(seen)} {_fish_option(action)}")
            elif action.choices:
                lines.append(f"complete -c kernelweave -n {_quoted(seen)} {words}")
            if action.nargs == "+":
                more = _quoted(f"{seen}; and __kernelweave_within {action.option_strings[0]}")
                lines.append(f"complete -c kernelweave -n {more} {words}")
    return _FISH + "\n".join(lines) + "\n"


def _fish_option(action: argparse.Action) -> str:
    flags = [f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings]
    if action.choices:
        flags.append(f"-x -a {_quoted(_words(action))}")
    elif action.nargs != 0:
        flags.append("-r" if _names_file(action) else "-x")
    return f"{' '.join(flags)} -d {_quoted(action.help or '')}"


def _quoted(text: str) -> str:
    """Quote for a shell; a quote inside ends the string, is written alone, and begins it again."""
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
