"""Pages that need no network: formulas as MathML, and nothing loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Sizes that TeX wants to be told, and a browser finds out by itself.
_SIZE = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]+"
    r"|<link\b[^>]*\bhref=\"(?:https?:)?//[^\"]+"
)


def write_formula(translator: Any, node: nodes.Node) -> None:
    """Write a formula by docutils' own translator, or warn where it cannot."""
    block = isinstance(node, nodes.math_block)
    try:
        text = tex2mathml(_SIZE.sub("", node.astext()), as_block=block)
    except MathError as error:
        logger.warning("formula cannot be translated: %s", error, location=node)
        text = ""
    if block:
        text = f"{translator.starttag(node, 'div', CLASS='formula')}{text}</div>\n"
    translator.body.append(text)
    raise nodes.SkipNode


def check_pages(app: Any, error: Exception | None) -> None:
    """Warn of each page that would load a script, style, font or picture from elsewhere."""
    if error is None and app.builder.format == "html":
        for page in sorted(Path(app.outdir).rglob("*.html")):
            for found in _LOADED.findall(page.read_text("utf-8")):
                logger.warning("%s loads from elsewhere: %s", page.name, found)


def setup(app: Any) -> dict[str, Any]:
    """Offer the formulas under the name that conf.py asks for, and check when done."""
    formula = (write_formula, None)
    app.add_html_math_renderer("mathml", formula, formula)
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
