"""Completion, asked of the program as the scripts ask it, and of real shells."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import click
import pytest

from kernelweave.cli import main
from kernelweave.cli.commands import COMMANDS, COMPLETE, make_program

_LIMIT = 60.0  # seconds after which a shell counts as hanging


def needs(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


SHELLS = [pytest.param(shell, marks=needs(shell)) for shell in ("bash", "zsh", "fish")]

# What is on the line, and what its last word may become.
CASES = {
    "kernelweave com": ["compare", "completion"],
    "kernelweave --v": ["--version"],
    "kernelweave fit t.csv --meth": ["--method"],
    "kernelweave fit --method r": ["radius", "rules"],
    "kernelweave fit --method=r": ["radius", "rules"],
    "kernelweave fit t.csv --method mkl --no-p": ["--no-per-feature"],
    "kernelweave compare t.csv --methods mkl r": ["radius", "rules"],
    "kernelweave compare t.csv --methods mkl --fo": ["--folds"],
    "kernelweave compare t.csv --methods mkl radius --fo": ["--folds"],
    "kernelweave completion z": ["zsh"],
    "kernelweave fit tab": ["table.csv"],
    "kernelweave predict m.kw tab": ["table.csv"],
    "kernelweave fit t.csv --report tab": ["table.csv"],
    "kernelweave fit t.csv --C tab": [],
    "kernelweave fit t.csv --ignore a --ignor": ["--ignore"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with the program, and a file to be found."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "table.csv").write_text("a\n")
    program = folder / "bin" / "kernelweave"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kernelweave.cli "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(place, shell, capsys, monkeypatch):
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert main(["completion", shell]) == 0
    (place / f"script.{shell}").write_text(capsys.readouterr().out)
    found = ASK[shell](place, list(CASES))
    assert dict(zip(CASES, found, strict=True)) == {
        line: [_as_shown(shell, line, word) for word in words] for line, words in CASES.items()
    }


def _as_shown(shell, line, word):
    """In zsh and fish the option before the sign of equality is part of the word."""
    last = line.split()[-1]
    return f"{last.partition('=')[0]}={word}" if shell != "bash" and "=" in last else word


def ask_program(shell, line, capsys, monkeypatch):
    """Ask as the script of a shell does; return the types and values of the answers."""
    words = line.split(" ")
    if shell == "bash":
        words = [word for word in re.split(r" |(=)", line) if word]
    monkeypatch.setenv(COMPLETE, f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", line if shell == "fish" else "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    if shell == "zsh":  # type, value and help in a line each
        return list(zip(lines[::3], lines[1::3], strict=True))
    return [tuple(line.split("\t")[0].split(",", 1)) for line in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_answers(shell, capsys, monkeypatch):
    for line, words in CASES.items():
        found = ask_program(shell, line, capsys, monkeypatch)
        if words == ["table.csv"]:
            assert [kind for kind, _ in found] == ["file"], line
        else:
            assert found == [("plain", _as_shown(shell, line, word)) for word in words], line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_completed(shell, capsys, monkeypatch):
    program = make_program()
    context = click.Context(program)
    assert program.list_commands(context) == list(COMMANDS)
    for name in COMMANDS:
        found = ask_program(shell, f"kernelweave {name} --", capsys, monkeypatch)
        options = [o for p in program.get_command(context, name).params for o in _options(p)]
        assert {value for _, value in found} == {*options, "--help"}


def _options(param):
    return [*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid(shell, capsys):
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert (COMPLETE in out, err) == (True, "")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=out, text=True, check=True)


def test_an_unknown_shell(capsys, monkeypatch):
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err
    monkeypatch.setenv(COMPLETE, "tcsh_complete")
    assert main([]) == 2


def ask_fish(place, lines):
    script = "source script.fish\n" + "".join(
        f"complete -C '{line}'\necho ----\n" for line in lines
    )
    home = {**os.environ, "HOME": str(place), "XDG_CONFIG_HOME": str(place)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=place,
        env=home,
        capture_output=True,
        text=True,
        check=True,
        timeout=_LIMIT,
    )
    assert done.stderr == ""
    answers = done.stdout.split("----\n")[:-1]
    return [[line.split("\t")[0] for line in answer.splitlines()] for answer in answers]


def ask_bash(place, lines):
    """Ask as readline does: in words, which a sign of equality ends too."""
    script = "source script.bash\n"
    # Outside of readline there is no default completion, which is by files.
    script += 'compopt() { COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); }\n'
    for line in lines:
        words = [word for word in re.split(r"\s+|(=)", line) if word]
        listed = " ".join(f"'{word}'" for word in words)
        script += f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        script += "_kernelweave_completion kernelweave; echo ${COMPREPLY[@]}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
        timeout=_LIMIT,
    )
    assert done.stderr == ""
    return [answer.split() for answer in done.stdout.splitlines()]


# A widget that completes as the tab key does, but writes down the matches instead.
_ZSH = """\
PS1=; RPROMPT=
autoload -U compinit; compinit -u -D
source ./script.zsh
compadd() {
  local -a found
  [[ ${@[(I)-[OAD]]} -eq 0 ]] && { builtin compadd -O found "$@"; print -l -- $found >>! found; }
  builtin compadd "$@"
}
bindkey -e
bindkey '^I' complete-word
noted() { print -- ---- >>! found; BUFFER=; }
zle -N noted
bindkey '^X' noted
print ready > ready
"""


def ask_zsh(place, lines):
    """Type into a terminal."""
    (place / "setup.zsh").write_text(_ZSH)
    answers = place / "found"
    answers.write_text("")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(place)
        os.environ.update(HOME=str(place), TERM="dumb", ZDOTDIR=str(place))
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        os.write(terminal, b"source ./setup.zsh\n")
        _wait(terminal, (place / "ready").exists)
        for k, line in enumerate(lines, start=1):
            os.write(terminal, f"{line}\t\x18".encode())
            _wait(terminal, lambda k=k: answers.read_text().count("----\n") == k)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    parts = answers.read_text().split("----\n")[:-1]
    return [list(dict.fromkeys(part.split())) for part in parts]


def _wait(terminal, done):
    """Let the shell write to its terminal until something has come about."""
    end, shown = time.monotonic() + _LIMIT, b""
    while not done():
        assert time.monotonic() < end, shown.decode(errors="replace")
        if select.select([terminal], [], [], 0.05)[0]:
            shown += os.read(terminal, 65536)


ASK = {"bash": ask_bash, "zsh": ask_zsh, "fish": ask_fish}
