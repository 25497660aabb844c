"""Estimators as JSON, and back, with a check that what was read belongs together."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from kernelweave.banks import Views
from kernelweave.banks.nystroem.landmarks import LandmarkFunction
from kernelweave.errors import ModelFileError
from kernelweave.estimators import (
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    KernelSpectralClustering,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    PairwiseKernelLearner,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    SumProductMKLClassifier,
)
from kernelweave.estimators.base import BaseMKL, in_use
from kernelweave.estimators.hierarchical_base import BaseHierarchical
from kernelweave.estimators.regressor import KernelRegressor
from kernelweave.kernels import Cosine, Kernel, Overlap, Precomputed, Scaled, Words
from kernelweave.kernels.base import Rows
from kernelweave.kernels.discrete import N_WORDS
from kernelweave.kernels.expression import Composite
from kernelweave.kernels.table import Table
from kernelweave.kernels.vector import VectorKernel

from .archive import Writer
from .checks import check_array, check_columns, check_names, check_record, check_type
from .clusters import decode_clusters, encode_clusters
from .codec import Decoder, DependsOnDataError, encode
from .pairs import decode_pairs, encode_pairs
from .preparer import TablePreparer, check_options
from .rules import RULE_ENSEMBLES, decode_ensemble, encode_ensemble

_COMMON = """weights_ scales_ contributions_ objective_ duality_gap_ converged_ n_iter_ history_
support_ dual_coef_ intercept_ n_features_in_""".split()

_NOISE = """classes_ ridge_weights_ ridges_ threshold_ rates_ noise_level_ label_quality_
wrong_label_probability_ loo_scores_ loo_error_ _given _suggested _slope""".split()
_NOISY = """classes_ bias_weight_ noise_level_ cap_ gamma_ dual_weights_ label_quality_ _given
_suggested _by_size""".split()

_NODES = ["active_nodes_", "block_norms_", "n_nodes_"]

# An estimator can be saved when it stands here, with what `fit` gave it beyond the common part.
ESTIMATORS: dict[type[BaseMKL], list[str]] = {
    MKLClassifier: ["classes_"],
    MKLRegressor: ["_one_output"],
    HierarchicalMKLClassifier: ["classes_", "_several", *_NODES],
    HierarchicalMKLRegressor: ["_one_output", *_NODES],
    NoiseTolerantKernelClassifier: _NOISE,
    NoisyLabelMKLClassifier: _NOISY,
    RadiusKernelClassifier: ["classes_", "squared_radius_", "kernel_"],
    RadiusMKLClassifier: ["classes_", "squared_radius_", "lower_bound_"],
    SumProductMKLClassifier: ["classes_", "node_weights_", "_structure"],
}
# These have little in common with the others, so they are written in their own way.
_OWN: dict[type, tuple[Any, Any]] = {
    KernelSpectralClustering: (encode_clusters, decode_clusters),
    PairwiseKernelLearner: (encode_pairs, decode_pairs),
}
_OPTIONAL = ["feature_names_in_", "_last", "landmark_gap_"]
_NOT_ASSESSED = -1.0  # stands for NaN among qualities, which are probabilities
_PREPARED = """feature_names_in_ numeric_ means_ scales_ fills_ n_samples_seen_ rows_
target_""".split()


def encode_model(model: Any, writer: Writer) -> dict[str, Any]:
    """Return a fitted estimator, or a pipeline of a `TablePreparer` and one, as JSON."""
    if isinstance(model, Pipeline):
        if len(model.steps) != 2 or type(model.steps[0][1]) is not TablePreparer:
            raise ModelFileError(
                "Of pipelines only those of a kernelweave.io.TablePreparer and an estimator can be "
                "saved; save the last step alone with save(pipeline[-1], path)."
            )
        (name, preparer), (last, estimator) = model.steps
        node = encode_model(estimator, writer)
        fitted = {k: encode(getattr(preparer, k), writer) for k in _PREPARED}
        parameters = encode(preparer.get_params(), writer)
        return node | {
            "preprocess": {"parameters": parameters, "fitted": fitted},
            "steps": [name, last],
        }
    known = (*ESTIMATORS, *RULE_ENSEMBLES, *_OWN)
    if type(model) not in known:
        listed = ", ".join(kind.__name__ for kind in known)
        raise ModelFileError(
            f"A model of type {type(model).__name__} cannot be saved, only {listed} can."
        )
    if not model.__sklearn_is_fitted__():
        raise ModelFileError(
            f"This {type(model).__name__} is not fitted yet; call fit before save."
        )
    if type(model) in RULE_ENSEMBLES:
        return encode_ensemble(model, writer)
    if type(model) in _OWN:
        own: dict[str, Any] = _OWN[type(model)][0](model, writer)
        return own
    kernels = encode(model.kernels_, writer)
    names = [*_COMMON, *ESTIMATORS[type(model)], *(k for k in _OPTIONAL if hasattr(model, k))]
    node = {
        "estimator": type(model).__name__,
        "parameters": _encode_parameters(model, kernels, writer),
        "kernels": kernels,
        "fitted": {name: encode(_finite(model, name), writer) for name in names},
    }
    function = model._function
    if function is None:
        return node | {"support_rows": encode(list(model._support_views.rows.values()), writer)}
    landmarks = [function.which, list(function.rows), list(function.coefs)]
    return node | {"landmarks": encode(landmarks, writer)}


def _finite(model: BaseMKL, name: str) -> Any:
    """Return an attribute as files hold it: without NaN, which no array of a file may have."""
    value = getattr(model, name)
    if name == "label_quality_" and np.isnan(value).any():
        return np.where(np.isnan(value), _NOT_ASSESSED, value)
    return value


def _encode_parameters(model: BaseMKL, kernels: Any, writer: Writer) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    if isinstance(model, SumProductMKLClassifier):
        return _encode_but(parameters, "structure", encode(model._structure, writer), writer)
    if isinstance(model, BaseHierarchical):
        parameters = model._plain_parameters()
    elif "kernels" in parameters:
        return _encode_but(parameters, "kernels", kernels, writer)
    return {name: encode(value, writer) for name, value in parameters.items()}


def _encode_but(
    parameters: dict[str, Any], name: str, fitted: Any, writer: Writer
) -> dict[str, Any]:
    """Encode parameters, one of them as it was fitted if it cannot be stored as it was given."""
    given = parameters.pop(name)
    coded = {key: encode(value, writer) for key, value in parameters.items()}
    if hasattr(given, "is_directed"):  # a graph of networkx
        return coded | {name: fitted}
    try:
        return coded | {name: encode(given, writer)}
    except DependsOnDataError:
        return coded | {name: fitted}


def decode_model(node: dict[str, Any], decode: Decoder) -> Any:
    """Return what `encode_model` was given; ValueError and TypeError say what is wrong."""
    model = _decode_estimator(node, decode)
    if "preprocess" not in node:
        return model
    preparer = _decode_preparer(node["preprocess"], decode)
    if list(preparer.feature_names_in_) != list(getattr(model, "feature_names_in_", ())):
        raise ValueError("the columns of the table are not those of the model")
    first, last = node["steps"]
    if not isinstance(first, str) or not isinstance(last, str):
        raise ValueError("the steps must have names")
    return Pipeline([(first, preparer), (last, model)])


def _decode_estimator(node: dict[str, Any], decode: Decoder) -> Any:
    if node["estimator"] in [kind.__name__ for kind in RULE_ENSEMBLES]:
        return decode_ensemble(node, decode)
    for kind, (_, read) in _OWN.items():
        if node["estimator"] == kind.__name__:
            return read(node, decode)
    kinds = {kind.__name__: kind for kind in ESTIMATORS}
    if node["estimator"] not in kinds:
        raise ValueError(f"there is no estimator {node['estimator']!r}")
    model_kind = kinds[node["estimator"]]
    model = model_kind(**{name: decode(value) for name, value in node["parameters"].items()})
    model._validate_params()
    model.kernels_ = decode(node["kernels"])
    fitted = {name: decode(value) for name, value in node["fitted"].items()}
    needed = {*_COMMON, *ESTIMATORS[model_kind]}
    if not needed <= set(fitted) <= needed | set(_OPTIONAL):
        raise ValueError(f"the fitted attributes are {sorted(fitted)}")
    for name, value in fitted.items():
        setattr(model, name, value)
    _check_fitted(model)
    if "label_quality_" in fitted:
        quality = model.label_quality_
        model.label_quality_ = np.where(quality == _NOT_ASSESSED, np.nan, quality)
    if "landmarks" in node:
        model._function = _landmarks(model, decode(node["landmarks"]))
    else:
        model._support_views = _views(model, decode(node["support_rows"]))
    return model


def _decode_preparer(node: dict[str, Any], decode: Decoder) -> TablePreparer:
    preparer = TablePreparer(**decode(node["parameters"]))
    for name in _PREPARED:
        setattr(preparer, name, decode(node["fitted"][name]))
    check_type("standardize", preparer.standardize, bool)
    check_options(preparer)
    names = preparer.feature_names_in_
    check_names("columns", names)
    check_array("numeric_", preparer.numeric_, "b", (len(names),))
    check_array("means_", preparer.means_, "f", (len(names),))
    check_array("scales_", preparer.scales_, "f", (len(names),))
    check_array("fills_", preparer.fills_, "f", (len(names),))
    if not (preparer.scales_ > 0).all():
        raise ValueError("the scales of the columns must be positive")
    check_type("n_samples_seen_", preparer.n_samples_seen_, Integral)
    if preparer.rows_ is not None:
        check_array("rows_", preparer.rows_, "i", (int(preparer.n_samples_seen_),))
    check_type("target_", preparer.target_, str | None)
    preparer.n_features_in_ = len(names)
    return preparer


def _check_fitted(model: Any) -> None:
    """Refuse attributes of other types or shapes than `fit` gives them."""
    check_type("kernels_", model.kernels_, list)
    for kernel in model.kernels_:
        check_type("an item of kernels_", kernel, Kernel)
    n_kernels = len(model.kernels_)
    structured = isinstance(model, SumProductMKLClassifier)
    n_weights = len(model.paths_) if structured else n_kernels
    for name in ("weights_", "contributions_"):
        check_array(name, getattr(model, name), "f", (n_weights,))
    check_array("scales_", model.scales_, "f", (n_kernels,))
    if not (model.weights_ >= 0).all():
        raise ValueError("weights_ must not be negative")
    if structured:
        _check_structure(model)
    elif not model.weights_.any() and not getattr(model, "bias_weight_", 0.0):
        raise ValueError("weights_ must not be all zero")
    check_type("intercept_", model.intercept_, np.ndarray)
    check_type("support_", model.support_, np.ndarray)
    n_outputs, n_support = model.intercept_.size, model.support_.size
    check_array("intercept_", model.intercept_, "f", (n_outputs,))
    check_array("support_", model.support_, "i", (n_support,))
    per_kernel = isinstance(model, NoiseTolerantKernelClassifier)
    shape = (n_kernels, n_outputs, n_support) if per_kernel else (n_outputs, n_support)
    check_array("dual_coef_", model.dual_coef_, "f", shape)
    check_record(model)
    if hasattr(model, "squared_radius_"):
        check_type("squared_radius_", model.squared_radius_, Real)
        if not 0 < model.squared_radius_ < np.inf:
            raise ValueError("squared_radius_ must be positive")
    if hasattr(model, "lower_bound_"):
        check_type("lower_bound_", model.lower_bound_, Real)
    if hasattr(model, "kernel_"):
        check_type("kernel_", model.kernel_, Kernel)
    _check_inputs_and_outputs(model, n_outputs)
    if isinstance(model, BaseHierarchical):
        _check_nodes(model)
    if isinstance(model, NoiseTolerantKernelClassifier):
        _check_noise(model)
    if isinstance(model, NoisyLabelMKLClassifier):
        _check_noisy(model, n_outputs)
    if (last := getattr(model, "_last", None)) is not None:
        weights, coef, C = last
        check_array("the weights to start from", weights, "f", (n_kernels,))
        check_type("the coefficients to start from", coef, np.ndarray)
        check_array("the coefficients to start from", coef, "f", (len(coef), n_outputs))
        check_type("the C to start from", C, Real)


def _check_structure(model: Any) -> None:
    network = model.network_
    names = [network.names[i] for i in network.products]
    if not isinstance(model.node_weights_, dict) or list(model.node_weights_) != names:
        raise ValueError("node_weights_ does not belong to the structure")
    for name, value in model.node_weights_.items():
        check_type(f"the weight of {name}", value, Real)
        if not 0 <= value < np.inf:
            raise ValueError(f"the weight of {name} must not be negative")
    if len(network.leaves) != len(model.kernels_):
        raise ValueError("the structure does not have the kernels of the model")


def _check_nodes(model: Any) -> None:
    check_type("active_nodes_", model.active_nodes_, list)
    if len(model.active_nodes_) != len(model.kernels_):
        raise ValueError("active_nodes_ does not have the kernels of the model")
    check_array("block_norms_", model.block_norms_, "f", (len(model.kernels_),))
    check_type("n_nodes_", model.n_nodes_, Integral)


def _check_labels(model: Any) -> int:
    """Refuse what is said about training labels unless it has one entry per label."""
    check_type("label_quality_", model.label_quality_, np.ndarray)
    n = int(model.label_quality_.size)
    check_array("label_quality_", model.label_quality_, "f", (n,))
    check_type("noise_level_", model.noise_level_, Real)
    for name in ("_given", "_suggested"):
        codes = getattr(model, name)
        check_array(name, codes, "i", (n,))
        if n and not 0 <= codes.min() <= codes.max() < model.classes_.size:
            raise ValueError(f"{name} must hold positions in classes_")
    return n


def _check_noisy(model: Any, n_outputs: int) -> None:
    n = _check_labels(model)
    one = n_outputs == 1
    check_array("cap_", model.cap_, "f", (n_outputs,))
    check_array("dual_weights_", model.dual_weights_, "f", (n,) if one else (n, n_outputs))
    check_type("bias_weight_", model.bias_weight_, Real)
    if one:
        check_type("gamma_", model.gamma_, Real)
    else:
        check_array("gamma_", model.gamma_, "f", (n_outputs,))
    check_array("_by_size", model._by_size, "i", (model.classes_.size,))
    if sorted(model._by_size.tolist()) != list(range(model.classes_.size)):
        raise ValueError("_by_size must order the classes")


def _check_noise(model: Any) -> None:
    n_classes, n = model.classes_.size, _check_labels(model)
    check_array("wrong_label_probability_", model.wrong_label_probability_, "f", (n,))
    two = n_classes == 2
    check_array("loo_scores_", model.loo_scores_, "f", (n,) if two else (n, n_classes))
    check_array("rates_", model.rates_, "f", (2,) if two else (n_classes, n_classes))
    check_type("ridges_", model.ridges_, np.ndarray)
    check_array("ridges_", model.ridges_, "f", (model.ridges_.size,))
    shape = (len(model.kernels_), model.ridges_.size)
    check_array("ridge_weights_", model.ridge_weights_, "f", shape)
    for name in ("threshold_", "loo_error_", "_slope"):
        check_type(name, getattr(model, name), Real)


def _check_inputs_and_outputs(model: Any, n_outputs: int) -> None:
    check_columns(model)
    if isinstance(model, KernelRegressor):
        check_type("_one_output", model._one_output, bool)
        fits = n_outputs == 1 if model._one_output else n_outputs >= 1
    else:
        check_type("classes_", model.classes_, np.ndarray)
        check_array("classes_", model.classes_, "biufUO", (model.classes_.size,))
        several = getattr(model, "_several", False)  # labels, each with an output of its own
        check_type("_several", several, bool)
        one = model.classes_.size == 2 and not several
        fits = n_outputs == (1 if one else model.classes_.size)
    if not fits:
        raise ValueError(f"the number of outputs cannot be {n_outputs}")


def _landmarks(model: Any, parts: Any) -> LandmarkFunction:
    """Give landmarks and their coefficients to the kernels in use."""
    if not model._takes_features or not isinstance(parts, list) or len(parts) != 3:
        raise ValueError("this model has no landmarks")
    which, rows, coefs = parts
    check_type("the kernels in use", which, np.ndarray)
    check_array("the kernels in use", which, "i", (which.size,))
    if not which.size or not 0 <= which.min() <= which.max() < len(model.kernels_):
        raise ValueError("landmarks belong to kernels that are not there")
    if not (isinstance(rows, list) and isinstance(coefs, list)):
        raise ValueError("the landmarks are not lists")
    if not len(rows) == len(coefs) == which.size:
        raise ValueError("the landmarks do not belong to the kernels in use")
    if not isinstance(model, NoiseTolerantKernelClassifier):  # which optimises nothing
        check_type("landmark_gap_", getattr(model, "landmark_gap_", None), Real)
    table = _empty_table(model)
    for j, own, coef in zip(which, rows, coefs, strict=True):
        check_type("the coefficients of landmarks", coef, np.ndarray)
        shape = (len(coef), model.intercept_.size)
        check_array("the coefficients of landmarks", coef, "f", shape)
        _check_rows(model.kernels_[j], own, table, len(coef))
    return LandmarkFunction(which, tuple(rows), tuple(coefs))


def _empty_table(model: Any) -> Table:
    names = getattr(model, "feature_names_in_", None)
    body = np.empty((0, int(model.n_features_in_)))
    return Table(None, body, None if names is None else list(names))


def _views(model: Any, rows: Any) -> Views:
    """Give the rows that prediction needs to the kernels in use."""
    structured = isinstance(model, SumProductMKLClassifier)
    used = range(len(model.kernels_)) if structured else in_use(model.weights_)
    kernels = [model.kernels_[j] for j in used]
    if isinstance(model, BaseHierarchical):
        kernels = list(model._products().factors)
    keys: list[Hashable] = [kernel.view for kernel in kernels]
    distinct = dict.fromkeys(keys)
    if not isinstance(rows, list) or len(rows) != len(distinct):
        raise ValueError("the support rows do not belong to the kernels in use")
    by_key = dict(zip(distinct, rows, strict=True))
    table = _empty_table(model)
    for kernel, key in zip(kernels, keys, strict=True):
        _check_rows(kernel, by_key[key], table, len(model.support_))
    return Views(keys, by_key)


def _check_rows(kernel: Kernel, rows: Rows, table: Table, n: int) -> None:
    """Refuse rows that this kernel cannot have prepared."""
    if isinstance(kernel, Scaled | Cosine):
        return _check_rows(kernel.kernel, rows, table, n)
    if isinstance(kernel, Composite):
        if not isinstance(rows, tuple) or len(rows) != len(kernel.parts):
            raise ValueError(f"{kernel}: its support rows have other parts")
        for part, own in zip(kernel.parts, rows, strict=True):
            _check_rows(part, own, table, n)
        return None
    n_columns = len(table.positions(kernel.columns, str(kernel)))
    if isinstance(kernel, Precomputed):
        check_array(f"{kernel}: support rows", rows, "i", (n,))
        if n_columns != 1 or (n and not 0 <= rows.min() <= rows.max() < len(kernel.gram)):
            raise ValueError(f"{kernel}: its support rows are not in the matrix")
    elif isinstance(kernel, Words):
        check_type(f"{kernel}: support rows", rows, sp.csr_array)
        if rows.shape != (n, N_WORDS) or rows.dtype != np.float64:
            raise ValueError(f"{kernel}: its support rows have shape {rows.shape}")
    elif isinstance(kernel, VectorKernel) and isinstance(rows, sp.csr_array):
        if rows.shape != (n, n_columns) or rows.dtype != np.float64:
            raise ValueError(f"{kernel}: its support rows have shape {rows.shape}")
    elif isinstance(kernel, VectorKernel | Overlap):
        kinds = "f" if isinstance(kernel, VectorKernel) else "biufUO"
        if isinstance(rows, np.ndarray) and rows.dtype.kind == "f":
            kinds = "f"
        check_array(f"{kernel}: support rows", rows, kinds, (n, n_columns))
    return None
