"""Section on what decides: importance of the columns, shape functions and pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelweave._summary import largest, weight_noun

from .charts import Chart
from .rendering import Section

if TYPE_CHECKING:
    from .subject import Subject

FIRST = 6  # bars of the first screen
_SHAPES = 3  # shape functions of the first screen
_SMALL = 170.0  # height of a shape function


@dataclass(frozen=True)
class Bar:
    """A bar: name, value as text, length and ends of the error from 0 to 1."""

    name: str
    text: str
    length: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Deciding:
    """What decides, for the first screen and for the section.

    Parameters
    ----------
    bars : tuple of Bar
        The most important first.
    title, note : str
        What they are the importance of, and how to read them.
    shapes : tuple of Chart
        Shape functions, the strongest first.
    pairs : tuple of Bar
        Strongest interactions.
    """

    bars: tuple[Bar, ...]
    title: str
    note: str = ""
    shapes: tuple[Chart, ...] = ()
    pairs: tuple[Bar, ...] = ()

    @property
    def first_bars(self) -> tuple[Bar, ...]:
        """Bars of the first screen."""
        return self.bars[:FIRST]

    @property
    def first_shapes(self) -> tuple[Chart, ...]:
        """Shape functions of the first screen."""
        return self.shapes[:_SHAPES]


def what_decides(subject: Subject) -> Deciding | None:
    """Return what decides; None for clusters."""
    model = subject.estimator
    found = largest(model, FIRST)
    if not found:
        return None
    rules = model._declaration.learns == "rules"
    title = "Rules" if rules else f"Weights of {weight_noun(model)}s"
    bars = tuple(Bar(name, text, length) for name, text, length in found)
    note = "" if rules else "Weights are shares of their sum; they are no measure of importance."
    return Deciding(bars, title, note)


def section(subject: Subject) -> Section | None:
    """Return the importance of all columns and the shape functions; None where there are none."""
    found = subject.decides
    if found is None or not found.shapes:
        return None
    return Section("decides", "What decides, in detail", {"found": found})
