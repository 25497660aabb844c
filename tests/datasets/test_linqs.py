"""Linked documents from small text files."""

import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelweave import constraints_from_graph
from kernelweave.datasets import load_dataset, load_linqs
from kernelweave.errors import DataError, InputTypeError

CONTENT = "p1\t0\t1\t0\t1\tTheory\nx-2 1 0 0 0 Agents\n\n31\t0\t0\t0\t0\tTheory\n"
CITES = "p1\tx-2\nx-2 p1\n31 31\np1 31\nmissing p1\n31 elsewhere\n"


def write(folder, content=CONTENT, cites=CITES, end=""):
    paths = folder / f"few.content{end}", folder / f"few.cites{end}"
    for path, text in zip(paths, (content, cites), strict=True):
        data = text.encode()
        path.write_bytes(gzip.compress(data) if end else data)
    return paths


@pytest.mark.parametrize("end", ["", ".gz"])
def test_documents_classes_and_links(tmp_path, end):
    data = load_linqs(*write(tmp_path, end=end))
    assert isinstance(data.X, csr_array)
    assert data.X.dtype == np.float64
    assert data.X.toarray().tolist() == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert data.X.nnz == 3
    assert data.y.tolist() == ["Theory", "Agents", "Theory"]
    assert data.edges.tolist() == [[1, 0], [0, 1], [2, 0]]
    assert data.edges.dtype == np.int32
    assert data.name == "few"
    assert "2 links to documents that are not there were left out" in data.description
    assert constraints_from_graph(data.edges, n_negatives=1).pairs.tolist()[:2] == [[0, 1], [0, 2]]


def test_paths_as_text_and_other_numbers(tmp_path):
    content, cites = write(tmp_path, "a 0.5 0 X\nb 2 1e3 Y\n", "")
    data = load_linqs(str(content), str(cites))
    assert data.X.toarray().tolist() == [[0.5, 0], [2, 1000]]
    assert data.edges.shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "cites", "sentence"),
    [
        ("a 1 0 X\nb 1 Y\n", "", "Line 2 of .* has 1 attributes, but the lines before it 2"),
        ("a 1 X\n\na 0 X\n", "", "Line 3 of .* has the document 'a' a second time"),
        ("a 1 X\nb one X\n", "", "Line 2 of .* has an attribute that is no number"),
        ("a nan X\n", "", "Line 1 of .* has an attribute that is not finite"),
        ("a X\n", "", "Line 1 of .* must hold a name, attributes and a class"),
        ("\n", "", "holds no document"),
        ("a 1 X\nb 1 X\n", "a b\na b c\n", "Line 2 of .* must hold two names"),
        ("a 1 X\nb 1 X\n", "a\n", "Line 1 of .* must hold two names"),
    ],
)
def test_bad_lines_are_named(tmp_path, content, cites, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        load_linqs(*write(tmp_path, content, cites))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    content, cites = write(tmp_path)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load_linqs(tmp_path / "none.content", cites)
    broken = tmp_path / "few.content.gz"
    broken.write_bytes(b"not packed")
    with pytest.raises(DataError, match="cannot be read"):
        load_linqs(broken, cites)
    whole = gzip.compress(CONTENT.encode())
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read"):
        load_linqs(broken, cites)
    content.write_bytes(b"\xff\xfe\xfa 1 X\n")
    with pytest.raises(DataError, match="cannot be read"):
        load_linqs(content, cites)
    with pytest.raises(InputTypeError, match="content: must be a path, got 3"):
        load_linqs(3, cites)


def test_a_graph_file_in_a_folder_of_your_own(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    np.savez(
        tmp_path / "cora.npz",
        indptr=[0, 1, 2],
        indices=[0, 1],
        shape=[2, 2],
        labels=["A", "B"],
        edges=[[0, 1], [1, 1]],
    )
    data = load_dataset("cora", data_home=tmp_path)
    assert data.X.toarray().tolist() == [[1, 0], [0, 1]]
    assert data.edges.tolist() == [[0, 1]]
