"""Clusterings as JSON, and back."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.estimators import KernelSpectralClustering

from .archive import Writer
from .checks import check_array, check_columns, check_type
from .codec import Decoder, encode

_FITTED = "labels_ embedding_ eigenvalues_ normalized_ n_empty_ n_features_in_".split()
_OPTIONAL = ["feature_names_in_"]


def encode_clusters(model: KernelSpectralClustering, writer: Writer) -> dict[str, Any]:
    """Return a fitted clustering as JSON; it holds a cluster and a point per row, not the rows."""
    names = [*_FITTED, *(name for name in _OPTIONAL if hasattr(model, name))]
    parameters = model.get_params(deep=False)
    return {
        "estimator": type(model).__name__,
        "parameters": {name: encode(value, writer) for name, value in parameters.items()},
        "fitted": {name: encode(getattr(model, name), writer) for name in names},
    }


def decode_clusters(node: dict[str, Any], decode: Decoder) -> KernelSpectralClustering:
    """Return what `encode_clusters` was given; ValueError and TypeError say what is wrong."""
    options = {name: decode(value) for name, value in node["parameters"].items()}
    model = KernelSpectralClustering(**options)
    model._validate_params()
    fitted = {name: decode(value) for name, value in node["fitted"].items()}
    if not set(_FITTED) <= set(fitted) <= {*_FITTED, *_OPTIONAL}:
        raise ValueError(f"the fitted attributes are {sorted(fitted)}")
    for name, value in fitted.items():
        setattr(model, name, value)
    _check_fitted(model)
    return model


def _check_fitted(model: Any) -> None:
    check_columns(model)
    check_type("labels_", model.labels_, np.ndarray)
    check_type("eigenvalues_", model.eigenvalues_, np.ndarray)
    n, rank = model.labels_.size, model.eigenvalues_.size
    check_array("labels_", model.labels_, "i", (n,))
    check_array("eigenvalues_", model.eigenvalues_, "f", (rank,))
    check_array("embedding_", model.embedding_, "f", (n, rank))
    if not n or not 0 <= model.labels_.min() <= model.labels_.max() < rank:
        raise ValueError(f"labels_ must hold numbers of {rank} clusters")
    check_type("normalized_", model.normalized_, bool | np.bool_)
    check_type("n_empty_", model.n_empty_, Integral)
    if not 0 <= model.n_empty_ <= n:
        raise ValueError(f"n_empty_ must be a number of the {n} rows")
