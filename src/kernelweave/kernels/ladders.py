"""Ready-made families of kernels, written out when the data is known."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .base import Kernel, KernelFamily
from .gaussian import RBF
from .given import encodes_gaps, takes_sparse, with_missing, with_targets
from .mixed import mixed_ladder
from .sources import with_sources
from .spread import typical_distance
from .table import Columns, Encoding, columns_key, describe_columns, normal_columns, read_table
from .vector import Polynomial

_VIEW_RULES = ("refuse", "off", "complete", "fill", "expected")

KernelsLike: TypeAlias = Kernel | KernelFamily | Sequence[Kernel | KernelFamily] | None


class ColumnFamily(KernelFamily):
    """Base of the families on chosen columns, with a rule for missing values."""

    label: ClassVar[str]
    columns: Columns
    missing: str

    def __str__(self) -> str:
        return self.label + describe_columns(self.columns)

    @property
    def encodes_gaps(self) -> bool:
        return self.missing != "refuse"

    @property
    def takes_sparse(self) -> bool:
        return self.missing in ("refuse", "off")

    def with_missing(self, rule: str) -> Self:
        """Return this family with a rule for missing values, unless it has one already."""
        return self if self.encodes_gaps else self._changed(missing=rule)

    def on(self, columns: Columns) -> Self:
        """Return this family on other columns."""
        return self._changed(columns=normal_columns(columns, str(self)))

    def _changed(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class Ladder(ColumnFamily):
    """Base of the families that repeat some kernels, on all chosen columns or on each alone."""

    columns: Columns
    per_feature: bool
    missing: str

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``, column by column where there is one per feature."""
        if not self.per_feature:
            return self._rungs(X, self.columns, sample_weight)
        table = read_table(X, str(self))
        picked, numeric = table.positions(self.columns, str(self)), table.numeric()
        numbers = [i for i in picked if numeric[i]]
        if not numbers or (self.columns is not None and numbers != picked):
            wrong = table.keys([i for i in picked if not numeric[i]])
            raise InputError(
                f"{self}: not numeric: {', '.join(map(str, wrong))}; choose other columns, "
                "encode these, or use Overlap for categories."
            )
        keys = table.keys(numbers)
        return [kernel for key in keys for kernel in self._rungs(X, key, sample_weight)]

    @abstractmethod
    def _rungs(self, X: Any, columns: Columns, sample_weight: Floats | None) -> list[Kernel]: ...


@dataclass(frozen=True)
class RBFLadder(Ladder):
    """What `rbf_ladder` returns."""

    label: ClassVar[str] = "rbf_ladder"

    widths: tuple[float, ...] | None

    def _rungs(self, X: Any, columns: Columns, sample_weight: Floats | None) -> list[Kernel]:
        widths = self.widths
        if widths is None:
            who = self.label + describe_columns(columns)
            table = read_table(X, who)
            rows = table.numbers(columns, who, gaps=self.encodes_gaps)
            middle = typical_distance(
                rows, sample_weight, table.keys(table.positions(columns, who))
            )
            # In many columns all rows are about equally far apart, and a quarter of that distance
            # is a kernel close to the identity, which only remembers.
            first = 0.25 if rows.shape[1] <= 3 else 0.5
            widths = tuple(first * middle * 2.0**step for step in range(5))
        return [RBF(width, columns=columns, missing=self.missing) for width in widths]


@dataclass(frozen=True)
class PolynomialLadder(Ladder):
    """What `polynomial_ladder` returns."""

    label: ClassVar[str] = "polynomial_ladder"

    degrees: tuple[int, ...]
    coef0: float

    def _rungs(self, X: Any, columns: Columns, sample_weight: Floats | None) -> list[Kernel]:
        made = [Polynomial(degree, self.coef0, columns=columns) for degree in self.degrees]
        return [kernel.with_missing(self.missing) for kernel in made]


