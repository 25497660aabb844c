"""The page of a report: its head, its sections, one style sheet and one script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from kernelweave._declaration import has_aspect
from kernelweave._summary import count, count_rules, describe_goal, fit_status, headline
from kernelweave._text import clip

from .answers import how_good
from .rendering import TEMPLATES, environment
from .reproduce import versions

if TYPE_CHECKING:
    from .subject import Subject

_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")  # where a long class name may be broken on a phone
_LAST = ("convergence", "data", "reproduce")  # sections of every page, after those of the method


def render(subject: Subject, title: str | None) -> str:
    """Return the whole page."""
    pages = environment()
    answer, own = how_good(subject), subject.estimator._declaration.aspects
    measured = not isinstance(answer, str)
    names = ("performance", "decides", *own) if measured else ("decides", *own, "performance")
    names += _LAST
    found = (import_module(f".{name}", __package__).section(subject) for name in names)
    sections = [section for section in found if section is not None]
    heading = title or _title(subject)
    style, script = asset("page.css"), asset("page.js") + asset("theme.js")
    return pages.get_template("page.html").render(
        policy=policy(style, script),
        heading=heading,
        heading_parts=_HUMP.split(heading),
        lead=_lead(subject),
        warnings=_warnings(subject),
        answer=answer,
        decides=subject.decides,
        sections=[(section, section.render()) for section in sections],
        version=dict(versions())["kernelweave"],
        style=style,
        script=script,
    )


def _title(subject: Subject) -> str:
    return subject.name if subject.target is None else f"Predicting {clip(subject.target)}"


def _lead(subject: Subject) -> str:
    """Return what the model predicts, from what, and by which method."""
    model = subject.estimator
    learns, columns = model._declaration.learns, subject.columns
    if learns in ("clusters", "pairs"):
        return headline(model)
    text = describe_goal(model, subject.target)
    if columns is not None:
        text += f" from {count(len(columns), 'column')}"
    if learns == "rules":
        text += f" by {count_rules(model)}"
    known = subject.record is not None and bool(subject.record.models)
    named = subject.record.models[0].name if known and subject.record is not None else "this model"
    method = subject.name if named == "this model" else f"{clip(named)} ({subject.name})"
    fitted = "" if subject.n_rows is None else f", fitted to {count(subject.n_rows, 'row')}"
    text += f". Method: {method}{fitted}."
    text += "" if subject.decides is None else subject.decides.sentence
    if has_aspect(model, "labels"):
        wrong = model.suspects()
        looks = "label looks" if wrong.n_wrong == 1 else "labels look"
        text += f" {wrong.n_wrong:,} of its {wrong.n_samples:,} training {looks} wrong."
    return text


def _warnings(subject: Subject) -> list[str]:
    """Return what a reader must know before the scores."""
    kept = () if subject.record is None else subject.record.warnings
    if subject.evaluation is not None:  # the scores of the page are those of other rows
        kept = tuple(f"When it was fitted: {_continued(text)}" for text in kept)
    end = fit_status(subject.estimator)
    stopped = [] if end.good else [f"The optimiser did not converge. {end.text}"]
    return [*subject.warnings, *kept, *stopped]


def _continued(text: str) -> str:
    """Return a sentence as it stands after a colon; names in capitals stay."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def policy(style: str, script: str) -> str:
    """Return the policy of a page.

    Nothing may be loaded from anywhere, and only this style and this script run: a name that was
    not escaped would be shown as text and do nothing.
    """
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def asset(name: str) -> str:
    """Return a style sheet or script of the pages."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
