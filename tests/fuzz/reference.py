"""Kernel values in long double, from the definitions: direct differences, no shared products.

A kernel of the library is read as data (its type and its parameters); none of its methods is
called. The encoding of a mixed table defines the numbers that its kernels compare.
"""

import re
import warnings

import numpy as np
import pandas as pd
from scipy import sparse

from kernelweave.kernels.table import Encoding

REAL = np.longdouble
BLOCK = 2**20  # kernel values at a time


class Table:
    """Rows of any container as columns that can be chosen by name or position."""

    def __init__(self, X):
        if sparse.issparse(X):
            X = X.toarray()
        if hasattr(X, "columns"):
            self.names = list(X.columns)
            self.columns = [X[name].to_numpy() for name in self.names]
        else:
            X = np.asarray(X)
            self.names = list(range(X.shape[1]))
            self.columns = list(X.T)
        self.n_rows = len(self.columns[0])

    def take(self, rows):
        out = object.__new__(Table)
        out.names, out.columns = self.names, [column[rows] for column in self.columns]
        out.n_rows = len(out.columns[0])
        return out

    def choose(self, columns):
        """Return the chosen columns."""
        everything = range(len(self.columns))
        if isinstance(columns, Encoding):
            return list(columns.encode(self._native()).T)
        match columns:
            case None:
                places = everything
            case slice():
                places = everything[columns]
            case str() | int():
                places = [self._place(columns)]
            case _:
                places = [self._place(column) for column in columns]
        return [self.columns[k] for k in places]

    def _place(self, column):
        return self.names.index(column) if isinstance(column, str) else column

    def numbers(self, columns):
        """Return the chosen columns as long doubles, of shape (n_rows, n_chosen)."""
        if isinstance(columns, Encoding):  # its values are what the kernel is defined on
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of unseen levels, which the model reports
                return columns.encode(self._native()).astype(REAL)
        return np.stack([column.astype(REAL) for column in self.choose(columns)], axis=1)

    def _native(self):
        if isinstance(self.names[0], str):
            return pd.DataFrame(dict(zip(self.names, self.columns, strict=True)))
        return np.stack(self.columns, axis=1)


def block(kernel, A: Table, B: Table):
    """Return the values of a kernel between two tables."""
    return _VALUES[type(kernel).__name__](kernel, A, B)


def diagonal(kernel, A: Table):
    """Return the values of a kernel between every row and itself."""
    if type(kernel).__name__ in ("RBF", "ARD", "Laplacian", "Additive", "Constant"):
        return np.ones(A.n_rows, dtype=REAL)
    if not A.n_rows:
        return np.zeros(0, dtype=REAL)
    parts = _parts(A, 16)
    return np.concatenate([np.diagonal(block(kernel, part, part)) for part in parts])


