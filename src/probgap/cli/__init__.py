"""The command ``probgap``, one file for each of its subcommands."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from probgap.cli._app import app
    from probgap.cli._streams import tolerate_any_text

    tolerate_any_text()
    app()
