"""Run every code block of the pages in the build, and show its output.

A ``python`` block runs in the namespace of its page; what it prints, and the value of
its last line, is set below it. A ``console`` block whose lines begin with ``$`` runs in
a folder of the page; the output is set below each command, and an exit code other than
0 (or N, with the class ``exits-N``) fails the build. A ``console`` block without ``$``
installs something and is not run; that its targets, extras and files exist is checked.
Other languages that would run are refused, so that no block escapes. Files that blocks
write are lost with the folder, but for those in ``run_blocks_keep``.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import traceback
from pathlib import Path
from typing import Any

from blocks import BlockError, Page, check_setup
from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

_REFUSED = {"bash", "sh", "shell", "shell-session", "pycon", "py", "ipython", "default"}


def run_page(app: Any, doctree: nodes.document) -> None:
    """Run the blocks of one page, from top to bottom."""
    docname = app.env.docname
    if docname.startswith(tuple(app.config.run_blocks_exclude)):
        return
    found = [*doctree.findall(nodes.literal_block)]
    if not found:
        return
    with tempfile.TemporaryDirectory(prefix="probgap-docs-") as folder:
        page = Page(docname, Path(folder).resolve())
        for block in found:
            try:
                _run_block(page, block)
            except BlockError as error:
                logger.warning("%s", error, location=block)
            except Exception:  # noqa: BLE001 (whatever a page's code raises)
                logger.warning("%s", traceback.format_exc(limit=-3), location=block)
        _keep_files(app, page)


def _run_block(page: Page, block: nodes.literal_block) -> None:
    language, code = block.get("language", "default"), block.astext()
    if language in _REFUSED:
        msg = f"a block must be python, console or plain text. Got {language!r}."
        raise BlockError(msg)
    if language not in ("python", "console"):
        return
    if language == "console" and not code.startswith("$ "):
        check_setup(code)
        return
    if language == "python":
        output = page.run_python(code).rstrip()
        if output:
            _set_below(block, nodes.literal_block(output, output, language="text"))
    else:
        text = page.run_console(code, expected=_expected(block))
        shown = nodes.literal_block(text, text, language="console")
        shown.source, shown.line = block.source, block.line
        block.replace_self(shown)


def _keep_files(app: Any, page: Page) -> None:
    """Copy what readers may open from the page's folder to the pages."""
    for name in app.config.run_blocks_keep.get(page.name, ()):
        if not (page.folder / name).is_file():
            logger.warning("%s must write %s, which is to be kept", page.name, name)
            continue
        copy = Path(app.outdir) / "files" / page.name / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page.folder / name, copy)


def _expected(block: nodes.literal_block) -> int:
    codes = [re.fullmatch(r"exits-(\d+)", name) for name in block["classes"]]
    return next((int(code[1]) for code in codes if code), 0)


def _set_below(block: nodes.literal_block, output: nodes.literal_block) -> None:
    place = block.parent.index(block)
    block.parent.insert(place + 1, nodes.container("", output, classes=["block-out"]))


def setup(app: Any) -> dict[str, Any]:
    """Run blocks as pages are read."""
    app.add_config_value("run_blocks_exclude", (), "env")
    app.add_config_value("run_blocks_keep", {}, "env")
    app.connect("doctree-read", run_page)
    # A page runs in a process of its own namespace, but changes the working folder.
    return {"parallel_read_safe": True, "parallel_write_safe": True}
