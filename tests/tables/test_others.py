"""Comparisons, clusters, suspects and predictions of tables."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import (
    cluster_table,
    compare_table,
    find_suspects,
    fit_table,
    predict_pairs_table,
    predict_table,
    read_for,
    read_pairs_table,
)

N = 120
RANDOM = np.random.default_rng(2)
GROUP = np.repeat([0, 1, 2], [60, 40, 20])
POINTS = np.array([[0, 0], [6, 0], [0, 6]])[GROUP] + RANDOM.normal(size=(N, 2))
TABLE = pd.DataFrame(
    {
        "a": POINTS[:, 0],
        "b": POINTS[:, 1],
        "kind": np.array(["u", "v", "w"])[GROUP],
        "noise": RANDOM.normal(size=N),
    }
)
TABLE["y"] = np.where(GROUP == 0, "in", "out")


def test_compare():
    heard = []
    found = compare_table(
        TABLE, "y", methods=["rules"], folds=3, announce=lambda what, done: heard.append(what)
    )
    assert found.measure == "accuracy"
    assert set(found.scores) == {
        "kernelweave rules",
        "SVC",
        "gradient boosting",
        "logistic regression",
    }
    table = found.to_frame()
    assert table["mean"].is_monotonic_decreasing
    for _, line in table.iterrows():
        scores = found.scores[line["method"]]
        assert line["mean"] == pytest.approx(scores.mean())
        assert line["standard_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
    assert table["mean"].min() > 0.8
    assert heard[0] == "fold 1 of 3: kernelweave rules"
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == table["method"].tolist()
    np.testing.assert_allclose(np.array(ax.lines[0].get_xdata(), dtype=float), table["mean"])


def test_compare_a_quantity():
    found = compare_table(TABLE, "a", methods=["mkl"], folds=2, ignore=["kind"], max_rows=80)
    assert found.measure == "R2"
    assert "SVR" in found.scores
    assert found.n_rows == 80
    assert "80 of 120 rows are compared on, drawn at random" in found.notes


def test_compare_refuses_rare_classes():
    rare = TABLE.assign(y=["lone", *TABLE["y"][1:]])
    with pytest.raises(DataError, match="The class 'lone' has 1 row"):
        compare_table(rare, "y")
    with pytest.raises(InputError, match="methods: must be out of mkl"):
        compare_table(TABLE, "y", methods=["pairs"])
    with pytest.raises(InputError, match="folds: must be between 2 and half"):
        compare_table(TABLE, "y", folds=100)


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
    weights = found.kernels.groupby(found.kernels["kernel"].str.contains("noise"))["weight"].sum()
    assert weights[True] < 0.5 * weights[False]


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
    judged = predict_pairs_table(fit.model, TABLE, pairs)
    assert (judged["same"] == same).mean() > 0.9
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


@pytest.mark.parametrize("method", ["noisy", "mkl"])
def test_suspects(method):
    """Rows are those of the file, whatever was left out on the way."""
    wrong = TABLE.copy()
    wrong.loc[[10, 70], "y"] = ["out", "in"]
    wrong.loc[[0, 5], "y"] = None
    options = {} if method == "noisy" else {"C": 1.0}
    fit = fit_table(wrong, "y", method=method, test_share=0, **options)
    if method == "mkl":
        with pytest.raises(InputError, match="has not scored its labels"):
            find_suspects(fit.model)
    found = find_suspects(fit.model, wrong, limit=2)
    assert set(found["row"]) == {10, 70}
    assert found.loc[found["row"] == 10, "given"].tolist() == ["out"]
    assert found.loc[found["row"] == 10, "suggested"].tolist() == ["in"]
    assert found.loc[found["row"] == 10, "a"].tolist() == [wrong["a"][10]]
    with pytest.raises(InputError, match="not the table"):
        find_suspects(fit.model, wrong[:8], limit=2)


def test_a_quantity_has_no_suspects():
    fit = fit_table(TABLE, "a", C=1.0, ignore=["kind", "y"], test_share=0)
    with pytest.raises(InputError, match="no labels to suspect"):
        find_suspects(fit.model, TABLE)


def test_tables_for_a_model(tmp_path):
    """A column may be empty or hold a mistake in a new file."""
    fit = fit_table(TABLE, "y", C=1.0, test_share=0)
    new = TABLE.head(30).astype(object)
    new.loc[2, "a"] = "unknown"
    new["noise"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    table = read_for(fit.model, tmp_path / "new.csv")
    assert "1 value(s) of 'a' are no numbers" in table.notes[0]
    predicted = predict_table(fit.model, table.frame, decision=True)
    assert predicted.columns.tolist() == ["y", "decision out"]
    assert (predicted["y"] == TABLE["y"][:30]).mean() > 0.9
