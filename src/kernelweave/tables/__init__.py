"""From a table to a model: what the commands of the command line do, for use from Python.

Each function takes a pandas frame. `read_table` reads one from a file; `fit_table` compares models
on folds and fits the best one; `evaluate_table` scores a model on new rows; `explain_table`
explains predictions; `compare_table` compares with methods of scikit-learn; `cluster_table` groups
rows; `find_suspects` lists labels that look wrong, `make_review` asks a person about them;
`fit_answers` learns from answers of several annotators.
"""

from typing import TYPE_CHECKING

from kernelweave._lazy import attach

if TYPE_CHECKING:
    from .answers import fit_answers
    from .clustering import TableClusters, cluster_table
    from .columns import ColumnKind, describe_columns
    from .comparing import Comparison, compare_table
    from .evaluating import evaluate_table
    from .evaluation import Evaluation
    from .explaining import explain_table
    from .fitting import TableFit, fit_table
    from .kernels import offer_kernels
    from .label_errors import find_suspects
    from .methods import METHODS, Settings, choose_method, make_model
    from .predicting import predict_pairs_table, predict_table, read_for
    from .problem import Problem, make_problem
    from .reading import Table, read_pairs_table, read_table
    from .reviewing import make_review
    from .search import Search, search_cost

__all__ = [
    "METHODS",
    "ColumnKind",
    "Comparison",
    "Evaluation",
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
    "evaluate_table",
    "explain_table",
    "find_suspects",
    "fit_answers",
    "fit_table",
    "make_model",
    "make_problem",
    "make_review",
    "offer_kernels",
    "predict_pairs_table",
    "predict_table",
    "read_for",
    "read_pairs_table",
    "read_table",
    "search_cost",
]

# Imported when first used: predictions need no reference models.
__getattr__, __dir__ = attach(
    __name__,
    {
        "answers": "fit_answers",
        "clustering": "TableClusters cluster_table",
        "columns": "ColumnKind describe_columns",
        "comparing": "Comparison compare_table",
        "evaluating": "evaluate_table",
        "evaluation": "Evaluation",
        "explaining": "explain_table",
        "fitting": "TableFit fit_table",
        "kernels": "offer_kernels",
        "label_errors": "find_suspects",
        "methods": "METHODS Settings choose_method make_model",
        "predicting": "predict_pairs_table predict_table read_for",
        "problem": "Problem make_problem",
        "reading": "Table read_pairs_table read_table",
        "reviewing": "make_review",
        "search": "Search search_cost",
    },
)
