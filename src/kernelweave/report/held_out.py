"""A score on held-out rows that was measured before the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .charts import Chart, Interval, interval_chart, linear
from .tables import Cell, Column, Table, percent, text_column


@dataclass(frozen=True)
class HeldOut:
    """The score of a model on held-out rows, for its report.

    Parameters
    ----------
    measure : str
        Name of the score, such as "accuracy".
    score : float
        Its value.
    n_rows : int
        Rows held out.
    interval : tuple of two floats, optional
        Ends of its 95% interval.
    beside : dict, optional
        The same score of other models, such as an SVM baseline, by their name.
    remark : str
        A sentence about the score.

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

    models: ClassVar[tuple[Any, ...]] = ()  # of cross-validation, which has not been done

    @property
    def spoken(self) -> str:
        """The score and its interval."""
        return f"{self.show(self.score)}{f' ({self.ends})' if self.ends else ''}"

    @property
    def ends(self) -> str:
        """The interval in words; empty where it is unknown."""
        if self.interval is None:
            return ""
        return f"95% interval {self.show(self.interval[0])} to {self.show(self.interval[1])}"

    def show(self, value: float) -> str:
        """Return a value of this score as text."""
        return percent(value) if self.measure == "accuracy" else f"{value:.3f}"

    @property
    def tile(self) -> tuple[str, str]:
        """The key figure: value and description."""
        words = [f"{self.measure} on held-out rows", self.ends]
        return self.show(self.score), ", ".join(filter(None, words))

    def values(self) -> dict[str, Any]:
        """Return the values of the template."""
        chart = None if self.interval is None else self._chart(*self.interval)
        scores = {"this model": self.score, **self.beside}
        rows = [[name, Cell(self.show(value), value)] for name, value in scores.items()]
        columns = [text_column("model"), Column(self.measure)]
        table = Table("scores on held-out rows", columns, rows) if self.beside else None
        return {"held_out": self, "chart": chart, "scores": table}

    def _chart(self, low: float, high: float) -> Chart:
        form = "{:.0%}" if self.measure == "accuracy" and high - low > 0.04 else "{:.3g}"
        row = Interval(self.measure, self.score, low, high, np.empty(0))
        caption = "The dot is the score on held-out rows, the line its 95% interval."
        return interval_chart([row], linear(low, high, form), caption)
