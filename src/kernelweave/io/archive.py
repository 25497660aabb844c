"""The container of a model file: an uncompressed zip of one JSON document and .npy arrays."""

from __future__ import annotations

import json
import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

DOCUMENT = "model.json"
KINDS = "biufU"  # types of arrays that need no pickle and are portable


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that atomically replaces ``path`` at the end, unless an exception is raised.

    If the process is killed, the old or the new file is complete: the contents are synchronised to
    disk before the renaming. A hidden temporary file of a killed process is removed when ``path``
    is written again.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    _remove_leftovers(path)
    stream = _create_beside(path)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if os.name == "nt":  # where an open file cannot be renamed; elsewhere the lock is kept
                stream.close()
            os.replace(stream.name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(stream.name)
        raise
    _sync_folder(path.parent)


def _create_beside(path: Path) -> IO[bytes]:
    """Create a locked hidden file in the folder of ``path``."""
    while True:
        try:
            stream = open(path.with_name(f".{path.name}.{secrets.token_hex(4)}"), "xb")
        except OSError as error:
            error.filename = str(path)  # the file that was asked for, not the hidden one
            raise
        with suppress(OSError):  # a file system without locks, where no leftovers are removed
            _lock(stream)
        if os.path.exists(stream.name):  # else it was taken for a leftover before it was locked
            return stream
        stream.close()


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed writers; running ones hold a lock."""
    for left in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 8}"):
        with suppress(OSError), open(left, "rb") as stream:
            _lock(stream, wait=False)
            left.unlink()


def _lock(stream: IO[bytes], *, wait: bool = True) -> None:
    """Lock a file until it is closed; without waiting, OSError if it is locked elsewhere."""
    try:
        import fcntl
    except ImportError:  # on Windows, where a file that is open cannot be removed anyway
        return
    fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _sync_folder(folder: Path) -> None:
    """Synchronise a renaming to disk, where the system supports it."""
    with suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


class Writer:
    """Adds arrays to a zip; arrays that share memory are stored once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names: dict[Any, str] = {}

    def add(self, array: NDArray[Any]) -> str:
        """Store an array and return the name of its member."""
        key = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
        if key not in self._names:
            self._names[key] = f"{len(self._names)}.npy"
            with self._open(self._names[key]) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        return self._names[key]

    def finish(self, document: Any) -> None:
        """Store the JSON document."""
        with self._open(DOCUMENT) as member:
            member.write(json.dumps(document, allow_nan=False).encode("ascii"))

    def _open(self, name: str) -> IO[bytes]:
        # The date is fixed so that equal models are equal files.
        info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
        return self._archive.open(info, "w", force_zip64=True)


class Reader:
    """Reads an archive of `Writer`; raises ValueError for other files."""

    def __init__(self, archive: zipfile.ZipFile, n_bytes: int) -> None:
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        self._arrays: dict[str, NDArray[Any]] = {}
        if len(self._members) != len(archive.infolist()):
            raise ValueError("two members have the same name")
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"the member {info.filename!r} is compressed")
        # Without compression no member can be larger than the file.
        if sum(info.file_size for info in self._members.values()) > n_bytes:
            raise ValueError("its members are declared larger than the file is")

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def document(self) -> Any:
        """Read the JSON document."""

        def refuse(constant: str) -> None:
            raise ValueError(f"{constant} is not JSON")

        text = self._archive.read(DOCUMENT).decode("ascii")
        return json.loads(text, parse_constant=refuse)

    def array(self, name: Any) -> NDArray[Any]:
        """Read an array; the same name gives the same object."""
        if not isinstance(name, str) or name not in self._members:
            raise ValueError(f"the member {name!r} is missing")
        if name not in self._arrays:
            self._check_size(name)
            with self._archive.open(name) as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"the member {name!r} holds values that are not finite")
            self._arrays[name] = array
        return self._arrays[name]

    def _check_size(self, name: str) -> None:
        """Refuse a header that does not match its member, before memory is allocated."""
        with self._archive.open(name) as member, warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns of headers that it has to correct
            if np.lib.format.read_magic(member) != (1, 0):
                raise ValueError(f"the member {name!r} is not an array of format 1.0")
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
            start = member.tell()
        if dtype.kind not in KINDS:
            raise ValueError(f"the member {name!r} holds values of type {dtype}")
        if start + math.prod(shape) * dtype.itemsize != self._members[name].file_size:
            raise ValueError(f"the member {name!r} does not have the size its header says")
