"""Progress on standard error: a bar with the time left, or lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self


class Progress:
    """Steps of known relative cost, of which one is under way.

    Parameters
    ----------
    costs : dict of str to float
        What the steps are called, in order, and about how long each takes.
    shown : bool
        Whether to show anything at all.

    Attributes
    ----------
    seconds : dict of str to float
        How long each step took.
    """

    def __init__(self, costs: dict[str, float], *, shown: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._costs = costs
        self._shown = shown
        self._step: str | None = None
        self._begun = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            self._bar = _make_bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=sum(self._costs.values()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:  # else the step is not done, and the bar must not say so
            self._end_step()
        if self._bar is not None:
            self._bar.stop()

    def begin(self, step: str) -> None:
        """End the step under way and begin the next."""
        self._end_step()
        self._step, self._begun = step, time.perf_counter()
        if self._bar is not None:
            self._bar.update(self._task, description=step)
        elif self._shown:
            sys.stderr.write(f"{step} ...\n")
            sys.stderr.flush()

    def advance(self, done: float, total: float, what: str = "") -> None:
        """Say how far the step under way has come."""
        if self._bar is None or self._step is None or total <= 0:
            return
        share = min(done / total, 1.0) * self._costs[self._step]
        text = f"{self._step}: {what}" if what else self._step
        self._bar.update(self._task, completed=self._before + share, description=text)

    @property
    def _before(self) -> float:
        return sum(cost for step, cost in self._costs.items() if step in self.seconds)

    def _end_step(self) -> None:
        if self._step is None:
            return
        self.seconds[self._step] = time.perf_counter() - self._begun
        self._step = None
        if self._bar is not None:
            self._bar.update(self._task, completed=self._before)


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    return Bar(
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=600,
    )
