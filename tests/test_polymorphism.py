"""Classes of the package are told apart by what they declare, seldom by their type."""

import ast
import re
from pathlib import Path

import kernelweave

ROOT = Path(kernelweave.__file__).parent
MOST = 30  # checks: of arguments that callers give, and where one type is required


def names(node):
    """Yield the last names in an expression of classes, as in ``a.B | C``."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def checks(tree, own):
    """Return the lines with `isinstance` or `issubclass` of classes of the package."""
    return [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("isinstance", "issubclass")
        and own.intersection(names(call.args[1]))
    ]


def test_few_checks_of_own_classes_outside_kernels():
    texts = {path.relative_to(ROOT): path.read_text() for path in ROOT.rglob("*.py")}
    own = {name for text in texts.values() for name in re.findall(r"^\s*class (\w+)", text, re.M)}
    assert {"Kernel", "Bank", "Loss"} <= own
    found = [
        f"{path}:{line}"
        for path, text in sorted(texts.items())
        if path.parts[0] != "kernels"
        for line in checks(ast.parse(text), own)
    ]
    assert len(found) <= MOST, "\n".join(found)


def test_checks_are_found():
    code = "isinstance(x, a.Bank | int)\nissubclass(y, (Loss, str))\nisinstance(z, int)"
    assert checks(ast.parse(code), {"Bank", "Loss"}) == [1, 2]
