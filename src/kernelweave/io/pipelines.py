"""Pipelines and column transformers of scikit-learn as JSON, and back.

Their fitted steps take the place of those given, so that a loaded pipeline can be cloned and fitted
again. A column transformer whose columns a function picks has the columns that it picked.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from kernelweave.errors import ModelFileError

from .archive import Writer
from .checks import check_names, check_type
from .codec import Decoder, encode
from .columnwise import (
    COMMON,
    INSTEAD,
    STEPS,
    Step,
    check_attributes,
    decode_step,
    encode_common,
    encode_parameters,
    encode_step,
    made,
    plain,
    restore_common,
)

_PIPELINE = Step("sklearn.pipeline", only={"memory": None})
_COLUMNS = Step("sklearn.compose")
_WORDS = ("drop", "passthrough")


def encode_steps(pipeline: Any, writer: Writer) -> dict[str, Any]:
    """Return all steps of a pipeline but the last one."""
    *first, (last, _) = pipeline.steps
    return {
        "step": "Pipeline",
        "parameters": encode_parameters(pipeline, _PIPELINE.only, writer),
        "steps": [[name, _encode(step, writer)] for name, step in first],
        "last": last,
    }


def decode_pipeline(node: dict[str, Any], model: Any, decode: Decoder) -> Any:
    """Return the pipeline of these steps and a model; ValueError where they do not fit."""
    return _decode_pipeline(node, decode, [(node["last"], model)])


def _encode(step: Any, writer: Writer) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    if isinstance(step, str):
        return step
    kind = type(step)
    if kind is Pipeline:
        parameters = encode_parameters(step, _PIPELINE.only, writer)
        steps = [[name, _encode(part, writer)] for name, part in step.steps]
        return {"step": "Pipeline", "parameters": parameters, "steps": steps}
    known = kind.__module__.split(".")[0] == "sklearn" and kind.__name__ in STEPS
    if kind is not ColumnTransformer and not known:
        listed = ", ".join([*STEPS, "ColumnTransformer", "Pipeline"])
        raise ModelFileError(
            f"A step of type {kind.__name__} cannot be saved, only {listed} can; {INSTEAD}."
        )
    if not hasattr(step, "n_features_in_"):
        raise ModelFileError(
            f"This {kind.__name__} is not fitted or has no columns; fit or remove it before save."
        )
    return _encode_columns(step, writer) if kind is ColumnTransformer else encode_step(step, writer)


def _encode_columns(step: Any, writer: Writer) -> dict[str, Any]:
    own = {"_columns", "_transformer_to_input_indices", "_remainder"}
    own |= {"transformers_", "sparse_output_", "output_indices_", "_transformers_feature_names_out"}
    check_attributes(step, {*step.get_params(deep=False), *own, *COMMON})
    positions = step._transformer_to_input_indices
    return {
        **encode_common(step, {}, writer),
        "transformers": [
            [name, _encode(part, writer), [int(j) for j in positions[name]], _by_name(columns)]
            for name, part, columns in step.transformers_
        ],
        "remainder": step.remainder if isinstance(step.remainder, str) else None,
        "sparse": bool(step.sparse_output_),
        "names": encode(plain(getattr(step, "_transformers_feature_names_out", None)), writer),
    }


def _by_name(columns: Any) -> bool:
    if isinstance(columns, slice):
        columns = (columns.start, columns.stop)
    return any(isinstance(item, str) for item in np.atleast_1d(np.asarray(columns, dtype=object)))


def _decode(node: Any, decode: Decoder) -> Any:
    if isinstance(node, str):
        if node not in _WORDS:
            raise ValueError(f"there is no step {node!r}")
        return node
    check_type("a step", node, dict)
    name = node["step"]
    if name == "Pipeline":
        return _decode_pipeline(node, decode, [])
    if name == "ColumnTransformer":
        return _decode_columns(node, decode)
    if name not in STEPS:
        raise ValueError(f"there is no step {name!r}")
    return decode_step(node, decode)


def _decode_pipeline(node: dict[str, Any], decode: Decoder, last: list[Any]) -> Any:
    steps = [(name, _decode(step, decode)) for name, step in node["steps"]] + last
    pipeline = made(_PIPELINE, node, decode, steps=steps)
    pipeline._validate_steps()
    present = [step for _, step in steps if step != "passthrough"]
    for one, two in pairwise(present):
        _check_width(one, _columns_of(two))
    return pipeline


def _columns_of(step: Any) -> int:
    return int(step.n_features_in_)


def _check_width(step: Any, n_columns: int) -> None:
    """Refuse a step that does not return this many columns."""
    if (found := _width(step)) != n_columns:
        raise ValueError(f"a step returns {found} columns, but the next one takes {n_columns}")


def _width(step: Any) -> int:
    name = type(step).__name__
    if name == "Pipeline":
        present = [part for _, part in step.steps if part != "passthrough"]
        return _width(present[-1])
    if name == "ColumnTransformer":
        return max(int(part.stop) for part in step.output_indices_.values())
    return STEPS[name].width(step)


def _decode_columns(node: dict[str, Any], decode: Decoder) -> Any:
    step = made(_COLUMNS, node, decode, transformers=[])
    check_type("verbose_feature_names_out", step.verbose_feature_names_out, bool)
    restore_common(step, node, decode)
    fitted = [_decode_part(part, step, decode) for part in node["transformers"]]
    rest = fitted[-1:] if fitted and fitted[-1][0] == "remainder" else []
    step.transformers = fitted[: len(fitted) - len(rest)]
    step._validate_transformers()
    step.remainder = node["remainder"]
    if step.remainder is None:  # an estimator, unless no column was left for it
        step.remainder = rest[0][1] if rest else "drop"
    elif step.remainder not in _WORDS:
        raise ValueError(f"remainder is {step.remainder!r}")
    check_type("sparse", node["sparse"], bool)
    step.transformers_, step.sparse_output_ = fitted, node["sparse"]
    step._columns = [columns for *_, columns in step.transformers]
    step._remainder = ("remainder", step.remainder, rest[0][2] if rest else [])
    inputs = {"remainder": []} | {part[0]: part[2] for part in node["transformers"]}
    step._transformer_to_input_indices = inputs
    step.output_indices_, at = dict.fromkeys(inputs, slice(0, 0)), 0
    for name, part, _ in fitted:
        if part != "drop":
            step.output_indices_[name] = slice(at, at + _width(part))
            at = step.output_indices_[name].stop
    if (names := decode(node["names"])) is not None:
        step._transformers_feature_names_out = np.array(names, dtype=object)
        check_names("the names of results", step._transformers_feature_names_out)
        if len(names) != at:
            raise ValueError(f"there are {len(names)} names for {at} columns")
    return step


def _decode_part(node: Any, step: Any, decode: Decoder) -> tuple[str, Any, list[Any]]:
    """Return the name, the fitted transformer and the columns of one part."""
    name, coded, positions, by_name = node
    part = _decode(coded, decode)
    check_type("the positions of columns", positions, list)
    for position in positions:
        check_type("the position of a column", position, int)
        if not 0 <= position < step.n_features_in_:
            raise ValueError(f"there is no column {position}")
    if part == "passthrough" or (part != "drop" and _columns_of(part) != len(positions)):
        raise ValueError(f"{name} takes other columns than it was fitted to")
    columns = [step.feature_names_in_[j] for j in positions] if by_name else positions
    return name, part, columns
