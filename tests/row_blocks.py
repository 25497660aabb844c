"""A table in blocks of rows, held in this process."""

from dataclasses import dataclass

from kernelweave.rules.table import read_table


@dataclass(frozen=True)
class LocalParts:
    """The simplest `kernelweave.rules.packing.RowParts`; all blocks have the same columns."""

    blocks: list

    @property
    def n_rows(self):
        return sum(read_table(block).n_rows for block in self.blocks)

    @property
    def head(self):
        return self.blocks[0]

    def map(self, function, *args, by_row=None):
        results, first = [], 0
        for block in self.blocks:
            last = first + read_table(block).n_rows
            own = None if by_row is None else by_row[first:last]
            results.append(function(block, first, own, *args))
            first = last
        return results
