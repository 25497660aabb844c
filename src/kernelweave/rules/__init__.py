"""Propositions of table columns, rules made of them, and their export as text, SQL and Python."""

from .export import to_python
from .linear import LinearTerm
from .link import Link
from .proposition import Proposition
from .propositions import Propositions
from .rule import Rule, describe, essential
from .scorecard import Scorecard
from .scores import Explanation, cover_rules, explain_rows, score_rules
from .sql import to_sql

__all__ = [
    "Explanation",
    "LinearTerm",
    "Link",
    "Proposition",
    "Propositions",
    "Rule",
    "Scorecard",
    "cover_rules",
    "describe",
    "essential",
    "explain_rows",
    "score_rules",
    "to_python",
    "to_sql",
]
