"""A module may import only layers above its own, and optional packages only where it uses them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "kernelweave"

# Top to bottom; names on one line stand side by side and may import each other.
# "kernelweave" is the package's own __init__, which gathers the public names.
LAYERS = [
    {"errors", "_docstrings", "_lazy", "_text", "_types", "_memory", "_dask", "_validation"},
    {"_core"},
    {"_threads"},
    {"_linalg"},
    {"kernels"},
    {"banks"},
    {"losses"},
    {"inner"},
    {"weights"},
    {"candidates"},
    {"solvers"},
    {"ridge"},
    {"_progress"},
    {"rules"},
    {"noise"},
    {"pairs"},
    {"_declaration", "_summary"},
    {"estimators"},
    {"baselines"},
    {"io"},
    {"datasets"},
    {"inspection"},
    {"plots"},
    {"report"},
    {"tables"},
    {"testing"},
    {"kernelweave"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ONLY = {"datasets": {"errors", "_types"}}
OPTIONAL = {"dask", "distributed", "matplotlib", "rich", "pandas", "networkx"}
OPTIONAL |= {"jinja2", "markupsafe"}


def layer_of(module: str) -> str:
    """Return ``kernels`` for ``kernelweave.kernels.vector``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of everything a module imports, wherever it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")
                package = package[: len(package) - node.level + is_package]
                base = ".".join([*package, *filter(None, [node.module])])
            # ``from kernelweave import kernels`` is the layer, ``import RBF`` the package itself.
            names = [alias.name for alias in node.names if alias.name in RANK]
            if base == "kernelweave" and len(names) == len(node.names):
                yield from ((node.lineno, f"{base}.{name}") for name in names)
            else:
                yield node.lineno, base


def runs_on_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, at any depth."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from runs_on_import(node.orelse)
            continue
        yield node
        for field in ("body", "orelse", "finalbody", "handlers"):
            yield from runs_on_import(getattr(node, field, []))


def faults(root: Path) -> list[str]:
    """Return one sentence for each import that breaks a rule."""
    found = []
    for path in sorted(root.rglob("*.py")):
        module, where = module_name(path, root), path.relative_to(root.parent)
        own = layer_of(module)
        if own not in RANK:
            found.append(f"{where}: the module {own!r} has no place in LAYERS.")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, name in imports(tree, module, path.name == "__init__.py"):
            layer = layer_of(name)
            if name.split(".")[0] != "kernelweave" or layer == own:
                continue
            if layer not in RANK:
                found.append(f"{where}:{line}: the module {layer!r} has no place in LAYERS.")
            elif RANK[layer] > RANK[own]:
                found.append(f"{where}:{line}: {own} imports {layer}, which stands below it.")
            elif own in ONLY and layer not in ONLY[own]:
                found.append(f"{where}:{line}: {own} may not import {layer}.")
        for node in runs_on_import(tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for _, name in imports(node, module, path.name == "__init__.py"):
                    if (package := name.split(".")[0]) in OPTIONAL:
                        found.append(f"{where}:{node.lineno}: {package} is imported at the top.")
    return found


def test_imports_point_upwards():
    assert not faults(SOURCE), "\n".join(faults(SOURCE))


@pytest.mark.parametrize(
    ("file", "code", "expected"),
    [
        ("kernels/base.py", "from kernelweave.banks.dense import DenseBank", "imports banks"),
        ("kernels/base.py", "from ..solvers import descend", "imports solvers"),
        ("kernels/__init__.py", "from ..weights import LpBall", "imports weights"),
        ("kernels/base.py", "def f():\n    import kernelweave.losses", "imports losses"),
        ("kernels/base.py", "from kernelweave import estimators", "imports estimators"),
        ("kernels/base.py", "from kernelweave import MKLClassifier", "imports kernelweave"),
        ("errors.py", "from . import _core", "imports _core"),
        ("datasets/tables.py", "from kernelweave.kernels import RBF", "may not import kernels"),
        ("novel/part.py", "", "no place in LAYERS"),
        ("io.py", "from kernelweave.novel import part", "no place in LAYERS"),
        ("io.py", "try:\n    import pandas.api\nexcept ImportError:\n    pass", "pandas is"),
        ("plots.py", "from matplotlib import pyplot", "matplotlib is imported at the top"),
        ("cli.py", "class A:\n    import rich", "rich is imported at the top"),
    ],
)
def test_a_bad_import_is_caught(tmp_path, file, code, expected):
    path = tmp_path / "kernelweave" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    (fault,) = faults(tmp_path / "kernelweave")
    assert expected in fault


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("solvers/grow.py", "from kernelweave.weights.dag import DagNorm"),
        ("solvers/__init__.py", "from .grow import grow\nfrom .. import _core"),
        ("kernels/expression.py", "from .base import Kernel\nfrom ..errors import InputError"),
        ("_validation.py", "from kernelweave import errors, _types"),
        ("cli.py", "import kernelweave\nfrom kernelweave import MKLClassifier, io"),
        ("__init__.py", "from kernelweave.testing import check_kernel"),
        ("banks/dask.py", "def f():\n    import dask.array"),
        ("io.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas"),
    ],
)
def test_a_good_import_passes(tmp_path, file, code):
    path = tmp_path / "kernelweave" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    assert not faults(tmp_path / "kernelweave")
