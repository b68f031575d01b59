"""The application: its subcommands, and what they have in common."""

from typing import Annotated

import typer

from probgap import __version__
from probgap.cli.audit import audit
from probgap.cli.compare import compare
from probgap.cli.correct import correct
from probgap.cli.demo import demo
from probgap.cli.doctor import doctor
from probgap.cli.explain import explain
from probgap.cli.fit import fit
from probgap.cli.label import label
from probgap.cli.predict import predict

app = typer.Typer(
    name="probgap",
    no_args_is_help=True,
    # A command explains an error in one sentence; --debug shows the traceback.
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: probgap demo. Then: probgap fit TABLE --label COLUMN --out DIR",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"probgap {__version__}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_show_version, is_eager=True, help="Show the version."
)


@app.callback()
def describe(*, version: Annotated[bool, _VERSION] = False) -> None:
    """Learn from positive and unlabelled data, when the easy positives were labelled first."""


# In the order in which one meets them.
for _command in (fit, predict, explain, audit, label, correct, compare, demo, doctor):
    app.command()(_command)
