"""From a table to a model: what the commands of the command line do, for use from Python.

Each function takes a pandas frame. `read_table` reads one from a file; `fit_table` chooses kernels
by the kinds of the columns, chooses C, fits and evaluates; `compare_table` compares with methods of
scikit-learn; `cluster_table` groups rows; `find_suspects` lists labels that look wrong.
"""

from .clustering import TableClusters, cluster_table, read_pairs_table
from .columns import ColumnKind, describe_columns
from .comparing import Comparison, compare_table
from .fitting import TableFit, fit_table
from .kernels import offer_kernels
from .label_errors import find_suspects
from .methods import METHODS, Settings, choose_method, make_model
from .predicting import predict_pairs_table, predict_table, read_for
from .problem import Problem, make_problem
from .reading import Table, read_table
from .search import Search, search_cost

__all__ = [
    "METHODS",
    "ColumnKind",
    "Comparison",
    "Problem",
    "Search",
    "Settings",
    "Table",
    "TableClusters",
    "TableFit",
    "choose_method",
    "cluster_table",
    "compare_table",
    "describe_columns",
    "find_suspects",
    "fit_table",
    "make_model",
    "make_problem",
    "offer_kernels",
    "predict_pairs_table",
    "predict_table",
    "read_for",
    "read_pairs_table",
    "read_table",
    "search_cost",
]
