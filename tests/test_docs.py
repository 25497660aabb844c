"""The code in the README and the documentation runs, and prints what the pages say it prints."""

import contextlib
import importlib
import io
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated"} & set(page.parts)]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@dataclass(frozen=True)
class Fence:
    """A block between lines of backticks."""

    language: str
    text: str
    line: int  # of its first line, counted from one
    follows: bool  # whether only blank lines stand between the last fence and this one


def read_fences(text: str) -> list[Fence]:
    """Find all fenced blocks of a page; one that is not closed is an error."""
    fences: list[Fence] = []
    opened, body, start, prose = None, [], 0, True
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"(`{3,}|~{3,}|:{3,})(.*)", line)
        if opened is None and mark:
            opened, body, start = mark, [], number + 1
        elif opened is None:
            prose = prose or bool(line.strip())
        elif mark and mark[1] == opened[1] and not mark[2].strip():
            language = opened[2].strip()
            fences.append(Fence(language, "\n".join(body) + "\n", start, not prose))
            opened, prose = None, False
        else:
            body.append(line)
    assert opened is None, f"the block that begins in line {start - 1} is not closed"
    return fences


def agree(printed: str, expected: str) -> bool:
    """Compare word by word; numbers may differ a little, as between processors."""
    ours, theirs = (re.findall(r"[^\s\[\](),:']+", text) for text in (printed, expected))
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(ours: str, theirs: str) -> bool:
    try:
        a, b = float(ours.rstrip(".")), float(theirs.rstrip("."))
    except ValueError:
        return ours == theirs
    if ours.lstrip("-").isdigit() and theirs.lstrip("-").isdigit():
        return a == b
    return math.isclose(a, b, rel_tol=0.05, abs_tol=0.04)


def run_page(page: Path) -> int:
    """Run the python blocks of a page one after the other and return how many there were."""
    namespace: dict[str, object] = {"__name__": "page"}
    fences = read_fences(page.read_text(encoding="utf-8"))
    count = 0
    for fence, after in pairwise([*fences, None]):
        if fence.language != "python":
            continue
        count += 1
        # Blank lines in front make tracebacks name the line of the page.
        code = compile("\n" * (fence.line - 1) + fence.text, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, namespace)
        if after is not None and after.language == "text" and after.follows:
            printed = out.getvalue()
            where = f"{page.name}, line {after.line}"
            assert agree(printed, after.text), f"{where}: the code prints\n{printed}"
    return count


