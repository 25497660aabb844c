"""Tables to propositions, rules, and rules as text, SQL and Python."""

from .proposition import Proposition
from .propositions import Propositions

__all__ = ["Proposition", "Propositions"]
