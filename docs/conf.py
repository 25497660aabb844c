"""Settings of the documentation; it is built, and can be read, without a network."""

import re
from importlib.metadata import version as installed
from pathlib import Path

project = "kernelweave"
author = "the kernelweave developers"
copyright = "the kernelweave developers"
version = release = installed("kernelweave")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build", "performance_tables.md"]
templates_path = ["_templates"]
default_role = "py:obj"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False

html_theme = "furo"
html_title = f"kernelweave {release}"
html_static_path = ["_static"]
html_show_sphinx = False
html_copy_source = False


def add_tables(app, docname, source):
    """Append the measured tables to the page on performance where a run has left them."""
    if docname != "performance":
        return
    tables = Path(app.srcdir) / "performance_tables.md"
    app.env.note_dependency(str(tables), docname=docname)
    if tables.is_file():
        # One level down: the page has a title already.
        source[0] += "\n" + re.sub(r"^#", "##", tables.read_text(encoding="utf-8"), flags=re.M)


def escape_shapes(app, what, name, obj, options, lines):
    """Keep the last underscore of a shape such as ``(n_features_in_,)`` from becoming a link."""
    lines[:] = [re.sub(r"\((\w+)_,\)", r"(\1\\_,)", line) for line in lines]


def setup(app):
    app.connect("source-read", add_tables)
    app.connect("autodoc-process-docstring", escape_shapes, priority=400)  # before numpydoc
