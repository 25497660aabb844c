import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from encoding_frame import FRAME, RANDOM
from kernelweave.errors import InputError
from kernelweave.kernels.encoding import (
    CategoryEncoding,
    DateEncoding,
    NumberEncoding,
    TableEncoding,
    encode_once,
)


def columns_of(encoding, source):
    return [j for j, column in enumerate(encoding.columns) if column.source == source]


def test_kinds_of_columns():
    encoding = TableEncoding.learn(FRAME)
    kinds = dict(zip(encoding.keys, map(type, encoding.encodings), strict=True))
    assert kinds == {
        "size": NumberEncoding,
        "town": CategoryEncoding,
        "paid": CategoryEncoding,
        "day": DateEncoding,
    }  # the constant and the names are left out
    names = [column.name for column in encoding.columns]
    assert names[:6] == ["size", "size?", "town=Bonn", "town=Kiel", "town=Ulm", "town=(missing)"]
    groups = [column.group for column in encoding.columns]
    assert len({groups[j] for j in columns_of(encoding, "town")}) == 1
    assert groups[0] != groups[1]


def test_columns_without_a_value_are_named():
    frame = FRAME.assign(scan=np.nan, note=None, seen=pd.NaT)
    with pytest.warns(UserWarning, match="X: columns 'scan', 'note', 'seen': no training row"):
        found = TableEncoding.learn(frame)
    assert found.keys == TableEncoding.learn(FRAME).keys
    frame = FRAME.assign(scan=np.r_[1.0, 2.0, np.full(len(FRAME) - 2, np.nan)])
    weight = np.r_[0.0, 0.0, np.ones(len(FRAME) - 2)]
    with pytest.warns(UserWarning, match="X: column 'scan': no training row has a value"):
        TableEncoding.learn(frame, sample_weight=weight)


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda f: pl.from_pandas(f).to_arrow()])
def test_frames_of_any_library_are_encoded_alike(convert):
    expected = TableEncoding.learn(FRAME).encode(FRAME)
    frame = convert(FRAME)
    np.testing.assert_array_equal(TableEncoding.learn(frame).encode(frame), expected)


def test_gaps_are_the_median_with_an_indicator():
    X = np.array([[1.0], [2.0], [np.nan], [4.0], [np.inf], [9.0]])
    encoded = TableEncoding.learn(X).encode(X)
    middle = TableEncoding.learn(X).encode([[3.0]])  # median of 1, 2, 4, 9
    np.testing.assert_array_equal(encoded[[2, 4], 0], middle[0, 0])
    np.testing.assert_array_equal(encoded[:, 1], [0, 0, 1, 0, 1, 0])


def test_weights_count_like_repeated_rows():
    X = RANDOM.normal(size=(20, 1))
    weight = RANDOM.integers(1, 4, 20).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    weighted = TableEncoding.learn(X, sample_weight=weight).encode(X)
    np.testing.assert_allclose(weighted, TableEncoding.learn(repeated).encode(X), atol=1e-12)


def test_names_of_levels_do_not_matter():
    renamed = FRAME[["town"]].replace({"Ulm": "A", "Bonn": "Z"})
    first = TableEncoding.learn(FRAME[["town"]]).encode(FRAME)
    second = TableEncoding.learn(renamed).encode(renamed)
    np.testing.assert_array_equal(first @ first.T, second @ second.T)


def test_bad_tables_get_a_sentence():
    with pytest.raises(InputError, match="no column to learn from"):
        TableEncoding.learn(FRAME[["unit", "name"]])
    with pytest.raises(InputError, match="sparse tables are not supported"):
        TableEncoding.learn(sp.eye_array(5).tocsr())
    encoding = TableEncoding.learn(FRAME[["size"]])
    with pytest.raises(InputError, match="column 'size' held numbers in training, but now 'large'"):
        encoding.encode(pd.DataFrame({"size": ["large", "small"]}))
    with pytest.raises(InputError, match="no column 'size'"):
        encoding.encode(FRAME[["town"]])


def test_rows_are_encoded_once_where_tables_do_not_change():
    frame = FRAME.copy()
    encoding = TableEncoding.learn(frame)
    usual = encoding.encode(frame)
    with encode_once():
        first = encoding.encode(frame)
        assert encoding.encode(frame) is first
        assert not first.flags.writeable
        assert encoding.encode(frame.iloc[:3]).shape[0] == 3
        assert encoding.standardised().encode(frame) is not first
    assert np.array_equal(first, usual)
    assert encoding.encode(frame) is not first


def test_new_levels_are_reported_and_gaps_are_not():
    town = pd.DataFrame({"town": ["Ulm", "Bonn"] * 4})
    encoding = TableEncoding.learn(town)
    assert not encoding.encode(pd.DataFrame({"town": [None, None]})).any()
    with pytest.warns(UserWarning, match="1 values of column 'town' are levels that no training"):
        assert not encoding.encode(pd.DataFrame({"town": [None, "Kiel"]})).any()
