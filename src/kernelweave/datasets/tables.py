"""Real data sets by name, from files, scikit-learn or OpenML."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelweave.datasets.registry import REGISTRY, Entry
from kernelweave.errors import DataError, InputError, InputTypeError

if TYPE_CHECKING:
    import pandas as pd

_VARIABLE = "KERNELWEAVE_DATA"
_BROKEN = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile)
_WDBC_MEASURES = (
    "radius texture perimeter area smoothness compactness concavity concave_points symmetry "
    "fractal_dimension"
).split()


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with its types.

    Attributes
    ----------
    X : DataFrame, or csr_array for a graph
        The features; categorical columns have a pandas category dtype of strings.
    y : Series of str, or ndarray of str for a graph
        The classes.
    name : str
        Name of the data set.
    edges : ndarray of shape (n_edges, 2) or None
        Links of a graph as rows of (citing, cited) row numbers.
    description : str
        Target, features and source.
    categorical : tuple of str
        The categorical columns.
    """

    X: pd.DataFrame | csr_array[np.float64] = field(repr=False)
    y: pd.Series[str] | NDArray[np.str_] = field(repr=False)
    name: str
    edges: NDArray[np.int32] | None = field(repr=False)
    description: str
    categorical: tuple[str, ...]


def list_datasets() -> list[str]:
    """Return the names of the data sets of `load_dataset`.

    Returns
    -------
    names : list of str
        In alphabetical order.

    Examples
    --------
    >>> from kernelweave.datasets import list_datasets
    >>> list_datasets()[:3]
    ['balance_scale', 'blood_transfusion', 'breast_cancer_ljubljana']
    """
    return sorted(REGISTRY)


