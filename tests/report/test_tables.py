"""Tables of a page: cells, folds and search boxes."""

from kernelweave.report.tables import Cell, Column, Table, meter, number, percent, share


def test_cells_are_sorted_by_their_values():
    assert number(1234.5) == Cell("1234", 1234.5)
    assert share(0.125) == Cell("12.5%", 0.125)
    assert share(0.5, key=7) == Cell("50.0%", 7.0)
    assert meter(1.4, "x", negative=True) == Cell("x", -1.4, 1.0)
    assert percent(0.0004) == "0.0%"


def test_long_tables_are_folded_and_have_a_search_box():
    short = Table("rows", [Column("a")], [[1], [Cell("two", 2.0)]])
    assert (short.folded, short.searched) == (0, False)
    assert [cell.text for row in short.rows for _, cell in row] == ["1", "two"]
    long = Table("rows", [Column("a")], [[k] for k in range(500)])
    assert 0 < long.folded < 500
    assert long.searched
