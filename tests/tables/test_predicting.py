"""Predictions for tables that differ from the training table."""

from kernelweave.tables import fit_table, predict_table, read_for
from table_groups import TABLE


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
