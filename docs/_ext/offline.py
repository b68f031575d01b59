"""Check that no page loads from elsewhere a script, a style, a font or a picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.util import logging

logger = logging.getLogger(__name__)

_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]+"
    r"|<link\b[^>]*\bhref=\"(?:https?:)?//[^\"]+"
)


def check_pages(app: Any, error: Exception | None) -> None:
    """Warn of each page that would load something from elsewhere."""
    if error is not None or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        for found in _LOADED.findall(page.read_text("utf-8")):
            logger.warning("%s loads from elsewhere: %s", page.name, found)


def setup(app: Any) -> dict[str, Any]:
    """Check when a build is done."""
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
