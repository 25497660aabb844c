"""Small tables on the paths of large ones."""

from kernelweave.banks import row_source
from kernelweave.banks.nystroem import build


def count_as_many(monkeypatch, block_bytes):
    """Let few rows count as many, in blocks of so many bytes."""
    monkeypatch.setattr(build, "MANY_ROWS", 10)
    monkeypatch.setattr(build, "_MOST_FEATURES", 1.0)
    monkeypatch.setattr(row_source, "_BLOCK_BYTES", block_bytes)