@dataclass(frozen=True)
class Views(KernelFamily):
    """What `views` returns."""

    parts: tuple[tuple[str, Columns, tuple[Kernel | KernelFamily, ...]], ...]
    missing: str = "refuse"

    @property
    def encodes_gaps(self) -> bool:
        return self.missing != "refuse" or any(encodes_gaps(items) for _, _, items in self.parts)

    @property
    def takes_sparse(self) -> bool:
        return self.missing in ("refuse", "off") and all(
            takes_sparse(items) for _, _, items in self.parts
        )

    def with_missing(self, rule: str) -> Self:
        """Return these views with a rule for missing values, unless they have one already."""
        return self if self.missing != "refuse" else dataclasses.replace(self, missing=rule)

    def with_targets(self, y: Floats) -> Views:
        """Return these views with targets for the kernels that learn from them."""
        parts = [(view, columns, with_targets(items, y)) for view, columns, items in self.parts]
        same = all(new[2] is old[2] for new, old in zip(parts, self.parts, strict=True))
        if same:
            return self
        return Views(tuple((v, c, tuple(items)) for v, c, items in parts), self.missing)

    def on(self, columns: Columns) -> Self:
        """Refuse; every view has columns of its own."""
        raise InputError("views: a view has its own columns and cannot be part of another view.")

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``, view by view."""
        return self._expand(X, sample_weight, alone=False)

    def expand_alone(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels of a model that has no others; every row needs a source."""
        return self._expand(X, sample_weight, alone=True)

    def _expand(self, X: Any, sample_weight: Floats | None, *, alone: bool) -> list[Kernel]:
        by_view = {view: self._of_view(view, X, sample_weight) for view, _, _ in self.parts}
        if self.missing in ("off", "complete"):
            by_view = with_sources(
                {view: (columns, by_view[view]) for view, columns, _ in self.parts},
                X,
                sample_weight,
                complete=self.missing == "complete",
                alone=alone,
            )
        return [kernel for kernels in by_view.values() for kernel in kernels]

    def _of_view(self, view: str, X: Any, sample_weight: Floats | None) -> list[Kernel]:
        columns, items = next((c, items) for v, c, items in self.parts if v == view)
        rule = "off" if self.missing == "complete" else self.missing
        kernels: list[Kernel] = []
        for item in items:
            item = with_missing(item, rule)
            if isinstance(item, Kernel):
                kernels.append(item.on(columns).renamed(f"{view}: {item.on(None)}"))
                continue
            for kernel in item.on(columns).expand(X, sample_weight):
                # One-feature kernels keep telling their column.
                whole = isinstance(kernel.columns, Encoding) or (
                    columns_key(kernel.columns) == columns_key(columns)
                )
                kernels.append(kernel.renamed(f"{view}: {kernel.on(None) if whole else kernel}"))
        return kernels


def rbf_ladder(
    widths: Iterable[float] | None = None,
    *,
    columns: Columns = None,
    per_feature: bool = False,
    missing: str = "refuse",
) -> KernelFamily:
    """Offer Gaussian kernels of several widths.

    Parameters
    ----------
    widths : iterable of float, optional
        By default five, each twice the one before, from a quarter (half of it for more than three
        columns) of the root mean squared distance between two rows (1 if that is 0). Values more
        than 20 interquartile ranges beyond the quartiles of their column are cut off for this,
        so that one outlier does not decide the widths.
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        None means all columns.
    per_feature : bool
        One kernel per column and width, column by column, in place of kernels on all columns
        together. With ``columns=None`` the columns of a frame that are not numeric are left out.
    missing : {"refuse", "off", "fill", "expected"}
        The rule for missing values; see the guide "Some of my data are missing".

    Returns
    -------
    family : KernelFamily
        Estimators expand it when they see the data.

    Examples
    --------
    >>> [str(kernel) for kernel in rbf_ladder([1, 2], per_feature=True).expand([[0.0, 1.0]])]
    ['rbf(width=1) on column 0', 'rbf(width=2) on column 0',
     'rbf(width=1) on column 1', 'rbf(width=2) on column 1']
    """
    columns = normal_columns(columns, "rbf_ladder")
    if widths is None:
        return RBFLadder(columns, per_feature, RBF(missing=missing).missing, None)
    several = _several("rbf_ladder", "widths", widths)
    rungs = tuple(RBF(width, missing=missing).width for width in several)
    return RBFLadder(columns, per_feature, missing, rungs)


def polynomial_ladder(
    degrees: Iterable[int] = (1, 2, 3),
    *,
    coef0: float = 1.0,
    columns: Columns = None,
    per_feature: bool = False,
    missing: str = "refuse",
) -> KernelFamily:
    """Offer polynomial kernels of several degrees.

    Parameters
    ----------
    degrees : iterable of int
        Each at least 1.
    coef0 : float
        Not negative; 0 keeps only products of exactly ``degree`` columns.
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        None means all columns.
    per_feature : bool
        One kernel per column and degree, as in `rbf_ladder`.
    missing : {"refuse", "off", "fill"}
        The rule for missing values; see the guide "Some of my data are missing".

    Returns
    -------
    family : KernelFamily
        Estimators expand it when they see the data.

    Examples
    --------
    >>> [str(kernel) for kernel in polynomial_ladder([1, 2]).expand([[0.0, 1.0]])]
    ['polynomial(degree=1, coef0=1)', 'polynomial(degree=2, coef0=1)']
    """
    several = _several("polynomial_ladder", "degrees", degrees)
    rungs = [Polynomial(degree, coef0, missing=missing) for degree in several]
    return PolynomialLadder(
        normal_columns(columns, "polynomial_ladder"),
        per_feature,
        missing,
        tuple(rung.degree for rung in rungs),
        rungs[0].coef0,
    )


