"""How Sphinx makes a site of these pages: ``make docs``."""

project = "tacit"
author = "the authors of tacit"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "tacit"
html_copy_source = False
exclude_patterns = ["conf.py"]
