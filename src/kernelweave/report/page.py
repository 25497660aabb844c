"""The page of a report: its head, its sections, one style sheet and one script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from kernelweave._declaration import has_aspect
from kernelweave._summary import (
    APPROXIMATE,
    fit_status,
    headline,
    percentage,
    relative_landmark_gap,
    weight_noun,
)
from kernelweave._text import clip

from .rendering import TEMPLATES, environment
from .reproduce import versions

if TYPE_CHECKING:
    from .subject import Subject

_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")  # where a long class name may be broken on a phone
_COMMON = ("performance", "convergence", "data", "reproduce")  # sections of every page


def render(subject: Subject, title: str | None) -> str:
    """Return the whole page."""
    pages = environment()
    names = (*subject.estimator._declaration.aspects, *_COMMON)
    found = (import_module(f".{name}", __package__).section(subject) for name in names)
    sections = [section for section in found if section is not None]
    heading = title or _title(subject)
    style, script = _asset("page.css"), _asset("page.js")
    # Nothing may be loaded from anywhere, and only this style and this script run: a name that was
    # not escaped would be shown as text and do nothing.
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return pages.get_template("page.html").render(
        policy=policy,
        heading=heading,
        heading_parts=_HUMP.split(heading),
        lead=headline(subject.estimator, subject.target),
        tiles=_tiles(subject),
        sections=[(section, section.render()) for section in sections],
        version=dict(versions())["kernelweave"],
        style=style,
        script=script,
    )


def _title(subject: Subject) -> str:
    return subject.name if subject.target is None else f"{clip(subject.target)} by {subject.name}"


def _tiles(subject: Subject) -> list[tuple[str, str, bool]]:
    """Return the key figures of a model: value, description, and whether the value is good."""
    model, found, out = subject.estimator, subject.performance, []
    learns = model._declaration.learns
    if found.tile is not None:
        out.append((*found.tile, True))
    if learns == "rules":
        out.append((f"{len(model.rules_):,}", "rules", True))
    elif learns == "clusters":
        out.append((f"{len(set(model.labels_.tolist())):,}", "clusters", True))
    elif len(model.weights_):
        used = int((model.weights_ != 0).sum())
        text = f"{weight_noun(model)}s in use"
        out.append((f"{used:,} of {len(model.weights_):,}", text, True))
    if has_aspect(model, "labels"):
        out.append((f"{model.suspects().n_wrong:,}", "labels look wrong", True))
    end = fit_status(model)
    if end.short.endswith("%"):
        out.append((end.short, "certified gap to the optimum", end.good))
    elif end.short == APPROXIMATE:
        near = percentage(relative_landmark_gap(model))
        out.append((near, f"gap of the Nystroem problem ({APPROXIMATE})", end.good))
    elif learns != "clusters":
        out.append((end.short, "status of the fit", end.good))
    if subject.n_rows is not None:
        out.append((f"{subject.n_rows:,}", "rows", True))
    return out


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