def products(kernel, A: Table, B: Table, V):
    """Return ``K V`` for the block of two tables, a few rows at a time."""
    if not B.n_rows:
        return np.zeros((A.n_rows, V.shape[1]), dtype=REAL)
    parts = _parts(A, max(1, BLOCK // B.n_rows))
    return np.concatenate([block(kernel, part, B) @ V for part in parts])


def _parts(A, step):
    return [A.take(slice(k, k + step)) for k in range(0, A.n_rows, step)]


def _inner(kernel, A, B):
    a, b = A.numbers(kernel.columns), B.numbers(kernel.columns)
    if (centre := getattr(kernel, "centre", None)) is not None:
        a, b = a - np.array(centre, dtype=REAL), b - np.array(centre, dtype=REAL)
    out = np.zeros((len(a), len(b)), dtype=REAL)
    for left, right in zip(a.T, b.T, strict=True):
        out += np.multiply.outer(left, right)
    return out


def _differences(A, B, columns, widths):
    """Yield the differences between all rows, in units of the width, column by column."""
    a, b = A.numbers(columns), B.numbers(columns)
    for left, right, width in zip(a.T, b.T, np.broadcast_to(widths, a.shape[1]), strict=True):
        yield np.subtract.outer(left, right) / REAL(width)  # differences first: they are exact


def _gaussian(kernel, A, B):
    widths = kernel.widths if type(kernel).__name__ == "ARD" else kernel.width
    return np.exp(-sum(d * d for d in _differences(A, B, kernel.columns, widths)) / 2)


def _laplacian(kernel, A, B):
    return np.exp(-sum(np.abs(d) for d in _differences(A, B, kernel.columns, kernel.width)))


def _additive(kernel, A, B):
    parts = [np.exp(-d * d / 2) for d in _differences(A, B, kernel.columns, kernel.widths)]
    return sum(parts) / len(parts)


def _overlap(kernel, A, B):
    pairs = list(zip(A.choose(kernel.columns), B.choose(kernel.columns), strict=True))
    equal = [np.equal.outer(a.astype(object), b.astype(object)).astype(REAL) for a, b in pairs]
    for same, (a, b) in zip(equal, pairs, strict=True):
        gaps = _is_gap(a), _is_gap(b)
        same[np.ix_(*gaps)] = kernel.missing == "category"
    return sum(equal) / len(pairs)


def _words(kernel, A, B):
    counts = []
    for table in (A, B):
        rows = zip(*(column.tolist() for column in table.choose(kernel.columns)), strict=True)
        texts = [" ".join(str(v) for v in row if v is not None and v == v).lower() for row in rows]
        counts.append([_count(re.findall(r"(?u)\b\w\w+\b", text)) for text in texts])
    inner = [
        [sum(n * b.get(word, 0) for word, n in a.items()) for b in counts[1]] for a in counts[0]
    ]
    lengths = [np.sqrt([REAL(sum(n * n for n in row.values())) for row in side]) for side in counts]
    return _divide(np.array(inner, dtype=REAL), np.multiply.outer(*lengths))


def _count(words):
    return {word: words.count(word) for word in words}


def _cosine(kernel, A, B):
    left, right = (np.sqrt(diagonal(kernel.kernel, side)) for side in (A, B))
    return _divide(block(kernel.kernel, A, B), np.multiply.outer(left, right))


def _divide(values, sizes):
    # Rows whose squared length is zero in float64 are similar to nothing.
    return np.divide(values, sizes, out=np.zeros_like(values), where=sizes > 1e-307)


def _precomputed(kernel, A, B):
    rows, columns = (side.choose(kernel.columns)[0].astype(int) for side in (A, B))
    return kernel.gram[np.ix_(rows, columns)].astype(REAL)


def _known(kernel, A, B):
    def gates(table):
        known = np.stack([~_is_gap(column) for column in table.choose(kernel.columns)], axis=1)
        return (known.all(axis=1) if kernel.every else known.any(axis=1)).astype(REAL)

    return np.multiply.outer(gates(A), gates(B))


def _is_gap(column):
    return np.array([value is None or value != value for value in column.tolist()], dtype=bool)


def _expected(kernel, A, B):
    """Compare columns one by one; a gap has the mean over the distribution of its column."""
    inner, out = kernel.kernel, None
    pairs = zip(A.choose(inner.columns), B.choose(inner.columns), strict=True)
    for j, (left, right) in enumerate(pairs):
        values, shares = kernel.distributions[j]
        like = np.array(values, dtype=object if isinstance(values[0], str) else float)
        p, gaps = np.array(shares, dtype=REAL), [_is_gap(side) for side in (left, right)]
        sides = [
            np.where(gap, like[0], side) for gap, side in zip(gaps, (left, right), strict=True)
        ]
        sides = [side.astype(like.dtype) for side in sides]
        one = _one_column(inner, j, *sides)
        one[gaps[0]] = p @ _one_column(inner, j, like, sides[1])
        one[:, gaps[1]] = (_one_column(inner, j, sides[0], like) @ p)[:, None]
        one[np.ix_(*gaps)] = p @ _one_column(inner, j, like, like) @ p
        if out is None:
            out = one
        else:
            out = out + one if type(inner).__name__ in _SUMS else out * one
    return out


_SUMS = ("Linear", "Additive", "Overlap")


def _one_column(kernel, j, a, b):
    """Return the factor, or the term, of one column."""
    name, n = type(kernel).__name__, len(kernel.columns)
    if name == "Overlap":
        return np.equal.outer(a, b).astype(REAL) / n
    a, b = a.astype(REAL), b.astype(REAL)
    if name == "Linear":
        centre = getattr(kernel, "centre", None)
        shift = REAL(0) if centre is None else REAL(centre[j])
        return np.multiply.outer(a - shift, b - shift)
    width = REAL(kernel.widths[j] if name in ("ARD", "Additive") else kernel.width)
    d = np.subtract.outer(a, b) / width
    if name == "Laplacian":
        return np.exp(-np.abs(d))
    return np.exp(-d * d / 2) / (n if name == "Additive" else 1)


def _sum(kernel, A, B):
    return sum(block(part, A, B) for part in kernel.parts)


def _product(kernel, A, B):
    out = block(kernel.parts[0], A, B)
    for part in kernel.parts[1:]:
        out = out * block(part, A, B)
    return out


_VALUES = {
    "Linear": _inner,
    "RBF": _gaussian,
    "ARD": _gaussian,
    "Additive": _additive,
    "Laplacian": _laplacian,
    "Polynomial": lambda k, A, B: (_inner(k, A, B) + REAL(k.coef0)) ** k.degree,
    "Overlap": _overlap,
    "Words": _words,
    "Precomputed": _precomputed,
    "FromCallable": lambda k, A, B: k.function(A.numbers(k.columns), B.numbers(k.columns)),
    "Cosine": _cosine,
    "Known": _known,
    "Expected": _expected,
    "Sum": _sum,
    "Product": _product,
    "Scaled": lambda k, A, B: REAL(k.factor) * block(k.kernel, A, B),
    "Group": lambda k, A, B: block(k.kernel, A, B),
    "Constant": lambda k, A, B: np.ones((A.n_rows, B.n_rows), dtype=REAL),
}