@pytest.fixture(autouse=True)
def _quiet_folder(tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    yield
    from matplotlib import pyplot

    pyplot.close("all")


LONG = [*(DOCS / "guide").glob("*.md"), DOCS / "add-a-method.md"]  # some seconds each


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p in LONG else p for p in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_code_of_a_page_runs(page):
    text = page.read_text(encoding="utf-8")
    assert run_page(page) == len(re.findall(r"^`{3,}\s*python", text, re.MULTILINE))
    # Other spellings would be shown as Python and not run.
    assert not re.search(r"\{code(-block)?\}\s*python|^`{3,}(py|python3|pycon)\b", text, re.M)


TASKS = {  # pages by what a user says, with the page of results that belongs to each
    "one-table": ("I have one table", "tables"),
    "sources": ("I have several data sources", "structures"),
    "noisy-labels": ("My labels are wrong", "noisy-labels"),
    "rules": ("I need rules", "rules"),
    "structures": ("I know how my sources combine", "structures"),
    "pairs": ("I only have pairs", "pairs"),
}


def test_the_main_pages_have_code():
    guide = ("kernels", "choosing", "reading", "radius", "speed", *TASKS)
    for name in ("start", "add-a-method", *(f"guide/{page}" for page in guide)):
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert sum(fence.language == "python" for fence in read_fences(text)) >= 3, name


@pytest.mark.parametrize("name", TASKS)
def test_pages_by_task_lead_from_data_to_decision(name):
    text = (DOCS / "guide" / f"{name}.md").read_text(encoding="utf-8")
    title, results = TASKS[name]
    assert text.startswith(f"# {title}\n")
    headings = re.findall("^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "From data to decision"
    for heading in (
        "From data to decision",
        "What to look at",
        "How to know that it worked",
        "More",
    ):
        assert heading in headings, heading
    assert any("when not to" in heading.lower() for heading in headings)
    assert "](../mathematics.md" in text
    assert f"](../experiments/{results}.md" in text


def test_questions_lead_to_the_pages_by_task():
    for page, prefix in (("index", "guide/"), ("guide/choosing", "")):
        lines = (DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines()
        for name, (title, _) in TASKS.items():
            row = [
                line for line in lines if line.startswith("|") and f"]({prefix}{name}.md)" in line
            ]
            assert any(title in line for line in row), (page, name)


def test_every_method_has_its_mathematics():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    for name in importlib.import_module("kernelweave.estimators").__all__:
        assert f"`{name.removesuffix('CV')}`" in text, name


def test_files_named_for_those_who_add_a_method_exist():
    text = (DOCS / "add-a-method.md").read_text(encoding="utf-8")
    layers = re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \|", text, re.MULTILINE)
    named = [(layer, file) for layer, files in layers for file in re.findall(r"`(\S+\.py)`", files)]
    assert len(named) >= 9
    for layer, file in named:
        assert (ROOT / "src" / "kernelweave" / layer / file).exists(), (layer, file)
    for path in re.findall(r"`((?:tests|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


def test_readme_names_the_two_commands_and_shows_a_short_example():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    examples = [fence.text for fence in read_fences(text) if fence.language == "python"]
    assert len(examples) == 1
    assert len([line for line in examples[0].splitlines() if line.strip()]) <= 10


def test_pictures_and_links_of_pages_exist():
    for page in PAGES:
        targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        for target in targets:
            assert "://" not in target, f"{page.name}: {target} needs a network"
            assert (page.parent / target).exists(), f"{page.name}: there is no {target}"


def test_tables_have_rows_of_equal_length():
    for page in PAGES:
        cells = 0
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not cells or not bars or bars == cells, f"{page.name}, line {number}"
            cells = bars


def test_gallery_shows_every_example_with_its_picture():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for script in EXAMPLES:
        assert f"../examples/{script.name}" in text
        assert f"_static/gallery/{script.stem}.png" in text


def test_pictures_are_small():
    pictures = list((DOCS / "_static").rglob("*.png"))
    assert pictures
    assert all(picture.stat().st_size < 150_000 for picture in pictures)


def test_options_on_the_command_line_page_exist(capsys):
    cli = pytest.importorskip("kernelweave.cli")
    help_text = ""
    for command in importlib.import_module("kernelweave.cli.commands").COMMANDS:
        with contextlib.suppress(SystemExit):
            cli.main([command, "--help"])
        help_text += capsys.readouterr().out
    page = (DOCS / "guide" / "command-line.md").read_text(encoding="utf-8")
    for option in sorted(set(re.findall(r"--[a-zA-Z][a-zA-Z-]*", page))):
        assert option in help_text, option


def test_fences_are_read_in_order():
    text = "a\n```python\nx = 1\n```\n\n```text\nout\n```\nprose\n```text\nno output\n```\n"
    assert [(f.language, f.line, f.follows) for f in read_fences(text)] == [
        ("python", 3, False),
        ("text", 7, True),
        ("text", 11, False),
    ]
    with pytest.raises(AssertionError, match="line 1 is not closed"):
        read_fences("```python\nx = 1\n")


@pytest.mark.parametrize(
    ("printed", "expected", "result"),
    [
        ("a 0.52\n", "a  0.50", True),
        ("[1. 0.6]", "[1.  0.6]", True),
        ("3 kernels", "4 kernels", False),
        ("0.9", "0.4", False),
        ("True", "False", False),
        ("a b", "a", False),
    ],
)
def test_numbers_are_compared_as_numbers(printed, expected, result):
    assert agree(printed, expected) is result
