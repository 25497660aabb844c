"""The page: a head, its parts in order, and one style sheet and one script inside."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from kernelweave._summary import (
    APPROXIMATE,
    fit_status,
    headline,
    percentage,
    relative_landmark_gap,
)
from kernelweave._text import clip

from . import (
    clusters,
    convergence,
    data,
    kernels,
    labels,
    pairs,
    performance,
    radius,
    reproduce,
    rules,
    structure,
)
from .held_out import HeldOut
from .html import Markup, Section, tag
from .performance import Performance
from .subject import Subject

_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")  # where a long name may be broken on a phone
_PARTS = (
    rules,
    structure,
    kernels,
    labels,
    pairs,
    clusters,
    radius,
    performance,
    convergence,
    data,
    reproduce,
)


def render(subject: Subject, title: str | None) -> str:
    """Return the whole page."""
    parts = [part for module in _PARTS if (part := module.section(subject)) is not None]
    heading = title or _title(subject)
    style, script = _asset("page.css"), _asset("page.js")
    # Nothing may be loaded from anywhere, and only this style and this script run: a name that
    # slipped through unescaped would be shown as nonsense and do nothing.
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{heading} \u00b7 kernelweave"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        _header(subject, heading),
        tag(
            "div",
            _contents(parts),
            tag("main", [p.render() for p in parts], id="report"),
            class_="frame",
        ),
        tag(
            "footer", tag("p", f"Written by kernelweave {_version()}. This page needs no network.")
        ),
        tag("script", Markup(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _title(subject: Subject) -> str:
    return subject.name if subject.target is None else f"{clip(subject.target)} by {subject.name}"


def _header(subject: Subject, heading: str) -> Markup:
    first, *rest = _HUMP.split(heading)
    toggle = tag("button", "Dark theme", type="button", id="theme", aria_pressed="false")
    return tag(
        "header",
        tag("div", tag("p", "kernelweave report", class_="eyebrow"), toggle, class_="bar-top"),
        tag("h1", first, [[tag("wbr"), part] for part in rest]),
        tag("p", headline(subject.estimator, subject.target), class_="lead"),
        tag("ul", [_tile(*tile) for tile in _tiles(subject)], class_="tiles"),
    )


def _tile(value: str, words: str, good: bool = True) -> Markup:
    return tag("li", tag("strong", value, class_=None if good else "bad"), tag("span", words))


def _tiles(subject: Subject) -> list[Any]:
    """Return the key figures of a model."""
    model = subject.estimator
    out: list[Any] = []
    found = subject.performance
    if isinstance(found, Performance):
        first = found.scores[0]
        out.append((first.show(first.mean), f"{first.name}, {first.spread}"))
    elif isinstance(found, HeldOut):
        out.append(
            (
                found.show(found.score),
                ", ".join(filter(None, [f"{found.measure} on held-out rows", found.ends])),
            )
        )
    if hasattr(model, "rules_"):
        out.append((f"{len(model.rules_):,}", "rules"))
    elif hasattr(model, "labels_"):
        out.append((f"{len(set(model.labels_.tolist())):,}", "clusters"))
    elif len(model.weights_):
        used = int((model.weights_ != 0).sum())
        out.append((f"{used:,} of {len(model.weights_):,}", f"{kernels.noun(model)}s in use"))
    if hasattr(model, "label_quality_"):
        out.append((f"{model.suspects().n_wrong:,}", "labels look wrong"))
    end = fit_status(model)
    if end.short.endswith("%"):
        out.append((end.short, "certified gap to the optimum", end.good))
    elif end.short == APPROXIMATE:
        near = percentage(relative_landmark_gap(model))
        out.append((near, f"gap of the Nystroem problem ({APPROXIMATE})", end.good))
    elif not hasattr(model, "labels_"):
        out.append((end.short, "how the fit ended", end.good))
    if subject.n_rows is not None:
        out.append((f"{subject.n_rows:,}", "rows"))
    return out


def _contents(parts: list[Section]) -> Markup:
    links = [tag("li", tag("a", part.title, href=f"#{part.name}")) for part in parts]
    return tag("nav", tag("ul", links), aria_label="Contents")


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _version() -> str:
    return dict(reproduce.versions())["kernelweave"]
