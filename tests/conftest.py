"""Data that several tests use. Arrays are read-only: no test may change another's.

Fixtures import what they need: the process that hands out tests need not load it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("probgap", deadline=None, max_examples=40)
settings.load_profile("probgap")

# In the background of a shell interrupts are ignored, also by the processes that tests
# start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def set_defaults(monkeypatch):
    """Set numbers that shape a fit otherwise, for one test."""
    from probgap._core.defaults import DEFAULTS  # noqa: PLC0415

    def change(*, most_rows, landmark_range):
        numbers = {"most_rows": most_rows, "landmark_range": landmark_range}
        defaults = replace(DEFAULTS, **numbers)
        for module in ("pgpu.steps", "_core.checks", "_core.kernels"):
            monkeypatch.setattr(f"probgap.{module}.DEFAULTS", defaults)

    return change


def read_only(*arrays):
    for array in arrays:
        array.setflags(write=False)
    return arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def square():
    """The square with labels hidden by a linear rate: X, y_true, gap, s."""
    from probgap.datasets import hide_labels, make_square  # noqa: PLC0415

    X, y_true, posterior = make_square(400, random_state=3)
    gap = 2.0 * posterior - 1.0
    s = hide_labels(X, y_true, gap, ("linear", 0.6), random_state=4)
    return read_only(X, y_true, gap, s)


@pytest.fixture(scope="session")
def square_model(square):
    """The default, fitted to the square: to be read, not to be changed."""
    from probgap import PGPUClassifier  # noqa: PLC0415

    X, _, _, s = square
    return PGPUClassifier(random_state=0).fit(X, s)


@pytest.fixture
def serve_label():
    """Serve a session of probgap label, and return port and token."""
    import uvicorn  # noqa: PLC0415

    from probgap.cli._server import Guard, bind, make_app  # noqa: PLC0415

    with contextlib.ExitStack() as running:

        def serve(session, about):
            sock = running.enter_context(bind("127.0.0.1", 0))
            port, token = sock.getsockname()[1], "t0ken"
            app = make_app(session, about, Guard(token, port, network=False))
            config = uvicorn.Config(app, log_level="error", lifespan="off")
            server = uvicorn.Server(config)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
            thread.start()
            running.callback(thread.join)
            running.callback(setattr, server, "should_exit", True)
            return port, token

        yield serve


@pytest.fixture(scope="session")
def probgap():
    """Run the command in this process; the result has exit_code, stdout and stderr."""
    from typer.testing import CliRunner  # noqa: PLC0415

    from probgap.cli._app import app  # noqa: PLC0415

    def run(*words, charset="utf-8", **options):
        runner = CliRunner(charset=charset)
        return runner.invoke(app, [str(word) for word in words], **options)

    return run


@pytest.fixture
def on_terminal(monkeypatch):
    """Run the command in this process with a terminal for stderr; return what it shows."""
    from probgap.cli._app import app  # noqa: PLC0415

    pty = pytest.importorskip("pty")

    def run(*words):
        parent, child = pty.openpty()
        shown = []

        def read():
            # As it comes: a terminal holds some kilobytes, and then makes one wait.
            with contextlib.suppress(OSError):  # the other end was closed
                while part := os.read(parent, 65_536):
                    shown.append(part)

        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(child, "w") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            app([str(word) for word in words], standalone_mode=False)
        reader.join()
        os.close(parent)
        return b"".join(shown).decode(errors="replace")

    return run
