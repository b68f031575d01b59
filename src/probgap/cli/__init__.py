"""The command ``probgap``, one file for each of its subcommands."""

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_early)

    import io

    from probgap.cli._app import app

    # Text for people: what the locale cannot encode becomes a question mark. Data goes
    # through print_json and data_stream, which lose nothing.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    app()


def stop_early(*_: object) -> None:
    """End at once, while modules are loading; a command handles an interrupt itself."""
    os.write(2, b"Stopped. Nothing was written.\n")
    os._exit(130)
