"""Labels that look wrong."""

import pytest

from kernelweave.errors import InputError
from kernelweave.tables import find_suspects, fit_table
from table_groups import TABLE


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
