"""Comparisons with methods of scikit-learn."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import compare_table
from kernelweave.tables.comparing import rows_in_time
from source_table import SOURCES, source_table
from table_groups import TABLE


@pytest.mark.slow
def test_compare():
    heard = []
    found = compare_table(
        TABLE, "y", methods=["rules"], folds=3, announce=lambda what, done: heard.append(what)
    )
    assert found.measure == "AUC"
    names = {"kernelweave rules", "SVM", "gradient boosting", "linear model"}
    assert names <= set(found.scores)
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


@pytest.mark.slow
def test_compare_a_quantity():
    found = compare_table(TABLE, "a", methods=["mkl"], folds=2, ignore=["kind"], max_rows=80)
    assert found.measure == "R2"
    assert "SVM" in found.scores
    assert found.n_rows == 80
    assert any(note.startswith("80 of 120 rows are compared on, drawn") for note in found.notes)
    check_differences(found)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mkl", "auto"])
def test_differences_are_those_of_the_scores(method):
    check_differences(compare_table(TABLE, "a", methods=[method], folds=2, ignore=["kind"]))


def check_differences(found):
    best = next(iter(found.scores))
    assert found.behind[best] == (0.0, 0.0)
    for name, scores in found.scores.items():  # folds differ in their variance
        gap = found.scores[best].mean() - scores.mean()
        assert found.behind[name][0] == pytest.approx(gap, abs=0.03 + 0.1 * abs(gap))
    said = found.summarize()
    assert said[0].startswith(f"Best: {best}, R2 ")
    assert len(said) == len(found.scores)


def test_time_limits_the_rows():
    assert rows_in_time(1.0, 5) == 200
    assert 1000 < rows_in_time(120.0, 5) < rows_in_time(600.0, 5)


def test_compare_refuses_rare_classes():
    rare = TABLE.assign(y=["lone", *TABLE["y"][1:]])
    with pytest.raises(DataError, match="The class 'lone' has 1 row"):
        compare_table(rare, "y")
    with pytest.raises(InputError, match="methods: must be out of auto, metric"):
        compare_table(TABLE, "y", methods=["pairs"])
    with pytest.raises(InputError, match="folds: must be between 2 and half"):
        compare_table(TABLE, "y", folds=100)


def test_whole_groups_are_left_out():
    """What a person answers is learned from its other rows only where folds cut through it."""
    random = np.random.default_rng(0)
    person = np.repeat(np.arange(30), 8)
    height = random.normal(size=30)[person] + 1e-3 * random.normal(size=240)
    table = pd.DataFrame({"height": height, "person": person})
    table["y"] = random.normal(size=30)[person] + 0.1 * random.normal(size=240)

    def score(**options):
        found = compare_table(table, "y", methods=["metric"], folds=3, **options)
        return found.scores["kernelweave metric"].mean()

    assert score() > 0.9
    assert score(groups="person") < 0.2


def test_sources_are_compared_with_the_kernels_of_their_own():
    frame = source_table(100).drop(columns="remark")
    options = {"folds": 2, "sources": SOURCES, "missing": "complete"}
    found = compare_table(frame, "ill", **options)
    assert "kernelweave mkl" in found.scores
    assert any("rows lack the source 'scan'" in note for note in found.notes)
    with pytest.raises(InputError, match="method metric: it has no kernels of sources"):
        compare_table(frame, "ill", methods=["metric"], **options)
