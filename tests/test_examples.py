"""Every example runs without a warning and draws its picture."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_draws_its_picture(script, tmp_path, capsys):
    import matplotlib

    matplotlib.use("agg")
    path = runpy.run_path(str(script), run_name="example")["main"](tmp_path)
    assert path == tmp_path / f"{script.stem}.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out  # it also says in words what it found


def test_there_are_examples():
    assert len(EXAMPLES) >= 3
