"""Formulas as MathML: browsers draw it themselves, without a script or a network.

The translator is docutils' own; Sphinx offers the hook but no renderer for it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Sizes that TeX wants to be told, and a browser finds out by itself.
_SIZE = re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])")


def translate(node: nodes.Node, *, block: bool) -> str:
    """Return the MathML of a formula, or warn where it cannot be translated."""
    try:
        return str(tex2mathml(_SIZE.sub("", node.astext()), as_block=block))
    except MathError as error:
        logger.warning("formula cannot be translated: %s", error, location=node)
        return ""


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(translate(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands by itself, with a link to it if it has a number."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(translate(node, block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Offer the renderer under the name that conf.py asks for."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
