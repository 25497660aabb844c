"""Fitted attributes of a file are those of their declaration."""

import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from kernelweave import (
    HierarchicalMKLClassifier,
    Linear,
    MetricKernelClassifier,
    MKLClassifier,
    NoisyLabelMKLClassifier,
)
from kernelweave.io import TablePreparer, save
from model_files import changed, npy, packed, refused, unpacked

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["a", "b"])
Y = np.where(X["a"] + 0.3 * RNG.normal(size=40) > 0, "up", "down")


def saved(model, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return save(model.fit(X, Y), folder / "good.kw").read_bytes()


def with_array(content, name, array):
    """Return a file with another array as a fitted attribute."""
    members = unpacked(content)
    member = json.loads(members["model.json"])["fitted"][name]["array"]
    return packed(members | {member: npy(array)})


def test_ranges_of_values(tmp_path):
    content = saved(MKLClassifier([Linear()]), tmp_path)
    path = tmp_path / "bad.kw"
    negative = with_array(content, "weights_", np.array([-1.0]))
    refused(path, negative, "weights_ must not be negative")
    names = {"fitted/feature_names_in_": {"objects": [[2], ["a", 7]]}}
    refused(path, changed(content, names), "feature_names_in_ must hold strings")


def test_lists_and_orders(tmp_path):
    content = saved(HierarchicalMKLClassifier([Linear()]), tmp_path)
    longer = changed(content, {"fitted/active_nodes_": [0, 1]})
    refused(tmp_path / "bad.kw", longer, "active_nodes_ does not have the kernels of the model")
    content = saved(NoisyLabelMKLClassifier([Linear()]), tmp_path)
    twice = with_array(content, "_by_size", np.zeros(2, dtype=np.intp))
    refused(tmp_path / "bad.kw", twice, "_by_size must hold each position once")


def test_learned_metrics(tmp_path):
    content = saved(MetricKernelClassifier(), tmp_path)
    document = json.loads(unpacked(content)["model.json"])
    rows = np.full((40, len(document["fitted"]["encoded_names_"])), np.inf)
    refused(tmp_path / "bad.kw", with_array(content, "_rows", rows), "finite")


def test_pipelines(tmp_path):
    content = saved(make_pipeline(TablePreparer(), MKLClassifier([Linear()])), tmp_path)
    path = tmp_path / "bad.kw"
    refused(path, changed(content, {"steps/0": 1}), "the steps must have names")
    other = {"fitted/feature_names_in_": {"objects": [[2], ["a", "c"]]}}
    refused(path, changed(content, other), "the columns of the table are not those of the model")
    parameters = json.loads(unpacked(content)["model.json"])["preprocess"]["parameters"]["dict"]
    k = [name for name, _ in parameters].index("dates")
    wrong = {f"preprocess/parameters/dict/{k}/1": 3}
    refused(path, changed(content, wrong), "the dates and plain columns of the table are not known")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_two_members_of_one_name(tmp_path):
    saved(MKLClassifier([Linear()]), tmp_path)
    with zipfile.ZipFile(tmp_path / "good.kw", "a") as archive:
        archive.writestr("0.npy", npy(np.ones(1)))
    content = (tmp_path / "good.kw").read_bytes()
    refused(tmp_path / "bad.kw", content, "two members have the same name")
