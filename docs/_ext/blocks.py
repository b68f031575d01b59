"""Run the code of a page: Python in one namespace, commands in one folder."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from probgap.cli._app import app

ROOT = Path(__file__).parents[2]
_SECONDS = 120


class BlockError(Exception):
    """A block does not do what its page says."""


@dataclass
class Page:
    """What the blocks of one page share.

    Attributes
    ----------
    name : str
        Name of the page, for messages.
    folder : Path
        An empty folder of its own, in which its commands and its Python run.
    names : dict
        The names that its Python has bound.
    """

    name: str
    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run_python(self, code: str) -> str:
        """Run a block, and return what it prints and the value of its last line."""
        tree = ast.parse(code, self.name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            exec(compile(tree, self.name, "exec"), self.names)  # noqa: S102 (our own text)
            if last is not None:
                value = eval(
                    compile(ast.Expression(last.value), self.name, "eval"), self.names
                )
                if value is not None:
                    print(repr(value), file=printed)
        return printed.getvalue()

    def run_console(self, text: str, *, expected: int = 0) -> str:
        """Run the commands of a block, and return them with their output below each."""
        shown: list[str] = []
        for command in _commands(text):
            shown += f"$ {command}".splitlines()
            ours = re.fullmatch(r"probgap( [\w./=-]+)+", command) is not None
            run = _run_probgap if ours else _run_in_shell
            code, output = run(command, self.folder)
            output = output.replace(str(self.folder), ".").rstrip()
            if code != expected:
                msg = f"$ {command}\nended with {code}:\n{output}"
                raise BlockError(msg)
            shown += [line.rstrip() for line in output.splitlines()]
        return "\n".join(shown)


def _run_probgap(command: str, folder: Path) -> tuple[int, str]:
    """Run our own command in this process, which has loaded its libraries already."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, shlex.split(command)[1:], env=_environment())
    return result.exit_code, result.output


def _run_in_shell(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        command,
        shell=True,
        executable="/bin/bash",
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def _commands(text: str) -> list[str]:
    """Split a block into commands; one may go on after a backslash."""
    commands: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif commands and commands[-1].endswith("\\"):
            commands[-1] += f"\n{line}"
        else:
            msg = f"a line must begin with '$ ': the build writes the output. Got {line!r}."
            raise BlockError(msg)
    return commands


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    plain = {"PATH": path, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "88"}
    return {**os.environ, **plain, "OMP_NUM_THREADS": "1"}


def check_setup(text: str, root: Path = ROOT) -> None:
    """Check commands that install something, and so are not run.

    What they name must exist: ``make`` targets of the Makefile, ``pip install``
    extras of the project, ``python`` a file of the repository.
    """
    for line in text.splitlines():
        for command in line.partition("  #")[0].split("&&"):
            words = shlex.split(command, comments=True)
            if words:
                _check_command(words, root)


def _check_command(words: list[str], root: Path) -> None:
    match words:
        case ["make", *targets]:
            known = re.findall(
                r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE
            )
            unknown = {target for target in targets if "=" not in target} - {*known}
        case ["pip", "install", *names]:
            project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
            named = re.findall(r"\[([\w,]+)\]", " ".join(names))
            extras = {extra for part in named for extra in part.split(",")}
            unknown = extras - {*project["optional-dependencies"]}
        case ["python", file, *_] if not (root / file).is_file():
            unknown = {file}
        case ["python" | "cd" | "export", *_]:
            unknown = set()
        case ["git", "clone", *_]:
            unknown = set()
        case _:
            unknown = {" ".join(words)}
    if unknown:
        msg = f"a command without '$ ' must be one that can be checked. Got {unknown}."
        raise BlockError(msg)
