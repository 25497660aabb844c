"""Kernels on categories and on text, and the constant kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelweave._types import Bools, Floats, Indices
from kernelweave.errors import InputError

from .base import MISSING, Kernel, RowFormat, Rows
from .distances import inner_products, squared_norms
from .monomials import Monomial, Monomials
from .table import Encoding, columns_key, read_table

N_WORDS = 2**16  # numbers that words are hashed to; among a few thousand words few share one


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Kernel):
    """Share of columns in which two rows are equal; for categories of any type.

    Parameters
    ----------
    missing : {"refuse", "off", "fill", "expected", "category"}
        What to do where values are missing. "off": a gap is equal to nothing. "category": gaps are
        equal to each other. "fill": the most frequent value, with a column that marks gaps.
        "expected": equal with the probability that a training value is.

    Examples
    --------
    >>> Overlap()([["red", "small"], ["red", "large"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    row_format: ClassVar[RowFormat] = "values"
    reads_sparse: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill", "expected", "category")
    own_rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "category")

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns, and whether they may have gaps."""
        return ("values", columns_key(self.columns), self.missing != "refuse")

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return the chosen columns as they are, with None for gaps where these are allowed."""
        if isinstance(self.columns, Encoding) and not self.columns.numeric:
            return np.asarray(self.columns.encode(X))
        gaps = self.missing != "refuse"
        return read_table(X, str(self)).values(self.columns, str(self), gaps=gaps)

    def positions(self, X: Any) -> Indices:
        """Return the column of ``X`` of every prepared column."""
        found = super().positions(X)
        return found[self.columns.owners] if isinstance(self.columns, Encoding) else found

    @property
    def has_unit_diagonal(self) -> bool:
        return self.missing != "off"

    def monomials(self) -> Monomials:
        """Return the sum over columns."""
        key = ("overlap", self.view, self.missing)
        return (Monomial(1.0, (self._atom("sum", part=self._part, key=key),)),)

    def _part(self, A: NDArray[Any], B: NDArray[Any], columns: Indices) -> Floats:
        share = len(columns) / A.shape[1]
        return np.asarray(self.block(A[:, columns], B[:, columns]) * share)

    def block(self, A: NDArray[Any], B: NDArray[Any]) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if A.shape[1] != B.shape[1]:
            raise InputError(
                f"{self}: the two sides must have the same columns, "
                f"got {A.shape[1]} and {B.shape[1]} of them."
            )
        K = np.zeros((len(A), len(B)))
        for a, b in zip(A.T, B.T, strict=True):
            codes = _codes(a, b)
            same = np.equal.outer(codes[: len(a)], codes[len(a) :])
            if self.missing == "off":
                same &= _is_known(a)[:, None]  # what equals a gap is a gap
            K += same
        K /= A.shape[1]
        return K

    def diagonal(self, A: NDArray[Any]) -> Floats:
        """Return ones; the share of columns with a value where a gap matches nothing."""
        if self.missing != "off":
            return np.ones(len(A))
        return np.asarray(_is_known(A).mean(axis=1), dtype=np.float64)


def _is_known(values: NDArray[Any]) -> Bools:
    none: Any = None
    return np.asarray(values != none, dtype=bool)


def _codes(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.intp]:
    """Replace the values of two columns by numbers, equal where the values are."""
    code: dict[Any, int] = {}
    values = a.tolist() + b.tolist()
    return np.array([code.setdefault(value, len(code)) for value in values], dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class Words(Kernel):
    """Cosine of the counts of words, for columns of sentences, notes and the like.

    Words are hashed to numbers, so nothing is learned from the data and words that were never seen
    before count as well. The texts of several columns are joined. A row without words is similar to
    none.

    Parameters
    ----------
    missing : {"refuse", "off"}
        What to do where texts are missing. "off": a missing text has no words.

    Examples
    --------
    >>> Words()([["late and damaged"], ["damaged"], ["all fine"]]).round(3)
    array([[1.   , 0.577, 0.   ],
           [0.577, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    row_format: ClassVar[RowFormat] = "words"
    reads_sparse: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = ("refuse", "off")
    own_rules: ClassVar[tuple[str, ...]] = ("refuse", "off")

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("words", columns_key(self.columns), self.missing)

    def prepare(self, X: Any) -> sp.csr_array[Any]:
        """Return counts of words, of unit length; a missing text has no words."""
        from sklearn.feature_extraction.text import HashingVectorizer

        gaps = self.missing != "refuse"
        rows = read_table(X, str(self)).values(self.columns, str(self), gaps=gaps)
        texts = [" ".join(str(text) for text in row if text is not None) for row in rows.tolist()]
        counts = HashingVectorizer(n_features=N_WORDS, alternate_sign=False).transform(texts)
        prepared = sp.csr_array(counts, dtype=np.float64)
        prepared.sum_duplicates()  # sorted indices make products exactly symmetric
        return prepared

    def block(self, A: sp.csr_array[Any], B: sp.csr_array[Any]) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if A.shape[1] != B.shape[1]:
            raise InputError(f"{self}: the two sides were not prepared by this kernel.")
        return inner_products(A, B)

    def diagonal(self, A: sp.csr_array[Any]) -> Floats:
        """Return one for every row with words, zero for others."""
        return squared_norms(A)


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Kernel):
    """One for every pair of rows: its function is a bias that the norm counts.

    Parameters
    ----------
    columns : columns, optional
        Not looked at.
    missing : str
        Not looked at.

    Examples
    --------
    >>> Constant()([[1.0], [5.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    is_constant: ClassVar[bool] = True
    rules: ClassVar[tuple[str, ...]] = MISSING  # no column is looked at
    own_rules: ClassVar[tuple[str, ...]] = MISSING

    def monomials(self) -> Monomials:
        """Return one."""
        return (Monomial(1.0),)

    def positions(self, X: Any) -> Indices:
        """Return no column."""
        return np.empty(0, dtype=np.intp)

    @property
    def view(self) -> Hashable:
        """No column."""
        return "rows"

    def prepare(self, X: Any) -> Rows:
        """Return rows without entries."""
        return np.empty((read_table(X, str(self)).body.shape[0], 0))

    def block(self, A: Rows, B: Rows) -> Floats:
        """Return ones."""
        return np.ones((len(A), len(B)))

    def diagonal(self, A: Rows) -> Floats:
        """Return ones."""
        return np.ones(len(A))
