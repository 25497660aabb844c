"""Files as other programs write them."""

import gzip

import numpy as np
import pytest

from kernelweave.errors import DataError
from kernelweave.tables import read_table


def written(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("a,b\n1.5,x\n2,ö\n", None),
        ("a;b\n1.5;x\n2;ö\n", "semicolons"),
        ("a;b\n1,5;x\n2,0;ö\n", "semicolons, and decimals by commas"),
        ("a\tb\n1.5\tx\n2\tö\n", "tabs"),
        ("a|b\n1.5|x\n2|ö\n", "bars"),
        ("\ufeffa,b\n1.5,x\n2,ö\n", None),
        (" a , b\n1.5,x\n2,ö\n", None),
        ('"a","b"\n1.5,"x"\n2,"ö"\n', None),
        ("a,b\n1.5,x\n2,ö\n".encode("utf-16"), None),
        ("a,b\n1.5,x\n2,ö\n".encode("cp1252"), "Windows-1252"),
        ("a,b\r\n1.5,x\r\n2,ö\r\n", None),
    ],
)
def test_ways_to_write_a_table(tmp_path, content, note):
    table = read_table(written(tmp_path, content))
    assert table.frame.columns.tolist() == ["a", "b"]
    assert table.frame["a"].tolist() == [1.5, 2.0]
    assert table.frame["b"].tolist() == ["x", "ö"]
    assert (note is None) == (not table.notes)
    assert note is None or note in table.notes[0]


def test_a_comma_in_text_is_no_decimal(tmp_path):
    table = read_table(written(tmp_path, "a;b\n1.5;x, y\n2.5;1,2\n"))
    assert table.frame["a"].tolist() == [1.5, 2.5]
    assert table.frame["b"].tolist() == ["x, y", "1,2"]


def test_compressed(tmp_path):
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\n1\t2\n"))
    assert read_table(path).frame.to_numpy().tolist() == [[1, 2]]


def test_truth_values_with_gaps_are_numbers_without_mistakes(tmp_path):
    table = read_table(written(tmp_path, "x,y\nTrue,1\n,2\nFalse,3\n"))
    np.testing.assert_array_equal(table.frame["x"], [1.0, np.nan, 0.0])
    assert table.notes == ()


def test_numbers_with_mistakes(tmp_path):
    rows = "\n".join(["x"] + [f"{i}.5" for i in range(30)] + ["about 7", "?"])
    table = read_table(written(tmp_path, rows + "\n"))
    assert table.frame["x"].dtype == float
    assert table.frame["x"].isna().sum() == 2
    assert table.notes == (
        "1 value(s) of 'x' are no numbers (such as 'about 7') and count as missing",
    )


def test_a_model_says_what_is_text(tmp_path):
    path = written(tmp_path, "code,x\n01,1\n02,u\n")
    frame = read_table(path, text=["code"], numbers=["x"]).frame
    assert frame["code"].tolist() == ["01", "02"]
    np.testing.assert_array_equal(frame["x"], [1.0, np.nan])
    assert read_table(path).frame["code"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,a \n1,2\n", "two columns of the name 'a'"),
        (b"PK\x03\x04\x00\x00", "not a text file"),
        ("a,b\n", "has no rows"),
    ],
)
def test_what_cannot_be_read(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_table(written(tmp_path, content))
