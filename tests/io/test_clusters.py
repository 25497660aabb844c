"""Clusterings in model files."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone

from kernelweave import KernelSpectralClustering
from kernelweave.cli import main
from kernelweave.errors import ModelFileError
from kernelweave.io import describe, load, save
from model_files import changed, refused, same

RANDOM = np.random.default_rng(0)
X = np.vstack([0.1 * RANDOM.random((12, 3)) + [1, 1, 0], 0.1 * RANDOM.random((9, 3)) + [0, 0, 1]])
ROWS = {
    "array": X,
    "sparse": csr_array(X),
    "frame": pd.DataFrame(X, columns=["a", "b", "c"]),
    "kernel": X @ X.T,
    "operator": aslinearoperator(X @ X.T),
}


def fit(rows, **options):
    affinity = "precomputed" if rows in ("kernel", "operator") else "features"
    model = KernelSpectralClustering(
        **{"n_clusters": 2, "affinity": affinity, "random_state": 0} | options
    )
    return model.fit(ROWS[rows])


@pytest.mark.parametrize("rows", ROWS)
def test_a_loaded_clustering_is_the_saved_one(rows, tmp_path):
    model = fit(rows)
    path = save(model, tmp_path / "model.kw")
    again = load(path)
    assert describe(path)["estimator"] == "KernelSpectralClustering"
    same(vars(again), vars(model))
    assert save(again, tmp_path / "again.kw").read_bytes() == path.read_bytes()
    same(clone(again).fit_predict(ROWS[rows]), model.labels_)


def test_a_kernel_of_zeros(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KernelSpectralClustering(3).fit(np.zeros((5, 2)))
    same(vars(load(save(model, tmp_path / "model.kw"))), vars(model))


def test_what_cannot_be_saved(tmp_path):
    model = fit("array", random_state=np.random.RandomState(0))
    with pytest.raises(ModelFileError, match="RandomState"):
        save(model, tmp_path / "model.kw")
    assert not (tmp_path / "model.kw").exists()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("parameters/n_clusters", 0, "n_clusters"),
        ("parameters/further", 1, "further"),
        ("fitted/labels_", [0, 1], "labels_ is a list"),
        ("fitted/eigenvalues_", {"array": "1.npy"}, "eigenvalues_ must be an array"),
        ("fitted/embedding_", {"array": "2.npy"}, "embedding_ must be an array"),
        ("fitted/labels_", {"array": "2.npy"}, "labels_ must be an array"),
        ("fitted/n_empty_", 22, "n_empty_ must be a number of the 21 rows"),
        ("fitted/normalized_", 1, "normalized_ is a int"),
        ("fitted/n_features_in_", None, "n_features_in_ is a NoneType"),
        ("fitted/weights_", None, "the fitted attributes are"),
        ("estimator", "KernelSpectralClusterings", "there is no estimator"),
    ],
)
def test_contents_that_do_not_belong_together(place, value, message, tmp_path):
    saved = save(fit("array"), tmp_path / "model.kw").read_bytes()
    refused(tmp_path / "forged.kw", changed(saved, {place: value}), message)


def test_clusters_that_are_not_there(tmp_path):
    model = fit("array")
    model.labels_ = model.labels_ + 1
    path = save(model, tmp_path / "model.kw")
    with pytest.raises(ModelFileError, match="labels_ must hold numbers of 2 clusters"):
        load(path)


def test_the_commands_know_a_clustering(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(fit("frame"), "c.kw")
    ROWS["frame"].to_csv("t.csv", index=False)
    assert main(["info", "c.kw"]) == 0
    out = capsys.readouterr().out
    assert "2 clusters of 12, 9 rows" in out
    assert main(["info", "c.kw", "--json"]) == 0
    assert '"sizes": [' in capsys.readouterr().out
    assert main(["report", "c.kw", "--quiet"]) == 0
    for command, why in (
        (["predict", "c.kw", "t.csv"], "predicts none of others"),
        (["suspects", "c.kw"], "has no labels to suspect"),
        (["rules", "c.kw"], "holds a KernelSpectralClustering, which has no rules"),
        (["cluster", "t.csv", "--model", "c.kw"], "has no kernel to cluster by"),
    ):
        assert main(command) == 2
        assert why in capsys.readouterr().err
