"""Comparisons with methods of scikit-learn."""

import numpy as np
import pytest

from kernelweave.errors import DataError, InputError
from kernelweave.tables import compare_table
from table_groups import TABLE


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
