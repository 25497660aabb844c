"""Section on how to reproduce the model: a program, parameters and versions."""

from __future__ import annotations

import ast
import inspect
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from kernelweave._text import clip

from .rendering import Section
from .subject import Subject
from .tables import Cell, Table, text_column

_LONGEST = 20_000  # characters of the value of one parameter
_CELL = 300  # the same in the table; the program above shows more
_MOST_ITEMS = 40  # of a list
_WIDTH = 80  # characters of a line of the program
_HOMES = (
    "kernelweave",
    "kernelweave.kernels",
    "kernelweave.kernels.ladders",
    "numpy",
    "kernelweave.io",  # the last two: of the members of a combination
    "sklearn.pipeline",
)
_WORDS = {"Any", "False", "None", "True", "max", "min", "sum"}
_PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")


def section(subject: Subject) -> Section:
    """Return the parameters, a program, and the versions of the packages."""
    model = subject.estimator
    usual, code = _defaults(model), program(subject)
    rows = [
        [name, Cell(clip(repr(value), _CELL)), "yes" if _same(value, usual.get(name)) else "no"]
        for name, value in sorted(model.get_params(deep=False).items())
    ]
    columns = [text_column(title) for title in ("parameter", "value", "default")]
    values = {
        "code": code,
        "cut": "<" in code or "\u2026" in code,
        "random": getattr(model, "random_state", 0) is None,
        "more_arguments": model._declaration.learns == "pairs" or hasattr(model, "tasks_"),
        "parameters": Table("parameters", columns, rows),
        "facts": [*versions(), *((name, clip(value)) for name, value in subject.facts.items())],
    }
    return Section("reproduce", "How to reproduce", values)


def program(subject: Subject) -> str:
    """Return the lines of Python that make the model."""
    model = subject.estimator
    usual = _defaults(model)
    changed = {k: v for k, v in model.get_params(deep=False).items() if not _same(v, usual.get(k))}
    arguments = "".join(f"    {name}={_written(name, value)},\n" for name, value in changed.items())
    made = f"{subject.name}(\n{arguments})" if changed else f"{subject.name}()"
    lines = [*_imports(made), "", f"model = {made}"]
    if subject.preparer is not None:
        prepared = f"TablePreparer(standardize={subject.preparer.standardize})"
        lines.insert(-2, "from kernelweave.io import TablePreparer")
        lines.insert(-2, "from sklearn.pipeline import make_pipeline")
        lines.append(f"model = make_pipeline({prepared}, model)")
    fits = "model.fit(X)" if model._declaration.learns == "clusters" else "model.fit(X, y)"
    return "\n".join([*lines, fits])


def _written(name: str, value: Any) -> str:
    """Return a value as it is written in Python, long ones over several lines."""
    if type(value) is list and len(value) > _MOST_ITEMS:
        items = "".join(f"        {clip(repr(item), _LONGEST)},\n" for item in value[:_MOST_ITEMS])
        return f"[\n{items}        \u2026 ({len(value)} in all)\n    ]"
    text = repr(value)
    if len(text) > _LONGEST:
        return clip(text, _LONGEST)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:  # values such as functions are shown in angle brackets
        return text
    return wrap(tree, indent=4, used=5 + len(name))


def wrap(tree: ast.expr, indent: int, used: int = 0) -> str:
    """Return code whose calls and lists are broken, outermost first, where a line is too long.

    ``indent`` counts the spaces before its first line, ``used`` the characters already on it.
    """
    text = ast.unparse(tree)
    if indent + used + len(text) < _WIDTH:
        return text
    deep, pad = indent + 4, " " * (indent + 4)
    if isinstance(tree, ast.Call):
        items = [wrap(a, deep) for a in tree.args]
        items += [f"{k.arg}={wrap(k.value, deep, len(k.arg or '') + 1)}" for k in tree.keywords]
        start, end = f"{ast.unparse(tree.func)}(", ")"
    elif isinstance(tree, ast.List | ast.Tuple):
        items = [wrap(item, deep) for item in tree.elts]
        start, end = "[]" if isinstance(tree, ast.List) else "()"
    elif isinstance(tree, ast.Dict) and all(tree.keys):
        keys = [ast.unparse(key) for key in tree.keys if key is not None]
        items = [
            f"{key}: {wrap(v, deep, len(key) + 2)}"
            for key, v in zip(keys, tree.values, strict=True)
        ]
        start, end = "{}"
    else:
        return text
    return "\n".join([start, *(f"{pad}{item}," for item in items), " " * indent + end])


def _imports(code: str) -> list[str]:
    """Return the imports of the names in a piece of code."""
    homes: dict[str, list[str]] = {}
    # Quoted text, such as the name of a column, is no name.
    for name in sorted(set(re.findall(r"[A-Za-z]\w*", re.sub(r"'[^']*'", "", code)))):
        for home in _HOMES:
            module = import_module(home)
            if name in getattr(module, "__all__", vars(module)) and name not in _WORDS:
                homes.setdefault(home, []).append(name)
                break
    return [f"from {home} import {', '.join(names)}" for home, names in homes.items()]


def versions() -> list[tuple[str, str]]:
    """Return the versions of Python and of the packages that are used."""
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed as a package"))
    return found


def _defaults(model: Any) -> dict[str, Any]:
    signature = inspect.signature(type(model).__init__)
    return {name: parameter.default for name, parameter in signature.parameters.items()}


def _same(value: Any, usual: Any) -> bool:
    return value is usual or (type(value) is type(usual) and repr(value) == repr(usual))
