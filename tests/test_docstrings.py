"""Docstrings name the parameters that are there, and fitted attributes end with ``_``."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sklearn.base import BaseEstimator

import kernelweave
from kernelweave._docstrings import entries, inherit_parameters, with_section


def sections(docstring: str) -> dict[str, list[str]]:
    """Split a numpydoc docstring into {title: names of the entries that start its lines}."""
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [
        i for i, line in enumerate(lines[1:]) if re.fullmatch("-{3,}", line.strip()) and lines[i]
    ]
    return {
        lines[start]: [
            name.strip().lstrip("*")
            for line in lines[start + 2 : end]
            if line and not line[0].isspace()
            for name in line.split(" : ")[0].split(",")
        ]
        for start, end in pairwise([*starts, len(lines)])
    }


def is_shared(parameter: inspect.Parameter) -> bool:
    """Return whether the type of a solver's parameter is where it is documented."""
    kind = str(parameter.annotation).removesuffix(" | None")
    return kind in ("Problem", "Limits", "WarmStart") or kind.endswith("Options")


def commented_fields(cls: type) -> set[str]:
    """Return the fields of a dataclass with a comment beside or above them in the source.

    A comment above several fields begins with their names.
    """
    found = set()
    for owner in filter(dataclasses.is_dataclass, cls.__mro__):
        lines = inspect.getsource(owner).splitlines()
        for above, line in pairwise(lines):
            field = re.match(r"    (\w+): ", line)
            if field and ("  # " in line or above.startswith("    # ")):
                found.add(field[1])
            if names := re.match(r"    # (\w+(?:, \w+)+)[ :]", line):
                found.update(names[1].split(", "))
    return found


def faults(name: str, thing: Any) -> list[str]:
    """Return one sentence for each place where a docstring and its object disagree."""
    found = sections(thing.__doc__ or "")
    documented = found.get("Parameters", [])
    if dataclasses.is_dataclass(thing) and not documented:
        documented = found.get("Attributes", [])  # a result: callers read it, never build it
    if dataclasses.is_dataclass(thing) and not documented:
        commented = commented_fields(thing)
        documented = [p for p in inspect.signature(thing).parameters if p in commented]
    expected = [
        p.name
        for p in inspect.signature(thing).parameters.values()
        if p.name != "self" and (p.name in documented or not is_shared(p))
    ]
    problems = []
    if not thing.__doc__:
        problems.append(f"{name} has no docstring.")
    elif documented != expected:
        problems.append(f"{name} documents {documented}, its signature has {expected}.")
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
        wrong = [a for a in found.get("Attributes", []) if not a.endswith("_")]
        problems.extend(f"{name}: the fitted attribute {a} must end with '_'." for a in wrong)
    return problems


def public_modules() -> Iterator[Any]:
    yield kernelweave
    for module in pkgutil.iter_modules(kernelweave.__path__):
        if not module.name.startswith("_"):
            yield importlib.import_module(f"kernelweave.{module.name}")


def public_objects() -> dict[str, Any]:
    """Gather what the ``__all__`` of each public module names, without errors and constants."""
    found = {}
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isfunction(thing) or (
                inspect.isclass(thing)
                and not issubclass(thing, BaseException)
                and not getattr(thing, "_is_protocol", False)
            ):
                found.setdefault(thing, f"{module.__name__}.{name}")
    return {name: thing for thing, name in found.items()}


def test_public_docstrings_match_their_signatures():
    problems = [p for name, thing in public_objects().items() for p in faults(name, thing)]
    assert not problems, "\n".join(problems)


def test_public_names_exist_once():
    for module in public_modules():
        names = list(getattr(module, "__all__", ()))
        assert len(names) == len(set(names)), module.__name__
        assert all(hasattr(module, name) for name in names), module.__name__


class Good(BaseEstimator):
    """Do something.

    Parameters
    ----------
    width, height : float
        Sizes, in metres : never feet.
    kernels : list
        Where
        to look.

    Attributes
    ----------
    weights_ : ndarray
        One each.

    Examples
    --------
    >>> 1 + 1
    2
    """

    def __init__(self, width=1.0, height=1.0, *, kernels=None):
        self.width, self.height, self.kernels = width, height, kernels


def lacks_one(width, height):
    """Do something.

    Parameters
    ----------
    width : float
        Size.
    """


def takes_nothing():
    """Do something."""


def takes_many(*args, **kwargs):
    """Do something.

    Parameters
    ----------
    *args, **kwargs
        Passed on.
    """


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes
    ----------
    gap : float
        Never negative.
    """

    gap: float


@dataclasses.dataclass(frozen=True)
class Commented:
    """What came out."""

    gap: float  # never negative
    # In seconds.
    time: float
    # lower, upper: both hold for the exact kernels
    lower: float
    upper: float


@dataclasses.dataclass(frozen=True)
class PartlyCommented(Commented):
    """What came out, and more."""

    size: float

    steps: int  # after all


class Unmarked(Good):
    __doc__ = Good.__doc__.replace("weights_", "weights")


@pytest.mark.parametrize("thing", [Good, takes_nothing, takes_many, Outcome, Commented])
def test_a_right_docstring_passes(thing):
    assert not faults("x", thing)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (lacks_one, r"documents \['width'\], its signature has \['width', 'height'\]"),
        (PartlyCommented, r"'upper', 'steps'\], its signature has .*'upper', 'size', 'steps'\]"),
        (Unmarked, "weights must end with '_'"),
        (lambda a: a, "has no docstring"),
    ],
)
def test_a_wrong_docstring_is_caught(thing, expected):
    (problem,) = faults("x", thing)
    assert re.search(expected, problem)


def test_parameters_are_inherited_in_the_order_of_the_signature():
    class Narrow(Good):
        """Do less.

        Parameters
        ----------
        kernels : list
            At most one.
        depth : float
            A third size.
        """

    class Bare(Good):
        pass

    inherit_parameters(Narrow)
    inherit_parameters(Bare)
    found = entries(Narrow.__doc__, "Parameters")
    assert list(found) == ["depth", "width,", "kernels"]
    assert found["kernels"].endswith("At most one.")
    assert Bare.__doc__ is None


@pytest.mark.parametrize(
    ("title", "before"), [("Attributes", "References"), ("Parameters", "Attributes")]
)
def test_a_missing_section_is_added_in_its_place(title, before):
    doc = f"Do something.\n\n{before}\n{'-' * len(before)}\nsome : text\n    Here."
    made = with_section(doc, title, ["gap : float\n    Never negative."])
    assert list(sections(made)) == [title, before]
    assert with_section(made, title, []) == with_section(doc, title, [])


SHOWN = ("", ".io", ".datasets", ".inspection", ".plots", ".report", ".baselines", ".testing")


def without_example(module: Any) -> list[str]:
    """Return the public functions, estimators and kernels whose docstring shows no use of them."""
    things = {name: getattr(module, name) for name in module.__all__}
    return [
        name
        for name, thing in things.items()
        if callable(thing)
        # Results of functions are shown where they are returned.
        and not (dataclasses.is_dataclass(thing) and module is not kernelweave)
        and ">>> " not in inspect.getdoc(thing).partition("Examples\n--------\n")[2]
    ]


@pytest.mark.parametrize("name", SHOWN)
def test_every_public_name_has_an_example(name):
    assert not without_example(importlib.import_module(f"kernelweave{name}"))


def test_a_missing_example_is_found():
    def bare() -> None:
        """Do nothing.

        Examples
        --------
        None yet.
        """

    class Module:
        __all__ = ("bare",)

    Module.bare = staticmethod(bare)
    assert without_example(Module) == ["bare"]
