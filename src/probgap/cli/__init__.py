"""The command ``probgap``, one file for each of its subcommands."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    import io
    import sys

    from probgap.cli._app import app

    # Text for people: what the locale cannot encode becomes a question mark. Data goes
    # through print_json and data_stream, which lose nothing.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    app()
