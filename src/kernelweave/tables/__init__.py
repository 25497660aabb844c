"""From a table to a model: what the commands of the command line do, for use from Python.

Each function takes a pandas frame. `read_table` reads one from a file; `fit_table` compares models
on folds and fits the best one; `evaluate_table` scores a model on new rows; `explain_table`
explains predictions; `compare_table` compares with methods of scikit-learn; `cluster_table` groups
rows; `find_suspects` lists labels that look wrong, `make_review` asks a person about them;
`fit_answers` learns from answers of several annotators.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "ColumnKind": "columns",
    "Comparison": "comparing",
    "Evaluation": "evaluation",
    "METHODS": "methods",
    "Problem": "problem",
    "Search": "search",
    "Settings": "methods",
    "Table": "reading",
    "TableClusters": "clustering",
    "TableFit": "fitting",
    "choose_method": "methods",
    "cluster_table": "clustering",
    "compare_table": "comparing",
    "describe_columns": "columns",
    "evaluate_table": "evaluating",
    "explain_table": "explaining",
    "find_suspects": "label_errors",
    "fit_answers": "answers",
    "fit_table": "fitting",
    "make_model": "methods",
    "make_problem": "problem",
    "make_review": "reviewing",
    "offer_kernels": "kernels",
    "predict_pairs_table": "predicting",
    "predict_table": "predicting",
    "read_for": "predicting",
    "read_pairs_table": "reading",
    "read_table": "reading",
    "search_cost": "search",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: predictions need no reference models."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kernelweave.tables' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
