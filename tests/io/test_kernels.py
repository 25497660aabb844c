"""What belongs together in files of kernel models: structures, landmarks and support rows."""

import json

import numpy as np
import pandas as pd
import pytest

from gap_cases import SOURCES, two_sources
from kernelweave import (
    RBF,
    Laplacian,
    Linear,
    MKLClassifier,
    Overlap,
    SumProductMKLClassifier,
    views,
)
from kernelweave.banks.nystroem import build as nystroem
from kernelweave.errors import ModelFileError
from kernelweave.io import load, save
from kernelweave.kernels import Cosine, Words
from model_files import changed, npy, packed, refused, same, unpacked

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "up", "down")


@pytest.fixture(scope="module")
def structure(tmp_path_factory):
    model = SumProductMKLClassifier(RBF(1.0) * Linear() + RBF(2.0)).fit(X, Y)
    return save(model, tmp_path_factory.mktemp("files") / "m.kw").read_bytes()


@pytest.fixture(scope="module")
def landmarks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nystroem, "MANY_ROWS", 20)
        patch.setattr(nystroem, "TOO_MANY_ROWS", 20)
        patch.setattr(nystroem, "ON_DEMAND_ROWS", 0)
        model = MKLClassifier([RBF(1.0), Linear()]).fit(X, Y)
    assert model._function is not None
    return save(model, tmp_path_factory.mktemp("files") / "m.kw").read_bytes()


def node_weights(content):
    """Return the name of a product, and the document's node with its weight."""
    return json.loads(unpacked(content)["model.json"])["fitted"]["node_weights_"]["dict"]


def test_structures_that_do_not_belong_to_their_model(tmp_path, structure):
    pairs = node_weights(structure)
    place = "fitted/node_weights_/dict/0"
    refused(
        tmp_path / "m.kw", changed(structure, {f"{place}/0": "other"}), "node_weights_ does not"
    )
    refused(tmp_path / "m.kw", changed(structure, {f"{place}/1": "much"}), "is a str")
    message = f"the weight of .*{pairs[0][0][:3]}.* must not be negative"
    refused(tmp_path / "m.kw", changed(structure, {f"{place}/1": -0.5}), message)
    document = json.loads(unpacked(structure)["model.json"])
    fewer = changed(structure, {"kernels": document["kernels"][:-1]})
    refused(tmp_path / "m.kw", fewer, r"is damaged: .*(kernels|scales_)")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"landmarks": []}, "this model has no landmarks"),
        ({"landmarks": 3}, "this model has no landmarks"),
        ({"landmarks/0": [0, 1]}, "the kernels in use is a list"),
        ({"landmarks/1": 3}, "the landmarks are not lists"),
        ({"landmarks/1": []}, "the landmarks do not belong to the kernels in use"),
        ({"fitted/landmark_gap_": "small"}, "landmark_gap_ is a str"),
    ],
)
def test_landmarks_that_do_not_belong_to_their_model(tmp_path, landmarks, changes, message):
    refused(tmp_path / "m.kw", changed(landmarks, changes), message)


def test_landmarks_of_kernels_that_are_not_there(tmp_path, landmarks):
    members = unpacked(landmarks)
    name = json.loads(members["model.json"])["landmarks"][0]["array"]
    wrong = packed(members | {name: npy(np.array([0, 7]))})
    refused(tmp_path / "m.kw", wrong, "landmarks belong to kernels that are not there")


def test_only_models_of_features_have_landmarks(tmp_path, structure):
    refused(tmp_path / "m.kw", changed(structure, {"landmarks": []}), "this model has no landmarks")


@pytest.mark.parametrize(
    "kernels",
    [
        [RBF(1.0, columns=[0]) * Linear(), Cosine(Linear())],
        [2.0 * Overlap(columns=[1]) + RBF(columns=[0])],
    ],
)
def test_rows_of_other_parts(tmp_path, kernels):
    table = np.column_stack([X[:, 0], X[:, 1] > 0])
    content = save(MKLClassifier(kernels).fit(table, Y), tmp_path / "m.kw").read_bytes()
    rows = json.loads(unpacked(content)["model.json"])["support_rows"]
    k = next(k for k, own in enumerate(rows) if "tuple" in own)
    fewer = changed(content, {f"support_rows/{k}/tuple": rows[k]["tuple"][:-1]})
    refused(tmp_path / "m.kw", fewer, "its support rows have other parts")


def test_words_of_another_length(tmp_path):
    texts = pd.DataFrame({"note": ["late and damaged", "all fine", "late again", "fine"] * 5})
    model = MKLClassifier([Words()]).fit(texts, np.array([0, 1, 0, 1] * 5))
    content = save(model, tmp_path / "m.kw").read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "m.kw").predict(texts), model.predict(texts))
    shape = json.loads(unpacked(content)["model.json"])["support_rows"][0]["csr"][3]
    wider = changed(content, {"support_rows/0/csr/3": [shape[0], shape[1] + 1]})
    refused(tmp_path / "m.kw", wider, "its support rows have shape")


GAPS = {
    "off": views(SOURCES, missing="off"),
    "complete": views(SOURCES, missing="complete"),
    "fill": [RBF(1.0, missing="fill"), Linear(missing="fill")],
    "expected": [RBF(1.0, missing="expected"), Laplacian(3.0, missing="expected")],
    "overlap": [Overlap(missing=rule) for rule in ("off", "category", "fill", "expected")],
}


@pytest.mark.parametrize("rule", GAPS)
def test_models_with_rules_for_gaps_are_kept_in_files(rule, tmp_path):
    X = two_sources(60)
    y = np.where(np.nansum(X, axis=1) > 0, "x", "y")
    if rule == "overlap":
        X = np.round(X)
    model = MKLClassifier(GAPS[rule]).fit(X, y)
    again = load(save(model, tmp_path / "model.kw"))
    new = two_sources(60, seed=1)[::-1]
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    assert again.kernels_ == model.kernels_
    same(again.get_params(), model.get_params())
    cut = model._support_views.rows
    key = next(iter(cut))
    cut[key] = cut[key][0] if isinstance(cut[key], tuple) else cut[key][:, :1]
    with pytest.raises(ModelFileError):
        load(save(model, tmp_path / "cut.kw"))
