"""How Sphinx makes a site of these pages: ``make docs``."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "tacit"
author = "the authors of tacit"
release = version = version_of("tacit")
copyright = f"the authors of tacit. tacit {release}, under the Apache License 2.0"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "command_line"]
exclude_patterns = ["conf.py", "_extensions", "_static"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Options and code in tables keep their hyphens and quotes.
smartquotes = False

html_theme = "furo"
html_title = "tacit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = True

# The reference is made of docstrings and annotations; pages of reference/ say what stands where.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
python_display_short_literal_types = True
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Warns", "returns_style")]

# A reference that leads nowhere is an error, but for those into other projects, whose sites this
# build does not read.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(torch|numpy|np|flwr|collections|pathlib|os|typing|argparse|fractions)\..*"),
    (r"py:.*", r"(Any|Callable|Mapping|Sequence|Iterator|Iterable|Collection|Path|optional)"),
    (
        r"py:.*",
        r"(bool|bytes|dict|float|frozenset|int|list|object|str|tuple|type|None|Exception|UserWarning)",
    ),
    (
        r"py:.*",
        r"(KeyboardInterrupt|NotImplementedError|ValueError|AssertionError|ellipsis|property)",
    ),
]

# Types of arguments that no program makes by hand.
nitpick_ignore = [
    ("py:class", "tacit._core.Session"),
    ("py:class", "tacit.compilation.signature.Owned"),
    ("py:class", "tacit.module.Module"),
    ("py:class", "tacit.operators.dispatch.table.Implementation"),
]

# What a program gets from functions, and does not make itself.
NOT_CONSTRUCTED = {
    "tacit.Meter",
    "tacit.SecretTensor",
    "tacit.Session",
    "tacit.compilation.execute.Bound",
    "tacit.compilation.program.Program",
    "tacit.compilation.weights.Weights",
    "tacit.rehearsal.check.Check",
    "tacit.rehearsal.compare.Comparison",
    "tacit.rehearsal.compare.Layer",
    "tacit.rehearsal.cost.Cost",
    "tacit.rehearsal.cost.Line",
    "tacit.riscv.Outcome",
    "tacit.riscv.Program",
}


# Napoleon takes what stands before the first colon of an attribute's docstring for its type: these
# stay as they are.
_kept: dict[str, list[str]] = {}


def _keep(_app, what, name, _object, _options, lines):
    if what in ("attribute", "data", "property"):
        _kept[name] = list(lines)


def _restore(_app, _what, name, _object, _options, lines):
    lines[:] = _kept.pop(name, lines)


def _without_a_signature(_app, _what, name, _object, _options, signature, returns):
    return ("", None) if name in NOT_CONSTRUCTED else (signature, returns)


def setup(app):
    """Sphinx calls it."""
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
    app.connect("autodoc-process-signature", _without_a_signature)
