"""How the pages are built: ``make docs``, offline, with warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
    "api_pages",
    "architecture",
    "mathml",
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
exclude_patterns = ["_build", "_ext", "rooms.md", "gallery/*.ipynb", "gallery/*.py"]
templates_path: list[str] = []

run_blocks_exclude = ("api/", "gallery/")
# What the commands of a page wrote, and its readers may open: files/PAGE/FILE.
run_blocks_keep = {"tutorial": ["tumours/report.html"]}

# The API: every name in __all__ of these, in this order.
api_rooms = (
    ("probgap", "The classifiers."),
    ("probgap.gap", "Stage 1: how likely a sample is to be labelled."),
    ("probgap.boundary", "Stage 2: where the true class changes."),
    (
        "probgap.reading",
        "Boundary, posterior and number of hidden positives from scores.",
    ),
    ("probgap.relabel", "Stage 3: what that says about each sample."),
    ("probgap.reweight", "Stage 4: weights that make some samples stand for all."),
    ("probgap.methods", "Other methods, each with its assumption."),
    ("probgap.priors", "How many are positive, by ten methods."),
    ("probgap.tables", "From a file to a matrix."),
    ("probgap.diagnostics", "Whether to believe the answer."),
    ("probgap.inspection", "What drives the answer."),
    (
        "probgap.audit",
        "Which rows to ask about, and a model corrected by the answers.",
    ),
    ("probgap.io", "Models in files."),
    ("probgap.dask", "Fits on dask arrays and dataframes."),
    ("probgap.plotting", "Pictures, in scikit-learn's Display convention."),
    ("probgap.metrics", "Scores, with truth and without."),
    ("probgap.model_selection", "Scorers and folds for observed labels."),
    ("probgap.datasets", "Data drawn, loaded, and labels hidden."),
    ("probgap.page", "The page of a fit."),
    ("probgap.reproduction", "The paper's experiments: plan, rows and report."),
    ("probgap.exceptions", "Errors and warnings."),
)

toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc gives the types in words
autosummary_generate = False  # api_pages writes the pages
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
    "tutorial": [],
    "which_method": [],
    "when_not": [],
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
