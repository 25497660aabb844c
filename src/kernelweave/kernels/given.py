"""What the kernels that an estimator was given can do, before the data are known."""

from __future__ import annotations

from typing import Any

from kernelweave._types import Floats


def encodes_gaps(kernels: Any) -> bool:
    """Return whether some of the kernels that an estimator was given encode missing values.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list or dict of both, or None
        Each kernel checks its own columns.
    """
    if kernels is None:
        return True
    if isinstance(kernels, dict):
        kernels = list(kernels.values())
    if isinstance(kernels, list | tuple):
        return any(item is not None and encodes_gaps(item) for item in kernels)
    return bool(getattr(kernels, "encodes_gaps", False))


def takes_sparse(kernels: Any) -> bool:
    """Return whether all kernels that an estimator was given take sparse rows, as default ones do.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list or dict of both, or None
        What the estimator was given.
    """
    if isinstance(kernels, dict):
        kernels = list(kernels.values())
    if isinstance(kernels, list | tuple):
        return all(takes_sparse(item) for item in kernels)
    return bool(getattr(kernels, "takes_sparse", True))


def with_missing(kernels: Any, rule: str | None) -> Any:
    """Return what an estimator was given as kernels, with a rule for those that have none.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list or dict of both, or a structure of kernels
        What the estimator was given.
    rule : str or None
        None and "refuse" leave the kernels as they are.
    """
    if rule in (None, "refuse"):
        return kernels
    if isinstance(kernels, dict):
        return {name: with_missing(item, rule) for name, item in kernels.items()}
    if isinstance(kernels, list | tuple):
        return [with_missing(item, rule) for item in kernels]
    changes = getattr(kernels, "with_missing", None)
    return kernels if changes is None else changes(rule)


def with_targets(kernels: Any, y: Floats) -> Any:
    """Return what an estimator was given as kernels, with targets for those that learn from them.

    The same object is returned where none does.
    """
    if isinstance(kernels, list | tuple):
        items = [with_targets(item, y) for item in kernels]
        same = all(new is old for new, old in zip(items, kernels, strict=True))
        return kernels if same else items
    learns = getattr(kernels, "with_targets", None)
    return kernels if learns is None else learns(y)
