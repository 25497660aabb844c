"""Completion, asked of real shells."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from kernelweave.cli import main

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
    "kernelweave fit t.csv --method mkl --no-st": ["--no-standardize"],
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
    """Return a folder with a script for every shell, and a file to be found."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "table.csv").write_text("a\n")
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(place, shell, capsys):
    assert main(["completion", shell]) == 0
    (place / f"script.{shell}").write_text(capsys.readouterr().out)
    found = ASK[shell](place, list(CASES))
    assert dict(zip(CASES, found, strict=True)) == {
        line: [_as_shown(shell, line, word) for word in words] for line, words in CASES.items()
    }


def _as_shown(shell, line, word):
    """Fish repeats the option before the sign of equality."""
    last = line.split()[-1]
    return f"{last.partition('=')[0]}={word}" if shell == "fish" and "=" in last else word


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
    for line in lines:
        words = [word for word in re.split(r"\s+|(=)", line) if word]
        listed = " ".join(f"'{word}'" for word in words)
        script += f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        script += "_kernelweave; echo ${COMPREPLY[@]}\n"
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
