import pytest

from command_table import TABLE, WRONG


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Work in an empty folder with the table, two of its labels wrong."""
    monkeypatch.chdir(tmp_path)
    table = TABLE.copy()
    table.loc[WRONG, "ill"] = ["no" if ill == "yes" else "yes" for ill in table.loc[WRONG, "ill"]]
    table.to_csv("t.csv", index=False, sep=";", encoding="latin-1")
    return tmp_path


@pytest.fixture(autouse=True)
def _little_importance(monkeypatch):
    """Pages explain few rows; what they say of many is tested with the report."""
    monkeypatch.setattr("kernelweave.report.decides._WORK", 1.0)
    monkeypatch.setattr("kernelweave.report.decides._WALK_WORK", 1.0)
