"""Clusters of the rows of a table."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import (
    cluster_table,
    fit_table,
    predict_pairs_table,
    predict_table,
    read_pairs_table,
)
from source_table import SOURCES, source_table
from table_groups import GROUP, RANDOM, TABLE, N


@pytest.mark.parametrize("max_rows", [1000, 60])
def test_cluster_without_hints(max_rows):
    found = cluster_table(TABLE, 3, ignore=["y", "noise"], max_rows=max_rows)
    assert found.sizes == [60, 40, 20]
    np.testing.assert_array_equal(found.labels, GROUP)
    assert any("were clustered" in note for note in found.notes) == (max_rows == 60)


def test_the_number_of_clusters_is_found():
    found = cluster_table(TABLE, ignore=["y", "noise"])
    assert len(found.sizes) == 3
    assert any(note.startswith("3 clusters") for note in found.notes)


def test_cluster_by_a_few_labels():
    few = TABLE.assign(hint=np.where(np.arange(N) % 5, None, np.array(["p", "q", "r"])[GROUP]))
    found = cluster_table(few, target="hint", ignore=["y"])
    assert len(found.sizes) == 3
    assert found.agreement > 0.9
    weights = found.kernels.set_index("kernel")["weight"]
    assert weights["rbf(width=1) on noise"] < 0.5 * weights["rbf(width=1) on a"]


def test_cluster_by_pairs_and_by_a_model(tmp_path):
    pairs = RANDOM.integers(N, size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = GROUP[pairs[:, 0]] == GROUP[pairs[:, 1]]
    frame = pd.DataFrame(pairs, columns=["i", "j"]).assign(
        label=np.where(same, "same", "different")
    )
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    read, labels = read_pairs_table(tmp_path / "pairs.csv")
    np.testing.assert_array_equal(read, pairs)
    np.testing.assert_array_equal(labels, np.where(same, 1, -1))
    found = cluster_table(TABLE, 3, pairs=(read, labels), ignore=["y"])
    assert (np.bincount(found.labels) == [60, 40, 20]).all()
    fit = fit_table(TABLE.assign(g=GROUP), "g", method="pairs", ignore=["y"], test_share=0)
    assert cluster_table(TABLE, 3, model=fit.model).sizes == [60, 40, 20]
    predicted = predict_pairs_table(fit.model, TABLE, pairs)
    assert (predicted["same"] == same).mean() > 0.9
    with pytest.raises(InputError, match="Only one of target, pairs and model"):
        cluster_table(TABLE, 3, model=fit.model, target="y")
    with pytest.raises(InputError, match="scores pairs"):
        predict_table(fit.model, TABLE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i,j\n1,2\n", "two columns of row numbers and one that says"),
        ("i,j,l\n1,x,same\n", "must be row numbers"),
        ("i,j,l\n1,2.5,same\n", "must be row numbers"),
        ("i,j,l\n1,2,perhaps\n", "must say same or different, but has 'perhaps'"),
    ],
)
def test_bad_files_of_pairs(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_pairs_table(tmp_path / "p.csv")


def test_sources_have_kernels_that_are_learned():
    frame = source_table().drop(columns="remark")
    for missing in ("off", "complete"):
        found = cluster_table(frame, 2, target="ill", sources=SOURCES, missing=missing)
        names = set(found.kernels["kernel"])
        assert {"scan: known", "lab: known"} <= names
        assert sorted(found.sizes)[0] > 20
    with pytest.raises(InputError, match="missing: sources, and the rules 'off' and 'complete'"):
        cluster_table(frame, 2, sources=SOURCES)
    with pytest.raises(InputError, match=r"Values are missing .* in 'scan_0'"):
        cluster_table(frame, 2, missing="refuse")
    assert len(cluster_table(frame.fillna(0.0), 2, missing="refuse").labels) == len(frame)
