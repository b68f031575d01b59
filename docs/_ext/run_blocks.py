"""Run every code block of the pages in the build, and show its output.

The ``python`` blocks of a page share one namespace; what they print, and the value of
their last line, is set below them. A ``console`` block whose lines begin with ``$`` runs in
a folder of the page, and the output is set below each command; another exit code than 0
(or N, with the class ``exits-N``) fails the build. A ``console`` block without ``$`` sets
something up and is not run, but what it names must exist. Other languages that would run
are refused. Files that blocks write are lost, but for those in ``run_blocks_keep``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util import logging
from typer.testing import CliRunner

from probgap.cli._app import app as probgap_app

ROOT = Path(__file__).parents[2]
_REFUSED = {"bash", "sh", "shell", "shell-session", "pycon", "py", "ipython", "default"}
_PLAIN = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "88", "OMP_NUM_THREADS": "1"}
logger = logging.getLogger(__name__)


class BlockError(Exception):
    """A block does not do what its page says."""


@dataclass
class Page:
    """What the blocks of a page share: a folder of their own, and Python names."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run_python(self, code: str) -> str:
        """Run a block, and return what it prints and the value of its last line."""
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", module=r"dask\b")  # how it uses pandas
            exec(compile(tree, "block", "exec"), self.names)  # noqa: S102 (our own text)
            if last is not None:
                shown = compile(ast.Expression(last.value), "block", "eval")
                value = eval(shown, self.names)
                if value is not None:
                    print(repr(value), file=printed)
        return printed.getvalue()

    def run_console(self, text: str, *, expected: int = 0) -> str:
        """Run the commands of a block, and return them with their output below each."""
        lines = []
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command = part.rstrip()
            if re.search(r"(?<!\\)\n", command):
                msg = f"the build writes the output of a command. Got {command!r}."
                raise BlockError(msg)
            code, output = _run_command(command, self.folder)
            output = output.replace(str(self.folder), ".").rstrip()
            if code != expected:
                msg = f"$ {command}\nended with {code}:\n{output}"
                raise BlockError(msg)
            lines += [f"$ {command}", *(x.rstrip() for x in output.splitlines())]
        return "\n".join(lines)


def _run_command(command: str, folder: Path) -> tuple[int, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **_PLAIN, "PATH": path}
    if re.fullmatch(r"probgap( [\w./=-]+)+", command):
        # In this process, which has loaded its libraries already.
        with contextlib.chdir(folder):
            words = shlex.split(command)[1:]
            result = CliRunner().invoke(probgap_app, words, env=environment)
        return result.exit_code, result.output
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def check_setup(text: str, root: Path = ROOT) -> None:
    """Check that commands that are not run name ``make`` targets and extras that exist."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE)
    extra = "|".join(project["optional-dependencies"])
    allowed = (
        rf"make ({'|'.join(targets)})|pip install (\.|'\.\[({extra})(,({extra}))*\]')"
    )
    for command in re.split(r"&&|\n", re.sub(r"  +#.*", "", text)):
        if command.strip() and not re.fullmatch(allowed, command.strip()):
            msg = f"a command that is not run must be make or pip. Got {command!r}."
            raise BlockError(msg)


def run_page(app: Any, doctree: nodes.document) -> None:
    """Run the blocks of one page, from top to bottom."""
    name, found = app.env.docname, [*doctree.findall(nodes.literal_block)]
    if not found or name.startswith(tuple(app.config.run_blocks_exclude)):
        return
    with tempfile.TemporaryDirectory(prefix="probgap-docs-") as folder:
        page = Page(Path(folder).resolve())
        for block in found:
            try:
                _run_block(page, block)
            except BlockError as error:
                logger.warning("%s", error, location=block)
            except Exception:  # noqa: BLE001 (whatever a page's code raises)
                logger.warning("%s", traceback.format_exc(limit=-3), location=block)
        for file in app.config.run_blocks_keep.get(name, ()):
            copy = Path(app.outdir) / "files" / name / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page.folder / file, copy)


def _run_block(page: Page, block: nodes.literal_block) -> None:
    language, code = block.get("language", "default"), block.astext()
    if language in _REFUSED:
        msg = f"a block must be python, console or plain text. Got {language!r}."
        raise BlockError(msg)
    if language == "python":
        if output := page.run_python(code).rstrip():
            shown = nodes.literal_block(output, output, language="text")
            place = block.parent.index(block) + 1
            block.parent.insert(
                place, nodes.container("", shown, classes=["block-out"])
            )
    elif language == "console" and not code.startswith("$ "):
        check_setup(code)
    elif language == "console":
        codes = [name[6:] for name in block["classes"] if name.startswith("exits-")]
        text = page.run_console(code, expected=int((codes or [0])[0]))
        shown = nodes.literal_block(text, text, language="console")
        shown.source, shown.line = block.source, block.line
        block.replace_self(shown)


def setup(app: Any) -> dict[str, Any]:
    """Run blocks as pages are read."""
    app.add_config_value("run_blocks_exclude", (), "env")
    app.add_config_value("run_blocks_keep", {}, "env")
    app.connect("doctree-read", run_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
