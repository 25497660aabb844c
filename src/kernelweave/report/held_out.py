"""A score on rows that were held out, measured before the report is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._summary import count

from .charts import intervals, linear
from .html import Cell, Column, Section, figure, join, note, paragraph, percent, table


@dataclass(frozen=True)
class HeldOut:
    """How well a model predicts rows that were held out, for the page about it.

    Parameters
    ----------
    measure : str
        What was measured, such as "accuracy".
    score : float
        Its value.
    n_rows : int
        Rows held out.
    interval : tuple of two floats, optional
        Ends of its 95% interval.
    beside : dict, optional
        The same measure of others, such as of a plain SVM, by their name.
    remark : str
        A sentence on what the score belongs to.

    Examples
    --------
    >>> from kernelweave.report import HeldOut
    >>> HeldOut("accuracy", 0.93, 200, (0.886, 0.958)).spoken
    '93.0% (95% interval 88.6% to 95.8%)'
    """

    measure: str
    score: float
    n_rows: int
    interval: tuple[float, float] | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""

    @property
    def spoken(self) -> str:
        """The score and its interval."""
        return f"{self.show(self.score)}{f' ({self.ends})' if self.ends else ''}"

    @property
    def ends(self) -> str:
        """The interval in words; empty where it is not known."""
        if self.interval is None:
            return ""
        return f"95% interval {self.show(self.interval[0])} to {self.show(self.interval[1])}"

    def show(self, value: float) -> str:
        """Return a value of this measure as it is written."""
        return percent(value) if self.measure == "accuracy" else f"{value:.3f}"

    def section(self) -> Section:
        """Return the part of the page."""
        text = paragraph(
            f"On {count(self.n_rows, 'row')} that were held out, the model reaches {self.measure} ",
            f"{self.spoken}. {self.remark}",
        )
        columns = [Column("model", number=False), Column(self.measure)]
        rows: list[list[Any]] = [["this model", Cell(self.show(self.score), self.score)]]
        rows += [[name, Cell(self.show(value), value)] for name, value in self.beside.items()]
        scores = table("scores on held-out rows", columns, rows) if self.beside else None
        return Section("performance", "Performance", join([text, self._picture(), scores, _HINT]))

    def _picture(self) -> Any:
        if self.interval is None:
            return None
        low, high = self.interval
        form = "{:.0%}" if self.measure == "accuracy" and high - low > 0.04 else "{:.3g}"
        row = (self.measure, self.score, low, high, np.empty(0))
        caption = "The dot is the score on held-out rows, the line its 95% interval."
        return figure(intervals([row], linear(low, high, form)), caption)


_HINT = note(
    "One split of the rows; kernelweave report MODEL --data FILE measures by cross-validation."
)
