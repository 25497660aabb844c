"""Sections of a page and the environment that renders their templates."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelweave._summary import count, listed
from kernelweave._text import clip, visible
from kernelweave.errors import KernelweaveError

from .tables import percent

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
_BREAKS = re.compile("(?<=_)|(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Section:
    """A part of the page: its name in links, its heading, and the values of its template."""

    name: str
    title: str
    values: dict[str, Any]
    template: str = ""  # source of the template; by default the file called as the section

    def render(self) -> str:
        """Return the body of the section, with all values escaped."""
        pages = environment()
        template = (
            pages.from_string(self.template)
            if self.template
            else pages.get_template(f"{self.name}.html")
        )
        return template.render(self.values)


@cache
def environment() -> Environment:
    """Return the environment of the templates; it escapes every value that is not markup."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError as error:
        raise KernelweaveError(
            'Reports need jinja2; install it with pip install "kernelweave[report]".'
        ) from error

    def shown(value: Any) -> Any:
        # A page is UTF-8 and may hold neither lone surrogates nor control characters.
        return value if isinstance(value, Markup) else visible(value, lines=True)

    def breakable(text: Any) -> Markup:
        # Names of columns are broken after an underscore and before a capital letter, before they
        # are broken anywhere.
        return Markup(_BREAKS.sub("<wbr/>", str(escape(shown(text)))))

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # each template is rendered once, so that compiling it takes longest
    )
    filters: dict[str, Callable[..., str]] = {
        "counted": count,
        "clip": clip,
        "breakable": breakable,
        "listed": listed,
        "percent": percent,
        "sentence": lambda text: f"{text[:1].upper()}{text[1:].rstrip('.')}.",
        "px": lambda value: f"{float(value):.1f}",
        "across": lambda value: f"{float(value):.2f}%",
        "exact": lambda value: f"{value:.17g}",
    }
    made.filters.update(filters)
    return made
