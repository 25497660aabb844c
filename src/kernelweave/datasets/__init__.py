"""Real data sets by name, and synthetic problems with a known solution."""

from kernelweave.datasets.games import make_balance_scale, make_monks, make_tic_tac_toe
from kernelweave.datasets.linqs import load_linqs
from kernelweave.datasets.synthetic import ViewsProblem, make_additive, make_views
from kernelweave.datasets.tables import Dataset, list_datasets, load_dataset

__all__ = [
    "Dataset",
    "ViewsProblem",
    "list_datasets",
    "load_dataset",
    "load_linqs",
    "make_additive",
    "make_balance_scale",
    "make_monks",
    "make_tic_tac_toe",
    "make_views",
]
