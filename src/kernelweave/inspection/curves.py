"""The result of `effects`: shape functions of columns, pairs, and shares of the variance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._summary import count
from kernelweave._text import clip, visible
from kernelweave._types import Floats

from .names import find_name

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Effect of one column: the mean prediction with the column at a value, minus the mean.

    The last axis of ``values``, ``errors``, ``ice`` and ``band`` is that of the outputs; it is
    absent where there is one.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "date", "category"}
        Numbers and dates form a curve, categories one bar each.
    points : ndarray of shape (n_points,)
        Values of the column: numbers between the 5 and 95 % quantiles of the background, times, or
        categories, the most frequent first.
    values : ndarray of shape (n_points,)
        The effect.
    errors : ndarray of shape (n_points,)
        Standard errors over the rows of the background. They say nothing about the fit.
    ice : ndarray of shape (n_background, n_points)
        Individual conditional expectation: the prediction of each row of the background with the
        column at every value.
    rows : ndarray of shape (n_background,)
        The column of the background: numbers, days since 1970, or positions in `points`.
    band : ndarray of shape (2, n_points), or None
        The 5 and 95 % quantiles of the effect in models fitted again to bootstrap samples.
    """

    name: str
    kind: str
    points: NDArray[Any]
    values: Floats
    errors: Floats
    ice: Floats
    rows: Floats
    band: Floats | None = None

    @property
    def places(self) -> Floats:
        """Points on an axis: numbers, days since 1970, or 0, 1, 2, ... for categories."""
        if self.kind == "category":
            return np.arange(float(len(self.points)))
        if self.kind == "date":
            return self.points.astype("datetime64[us]").astype(np.int64) / 86_400e6
        return np.asarray(self.points, dtype=np.float64)

    def _output(self, k: int) -> Curve:
        band = None if self.band is None else self.band[..., k]
        arrays = {name: getattr(self, name)[..., k] for name in ("values", "errors", "ice")}
        return replace(self, **arrays, band=band)

    def __repr__(self) -> str:
        return f"<Curve of {visible(self.name)}, {count(len(self.points), 'point')}>"


@dataclass(frozen=True, eq=False, repr=False)
class PairEffect:
    """Effect of two columns together, beyond the sum of the effects of each.

    Parameters
    ----------
    names : tuple of str
        Both columns.
    points : tuple of ndarray
        Values of the first and of the second column.
    values : ndarray of shape (n_first, n_second)
        The effect; with an axis of outputs at the end where there are several.
    share : float or ndarray of shape (n_outputs,)
        Its share of the variance of the model.
    """

    names: tuple[str, str]
    points: tuple[NDArray[Any], NDArray[Any]]
    values: Floats
    share: Any

    def __repr__(self) -> str:
        return f"<PairEffect of {visible(self.names[0])} and {visible(self.names[1])}>"


