"""Values as JSON, and back.

None, booleans, integers, finite numbers, strings and lists stand for themselves. Everything else is
an object with one key that names its type, such as ``{"tuple": [1, 2]}``. Classes are only looked
up in the tables of this module.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from narwhals.selectors import Selector
from numpy.typing import NDArray

from kernelweave import kernels
from kernelweave.errors import ModelFileError
from kernelweave.kernels import FromCallable, Kernel, KernelFamily, Precomputed
from kernelweave.kernels.complete import CompleteLadder
from kernelweave.kernels.ladders import PolynomialLadder, RBFLadder, Views
from kernelweave.kernels.mixed import MixedLadder
from kernelweave.ridge.metric_family import LearnedMetric, learned_metric

from .archive import KINDS, Reader, Writer

KERNELS: dict[str, type[Kernel]] = {
    name: kind
    for name in kernels.__all__
    if isinstance(kind := getattr(kernels, name), type)
    and issubclass(kind, Kernel)
    and kind not in (Kernel, FromCallable)
}
# Families are built by their public functions, which check their arguments.
_FAMILIES: dict[type, Any] = {
    CompleteLadder: kernels.complete_ladder,
    LearnedMetric: learned_metric,
    MixedLadder: kernels.mixed_ladder,
    PolynomialLadder: kernels.polynomial_ladder,
    RBFLadder: kernels.rbf_ladder,
    Views: lambda parts, missing="refuse": kernels.views(
        {view: (columns, items) for view, columns, items in parts}, missing=missing
    ),
}
# Module and name of each class, imported when a file holds one: most models need few of them.
_RECORDS = {
    "step": ("kernelweave.solvers.bounds", "Step"),
    "proposition": ("kernelweave.rules.proposition", "Proposition"),
    "rule": ("kernelweave.rules.rule", "Rule"),
    "linear": ("kernelweave.rules.linear", "LinearTerm"),
    "metric": ("kernelweave.kernels.metric", "Metric"),
    "encoding": ("kernelweave.kernels.encoding", "TableEncoding"),
    "filled": ("kernelweave.kernels.gaps", "FilledColumns"),
    "numbers": ("kernelweave.kernels.column_encoding", "NumberEncoding"),
    "levels": ("kernelweave.kernels.column_encoding", "CategoryEncoding"),
    "dates": ("kernelweave.kernels.column_encoding", "DateEncoding"),
    "calibrator": ("kernelweave.estimators.calibrators", "Calibrator"),
    "lattice": ("kernelweave.candidates.product", "ProductLattice"),
}
_TAGS = {home: tag for tag, home in _RECORDS.items()}


def _record(tag: str) -> Any:
    """Return the class of a tag, imported if it was not."""
    module, name = _RECORDS[tag]
    return getattr(import_module(module), name)


class NotStorableError(ModelFileError):
    """A value is of a type that files do not hold, such as a function or a selector."""


def encode(value: Any, writer: Writer) -> Any:
    """Return a value as JSON; arrays are added to the writer."""
    kind = type(value)

    def each(items: Any) -> list[Any]:
        return [encode(item, writer) for item in items]

    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic):
        return _encode_scalar(value, writer)
    if kind is list:
        return each(value)
    if kind is tuple:
        return {"tuple": each(value)}
    if kind is slice:
        return {"slice": each((value.start, value.stop, value.step))}
    if kind is dict:
        return {"dict": [each(item) for item in value.items()]}
    if kind is datetime.date:
        return {"date": value.isoformat()}
    if isinstance(value, datetime.datetime) and not getattr(value, "nanosecond", 0):
        return {"datetime": value.isoformat()}  # also pandas' Timestamp, which equals it
    if kind is np.ndarray:
        return _encode_array(value, writer)
    if isinstance(value, sp.csr_array):
        return {"csr": [*each((value.data, value.indices, value.indptr)), list(value.shape)]}
    if isinstance(value, Kernel | KernelFamily):
        return _encode_kernel(value, writer)
    tag = _TAGS.get((kind.__module__, kind.__name__))
    if tag is not None and kind is _record(tag):
        parts = _encode_fields(value, writer)
        return {tag: parts if tag == "lattice" else list(parts.values())}
    if callable(value) or isinstance(value, Selector):
        raise NotStorableError("A function or selector cannot be stored in a model file.")
    raise NotStorableError(
        f"A value of type {kind.__name__} cannot be stored in a model file; "
        "use strings, numbers or dates."
    )


def _encode_fields(value: Any, writer: Writer) -> dict[str, Any]:
    return {f.name: encode(getattr(value, f.name), writer) for f in fields(value)}


def _encode_scalar(value: np.generic, writer: Writer) -> Any:
    plain = value.item()
    if value.dtype.kind not in KINDS or isinstance(plain, np.generic):  # a long double stays one
        raise ModelFileError(f"A value of type {value.dtype} cannot be stored in a model file.")
    return {"numpy": [value.dtype.str, encode(plain, writer)]}


def _encode_array(array: NDArray[Any], writer: Writer) -> Any:
    if array.dtype == object:
        values = [encode(value, writer) for value in array.ravel().tolist()]
        return {"objects": [list(array.shape), values]}
    if array.dtype.kind not in KINDS:
        raise ModelFileError(
            f"An array of type {array.dtype} cannot be stored in a model file; "
            "use strings or numbers."
        )
    return {"array": writer.add(array)}


def _encode_kernel(value: Kernel | KernelFamily, writer: Writer) -> Any:
    kind = type(value)
    if KERNELS.get(kind.__name__) is not kind and kind not in _FAMILIES:
        why = (
            "the code of its function cannot be stored"
            if kind is FromCallable
            else "only kernelweave's own kernels can be stored"
        )
        raise ModelFileError(
            f"The kernel {value} cannot be written to a model file because {why}; "
            "use Precomputed(gram) in its place, or pickle the model."
        )
    tag = "family" if kind in _FAMILIES else "kernel"
    return {tag: [kind.__name__, _encode_fields(value, writer)]}


class Decoder:
    """Turns JSON back into values; raises ValueError or TypeError for damaged documents."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._precomputed: dict[str, Precomputed] = {}

    def __call__(self, node: Any) -> Any:
        """Return the value encoded in ``node``."""
        if isinstance(node, list):
            return [self(item) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise ValueError(f"an object with the keys {list(node)} is not known")
        ((tag, content),) = node.items()
        match tag, content:
            case "float", "inf" | "-inf" | "nan":
                return float(content)
            case "tuple", list():
                return tuple(self(content))
            case "slice", [_, _, _]:
                return slice(*self(content))
            case "dict", list():
                return {self(k): self(v) for k, v in content}
            case "date", str():
                return datetime.date.fromisoformat(content)
            case "datetime", str():
                return datetime.datetime.fromisoformat(content)
            case "numpy", [str() as dtype, value]:
                return _scalar(dtype, self(value))
            case "array", str():
                return self._reader.array(content)
            case "objects", [list() as shape, list() as values]:
                items = self(values)
                return np.fromiter(items, dtype=object, count=len(items)).reshape(shape)
            case "csr", [data, indices, indptr, [int() as n, int() as m]]:
                parts = (self(data), self(indices), self(indptr))
                array = sp.csr_array(parts, shape=(n, m))
                array.check_format(full_check=True)
                return array
            case "kernel", [str() as name, dict() as parts]:
                return self._kernel(name, parts)
            case "lattice", dict() as parts:
                return _record(tag)(**self._fields(parts))
            case "family", [str() as name, dict() as parts]:
                return _family(name, self._fields(parts))
            case str(), list() if tag in _RECORDS and _is_complete(_record(tag), len(content)):
                return _record(tag)(*self(content))
        raise ValueError(f"a value of kind {tag!r} is not known or not complete")

    def _fields(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {name: self(value) for name, value in parts.items()}

    def _kernel(self, name: str, parts: dict[str, Any]) -> Kernel:
        if name not in KERNELS:
            raise ValueError(f"there is no kernel {name!r}")
        values = self._fields(parts)
        if KERNELS[name] is not Precomputed:
            return KERNELS[name](**values)
        # These are equal only to themselves, so that one kernel must not become two.
        return self._precomputed.setdefault(repr(parts), Precomputed(check=False, **values))


def _is_complete(record: Any, n_values: int) -> bool:
    """Whether so many values make a record; fields with defaults may be newer than a file."""
    needed = [f for f in fields(record) if f.default is MISSING and f.default_factory is MISSING]
    return len(needed) <= n_values <= len(fields(record))


def _scalar(dtype: str, value: Any) -> Any:
    kind = np.dtype(dtype)
    if kind.kind not in KINDS or not isinstance(value, bool | int | float | str):
        raise ValueError(f"a number of type {dtype!r} is not known")
    return kind.type(value)


def _family(name: str, values: dict[str, Any]) -> KernelFamily:
    if not isinstance(values.get("per_feature", False), bool):
        raise ValueError("per_feature must be true or false")
    for kind, build in _FAMILIES.items():
        if kind.__name__ == name:
            family: KernelFamily = build(**values)
            return family
    raise ValueError(f"there is no family of kernels {name!r}")
