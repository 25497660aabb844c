"""Reader of linked documents in the text format of the LINQS collection."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from scipy.sparse import csr_array

from kernelweave.datasets.tables import Dataset
from kernelweave.errors import DataError, InputTypeError


def load_linqs(content: str | os.PathLike[str], cites: str | os.PathLike[str]) -> Dataset:
    r"""Load documents and the links between them from two text files.

    Each line of the first holds the name of a document, its attributes as numbers and its class;
    each line of the second the name of a cited document and of the one that cites it. Cells are
    separated by tabs or blanks. Links to documents that are not in the first file, and from a
    document to itself, are left out.

    Parameters
    ----------
    content : str or path
        File of documents; one that ends with ``.gz`` is unpacked.
    cites : str or path
        File of links.

    Returns
    -------
    dataset : Dataset
        ``X`` is a csr_array of attributes, ``y`` the classes, ``edges`` the links as rows of
        (citing, cited) row numbers; `name` is that of the first file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelweave.datasets import load_linqs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     content, cites = (pathlib.Path(folder, f"few.{end}") for end in ("content", "cites"))
    ...     _ = content.write_text("a 1 0 Theory\nb 1 1 Theory\nc 0 1 Agents\n")
    ...     _ = cites.write_text("a b\nb c\n")
    ...     few = load_linqs(content, cites)
    >>> few.X.toarray().tolist(), few.y.tolist(), few.edges.tolist()
    ([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], ['Theory', 'Theory', 'Agents'], [[1, 0], [2, 1]])
    """
    first, second = _path("content", content), _path("cites", cites)
    X, y, rows = _read_documents(first)
    edges, unknown = _read_links(second, rows)
    name = first.name.removesuffix(".gz").removesuffix(".content")
    lost = f" {unknown} links to documents that are not there were left out." if unknown else ""
    about = f"Linked documents. Source: {first.name} and {second.name}.{lost}"
    return Dataset(X, y, name, edges, about, ())


def _path(argument: str, value: str | os.PathLike[str]) -> Path:
    try:
        return Path(value).expanduser()
    except TypeError as error:
        raise InputTypeError(f"{argument}: must be a path, got {value!r}.") from error


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of every line that is not blank."""
    try:
        with _opened(path) as stream:
            for number, line in enumerate(stream, 1):
                if cells := line.split():
                    yield number, cells
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"The file {path} cannot be read: {reason}.") from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return open(path, encoding="utf-8")


def _read_documents(
    path: Path,
) -> tuple[csr_array[np.float64], np.ndarray[tuple[int], np.dtype[np.str_]], dict[str, int]]:
    rows: dict[str, int] = {}
    classes: list[str] = []
    columns: list[np.ndarray[tuple[int], np.dtype[np.intp]]] = []
    values: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    width = 0
    for number, cells in _lines(path):
        where = f"Line {number} of {path}"
        width = width or len(cells)
        if len(cells) < 3:
            raise DataError(f"{where} must hold a name, attributes and a class, got {cells}.")
        if len(cells) != width:
            raise DataError(
                f"{where} has {len(cells) - 2} attributes, but the lines before it {width - 2}."
            )
        if cells[0] in rows:
            raise DataError(f"{where} has the document {cells[0]!r} a second time.")
        try:
            row = np.array(cells[1:-1], dtype=np.float64)
        except ValueError as error:
            raise DataError(f"{where} has an attribute that is no number: {error}.") from error
        if not np.isfinite(row).all():
            raise DataError(f"{where} has an attribute that is not finite.")
        rows[cells[0]] = len(rows)
        classes.append(cells[-1])
        columns.append(np.flatnonzero(row))
        values.append(row[columns[-1]])
    if not rows:
        raise DataError(f"The file {path} holds no document.")
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    parts = (np.concatenate(values), np.concatenate(columns).astype(np.int32), starts)
    return csr_array(parts, shape=(len(rows), width - 2)), np.array(classes), rows


def _read_links(
    path: Path, rows: dict[str, int]
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.int32]], int]:
    found: list[tuple[int, int]] = []
    unknown = 0
    for number, cells in _lines(path):
        if len(cells) != 2:
            raise DataError(
                f"Line {number} of {path} must hold two names, the cited and the citing document, "
                f"got {len(cells)} cells."
            )
        cited, citing = (rows.get(cell) for cell in cells)
        if cited is None or citing is None:
            unknown += 1
        elif cited != citing:
            found.append((citing, cited))
    return np.array(found, dtype=np.int32).reshape(-1, 2), unknown
