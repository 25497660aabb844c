"""Tables that Dask holds in parts; Dask is imported only once such a table is there.

A fit works in passes: a pure function of one part and small arguments runs where the part is. Parts
are never moved and nothing is changed in place, so that any scheduler serves, and a part that is
lost with its worker is computed again.
"""

from .methods import ScoredByParts, by_parts
from .table import PartedTable, fetch, gather, is_dask, is_parted
from .tasks import add_up, add_up_here, call, keep, run, sum_levels

__all__ = [
    "PartedTable",
    "ScoredByParts",
    "add_up",
    "add_up_here",
    "by_parts",
    "call",
    "fetch",
    "gather",
    "is_dask",
    "is_parted",
    "keep",
    "run",
    "sum_levels",
]
