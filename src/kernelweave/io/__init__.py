"""Model files: save fitted models as data without code, and load them again.

A model file is a zip without compression that holds ``model.json`` and arrays ``0.npy``,
``1.npy``, ... (never pickled). The document is one JSON object:

``format``, ``version``
    ``"kernelweave model"`` and a number that grows when older versions cannot read the file.
``made_by``
    Versions of kernelweave, numpy and scikit-learn that wrote the file.
``estimator``, ``parameters``, ``kernels``, ``fitted``
    Name of the class, constructor parameters, ``kernels_``, and the other fitted attributes.
``support_rows``
    The columns that prediction compares with, once for each choice of columns in use; a Nystroem
    fit has ``landmarks`` instead. Rule ensembles and clusterings have neither this nor ``kernels``.
``pipeline``
    Only for a pipeline of scikit-learn's scalers, imputers and encoders, and an estimator: the
    names, classes, parameters and fitted vectors of the steps before it. Such a file has version 2.
``preprocess``, ``steps``
    Only for a pipeline of a `TablePreparer` and an estimator: the fitted attributes of the first
    step, and the names of both.
``record``
    Only where one is given: how the model compared when it was fitted, see `FitRecord`.

Each class declares which fitted attributes are saved and of what kind. Values that JSON lacks are
objects with one key, such as ``{"tuple": [1, 2]}``, ``{"array": "0.npy"}``,
``{"kernel": ["RBF", {"width": 2.0, "columns": null, "name": null}]}`` or
``{"proposition": ["age", 0, "<=", 41.5, {"tuple": []}]}``.
The Gram matrix of `Precomputed` is stored whole, because prediction may ask for any row of it.
Kernels whose columns a function or selector picks are stored with the columns it picked: after
loading, ``model.kernels`` is then the list ``model.kernels_``. Equal models give equal files.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from kernelweave._text import clip, visible
from kernelweave.errors import InputTypeError, ModelFileError

from .archive import DOCUMENT, Reader, Writer, replacing
from .codec import Decoder, encode
from .models import decode_model, decode_steps, encode_model
from .preparer import TablePreparer
from .record import FitRecord, Importance, ScoredModel, check_record, read_record

__all__ = [
    "FitRecord",
    "Importance",
    "ScoredModel",
    "TablePreparer",
    "describe",
    "load",
    "load_steps",
    "save",
]

_FORMAT = "kernelweave model"
_VERSION = 2  # that of pipelines; other files have version 1, which older versions read


def save(model: Any, path: str | os.PathLike[str], *, record: FitRecord | None = None) -> Path:
    """Write a fitted model to a file.

    The file appears complete or not at all. Kernels made by `FromCallable` cannot be saved. Of a
    scikit-learn pipeline these steps can be saved before the estimator: StandardScaler,
    RobustScaler, MinMaxScaler, MaxAbsScaler, SimpleImputer, OneHotEncoder, OrdinalEncoder,
    FunctionTransformer without a function, and ColumnTransformer and Pipeline of these.

    Parameters
    ----------
    model : estimator of kernelweave, or Pipeline that ends with one
        A fitted model.
    path : str or path
        The file; an existing one is replaced.
    record : FitRecord, optional
        How the model compared when it was fitted, to be kept with it.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.io import load, save
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, f"{folder}/model.kw"))
    >>> again.predict([[2.5]])
    array(['high'], dtype='<U4')
    """
    where = _path(path)
    check_record(record)
    try:
        with replacing(where) as stream, zipfile.ZipFile(stream, "w") as archive:
            writer = Writer(archive)
            node = encode_model(model, writer)
            if record is not None:
                node["record"] = encode(record.to_dict(), writer)
            number = _VERSION if "pipeline" in node else 1
            writer.finish({"format": _FORMAT, "version": number, "made_by": _versions()} | node)
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"The file {where} cannot be written: {reason}.") from error
    return where


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    A file holds data only; loading it runs no code from it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : estimator of kernelweave, or Pipeline that ends with one
        Equal to the saved one in every fitted attribute and prediction.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.io import load, save
    >>> model = make_pipeline(StandardScaler(), MKLClassifier())
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, f"{folder}/model.kw"))
    >>> again.predict([[0.5]])
    array(['low'], dtype='<U4')
    """
    with _opened(_path(path)) as (reader, document):
        return decode_model(document, Decoder(reader))