@dataclass(frozen=True, eq=False, repr=False)
class Effects:
    """Shape functions of columns, strongest first; ``effects["age"]`` is one of them.

    Variances are those of the model when each column is drawn on its own from the background.
    Arrays of variances have the shape (n_columns,), or (n_columns, n_outputs) for several outputs.

    Parameters
    ----------
    curves : tuple of Curve
        One for each column, the largest first-order effect first.
    pairs : tuple of PairEffect
        The strongest pairs of columns, as many as were asked for.
    base : float or ndarray of shape (n_outputs,)
        Mean prediction of the background.
    variance : float or ndarray of shape (n_outputs,)
        Variance of the model.
    first_order : ndarray
        Variance of the effect of each column alone.
    shapley : ndarray or None
        Shapley effects: the variance shared among the columns, interactions in equal parts; they
        sum to `variance` over all columns of the model. None: not computed.
    total : ndarray or None
        Total effects: the variance that is lost where a column is known, all others being known;
        None: not computed.
    output_names : tuple of str
        Names of the outputs.
    quantity : {"decision", "prediction"}
        What the outputs are.
    n_background : int
        Rows of the background in use.
    additive : bool
        Whether the model is exactly the sum of its shape functions and a constant.
    exact : bool
        Whether variances are exact. Otherwise they are those of the curves, interpolated, and
        `variance` is that of 2000 rows with shuffled columns.
    n_refits : int
        Fits behind the bands.
    """

    curves: tuple[Curve, ...]
    pairs: tuple[PairEffect, ...]
    base: Any
    variance: Any
    first_order: Floats
    shapley: Floats | None
    total: Floats | None
    output_names: tuple[str, ...]
    quantity: str
    n_background: int
    additive: bool
    exact: bool
    n_refits: int = 0

    @property
    def _several(self) -> bool:
        return len(self.output_names) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(curve.name for curve in self.curves)

    @property
    def main_share(self) -> Any:
        """Share of the variance that the shape functions explain together, per output."""
        return _share(self.first_order.sum(axis=0), self.variance)

    def __len__(self) -> int:
        return len(self.curves)

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves)

    def __getitem__(self, item: Any) -> Any:
        """Return a curve by the name or the place of its column; ``[..., "benign"]``: an output."""
        if isinstance(item, tuple) and len(item) == 2 and item[0] is Ellipsis:
            return self._output(item[1])
        if isinstance(item, int | np.integer | slice):
            return self.curves[item]
        return self.curves[find_name(item, self.names, "column")]

    def _output(self, output: Any) -> Effects:
        by_number = isinstance(output, int | np.integer) and -1 < output < len(self.output_names)
        k = int(output) if by_number else find_name(output, self.output_names, "output")
        if not self._several:
            return self
        return replace(
            self,
            curves=tuple(curve._output(k) for curve in self.curves),
            pairs=tuple(
                replace(pair, values=pair.values[..., k], share=pair.share[k])
                for pair in self.pairs
            ),
            base=self.base[k],
            variance=self.variance[k],
            first_order=self.first_order[:, k],
            shapley=None if self.shapley is None else self.shapley[:, k],
            total=None if self.total is None else self.total[:, k],
            output_names=(self.output_names[k],),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return all curves as a table: a line for each point, and each output where several.

        Returns
        -------
        frame : pandas.DataFrame
            ``column``, ``value``, ``output`` (where there are several), ``effect``, ``error``, and
            ``low`` and ``high`` where models were fitted again.
        """
        import pandas as pd

        lines: list[dict[str, Any]] = []
        for k, output in enumerate(self.output_names):
            for curve in self._output(k):
                for i, value in enumerate(curve.points.tolist()):
                    line = {"column": curve.name, "value": value}
                    if self._several:
                        line["output"] = output
                    line |= {"effect": curve.values[i], "error": curve.errors[i]}
                    if curve.band is not None:
                        line |= {"low": curve.band[0, i], "high": curve.band[1, i]}
                    lines.append(line)
        return pd.DataFrame(lines)

    def shares(self) -> pd.DataFrame:
        """Return the shares of the columns in the variance of the model.

        Returns
        -------
        frame : pandas.DataFrame
            ``column``, ``output`` (where there are several), ``first_order``, ``shapley`` and
            ``total``; NaN where not computed.
        """
        import pandas as pd

        parts = []
        for k, output in enumerate(self.output_names):
            one = self._output(k)
            table: dict[str, Any] = {"column": list(self.names), "output": output}
            for name in ("first_order", "shapley", "total"):
                found = getattr(one, name)
                table[name] = np.nan if found is None else _share(found, one.variance)
            parts.append(pd.DataFrame(table))
        frame = pd.concat(parts, ignore_index=True)
        return frame if self._several else frame.drop(columns="output")

    def __str__(self) -> str:
        lines = []
        for k, output in enumerate(self.output_names):
            one = self._output(k)
            share = "adds up exactly" if self.additive else f"{one.main_share:.0%} of the variance"
            lines.append(
                f"{visible(output)}: {self.quantity}, mean {one.base:.3g}; shape functions, {share}"
            )
            for curve, part in zip(one.curves, _share(one.first_order, one.variance), strict=True):
                low, high = float(curve.values.min()), float(curve.values.max())
                name = clip(visible(curve.name), 60)
                lines.append(f"  {part:6.1%}  {name}: {low:+.3g} to {high:+.3g}")
            for pair in one.pairs:
                both = " and ".join(clip(visible(name), 40) for name in pair.names)
                lines.append(f"  {pair.share:6.1%}  {both} together")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<Effects of {count(len(self.curves), 'column')}, {count(len(self.pairs), 'pair')}, "
            f"{count(len(self.output_names), 'output')}>"
        )


def _share(part: Any, whole: Any) -> Any:
    """Return ``part / whole``, zero for a constant model."""
    whole = np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)