def load_dataset(
    name: str,
    *,
    rows: Literal["paper", "all", "complete"] = "paper",
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load a real data set by name.

    The file ``<name>.csv.gz`` (a header, one row per sample, classes in the last column
    ``target``, an empty cell is a missing value) or ``<name>.npz`` (graphs) is looked for in
    ``data_home``, then in the folder of the environment variable ``KERNELWEAVE_DATA``. Without a
    file, iris and wdbc come from scikit-learn, tic_tac_toe, balance_scale and monks3_test are
    generated, and the others come from OpenML where a copy is known; there the names of classes
    may differ.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    rows : {"paper", "all", "complete"}, default="paper"
        The rows the published experiments use (for most sets, all), all rows of the source, or
        the rows without missing values. For graphs, "paper" leaves out links from a row to itself.
    data_home : str or path, default=None
        Folder that is searched first.

    Returns
    -------
    dataset : Dataset
        Features, classes and types.

    Examples
    --------
    >>> from kernelweave.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> iris.X.shape, iris.y.nunique(), iris.categorical
    ((150, 4), 3, ())
    """
    if not isinstance(name, str):
        raise InputTypeError(f"name must be a string such as 'ionosphere', got {name!r}.")
    if rows not in ("paper", "all", "complete"):
        raise InputError(f"rows must be 'paper', 'all' or 'complete', got {rows!r}.")
    if name not in REGISTRY:
        near = get_close_matches(name.lower(), REGISTRY, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}" if near else "see list_datasets()"
        raise DataError(f"There is no data set named {name!r}: {hint}.")
    entry = REGISTRY[name]
    path = _find(f"{name}.npz" if entry.graph else f"{name}.csv.gz", data_home)
    if entry.graph:
        return _load_graph(name, entry, path, rows)
    return _load_table(name, entry, path, rows)


def _find(file: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    places = {"data_home": data_home, f"${_VARIABLE}": os.environ.get(_VARIABLE) or None}
    for label, place in places.items():
        if place is None:
            continue
        try:
            folder = Path(place).expanduser()
        except TypeError as error:
            raise InputTypeError(f"{label} must be a path, got {place!r}.") from error
        if not folder.is_dir():
            raise DataError(f"{label} must name a folder, got {str(place)!r}.")
        if (folder / file).is_file():
            return folder / file
    return None


def _load_graph(name: str, entry: Entry, path: Path | None, rows: str) -> Dataset:
    if path is None:
        raise _not_found(name, "no other copy is known")
    try:
        with np.load(path, allow_pickle=False) as stored:
            indices = stored["indices"].astype(np.int32)
            pattern = (np.ones(len(indices)), indices, stored["indptr"].astype(np.int32))
            n_rows, n_words = stored["shape"].tolist()
            X = csr_array(pattern, shape=(n_rows, n_words))
            X.check_format(full_check=True)
            y, edges = stored["labels"].astype(str), stored["edges"].astype(np.int32)
        if y.shape != X.shape[:1]:
            raise ValueError(f"{y.size} labels for {X.shape[0]} rows")
        if edges.ndim != 2 or edges.shape[1] != 2 or not np.isin(edges, np.arange(len(y))).all():
            raise ValueError("edges must be pairs of row numbers")
    except _BROKEN as error:
        raise DataError(f"The file {path} cannot be read as a graph: {error}.") from error
    if rows == "paper":
        edges = edges[edges[:, 0] != edges[:, 1]]
    return Dataset(X, y, name, edges, _describe(entry, path.name), ())


def _load_table(name: str, entry: Entry, path: Path | None, rows: str) -> Dataset:
    need_pandas()
    if path is not None:
        (X, y), source = _read_csv(path, entry), path.name
    elif name in ("iris", "wdbc"):
        (X, y), source = _copy_from_sklearn(name), "scikit-learn"
    elif name in ("tic_tac_toe", "balance_scale", "monks3_test"):
        (X, y), source = _make(name), "made by its rule"
    else:
        (X, y), source = _fetch(name, entry), f"OpenML {entry.openml}"
        source += "" if entry.verified else " (id not verified)"
    X, y, categorical = _typed(X, y, entry, source)
    X, y = _select(X, y, entry, rows)
    return Dataset(X, y, name, None, _describe(entry, source), categorical)


def need_pandas() -> Any:
    """Return the module pandas, or raise an error with the command that installs it."""
    try:
        import pandas
    except ImportError as error:
        raise DataError(
            'Tables need pandas; install it with pip install "kernelweave[io]".'
        ) from error
    return pandas


def _make(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    from kernelweave.datasets import games

    if name == "monks3_test":
        return games.monks_table(3)
    return games.tic_tac_toe_table() if name == "tic_tac_toe" else games.balance_scale_table()


def _read_csv(path: Path, entry: Entry) -> tuple[pd.DataFrame, pd.Series[Any]]:
    import pandas as pd

    # Text must be read as text: a code 1 in a column with gaps would become 1.0 otherwise,
    # and a category spelled "None" a missing value.
    try:
        columns = [str(c) for c in pd.read_csv(path, nrows=0).columns]
        as_text = ("target", *entry.categorical_columns(columns))
        frame = pd.read_csv(
            path,
            dtype=dict.fromkeys(as_text, str),
            keep_default_na=False,
            na_values=[""],
        )
    except _BROKEN as error:
        raise DataError(f"The file {path} cannot be read as a table: {error}.") from error
    if columns[-1:] != ["target"]:
        raise DataError(f"The last column of {path} must be 'target', got {columns[-1:]}.")
    return frame.drop(columns="target"), frame["target"]


def _copy_from_sklearn(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    import pandas as pd
    from sklearn.datasets import load_breast_cancer, load_iris

    if name == "iris":
        columns = ["sepallength", "sepalwidth", "petallength", "petalwidth"]
        values, codes = load_iris(return_X_y=True)
        labels = np.array(["Iris-setosa", "Iris-versicolor", "Iris-virginica"])
    else:
        columns = [f"{m}_{kind}" for kind in ("mean", "se", "worst") for m in _WDBC_MEASURES]
        values, codes = load_breast_cancer(return_X_y=True)
        labels = np.array(["M", "B"])
    return pd.DataFrame(values, columns=columns), pd.Series(labels[codes])


def _fetch(name: str, entry: Entry) -> tuple[pd.DataFrame, pd.Series[Any]]:
    import pandas as pd
    from sklearn.datasets import fetch_openml

    if entry.openml is None:
        raise _not_found(name, "OpenML is not known to have it")
    try:
        bunch = fetch_openml(
            data_id=entry.openml,
            target_column=entry.openml_target or "default-target",
            as_frame="auto",
        )
    except (OSError, ValueError) as error:
        raise _not_found(name, f"OpenML (id {entry.openml}) did not deliver it") from error
    data = bunch.data
    if not isinstance(data, pd.DataFrame):  # a sparse source, or one without named columns
        dense = data.toarray() if hasattr(data, "toarray") else data
        data = pd.DataFrame(dense, columns=bunch.feature_names)
    # OpenML spells some names with capitals and hyphens; the files do not.
    data = data.rename(columns=lambda c: re.sub("[^0-9a-z]+", "_", str(c).lower()).strip("_"))
    data = data.drop(columns=[c for c in entry.openml_extra if c in data.columns])
    if data.shape != entry.shape:
        raise DataError(
            f"OpenML {entry.openml} is not the expected {name}: {entry.shape} rows and columns "
            f"were expected, {data.shape} came."
        )
    return data, pd.Series(bunch.target)


def _typed(
    X: pd.DataFrame, y: pd.Series[Any], entry: Entry, source: str
) -> tuple[pd.DataFrame, pd.Series[str], tuple[str, ...]]:
    import pandas as pd

    columns = [str(c) for c in X.columns]
    categorical = entry.categorical_columns(columns)
    missing = [c for c in (*categorical, *entry.numeric) if c not in columns]
    if missing:
        raise DataError(f"{source} lacks the column {missing[0]!r}; it has {columns}.")
    if y.isna().any():
        raise DataError(f"{source} has a row without a target.")
    typed = {}
    for column in columns:
        if column in categorical:
            typed[column] = _text(X[column]).astype("category")
            continue
        try:
            typed[column] = pd.to_numeric(X[column])
        except (ValueError, TypeError) as error:
            raise DataError(f"Column {column!r} of {source} must hold numbers: {error}.") from error
    return pd.DataFrame(typed), _text(y).rename("target"), categorical


def _text(cells: pd.Series[Any]) -> pd.Series[str]:
    import pandas as pd

    # Codes that a source holds as floats read 1, not 1.0, as in the files.
    if pd.api.types.is_float_dtype(cells.dtype) and (cells.dropna() % 1 == 0).all():
        cells = cells.astype("Int64")
    text = cells.astype(object).map(str, na_action="ignore")
    return text.astype(str) if text.notna().all() else text


def _select(
    X: pd.DataFrame, y: pd.Series[str], entry: Entry, rows: str
) -> tuple[pd.DataFrame, pd.Series[str]]:
    keep = np.ones(len(y), dtype=bool)
    if rows == "complete" or (rows == "paper" and entry.complete):
        keep &= X.notna().all(axis=1).to_numpy()
    for column, values in entry.without if rows == "paper" else ():
        cells = y if column == "target" else X[column]
        keep &= ~cells.isin(values).to_numpy()
    X, y = X[keep].reset_index(drop=True), y[keep].reset_index(drop=True)
    for label in X.select_dtypes("category"):
        X[label] = X[label].cat.remove_unused_categories()
    return X, y


def _describe(entry: Entry, source: str) -> str:
    return f"{entry.description} Source: {source}."


def _not_found(name: str, why: str) -> DataError:
    file = f"{name}.npz" if REGISTRY[name].graph else f"{name}.csv.gz"
    return DataError(
        f"The data set {name!r} was not found and {why}; set data_home or the environment "
        f"variable {_VARIABLE} to a folder that holds {file}."
    )
