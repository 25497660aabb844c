"""The result of `explain`: what each column, kernel or rule added to each prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._summary import count
from kernelweave._text import clip, visible
from kernelweave._types import Floats
from kernelweave.errors import InputError

from .names import find_name

if TYPE_CHECKING:
    import pandas as pd

_TOP = 8  # lines of the text of a row
_BY_OUTPUT = ("values", "base_values", "errors", "interaction_values")  # arrays with these axes
_BY_ROW = (*_BY_OUTPUT, "data")


@dataclass(frozen=True, eq=False, repr=False)
class Attributions:
    """Shapley values of some rows; ``base_values + values.sum(axis=1)`` are the predictions.

    What is explained is the decision value of a classifier and the prediction of a regressor.
    ``e[3]`` is one row, ``e[:10]`` are ten rows, ``e[..., "benign"]`` is one output;
    ``print(e[3])`` shows a row, ``print(e)`` the importance of the players. A player is a column,
    or a group of columns, a source, a kernel or a rule.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_players) or (n_rows, n_players, n_outputs)
        The Shapley values.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Mean prediction of the background, the same for every row.
    data : ndarray of shape (n_rows, n_players)
        The rows as given; None for a player that is not a single column.
    feature_names : tuple of str
        Names of the players.
    output_names : tuple of str
        Names of the outputs; one where `values` has no axis of outputs.
    errors : ndarray of the shape of `values`, or None
        Standard errors: of the choice of the background rows and, where values are sampled, of the
        sample. None where there are none: for other games than the joint one.
    nodes : int
        Largest number of nodes of the quadrature; 0 where none was needed.
    error_bound : float
        Bound on the sum of the quadrature errors of all values of a row; 0 where nodes are exact.
    interaction_values : ndarray of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Pairwise values in the layout of shap: half of the interaction index off the diagonal; rows
        sum to `values`.
    n_background : int
        Rows of the background in use.
    n_permutations : int
        Permutations where values are sampled; 0 where they are exact.
    quantity : {"decision", "prediction"}
        What the outputs are.
    shared_errors : ndarray of shape (n_background, n_players[, n_outputs]), or None
        What each background row adds to the standard errors of the mean sizes over all rows, as
        roots of variances that add up; None for some of the rows and without `errors`.
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    errors: Floats | None = None
    nodes: int = 0
    error_bound: float = 0.0
    interaction_values: Floats | None = None
    n_background: int = 0
    n_permutations: int = 0
    quantity: str = "prediction"
    shared_errors: Floats | None = None

    @property
    def _several(self) -> bool:
        return len(self.output_names) > 1

    @property
    def is_row(self) -> bool:
        """Whether this is a single row, as ``e[3]`` is; its arrays lack the axis of rows."""
        return np.ndim(self.base_values) == int(self._several)

    @property
    def predictions(self) -> Floats:
        """What is explained: base values plus the sum of the values."""
        axis = 0 if self.is_row else 1
        return np.asarray(self.base_values + self.values.sum(axis=axis))

    def __len__(self) -> int:
        if self.is_row:
            raise TypeError("a single row of Attributions has no length")
        return len(self.values)

    def __getitem__(self, item: Any) -> Attributions:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise InputError(
                    f"item: must be rows, or rows and an output, got {len(item)} indices."
                )
            return self._rows(item[0])._output(item[1])
        return self._rows(item)

    def _rows(self, rows: Any) -> Attributions:
        if rows is Ellipsis:
            return self
        if self.is_row:
            raise TypeError("a single row of Attributions has no rows to pick")
        return replace(self._changed(lambda array: array[rows], *_BY_ROW), shared_errors=None)

    def _output(self, output: Any) -> Attributions:
        """Return one output, by name or number."""
        if isinstance(output, str) or not isinstance(output, int | np.integer):
            output = find_name(output, self.output_names, "output")
        elif not -len(self.output_names) <= output < len(self.output_names):
            raise InputError(f"output: there are {len(self.output_names)} outputs, got {output}.")
        if not self._several:
            return self
        one = self._changed(lambda array: array[..., output], *_BY_OUTPUT, "shared_errors")
        return replace(one, output_names=(self.output_names[output],))

    def _changed(self, change: Callable[[Any], Any], *names: str) -> Attributions:
        """Return these values with a function applied to some of the arrays."""
        found = {name: getattr(self, name) for name in names}
        changed: dict[str, Any] = {k: None if a is None else change(a) for k, a in found.items()}
        return replace(self, **changed)

    def mean_sizes(self, *, all_outputs: bool = False) -> tuple[Floats, Floats]:
        """Return the mean of ``|values|`` over the rows, and its standard error.

        The standard error is that of the rows and of the background, which all rows share. Of some
        of the rows, as in ``e[:10]``, and for other games than the joint one, it is that of the
        rows only.

        Parameters
        ----------
        all_outputs : bool
            Whether to average over the outputs too.

        Returns
        -------
        means, errors : ndarray of shape (n_players,) or (n_players, n_outputs)
            Standard errors of a single row are NaN.
        """
        sizes = np.abs(self.values[None] if self.is_row else self.values)
        shared: Any = 0.0 if self.shared_errors is None else self.shared_errors
        if all_outputs and self._several:
            sizes, shared = sizes.mean(axis=2), np.mean(shared, axis=-1)
        n = len(sizes)
        spread = sizes.var(axis=0, ddof=1) if n > 1 else np.full(sizes.shape[1:], np.nan)
        return sizes.mean(axis=0), np.sqrt(spread / n + np.sum(np.square(shared), axis=0))

    def importance(self) -> pd.DataFrame:
        """Return the mean size of the values of each player, largest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``name``, ``importance`` (mean of ``|values|`` over the rows) and ``error``, its
            standard error (see `mean_sizes`); for several outputs also ``output``, in their order.
        """
        import pandas as pd

        means, errors = self.mean_sizes()
        parts = []
        for k, output in enumerate(self.output_names):
            pick = (slice(None), k) if self._several else slice(None)
            table = {
                "output": output,
                "name": list(self.feature_names),
                "importance": means[pick],
                "error": errors[pick],
            }
            part = pd.DataFrame(table)
            parts.append(part.sort_values("importance", ascending=False, kind="stable"))
        frame = pd.concat(parts, ignore_index=True)
        return frame if self._several else frame.drop(columns="output")

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a table: one line per row, and per output where there are several.

        Returns
        -------
        frame : pandas.DataFrame
            ``row``, ``output`` (where there are several), ``prediction``, ``base``, and a column
            for each player.
        """
        import pandas as pd

        whole = self._as_rows()
        parts = []
        for k, output in enumerate(self.output_names):
            one = whole._output(k)
            head = {
                "row": np.arange(len(one)),
                "output": output,
                "prediction": one.predictions,
                "base": one.base_values,
            }
            named = pd.DataFrame(one.values, columns=list(self.feature_names))
            parts.append(pd.concat([pd.DataFrame(head), named], axis=1))
        frame = pd.concat(parts, ignore_index=True)
        return frame if self._several else frame.drop(columns="output")

    def _as_rows(self) -> Attributions:
        return self._changed(lambda a: np.asarray(a)[None], *_BY_ROW) if self.is_row else self

    def to_shap(self) -> Any:
        """Return the values as a `shap.Explanation`, which all plots of shap draw.

        Returns
        -------
        explanation : shap.Explanation
            With the same values, base values, data and names.
        """
        try:
            import shap  # type: ignore[import-not-found]
        except ImportError:
            raise ImportError("to_shap needs shap; install it with pip install shap.") from None
        data = self.data
        if data.dtype == object:  # numbers where possible: they colour the plots
            data = np.where(np.equal(data, None), np.nan, data)  # type: ignore[call-overload]
        return shap.Explanation(
            values=self.values,
            base_values=self.base_values,
            data=data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if self._several else None,
        )

    def text(self, top: int = _TOP) -> str:
        """Return one row, or the importance of the players over all rows, as lines of text.

        Parameters
        ----------
        top : int
            Players listed; the others are summed up in one line.

        Returns
        -------
        text : str
            For several outputs one paragraph each.
        """
        outputs = [self._output(k) for k in range(len(self.output_names))]
        lines = [one._row_lines(top) if one.is_row else one._table_lines(top) for one in outputs]
        return "\n".join("\n".join(part) for part in lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        rows = "one row" if self.is_row else count(len(self), "row")
        players = count(len(self.feature_names), "player")
        return f"<Attributions of {rows}, {players}, {count(len(self.output_names), 'output')}>"

    def _row_lines(self, top: int) -> list[str]:
        whose = visible(self.output_names[0])
        title = (
            f"{'' if whose == self.quantity else f'{whose}: '}{self.quantity} "
            f"{float(self.predictions):.3g}, average of {count(self.n_background, 'row')} "
            f"{float(self.base_values):.3g}"
        )
        order = np.argsort(-np.abs(self.values), kind="stable")
        shown, rest = order[:top], order[top:]
        labels = [self.label(int(k)) for k in shown]
        width = max(map(len, labels), default=0)
        lines = [title + self._sampled()]
        for k, label in zip(shown, labels, strict=True):
            error = "" if self.errors is None else f"   (se {self.errors[k]:.2g})"
            lines.append(f"  {self.values[k]:<+9.3g} {label:<{width}}{error}".rstrip())
        if len(rest):
            total = float(self.values[rest].sum())
            lines.append(f"  {total:<+9.3g} {count(len(rest), 'other')}")
        return lines

    def label(self, player: int, most: int = 60) -> str:
        """Return the name of a player, with its value where it is one column of one row.

        Parameters
        ----------
        player : int
            Which one, from 0.
        most : int
            Letters of its name; longer ones lose their middle.

        Returns
        -------
        text : str
            Such as ``"age = 41"``.
        """
        name, value = clip(visible(self.feature_names[player]), most), self.data[player]
        if value is None:
            return name
        shown = f"{value:.4g}" if isinstance(value, float | np.floating) else visible(value)
        return f"{name} = {clip(shown, 30)}"

    def _table_lines(self, top: int) -> list[str]:
        means, errors = self.mean_sizes()
        order = np.argsort(-means, kind="stable")
        title = (
            f"{visible(self.output_names[0])}: mean size of the values of "
            f"{count(len(self), 'row')}, compared with {count(self.n_background, 'row')}"
        )
        lines = [title + self._sampled()]
        names = [clip(visible(self.feature_names[k]), 60) for k in order[:top]]
        width = max(map(len, names), default=0)
        for k, name in zip(order, names, strict=False):
            error = "" if np.isnan(errors[k]) else f"   (se {errors[k]:.2g})"
            lines.append(f"  {means[k]:<9.3g} {name:<{width}}{error}".rstrip())
        if len(order) > top:
            lines.append(f"  {'':<9} {count(len(order) - top, 'other')}")
        return lines

    def _sampled(self) -> str:
        if not self.n_permutations:
            return ""
        return f" (sampled, {count(self.n_permutations, 'permutation')})"
