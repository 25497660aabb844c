"""Columns that contradict a label."""

import numpy as np
import pandas as pd

from kernelweave.tables.contradictions import Contradictions

FRAME = pd.DataFrame(
    {
        "age": [20.0, 21.0, 22.0, 60.0, 61.0, 62.0],
        "town": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Bonn"],
        "same": [1.0] * 6,
        "gap": [np.nan] * 6,
    }
)
LABELS = pd.Series(["young", "young", "young", "old", "old", "old"])


def test_numbers_and_categories_are_named():
    found = Contradictions.of(FRAME, LABELS)
    columns, said = found.explain(FRAME.loc[5], "young", "old")
    assert set(columns) == {0, 1}
    assert any(text.startswith("age is 62: the median of young is 21, of old 61") for text in said)
    assert any("so are 0% of the rows labelled young and 100% of those" in text for text in said)


def test_a_row_like_its_label_is_not_contradicted():
    found = Contradictions.of(FRAME, LABELS)
    assert found.explain(FRAME.loc[5], "old", "young") == ((), ())
    assert found.explain(FRAME.loc[5], "old", "unknown") == ((), ())
