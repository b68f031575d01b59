"""The application: its subcommands, and what they have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from probgap import __version__
from probgap.cli.reproduce import reproduce

app = typer.Typer(
    name="probgap",
    no_args_is_help=True,
    # A command says what went wrong in one sentence; --debug shows where.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"probgap {__version__}")
        raise typer.Exit


@app.callback()
def describe(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Learn from positive and unlabelled data, when the easy positives were labelled first."""


app.command()(reproduce)