def load_steps(path: str | os.PathLike[str]) -> list[tuple[str, Any]]:
    """Read the steps of a model that `save` wrote: its preparation, if any, and the estimator.

    Quicker than `load` in a new process, because scikit-learn's pipeline is not imported.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    steps : list of tuple (str, estimator)
        Names and steps; one of the name "model" for a model that is no pipeline.

    Examples
    --------
    >>> import tempfile
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.io import load_steps, save
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     steps = load_steps(save(model, f"{folder}/model.kw"))
    >>> [name for name, step in steps]
    ['model']
    """
    with _opened(_path(path)) as (reader, document):
        return decode_steps(document, Decoder(reader))


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file, without loading the model.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    about : dict
        ``version`` of the format, ``made_by`` (versions of packages), ``estimator``, ``bytes``, and
        ``record``, the `FitRecord` of the file or None.

    Examples
    --------
    >>> import tempfile
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.io import describe, save
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     about = describe(save(model, f"{folder}/model.kw"))
    >>> about["estimator"], about["record"]
    ('MKLClassifier', None)
    """
    where = _path(path)
    with _opened(where) as (reader, document):
        about = {key: document[key] for key in ("version", "made_by", "estimator")}
        kept = document.get("record")
        record = None if kept is None else read_record(Decoder(reader)(kept))
        return about | {"bytes": where.stat().st_size, "record": record}


def _path(path: Any) -> Path:
    try:
        return Path(path).expanduser()
    except TypeError:
        raise InputTypeError(f"path must be a string or a path, got {path!r}.") from None


def _versions() -> dict[str, str]:
    return {
        "kernelweave": version("kernelweave"),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Reader, dict[str, Any]]]:
    """Open a model file; every error of a damaged one becomes a ModelFileError."""
    try:
        with open(path, "rb") as stream:
            _check_is_zip(stream, path)
            with zipfile.ZipFile(stream) as archive:
                reader = Reader(archive, path.stat().st_size)
                if DOCUMENT not in reader:
                    raise ModelFileError(f"The file {path} is a zip, but not a kernelweave model.")
                document = reader.document()
                _check_header(document, path)
                yield reader, document
    except ModelFileError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"The file {path} cannot be read: {reason}.") from error
    except MemoryError as error:
        raise ModelFileError(f"The model in {path} does not fit in memory.") from error
    except Exception as error:
        # Only here do values of a file enter messages: they may be of any length.
        what = clip(visible(" ".join(str(error).split())), 200).rstrip(".") or type(error).__name__
        if not isinstance(error, ValueError | zipfile.BadZipFile):
            what = f"{type(error).__name__} {what}"
        raise ModelFileError(f"The model file {path} is damaged: {what}.") from error


def _check_is_zip(stream: Any, path: Path) -> None:
    if zipfile.is_zipfile(stream):
        return
    stream.seek(0)
    if stream.read(2) == b"PK":
        raise ModelFileError(f"The model file {path} is damaged: its end is missing.")
    raise ModelFileError(f"The file {path} is not a kernelweave model.")


def _check_header(document: Any, path: Path) -> None:
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ModelFileError(f"The file {path} is a zip, but not a kernelweave model.")
    found = document["version"]
    if type(found) is not int or found < 1:
        raise ValueError(f"its version is {found!r}")
    if found > _VERSION:
        raise ModelFileError(
            f"The model file {path} has format {found}, but this kernelweave reads up to format "
            f"{_VERSION}; update kernelweave to load it."
        )
