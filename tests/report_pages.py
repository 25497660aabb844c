"""Pages taken apart by Python's own parser."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

KEPT = {"pre", "script", "style"}
VOID = {"meta", "input", "br", "wbr"}


@dataclass
class Element:
    name: str
    attributes: dict
    children: list = field(default_factory=list)

    def text(self):
        """Return the text as a browser shows it: white space is collapsed, except in code."""
        text = self.raw_text()
        return text if self.name in KEPT else re.sub(r"\s+", " ", text).strip()

    def raw_text(self):
        return "".join(c if isinstance(c, str) else c.raw_text() for c in self.children)

    def find(self, name=None, **attributes):
        """Return all elements below this one with these attributes."""
        out = []
        for child in self.children:
            if isinstance(child, str):
                continue
            wanted = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items()}
            if name in (None, child.name) and wanted.items() <= child.attributes.items():
                out.append(child)
            out += child.find(name, **attributes)
        return out


class Parser(HTMLParser):
    """Builds a tree, and refuses elements that are closed in another order than opened."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.stack = [Element("page", {})]

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs), f"{tag}: an attribute twice"
        element = Element(tag, dict(attrs))
        self.stack[-1].children.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag, attrs):
        self.stack[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert tag == self.stack.pop().name, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.stack[-1].children.append(data)


def parse(page):
    """Return a page as a tree."""
    parser = Parser()
    parser.feed(page)
    parser.close()
    assert len(parser.stack) == 1, "something is not closed"
    return parser.stack[0]


def rows(page, section, table=0):
    """Return the cells of a table as text, with the titles first."""
    (part,) = page.find("section", id=section)
    found = part.find("table")[table]
    return [
        [cell.text() for cell in line.children if not isinstance(cell, str)]
        for line in found.find("tr")
    ]
