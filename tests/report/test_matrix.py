"""The geometry of a confusion matrix."""

import numpy as np
import pytest

from kernelweave.report.matrix import confusion_chart


def test_cells_are_shares_of_their_row():
    found = confusion_chart([[3, 1], [0, 2000]], ["ill", "well"])
    cells = {(cell.x, cell.y): cell for cell in found.cells}
    assert len(cells) == 3  # empty cells are not drawn
    first, wrong, last = found.cells
    assert (first.share, first.text, first.right) == (0.75, "3", True)
    assert (wrong.share, wrong.right) == (0.25, False)
    assert (last.share, last.text) == (1.0, "2,000")
    assert wrong.x - first.x == pytest.approx(found.step)
    assert last.y - first.y == pytest.approx(found.step)
    assert found.label == "Confusion matrix of 2 classes: 2,003 of 2,004 rows are right."
    assert [text for _, _, text in found.heads] == ["ill", "well"]
    assert last.x + found.step <= found.width
    assert last.y + found.step <= found.height


def test_many_classes_are_numbered():
    counts = np.diag(np.full(9, 1000))
    found = confusion_chart(counts, [f"class {k}" for k in range(9)])
    assert found.small
    assert [text for _, _, text in found.heads] == [str(k + 1) for k in range(9)]
    assert found.names[8][1] == "class 8 \u00b7 9"
    assert {cell.text for cell in found.cells} == {""}  # no room for four digits


def test_rare_confusions_are_seen():
    counts = np.array([[999, 1], [0, 0]])
    found = confusion_chart(counts, ["a", "b"])
    assert [cell.share for cell in found.cells] == [0.999, 0.06]
