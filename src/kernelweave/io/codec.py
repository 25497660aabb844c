"""Values as JSON, and back.

None, booleans, whole numbers, finite numbers, strings and lists stand for themselves. Everything
else is an object with one key that says what it is, such as ``{"tuple": [1, 2]}``. A class is only
ever looked up in the tables of this module.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from narwhals.selectors import Selector
from numpy.typing import NDArray

from kernelweave.candidates import ProductLattice
from kernelweave.errors import ModelFileError
from kernelweave.kernels import (
    ARD,
    RBF,
    Additive,
    Constant,
    Cosine,
    FromCallable,
    Group,
    Kernel,
    KernelFamily,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
    Words,
    complete_ladder,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from kernelweave.kernels.complete import CompleteLadder
from kernelweave.kernels.ladders import PolynomialLadder, RBFLadder, Views
from kernelweave.rules import Proposition, Rule
from kernelweave.solvers import Step

from .archive import KINDS, Reader, Writer

KERNELS: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        ARD,
        Additive,
        Constant,
        Cosine,
        Group,
        Laplacian,
        Linear,
        Overlap,
        Polynomial,
        Precomputed,
        Product,
        RBF,
        Scaled,
        Sum,
        Words,
    )
}

_FAMILIES = (CompleteLadder, PolynomialLadder, RBFLadder, Views)


class NotStorableError(ModelFileError):
    """A value is of a type that files do not hold, such as a function or a selector."""


def encode(value: Any, writer: Writer) -> Any:
    """Return a value as JSON; arrays are added to the writer."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic):
        return _encode_scalar(value, writer)
    if kind in (list, tuple):
        items = [encode(item, writer) for item in value]
        return items if kind is list else {"tuple": items}
    if kind is slice:
        ends = (value.start, value.stop, value.step)
        return {"slice": [encode(end, writer) for end in ends]}
    if kind is dict:
        pairs = [[encode(k, writer), encode(v, writer)] for k, v in value.items()]
        return {"dict": pairs}
    if kind is datetime.date:
        return {"date": value.isoformat()}
    if isinstance(value, datetime.datetime) and not getattr(value, "nanosecond", 0):
        return {"datetime": value.isoformat()}  # also pandas' Timestamp, which equals it
    if kind is np.ndarray:
        return _encode_array(value, writer)
    if isinstance(value, sp.csr_array):
        parts = [value.data, value.indices, value.indptr]
        return {"csr": [*(encode(part, writer) for part in parts), list(value.shape)]}
    if kind is Step:
        return {"step": encode(dataclasses.astuple(value), writer)["tuple"]}
    if kind in (Proposition, Rule):
        tag = "proposition" if kind is Proposition else "rule"
        parts = [getattr(value, f.name) for f in dataclasses.fields(value)]
        return {tag: [encode(part, writer) for part in parts]}
    if isinstance(value, Kernel | KernelFamily):
        return _encode_kernel(value, writer)
    if kind is ProductLattice:
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"lattice": {name: encode(field, writer) for name, field in fields.items()}}
    if callable(value) or isinstance(value, Selector):
        raise NotStorableError("A function or selector cannot be stored in a model file.")
    raise NotStorableError(
        f"A value of type {kind.__name__} cannot be stored in a model file; "
        "use strings, numbers or dates."
    )


def _encode_scalar(value: np.generic, writer: Writer) -> Any:
    plain = value.item()
    if value.dtype.kind not in "biufU" or isinstance(plain, np.generic):  # a long double stays one
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
            if isinstance(value, FromCallable)
            else "only kernelweave's own kernels can be stored"
        )
        raise ModelFileError(
            f"The kernel {value} cannot be written to a model file because {why}; "
            "use Precomputed(gram) in its place, or pickle the model."
        )
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    tag = "kernel" if isinstance(value, Kernel) else "family"
    return {tag: [kind.__name__, {k: encode(v, writer) for k, v in fields.items()}]}


class Decoder:
    """Turns JSON back into values; ValueError and TypeError say what is wrong."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._ready: dict[str, Precomputed] = {}

    def __call__(self, node: Any) -> Any:
        """Return the value that ``node`` stands for."""
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
                return _objects(shape, self(values))
            case "csr", [data, indices, indptr, [int() as n, int() as m]]:
                return _csr(self(data), self(indices), self(indptr), (n, m))
            case "step", [_, _, _, _, _]:
                return Step(*self(content))
            case "proposition", [_, _, _, _, _]:
                return Proposition(*self(content))
            case "rule", [_, _, _]:
                return Rule(*self(content))
            case "kernel", [str() as name, dict() as fields]:
                return self._kernel(name, fields)
            case "lattice", dict() as fields:
                return ProductLattice(**{k: self(v) for k, v in fields.items()})
            case "family", [str() as name, dict() as fields]:
                return _family(name, {k: self(v) for k, v in fields.items()})
        raise ValueError(f"a value of kind {tag!r} is not known or not complete")

    def _kernel(self, name: str, fields: dict[str, Any]) -> Kernel:
        if name not in KERNELS:
            raise ValueError(f"there is no kernel {name!r}")
        values = {k: self(v) for k, v in fields.items()}
        if KERNELS[name] is not Precomputed:
            return KERNELS[name](**values)
        # These are equal only to themselves, so that one kernel must not become two.
        return self._ready.setdefault(repr(fields), Precomputed(check=False, **values))


def _scalar(dtype: str, value: Any) -> Any:
    kind = np.dtype(dtype)
    if kind.kind not in "biufU" or not isinstance(value, bool | int | float | str):
        raise ValueError(f"a number of type {dtype!r} is not known")
    return kind.type(value)


def _objects(shape: list[Any], values: list[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values)).reshape(shape)


def _csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_array[Any]:
    array = sp.csr_array((data, indices, indptr), shape=shape)
    array.check_format(full_check=True)
    return array


def _family(name: str, fields: dict[str, Any]) -> KernelFamily:
    """Build a family by its public function, which checks what it is given."""
    if not isinstance(fields.get("per_feature", False), bool):
        raise ValueError("per_feature must be true or false")
    if name == RBFLadder.__name__:
        return rbf_ladder(**fields)
    if name == CompleteLadder.__name__:
        return complete_ladder(**fields)
    if name == PolynomialLadder.__name__:
        return polynomial_ladder(**fields)
    if name == Views.__name__:
        return views({view: (columns, items) for view, columns, items in fields["parts"]})
    raise ValueError(f"there is no family of kernels {name!r}")
