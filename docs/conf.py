"""How the pages are built: ``make docs``, offline, with warnings as errors."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from probgap import __version__

project = "probgap"
author = "The probgap developers"
project_copyright = "The probgap developers. BSD 3-clause licence"
version = release = __version__
language = "en"

extensions = [
    "layers",
    "offline",
    "run_blocks",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "layers.md",
    "gallery/*.ipynb",
    "gallery/*.py",
]
templates_path = ["_templates"]

run_blocks_exclude = ("api/", "gallery/")
# What the commands of a page wrote, and its readers may open: files/PAGE/FILE.
run_blocks_keep = {"tutorial": ["tumours/report.html"]}

toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc gives the types in words
autosummary_ignore_module_all = False  # what is in __all__ is public
autosummary_imported_members = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "probgap"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["probgap.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages that stand alone have nothing to list beside them.
html_sidebars = {
    "index": [],
    "api": [],
    "tutorial": [],
    "which_method": [],
    "when_not": [],
    "glossary": [],
    "symbols": [],
    "performance": [],
    "reproduction/report": [],
    "architecture": [],
    "changelog": [],
    "contributing": [],
    "citing": [],
}

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div:not(.block-out) > div.highlight > pre"

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reference_url": {"probgap": None},
    "doc_module": ("probgap",),
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (480, 400),
    "remove_config_comments": True,
}


_LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`)")
_TRAILING = re.compile(r"\b([a-zA-Z]\w*)_(?=[\s,.;)]|$)")


def escape_names(*event: Any) -> None:
    """Keep a fitted attribute, such as ``classes_``, from being read as a link."""
    lines = event[-1]
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = _LITERAL.split(line)
            parts[::2] = [_TRAILING.sub(r"\1\_", part) for part in parts[::2]]
            lines[place] = "".join(parts)


def skip_others(*event: Any) -> bool | None:
    """Leave out methods of scikit-learn's, which are described there, and attributes."""
    thing = event[3]
    ours = str(getattr(thing, "__module__", "")).startswith("probgap")
    return None if ours and callable(thing) else True


def setup(app: Any) -> None:
    """Connect both to the making of the API pages."""
    app.connect("autodoc-process-docstring", escape_names, priority=900)
    app.connect("autodoc-skip-member", skip_others)
