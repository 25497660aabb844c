"""Model files taken apart, changed and put together again, for tests of reading them."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from kernelweave.errors import ModelFileError
from kernelweave.io import load
from kernelweave.kernels import Kernel


def same(one, two):
    """Compare values bit by bit, types included."""
    if isinstance(one, np.ndarray):
        assert isinstance(two, np.ndarray)
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        if one.dtype == object:
            same(one.ravel().tolist(), two.ravel().tolist())
        else:
            assert one.tobytes() == two.tobytes()
    elif sp.issparse(one):
        assert one.format == two.format
        for part in ("data", "indices", "indptr", "shape"):
            same(getattr(one, part), getattr(two, part))
    elif isinstance(one, Kernel):  # those with a Gram matrix are equal only to themselves
        assert type(one) is type(two)
        same(vars(one), vars(two))
    elif isinstance(one, dict):
        same(sorted(one.items(), key=str), sorted(two.items(), key=str))
    elif isinstance(one, list | tuple):
        assert type(one) is type(two)
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    else:
        assert type(one) is type(two)
        assert one == two or (one != one and two != two)  # both NaN


def packed(members, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def unpacked(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text


def changed(saved, changes):
    """Return a model file with other values at places such as ``"fitted/rules_/0"``."""
    members = unpacked(saved)
    document = json.loads(members["model.json"])
    for place, value in changes.items():
        node = document
        *way, last = place.split("/")
        for key in way:
            node = node[int(key) if key.isdigit() else key]
        node[int(last) if last.isdigit() else last] = value
    return packed(members | {"model.json": json.dumps(document)})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats(allow_nan=False) | st.text(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.sampled_from(["tuple", "array", "kernel", "csr", "objects", "numpy", "dict", "rule"])
            | st.text(max_size=5),
            children,
            max_size=1,
        )
    ),
    max_leaves=6,
)


def forged(saved, data, within=None):
    """Return a model file in which hypothesis has put something else somewhere."""
    members = unpacked(saved)
    document = json.loads(members["model.json"])
    node = document if within is None else document[within]
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
            node = node[key]
            continue
        node[key] = data.draw(json_values)
        break
    return packed(members | {"model.json": json.dumps(document)})


def mutated(content, random):
    """Return a model file with random damage, as a disk, a cut transfer or a forger would do it."""
    kind = random.integers(7)
    data = bytearray(content)
    if kind == 0:  # flip
        for place in random.integers(len(data), size=random.integers(1, 6)):
            data[place] ^= int(random.integers(1, 256))
    elif kind == 1:  # cut off
        del data[int(random.integers(len(data))) :]
    elif kind == 2:  # put in
        place = int(random.integers(len(data) + 1))
        data[place:place] = random.bytes(int(random.integers(1, 40)))
    elif kind == 3:  # take out
        place = int(random.integers(len(data)))
        del data[place : place + int(random.integers(1, 40))]
    else:  # a zip that is whole, with other members
        members = unpacked(content)
        names = list(members)
        one, two = (names[i] for i in random.integers(len(names), size=2))
        if kind == 4:
            members[one], members[two] = members[two], members[one]
        elif kind == 5:
            inside = bytearray(members[one])
            for place in random.integers(len(inside), size=random.integers(1, 6)):
                inside[place] = int(random.integers(256))
            members[one] = bytes(inside)
        else:
            del members[one]
            members[str(random.choice(["model.json", "0.npy", "../x.npy", two]))] = content[:200]
        data = bytearray(packed(members))
    return bytes(data)
