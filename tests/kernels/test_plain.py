"""Kernels and structures as JSON, exactly there and back."""

import json

import numpy as np
import pytest

from kernelweave import RBF, Linear, Polynomial, Precomputed, SumProductMKLClassifier, group
from kernelweave.errors import InputError
from kernelweave.kernels import (
    ARD,
    Additive,
    Constant,
    Cosine,
    FromCallable,
    Laplacian,
    Overlap,
)
from kernelweave.kernels.network import Network
from kernelweave.kernels.plain import from_plain, to_plain

KERNELS = [
    RBF(0.1 + 0.2, columns=[0, 3]),
    RBF(np.float64(1) / 3, columns=slice(1, None)),
    RBF(1e-300, columns=[True, False, True]),
    Linear(columns="age"),
    Linear(columns=slice("age", "size")),
    Laplacian(2, columns=4, name="near"),
    Polynomial(3),
    Overlap(columns=["a", "b"]),
    ARD((1.0, 2.5)),
    Additive((0.5, 1.0)),
    Constant(),
    2.5 * RBF(),
    Cosine(Linear()),
    Linear() + 2 * RBF() * Polynomial(2),
    group(RBF(2.0), Linear(), name="T", p=1.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_come_back_the_same(kernel):
    text = json.dumps(to_plain(kernel), allow_nan=False)
    assert from_plain(json.loads(text), "kernel") == kernel


def test_structures_come_back_the_same():
    T = group(RBF(1 / 3), Linear(columns=[0]), name="T", p=2.0)
    network = Network.of(T + 0.1 * T * T * Polynomial(2) + (RBF(2.0) + Laplacian()) ** 2)
    text = network.to_json()
    again = Network.of(json.loads(text))
    assert again == network
    assert again.to_json() == text


def test_the_form_is_the_documented_one():
    read = json.loads(Network.of(RBF(2.0, columns=[0]) * Linear()).to_json())
    assert read["version"] == 1
    leaves = [node["kernel"] for node in read["nodes"].values() if node["kind"] == "leaf"]
    assert leaves == [{"type": "RBF", "columns": [0], "width": 2.0}, {"type": "Linear"}]


def test_models_from_json():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] * X[:, 1] > 0
    structure = RBF(1.0, columns=[0]) * RBF(1.0, columns=[1]) + Linear()
    model = SumProductMKLClassifier(structure).fit(X, y)
    again = SumProductMKLClassifier(json.loads(model.network_.to_json())).fit(X, y)
    assert again.node_weights_ == model.node_weights_
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Precomputed(np.eye(2), name="k"), "k: a Precomputed cannot be written as JSON"),
        (FromCallable(np.dot, name="f"), "f: a FromCallable cannot be written as JSON"),
        (Linear(columns=lambda X: [0], name="l"), "l: columns picked by a function"),
    ],
)
def test_matrices_and_functions_are_refused(kernel, sentence):
    with pytest.raises(InputError, match=sentence):
        Network.of(RBF() * kernel + 2 * RBF()).to_json()


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        ({"width": 1.0}, r"node 'k': a kernel needs a type out of ARD, .*, Words, got None\."),
        ({"type": "Precomputed"}, "node 'k': a kernel needs a type out of .*, got 'Precomputed'"),
        ({"type": ["RBF"]}, "node 'k': a kernel needs a type out of"),
        ({"type": "RBF", "gamma": 1.0}, "node 'k': RBF has no parameter 'gamma', only "),
        ({"type": "RBF", "width": -1.0}, r"node 'k': RBF\(width=-1\.0\): width must be a finite"),
        ({"type": "RBF", "width": "1"}, r"node 'k': RBF\(width='1'\): width must be a finite"),
        ({"type": "Scaled", "factor": 2.0}, "node 'k': Scaled cannot be made: .*'kernel'"),
        (
            {"type": "Cosine", "kernel": {"type": "Rbf"}},
            "node 'k': a kernel needs a type out of .*, got 'Rbf'",
        ),
    ],
)
def test_wrong_entries_are_told(kernel, sentence):
    with pytest.raises(InputError, match=sentence):
        Network.of({"nodes": {"k": {"kind": "leaf", "kernel": kernel}}})