def views(
    mapping: Mapping[str, Any], kernels: KernelsLike = None, *, missing: str = "refuse"
) -> KernelFamily:
    """Offer the same kernels on several named groups of columns.

    Parameters
    ----------
    mapping : dict
        ``{view: columns}`` or ``{view: (columns, kernels of this view)}``.
    kernels : list of Kernel or KernelFamily, optional
        For the views that bring none; by default ``mixed_ladder(per_feature=False)``. They are
        bound to the columns of each view, in place of columns they may have.
    missing : {"refuse", "off", "complete", "fill", "expected"}
        What kernels do where values are missing, unless they have a rule of their own (as the
        default kernels have for single values). "off": the kernels of a source are zero for rows
        without it, and a kernel ``known`` of each source that some training rows lack lets its
        absence matter. "complete": the same, but rows without a source get the expectation of its
        features, which is learned from the other sources; more accurate where these are related.

    Returns
    -------
    family : KernelFamily
        Names start with the view, as in ``clinical: rbf(width=1)``.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> family = views({"left": [0], "both": slice(0, 2)}, [Linear(), RBF(2.0)])
    >>> [str(kernel) for kernel in family.expand([[0.0, 1.0]])]
    ['left: linear', 'left: rbf(width=2)', 'both: linear', 'both: rbf(width=2)']
    """
    if not isinstance(mapping, Mapping):
        raise InputTypeError(
            f"views: the views must be a dict of names and columns, got {type(mapping).__name__}."
        )
    if not mapping:
        raise InputError("views: at least one view is needed, as in {'clinical': ['age', 'bmi']}.")
    default = [mixed_ladder(per_feature=False)] if kernels is None else kernels
    parts = []
    for view, chosen in mapping.items():
        if not isinstance(view, str) or not view:
            raise InputTypeError(f"views: a view's name must be a non-empty string, got {view!r}.")
        who, columns, items = f"views[{view!r}]", chosen, default
        if isinstance(chosen, Kernel | KernelFamily):  # a kernel is callable, as a choice may be
            raise InputTypeError(f"{who}: columns are needed, as in (columns, [{chosen}]).")
        match chosen:  # a list is never the name of a column, so this is not a choice of two
            case (first, list() | tuple() | Kernel() | KernelFamily() as own):
                columns, items = first, own
        items = _checked(items, who)
        if any(isinstance(item, Views) for item in items):
            raise InputError(f"{who}: a view cannot be part of another view.")
        parts.append((view, normal_columns(columns, who), tuple(items)))
    if missing not in _VIEW_RULES:
        raise InputError(
            f"views: missing must be one of {', '.join(map(repr, _VIEW_RULES))}, got {missing!r}."
        )
    return Views(tuple(parts), missing)


def expand_kernels(
    kernels: KernelsLike, X: Any, sample_weight: Floats | None = None
) -> list[Kernel]:
    """Write out all kernels that an estimator was given, for the data it is fitted to.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        None means `mixed_ladder`.
    X : array, sparse matrix, data frame or nested list
        Families take the number of columns and default widths from it; columns given by a
        callable or selector become the ones it picks here.
    sample_weight : ndarray of shape (n_samples,), optional
        How often each row counts in default widths.

    Returns
    -------
    expanded : list of Kernel
        In the order given; never empty.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> [str(kernel) for kernel in expand_kernels([Linear(), rbf_ladder([1, 2])], [[0.0]])]
    ['linear', 'rbf(width=1)', 'rbf(width=2)']
    """
    items = [mixed_ladder()] if kernels is None else _checked(kernels, "kernels")
    expanded: list[Kernel] = []
    for item in items:
        if isinstance(item, Kernel):
            expanded.append(item)
        else:
            expand = item.expand_alone if len(items) == 1 else item.expand
            expanded += expand(X, sample_weight)
    return [kernel.bound(X, sample_weight) for kernel in expanded]


def are_given(kernels: Any, fitted: Sequence[Kernel]) -> bool:
    """Return whether the kernels of a fit are those that were given, whatever the rows.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        As given.
    fitted : sequence of Kernel
        As written out.
    """
    given = [kernels] if isinstance(kernels, Kernel) else kernels
    return isinstance(given, list | tuple) and list(given) == list(fitted)


def _checked(kernels: Any, who: str) -> list[Kernel | KernelFamily]:
    """Return a list of kernels and families, or say which item is neither."""
    if isinstance(kernels, Kernel | KernelFamily):
        return [kernels]
    if not isinstance(kernels, list | tuple):
        raise InputTypeError(
            f"{who}: must be a kernel, a family such as rbf_ladder(), or a list of these, "
            f"got {type(kernels).__name__}."
        )
    if not kernels:
        raise InputError(f"{who}: the list is empty; None gives a default set of kernels.")
    for i, item in enumerate(kernels):
        if not isinstance(item, Kernel | KernelFamily):
            hint = ""
            if isinstance(item, type):
                hint = f"; write {item.__name__}() with parentheses"
            elif isinstance(item, np.ndarray):
                hint = "; write Precomputed(gram) for a ready matrix"
            got = item.__name__ if isinstance(item, type) else type(item).__name__
            raise InputTypeError(
                f"{who}[{i}]: must be a kernel or a family such as rbf_ladder(), got {got}{hint}."
            )
    return list(kernels)


def _several(who: str, what: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputTypeError(f"{who}: {what} must be a list of numbers, got {values!r}.")
    several = list(values)
    if not several:
        raise InputError(f"{who}: {what} must not be empty.")
    return several
