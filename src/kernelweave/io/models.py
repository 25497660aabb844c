"""Estimators as JSON, and back, as their classes declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave import estimators
from kernelweave.errors import ModelFileError
from kernelweave.kernels import Kernel, MetricLaplacian

from . import folds
from .archive import Writer
from .checks import check_array, check_fitted, check_type
from .codec import Decoder, NotStorableError, encode
from .preparer import TablePreparer, check_options

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

# Classes that a file may name; None: that of the package, imported when it is needed.
ESTIMATORS: dict[str, Any] = dict.fromkeys(estimators.__all__)
# What replaces NaN in files, by kind: qualities are probabilities, others are never so large.
_INSTEAD_OF_NAN = {"quality": -1.0, "partial": -float(np.finfo(np.float64).max)}
_PREPARED = {
    "feature_names_in_": "names",
    "numeric_": "bool[columns]",
    "means_": "float[columns]",
    "scales_": "float[columns]",
    "fills_": "float[columns]",
    "n_samples_seen_": "integer",
    "rows_": "any",
    "target_": "any",
}


def encode_model(model: Any, writer: Writer) -> dict[str, Any]:
    """Return a fitted estimator, or a pipeline of column-wise steps and one, as JSON."""
    from sklearn.pipeline import Pipeline  # takes long to import

    if isinstance(model, Pipeline):
        return _encode_pipeline(model, writer)
    kind = type(model)
    if kind.__name__ not in ESTIMATORS or _estimator(kind.__name__) is not kind:
        listed = ", ".join(ESTIMATORS)
        raise ModelFileError(f"A model of type {kind.__name__} cannot be saved, only {listed} can.")
    if not model.__sklearn_is_fitted__():
        raise ModelFileError(f"This {kind.__name__} is not fitted yet; call fit before save.")
    declaration = kind._declaration
    module = _parts(declaration.learns)
    node: dict[str, Any] = {"estimator": kind.__name__}
    own = {} if module is None else {"kernels": encode(model.kernels_, writer)}
    if declaration.learns == "members":
        node["members"] = [encode_model(member, writer) for member in model.members_]
    node["parameters"] = _encode_parameters(model, own, writer)
    names = [*declaration.saved, *(k for k in declaration.optional if hasattr(model, k))]
    fitted = {name: getattr(model, name) for name in names}
    kinds = {**declaration.saved, **declaration.optional}
    for name, value in fitted.items():
        missing = _INSTEAD_OF_NAN.get(kinds[name].partition("[")[0])
        if missing is not None and np.isnan(value).any():
            fitted[name] = np.where(np.isnan(value), missing, value)
    node |= own | {"fitted": {name: encode(value, writer) for name, value in fitted.items()}}
    rest = {} if module is None else module.parts(model)
    node |= {name: encode(value, writer) for name, value in rest.items()}
    if left_out := getattr(model, "_folds", None):
        node["folds"] = [encode_model(fold, writer) for fold in left_out]
    return node


def _estimator(name: str) -> Any:
    return ESTIMATORS[name] or getattr(estimators, name)


def _parts(learns: str) -> Any:
    """Return the module that writes and restores parts beside the fitted attributes, or None."""
    if learns == "pairs":
        from . import pairs

        return pairs
    if learns in ("metric", "rules", "clusters", "members"):
        return None
    from . import kernels

    return kernels


def _encode_pipeline(model: Pipeline, writer: Writer) -> dict[str, Any]:
    node = encode_model(model.steps[-1][1], writer)
    if len(model.steps) != 2 or type(model.steps[0][1]) is not TablePreparer:
        from .pipelines import encode_steps

        return node | {"pipeline": encode_steps(model, writer)}
    (name, preparer), (last, _) = model.steps
    fitted = {k: encode(getattr(preparer, k), writer) for k in _PREPARED}
    parameters = encode(preparer.get_params(), writer)
    return node | {
        "preprocess": {"parameters": parameters, "fitted": fitted},
        "steps": [name, last],
    }


def _encode_parameters(model: Any, own: dict[str, Any], writer: Writer) -> dict[str, Any]:
    """Encode parameters; some as they were fitted if they cannot be stored as given."""
    declaration, coded = model._declaration, {}
    on_graph = declaration.learns == "nodes"
    given = model._plain_parameters() if on_graph else model.get_params(deep=False)
    if declaration.learns == "members":  # those fitted take their place
        given = {name: value for name, value in given.items() if name != "estimators"}
    for name, value in given.items():
        try:
            coded[name] = encode(value, writer)
        except NotStorableError:
            if name not in declaration.substitutes:
                raise ModelFileError(
                    f"The parameter {name}={value!r} cannot be written to a model file; use text, "
                    "numbers or arrays, such as a number of folds, with "
                    f"set_params({name}=...) before save."
                ) from None
            fitted = getattr(model, declaration.substitutes[name])
            coded[name] = own[name] if name in own else encode(fitted, writer)
    return coded


def decode_model(node: dict[str, Any], decode: Decoder) -> Any:
    """Return the model of a document; ValueError and TypeError describe damaged ones."""
    if "pipeline" in node:
        from .pipelines import decode_pipeline

        return decode_pipeline(node["pipeline"], _decode_estimator(node, decode), decode)
    steps = decode_steps(node, decode)
    if len(steps) == 1:
        return steps[0][1]
    from sklearn.pipeline import Pipeline

    return Pipeline(steps)


def decode_steps(node: dict[str, Any], decode: Decoder) -> list[tuple[str, Any]]:
    """Return the steps of the model of a document: the preparation, if any, and the estimator."""
    if "pipeline" in node:
        steps: list[tuple[str, Any]] = decode_model(node, decode).steps
        return steps
    model = _decode_estimator(node, decode)
    if "preprocess" not in node:
        return [("model", model)]
    preparer = _decode_preparer(node["preprocess"], decode)
    if list(preparer.get_feature_names_out()) != list(getattr(model, "feature_names_in_", ())):
        raise ValueError("the columns of the table are not those of the model")
    first, last = node["steps"]
    if not isinstance(first, str) or not isinstance(last, str):
        raise ValueError("the steps must have names")
    return [(first, preparer), (last, model)]


def _decode_estimator(node: dict[str, Any], decode: Decoder) -> Any:
    if node["estimator"] not in ESTIMATORS:
        raise ValueError(f"there is no estimator {node['estimator']!r}")
    kind = _estimator(node["estimator"])
    declaration = kind._declaration
    module = _parts(declaration.learns)
    parameters = {name: decode(value) for name, value in node["parameters"].items()}
    # Files of earlier versions lack newer parameters, whose defaults may have changed.
    parameters = {**getattr(kind, "_absent_parameters", {}), **parameters}
    fitted = {name: decode(value) for name, value in node["fitted"].items()}
    members = None
    if declaration.learns == "members":
        members = [decode_model(member, decode) for member in node["members"]]
        parameters["estimators"] = list(zip(fitted["names_"], members, strict=True))
    model = kind(**parameters)
    model._validate_params()
    kinds = {**declaration.saved, **declaration.optional}
    if not set(declaration.saved) <= set(fitted) <= set(kinds):
        raise ValueError(f"the fitted attributes are {sorted(fitted)}")
    sizes = {}
    if module is not None:
        model.kernels_ = decode(node["kernels"])
        sizes["kernels"] = _count_kernels(model, fitted["n_features_in_"])
    check_fitted(fitted, kinds, sizes)
    if members is not None:
        model.members_ = members
    for name, value in fitted.items():
        setattr(model, name, value)
        missing = _INSTEAD_OF_NAN.get(kinds[name].partition("[")[0])
        if missing is not None:
            setattr(model, name, np.where(value == missing, np.nan, value))
    if module is not None:
        module.restore(model, {key: decode(node[key]) for key in module.KEYS if key in node})
    else:
        _CHECKS[declaration.learns](model)
    if "folds" in node:
        check_type("folds", node["folds"], list)
        model._folds = [_decode_estimator(fold, decode) for fold in node["folds"]]
    folds.check(model)
    return model


def _count_kernels(model: Any, n_features: Any) -> int:
    """Return the number of weights; pairs without kernels have one for each column."""
    if model.kernels_ is None and model._declaration.learns == "pairs":
        check_type("n_features_in_", n_features, int | np.integer)
        return int(n_features)
    check_type("kernels_", model.kernels_, list)
    for kernel in model.kernels_:
        check_type("an item of kernels_", kernel, Kernel)
    return len(model.kernels_)


def _check_clusters(model: Any) -> None:
    n, rank = model.labels_.size, model.eigenvalues_.size
    if not n or not 0 <= model.labels_.min() <= model.labels_.max() < rank:
        raise ValueError(f"labels_ must hold numbers of {rank} clusters")
    if not 0 <= model.n_empty_ <= n:
        raise ValueError(f"n_empty_ must be a number of the {n} rows")


def _check_metric(model: Any) -> None:
    check_type("kernel_", model.kernel_, MetricLaplacian)
    n_encoded = len(model.kernel_.metric.weights)
    check_array("_rows", model._rows, "f", (model.support_.size, n_encoded))
    if not np.isfinite(model._rows).all():
        raise ValueError("_rows must be finite")
    n_outputs = model.intercept_.size
    classes = getattr(model, "classes_", None)
    if classes is not None:
        fits = n_outputs == (1 if classes.size == 2 else classes.size)
        fits = fits and model.calibration_coef_.shape == (n_outputs, n_outputs)
    else:
        fits = n_outputs == 1 if model._one_output else n_outputs >= 1
    if not fits:
        raise ValueError(f"the number of outputs cannot be {n_outputs}")


def _check_members(model: Any) -> None:
    n = len(model.weights_)
    if not n or not model.weights_.sum() > 0 or len(model.members_) != n:
        raise ValueError("a combination needs weights of its members")
    classes: Any = getattr(model, "classes_", None)
    n_outputs = 1 if classes is None or classes.size == 2 else classes.size
    for name, member in model._named():
        check_type("the name of a member", name, str)
        own: Any = getattr(member, "classes_", None)
        if not np.array_equal(np.ravel(own), np.ravel(classes)):
            raise ValueError("the members have other classes")
    if classes is None:
        model._logarithms(n)
        return
    for item in model._per_member("calibrations", n):
        if item is not None:
            check_type("a calibration", item, tuple)
            check_array("the slopes of a calibration", item[0], "f", (n_outputs, n_outputs))
            check_array("the intercepts of a calibration", item[1], "f", (n_outputs,))


def _check_rules(model: Any) -> None:
    from .rules import check_rules

    check_rules(model)


_CHECKS: dict[str, Any] = {
    "members": _check_members,
    "metric": _check_metric,
    "rules": _check_rules,
    "clusters": _check_clusters,
}


def _decode_preparer(node: dict[str, Any], decode: Decoder) -> TablePreparer:
    preparer = TablePreparer(**decode(node["parameters"]))
    fitted = {name: decode(node["fitted"][name]) for name in _PREPARED}
    check_type("standardize", preparer.standardize, bool)
    check_options(preparer)
    check_type("columns", fitted["feature_names_in_"], np.ndarray)
    fitted["n_features_in_"] = fitted["feature_names_in_"].size
    kinds = _PREPARED | {"n_features_in_": "integer"}
    check_fitted(fitted, kinds, {"columns": fitted["n_features_in_"]})
    for name, value in fitted.items():
        setattr(preparer, name, value)
    if not (preparer.scales_ > 0).all():
        raise ValueError("the scales of the columns must be positive")
    if preparer.rows_ is not None:
        check_array("rows_", preparer.rows_, "i", (int(preparer.n_samples_seen_),))
    check_type("target_", preparer.target_, str | None)
    return preparer
