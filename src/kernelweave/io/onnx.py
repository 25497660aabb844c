"""Fitted models as ONNX graphs, for programs without Python.

The graph computes what prediction computes, in 64-bit floats: kernels between the rows and the
support rows or landmarks, or the conditions of rules, their weighted sum, and the class. It reads
one matrix of numbers with the columns of training. Operators are those of opset 18.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError
from kernelweave.estimators.terms import KernelTerm, KernelTerms, RuleTerms
from kernelweave.kernels import ARD, RBF, Laplacian, Linear, MetricLaplacian, Polynomial
from kernelweave.kernels.column_encoding import CLIP, NumberEncoding
from kernelweave.kernels.encoding import TableEncoding
from kernelweave.rules import LinearTerm, Rule
from kernelweave.rules.linear import is_linear

_OPSET = 18
Name: TypeAlias = str  # of a value in the graph


def to_onnx(model: Any) -> Any:
    """Return a fitted model as an ONNX graph.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor whose kernels are `Linear`, `Polynomial`, `RBF`, `ARD`,
        `Laplacian`, products of them, default kernels or a learned metric on columns of numbers,
        or a rule ensemble on columns of numbers. Kernels that were given to `fit` as Gram matrices
        or functions cannot be written.

    Returns
    -------
    onnx : onnx.ModelProto
        Input ``X`` of shape (n_rows, n_features), 64-bit floats, NaN for gaps. Outputs: ``score``
        of shape (n_rows, n_outputs), as ``decision_function`` (or ``predict`` of a regressor)
        returns them, and for classifiers ``label``. Write it with ``onnx.save``.

    Examples
    --------
    >>> from kernelweave import MKLClassifier, RBF
    >>> from kernelweave.datasets import make_additive
    >>> X, y = make_additive(60, 5, random_state=0)
    >>> graph = to_onnx(MKLClassifier([RBF(2.0)]).fit(X, y))  # doctest: +SKIP
    """
    parts: Any = model._terms() if hasattr(model, "_terms") else None
    writers: dict[type, Callable[[_Graph, Any, Any], Name]] = {
        KernelTerms: _write_kernels,
        RuleTerms: _write_rules,
    }
    if type(parts) not in writers:
        raise InputTypeError(
            f"{type(model).__name__} cannot be written as ONNX; models that are sums of kernels or "
            "of rules can."
        )
    graph = _Graph()
    n_outputs = len(parts.intercept)
    scores = writers[type(parts)](graph, parts, model)
    graph.node("Add", [scores, graph.array(parts.intercept)], "score")
    classes = getattr(model, "classes_", None)
    if getattr(model, "_several", False):
        raise InputTypeError("Models of several labels cannot be written as ONNX.")
    if classes is not None:
        _write_label(graph, np.asarray(classes), n_outputs)
    return graph.model(model.n_features_in_, n_outputs, classes)


class _Graph:
    """Nodes and constants of a graph that is being written."""

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._written: dict[Any, Name] = {}

    def array(self, values: NDArray[Any] | float) -> Name:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(
        self, kind: str, inputs: list[Name], output: Name | None = None, **options: Any
    ) -> Name:
        name = output or f"v{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **options))
        return name

    def once(self, key: Any, write: Callable[[], Name]) -> Name:
        """Return a value that several kernels share."""
        if key not in self._written:
            self._written[key] = write()
        return self._written[key]

    def columns(self, positions: Any) -> Name:
        """Return columns of the input."""
        index = np.asarray(positions, dtype=np.int64)
        return self.node("Gather", ["X", self.array(index)], axis=1)

    def model(self, n_features: int, n_outputs: int, classes: Any) -> Any:
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        value = helper.make_tensor_value_info
        outputs = [value("score", kinds.DOUBLE, ["n", n_outputs])]
        if classes is not None:
            kind = kinds.INT64 if np.asarray(classes).dtype.kind in "iub" else kinds.STRING
            outputs.append(value("label", kind, ["n"]))
        graph = helper.make_graph(
            self._nodes,
            "kernelweave",
            [value("X", kinds.DOUBLE, ["n", n_features])],
            outputs,
            self._constants,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        made = helper.make_model(graph, opset_imports=opset, producer_name="kernelweave")
        made.ir_version = 9  # of the same year as the opset, so that older runtimes read it
        self._onnx.checker.check_model(made)
        return made


def _write_label(graph: _Graph, classes: NDArray[Any], n_outputs: int) -> None:
    if n_outputs == 1:
        above = graph.node("Greater", ["score", graph.array(np.zeros(1))])
        column = graph.node("Cast", [above], to=7)  # 7: 64-bit integers
    else:
        column = graph.node("ArgMax", ["score"], axis=1, keepdims=1)
    place = graph.node("Squeeze", [column, graph.array(np.array([1], np.int64))])
    whole = classes.dtype.kind in "iub"
    labels = classes.astype(np.int64) if whole else classes.astype(str).astype(object)
    graph.node("Gather", [graph.array(labels), place], "label")


def _write_kernels(graph: _Graph, parts: KernelTerms, model: Any) -> Name:
    table = _empty_table(model)
    total = None
    for term in parts.terms:
        values = _write_term(graph, term, table)
        total = values if total is None else graph.node("Add", [total, values])
    assert total is not None
    return total


def _empty_table(model: Any) -> Any:
    """Return a table of one row with the columns of training."""
    zeros = np.zeros((1, model.n_features_in_))
    if not hasattr(model, "feature_names_in_"):
        return zeros
    import pandas as pd

    return pd.DataFrame(zeros, columns=list(model.feature_names_in_))


def _write_term(graph: _Graph, term: KernelTerm, table: Any) -> Name:
    product = None
    for kernel, rows in term.factors:
        if type(kernel) not in _BLOCKS or not isinstance(rows, np.ndarray):
            raise InputTypeError(f"{kernel} cannot be written as ONNX.")
        encoding = getattr(kernel, "encoding", kernel.columns)
        left = graph.once(kernel.view, partial(_read, graph, kernel, encoding, table))
        block = _BLOCKS[type(kernel)](graph, kernel, left, rows)
        product = block if product is None else graph.node("Mul", [product, block])
    assert product is not None
    return graph.node("MatMul", [product, graph.array(np.ascontiguousarray(term.coef))])


def _read(graph: _Graph, kernel: Any, encoding: Any, table: Any) -> Name:
    """Return the columns of a kernel, encoded where it encodes them."""
    positions = np.asarray(kernel.positions(table))
    if type(encoding) is not TableEncoding:
        return graph.columns(positions)
    owners = np.asarray(encoding.owners)
    parts = []
    for k, column in enumerate(encoding.encodings):
        if type(column) is not NumberEncoding:
            raise InputError(
                f"The column {encoding.keys[k]!r} is a category or a date, which cannot be written "
                "as ONNX; only numbers can."
            )
        parts += _encode(graph, column, positions[owners == k][:1])
    return parts[0] if len(parts) == 1 else graph.node("Concat", parts, axis=1)


def _encode(graph: _Graph, column: NumberEncoding, position: Any) -> list[Name]:
    """Return the encoded column, and the indicator of its gaps; see `NumberEncoding.encode`."""
    low, high = graph.array(-CLIP), graph.array(CLIP)
    value = graph.columns(position)
    gap = graph.node("Or", [graph.node("IsNaN", [value]), graph.node("IsInf", [value])])
    filled = graph.node("Where", [gap, graph.array(np.full(1, column.median)), value])
    centred = graph.node("Sub", [filled, graph.array(np.full(1, column.mean))])
    standard = graph.node("Div", [centred, graph.array(np.full(1, column.deviation))])
    standard = graph.node("Clip", [standard, low, high])
    # Linear interpolation is a sum of ramps: one rises between each pair of knots.
    score = graph.array(column.scores[:1])
    if len(column.knots) > 1:
        steps = np.diff(column.knots)
        above = graph.node("Sub", [filled, graph.array(column.knots[:-1])])
        shares = graph.node("Div", [above, graph.array(steps)])
        ramps = graph.node("Clip", [shares, graph.array(0.0), graph.array(1.0)])
        rises = graph.array(np.diff(column.scores)[:, None])
        score = graph.node("Add", [graph.node("MatMul", [ramps, rises]), score])
    total = graph.node("Add", [standard, score])
    scaled = graph.node("Mul", [total, graph.array(np.full(1, 0.5 / column.scale))])
    encoded = graph.node("Clip", [scaled, low, high])
    return [encoded, graph.node("Cast", [gap], to=11)] if column.gaps else [encoded]  # 11: double


def _inner(graph: _Graph, left: Name, rows: Floats) -> Name:
    return graph.node("MatMul", [left, graph.array(np.ascontiguousarray(rows.T))])


def _linear(graph: _Graph, kernel: Linear, left: Name, rows: Floats) -> Name:
    if kernel.centre is None:
        return _inner(graph, left, rows)
    centred = graph.node("Sub", [left, graph.array(np.array(kernel.centre))])
    return _inner(graph, centred, np.asarray(kernel.centred(rows)))


def _polynomial(graph: _Graph, kernel: Polynomial, left: Name, rows: Floats) -> Name:
    total = graph.node("Add", [_inner(graph, left, rows), graph.array(float(kernel.coef0))])
    return graph.node("Pow", [total, graph.array(float(kernel.degree))])


def _differences(graph: _Graph, left: Name, rows: Floats, scales: Any) -> Name:
    """Return scaled differences of all pairs, of shape (n_rows, n_support, n_columns)."""
    wide = graph.node("Unsqueeze", [left, graph.array(np.array([1], np.int64))])
    difference = graph.node("Sub", [wide, graph.array(rows[None])])
    return graph.node("Mul", [difference, graph.array(np.asarray(scales, dtype=np.float64))])


def _total(graph: _Graph, kind: str, difference: Name) -> Name:
    last = graph.array(np.array([2], np.int64))
    return graph.node(kind, [difference, last], keepdims=0)


def _decay(graph: _Graph, distance: Name) -> Name:
    return graph.node("Exp", [graph.node("Neg", [distance])])


def _gaussian(graph: _Graph, left: Name, rows: Floats, widths: Floats) -> Name:
    scales = np.broadcast_to(np.sqrt(0.5) / widths, rows.shape[1:]).copy()
    difference = _differences(graph, left, rows, scales)
    return _decay(graph, _total(graph, "ReduceSumSquare", difference))


def _rbf(graph: _Graph, kernel: RBF, left: Name, rows: Floats) -> Name:
    return _gaussian(graph, left, rows, np.array(kernel.width))


def _ard(graph: _Graph, kernel: ARD, left: Name, rows: Floats) -> Name:
    return _gaussian(graph, left, rows, np.array(kernel.widths))


def _laplacian(graph: _Graph, kernel: Laplacian, left: Name, rows: Floats) -> Name:
    difference = _differences(graph, left, rows, np.full(rows.shape[1], 1.0 / kernel.width))
    return _decay(graph, _total(graph, "ReduceL1", difference))


def _metric(graph: _Graph, kernel: MetricLaplacian, left: Name, rows: Floats) -> Name:
    """Return the mixture of the product Laplacian and the one of Euclidean distances."""
    share, (first, second) = kernel.share, kernel.widths
    parts = []
    if share > 0:
        difference = _differences(graph, left, rows, kernel.metric.weights / first)
        parts.append((share, _total(graph, "ReduceL1", difference)))
    if share < 1:
        root = kernel.metric.root
        turned = graph.node("MatMul", [left, graph.array(root)])
        difference = _differences(graph, turned, rows @ root, np.full(len(root), 1.0 / second))
        parts.append((1 - share, _total(graph, "ReduceL2", difference)))
    mixed = [graph.node("Mul", [_decay(graph, d), graph.array(float(s))]) for s, d in parts]
    return mixed[0] if len(mixed) == 1 else graph.node("Add", mixed)


_BLOCKS: dict[type, Callable[[_Graph, Any, Name, Floats], Name]] = {
    Linear: _linear,
    Polynomial: _polynomial,
    RBF: _rbf,
    ARD: _ard,
    Laplacian: _laplacian,
    MetricLaplacian: _metric,
}


def _write_rules(graph: _Graph, parts: RuleTerms, model: Any) -> Name:
    """Return the weights of the rules that hold and what linear terms add, added up."""
    rules = [term for term in parts.rules if not is_linear(term)]
    linear = [term for term in parts.rules if is_linear(term)]
    added = [_write_linear(graph, term) for term in linear]
    if rules or not added:
        added.append(_write_conditions(graph, rules, len(parts.intercept)))
    total = added[0]
    for other in added[1:]:
        total = graph.node("Add", [total, other])
    return total


def _write_linear(graph: _Graph, term: LinearTerm) -> Name:
    """Return what a linear term adds, one column for each output; of a gap, zero."""
    value = graph.columns([term.position])
    low, high, mean, zero = (
        graph.array(np.full(1, number)) for number in (term.low, term.high, term.mean, 0.0)
    )
    clipped = graph.node("Min", [graph.node("Max", [value, low]), high])
    above = graph.node("Sub", [clipped, mean])
    known = graph.node("Where", [graph.node("IsNaN", [value]), zero, above])
    return graph.node("Mul", [known, graph.array(np.array([term.weights]))])


def _write_conditions(graph: _Graph, rules: list[Rule], n_outputs: int) -> Name:
    """Return the weights of the rules whose conditions all hold, added up."""
    conditions = list(dict.fromkeys(c for rule in rules for c in rule.conditions))
    if not conditions:
        nothing = graph.columns([0])
        zero = graph.node("Sub", [nothing, nothing])
        return graph.node("MatMul", [zero, graph.array(np.zeros((1, n_outputs)))])
    columns = []
    for condition in conditions:
        if isinstance(condition.value, str) or condition.levels:
            raise InputError(
                f"The rule condition {condition} is on a category, which cannot be written as "
                "ONNX; only numbers can."
            )
        value = graph.columns([condition.position])
        limit = graph.array(np.full(1, float(condition.value)))
        kind = {"<=": "LessOrEqual", ">": "Greater"}.get(condition.operator, "Equal")
        true = graph.node(kind, [value, limit])
        if condition.operator == "!=":  # of a gap, too, a condition is false
            known = graph.node("Not", [graph.node("IsNaN", [value])])
            true = graph.node("And", [graph.node("Not", [true]), known])
        columns.append(graph.node("Cast", [true], to=11))
    holds = columns[0] if len(columns) == 1 else graph.node("Concat", columns, axis=1)
    place = {condition: k for k, condition in enumerate(conditions)}
    members = np.zeros((len(conditions), len(rules)))
    for r, rule in enumerate(rules):
        members[[place[c] for c in rule.conditions], r] = 1
    counts = graph.node("MatMul", [holds, graph.array(members)])
    needed = graph.array(members.sum(axis=0))
    active = graph.node("Cast", [graph.node("Equal", [counts, needed])], to=11)
    weights = np.array([rule.weights for rule in rules], dtype=np.float64)
    return graph.node("MatMul", [active, graph.array(weights)])
