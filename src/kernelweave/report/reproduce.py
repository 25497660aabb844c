"""What is needed to learn the same model again."""

from __future__ import annotations

import inspect
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.pipeline import Pipeline

from kernelweave._summary import clip

from .html import Column, Markup, Section, facts, join, note, paragraph, table, tag
from .subject import Subject

_LONGEST = 2000  # letters of the value of one parameter
_PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")


def section(subject: Subject) -> Section:
    """Return the parameters, a program, and the versions of what was used."""
    model = subject.estimator
    given = model.get_params(deep=False)
    usual = _defaults(model)
    rows = [
        [name, clip(repr(value), _LONGEST), "yes" if _same(value, usual.get(name)) else "no"]
        for name, value in sorted(given.items())
    ]
    columns = [Column("parameter", number=False), Column("value", number=False)]
    columns.append(Column("default", number=False))
    body = [
        paragraph("The same data, parameters and versions give the same model."),
        tag("pre", tag("code", program(subject)), tabindex=0, aria_label="Program"),
        table("parameters", columns, rows),
        facts([*versions(), *((name, str(value)) for name, value in subject.facts.items())]),
        _files(subject),
    ]
    return Section("reproduce", "How to reproduce", join(body))


def program(subject: Subject) -> str:
    """Return the lines of Python that make the model."""
    model = subject.estimator
    usual = _defaults(model)
    changed = {k: v for k, v in model.get_params(deep=False).items() if not _same(v, usual.get(k))}
    arguments = ",\n".join(
        f"    {name}={clip(repr(value), _LONGEST)}" for name, value in changed.items()
    )
    made = f"{subject.name}(\n{arguments},\n)" if changed else f"{subject.name}()"
    lines = ["from kernelweave import *", "", f"model = {made}"]
    if subject.preparer is not None and isinstance(subject.chosen, Pipeline):
        prepared = f"TablePreparer(standardize={subject.preparer.standardize})"
        lines.insert(1, "from kernelweave.io import TablePreparer")
        lines.insert(2, "from sklearn.pipeline import make_pipeline")
        lines.append(f"model = make_pipeline({prepared}, model)")
    fits = "model.fit(X)" if hasattr(model, "labels_") else "model.fit(X, y)"
    return "\n".join([*lines, fits])


def versions() -> list[tuple[str, str]]:
    """Return the versions of Python and of the packages that matter."""
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed as a package"))
    return found


def _files(subject: Subject) -> Markup | None:
    state = getattr(subject.estimator, "random_state", 0)
    if state is None:
        return note("random_state is None, so a second fit draws other random numbers.")
    return None


def _defaults(model: Any) -> dict[str, Any]:
    signature = inspect.signature(type(model).__init__)
    return {name: parameter.default for name, parameter in signature.parameters.items()}


def _same(value: Any, usual: Any) -> bool:
    return value is usual or (type(value) is type(usual) and repr(value) == repr(usual))
