"""Colours, axes, names and checks shared by all plots."""

from __future__ import annotations

import textwrap
from typing import Any

from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import has_aspect
from kernelweave._text import clip, visible
from kernelweave.errors import InputError, KernelweaveError

DARK, LIGHT, GREY, WARM = "#1f5f8b", "#8fc1de", "#6b7280", "#c2410c"


def check_aspect(model: Any, aspect: str, refusal: str) -> None:
    """Refuse a model that is not fitted or does not declare what is drawn."""
    check_is_fitted(model)
    if not has_aspect(model, aspect):
        raise InputError(f"model: {type(model).__name__} {refusal}.")


def check_count(name: str, value: Any) -> None:
    """Refuse a maximum number of items that is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number >= 1, got {value!r}.")


def new_axes(size: tuple[float, float], n: int = 1, rows: int = 1, **options: Any) -> Any:
    """Return the axes of a new figure, ``n`` beside each other in each row."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise KernelweaveError(
            'Plots need matplotlib; install it with pip install "kernelweave[report]".'
        ) from error
    return plt.subplots(rows, n, figsize=size, layout="constrained", **options)[1]


def wrap(name: Any, most: int = 92, width: int = 46) -> str:
    """Return a name in two lines at most; dollars do not start a formula."""
    lines = textwrap.wrap(clip(visible(name), most), width, max_lines=2, placeholder=" ...")
    return "\n".join(lines).replace("$", r"\$") or str(name)


def tidy(ax: Any, grid: str) -> None:
    """Remove the upper and right frame and draw a light grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color="#e5e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
