"""What each estimator class declares about itself for files, reports, plots and the command line.

A class has one attribute ``_declaration``, which its subclasses inherit and extend. Model files,
summaries, reports and plots read it instead of probing for attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Learned = Literal[
    "kernels", "paths", "nodes", "widths", "metric", "rules", "pairs", "clusters", "members"
]


@dataclass(frozen=True)
class Declaration:
    """How a model is saved, summarised, reported and offered."""

    # What the model consists of: weights of all kernels, of paths of kernels, of active nodes of a
    # graph; one kernel with learned widths or in a learned metric; rules; a kernel learned from
    # pairs; clusters; other models that are combined.
    learns: Learned
    # Fitted attributes in a model file with their kinds, in the order of the file. Kinds are
    # ``real``, ``positive``, ``integer``, ``flag``, ``names``, ``history``, ``dict``, ``kernel``
    # and ``any``, ``list[d]``, and arrays: ``float[d, e]``, ``int[d]``, ``bool[d]``, ``labels[d]``,
    # ``weights[d]`` (not negative), ``codes[d]`` (positions in ``classes_``), ``order[d]`` (a
    # permutation), ``quality[d]`` and ``partial[d]`` (NaN allowed). All dimensions of one name are
    # equal; those with a question mark are absent where there is one output.
    saved: Mapping[str, str]
    # The same for attributes that only some fits have.
    optional: Mapping[str, str] = field(default_factory=dict)
    # Parameters and the fitted attribute that is saved in their place where the parameter depends
    # on the data or is a graph.
    substitutes: Mapping[str, str] = field(default_factory=dict)
    # Sections of the report beside the common ones, in their order; each also admits its plot.
    aspects: tuple[str, ...] = ()
    method: str | None = None  # name of the method on the command line

    def extended(self, saved: Mapping[str, str], **changes: Any) -> Declaration:
        """Return this declaration with more saved attributes and other fields."""
        return replace(self, saved={**self.saved, **saved}, **changes)


# What every fit with a certificate records.
CERTIFICATE = {
    "objective_": "real",
    "duality_gap_": "real",
    "converged_": "flag",
    "n_iter_": "integer",
    "history_": "history",
}


def declared(model: Any) -> Declaration | None:
    """Return the declaration of an estimator of kernelweave, None for anything else."""
    found = getattr(type(model), "_declaration", None)
    return found if isinstance(found, Declaration) else None


def has_aspect(model: Any, aspect: str) -> bool:
    """Return whether a model declares this section of its report."""
    found = declared(model)
    return found is not None and aspect in found.aspects
