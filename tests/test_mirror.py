"""Every module of the package has a test of its name in the same folder of the tests."""

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "kernelweave"

# Modules without a test of their own, each with the reason.
EXEMPT = {
    "_types.py": "aliases of types, which mypy checks",
    "estimators/shared_docs.py": "text of docstrings; estimators/test_contract.py compares it",
    "cli/__main__.py": "one call; cli/test_commands.py runs it",
    "report/held_out.py": "a value class, whose docstring example runs as a test",
}


def namesake(module: Path) -> Path:
    """Return where the test of a module belongs; private modules lose their underscore."""
    return module.parent / f"test_{module.stem.lstrip('_')}.py"


def without_test(source: Path, tests: Path) -> set[str]:
    """Return the modules without a namesake; packages themselves only gather names."""
    modules = [path.relative_to(source) for path in source.rglob("*.py")]
    return {
        module.as_posix()
        for module in modules
        if module.name != "__init__.py" and not (tests / namesake(module)).exists()
    }


def test_every_module_has_a_namesake():
    missing = without_test(SOURCE, TESTS) - EXEMPT.keys()
    assert not missing, sorted(missing)


def test_a_missing_test_is_found(tmp_path):
    for name in ("src/a/_one.py", "src/a/two.py", "src/a/__init__.py", "tests/a/test_one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert without_test(tmp_path / "src", tmp_path / "tests") == {"a/two.py"}
