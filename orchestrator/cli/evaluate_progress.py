"""How far an evaluation is, on stderr: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from orchestrator.cli import output

#: Seconds between two lines where there is no terminal.
_LINE_S = 10.0


class Stage:
    """One stage: so many of so many."""

    def __init__(self, name: str, total: int | None, bar: Progress | None) -> None:
        self._name, self._total, self._bar = name, total, bar
        self._done, self._said = 0, time.monotonic()
        self._task = bar.add_task(name, total=total) if bar else None

    def at(self, done: int, total: int | None) -> None:
        """Set how far it is."""
        self._done, self._total = done, total
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._said >= _LINE_S:
            self._said = time.monotonic()
            output.note(f"{self._name}: {100 * done // total} %" if total else f"{self._name}: {done}")

    def step(self) -> None:
        """One more is done."""
        self.at(self._done + 1, self._total)

    def end(self) -> None:
        """It is over: the bar leaves the screen."""
        if self._bar:
            self._bar.stop()


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Stage]:
    """A stage that is shown until its end."""
    console = output.progress_console()
    if not console.is_terminal:
        yield Stage(name, total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield Stage(name, total, bar)
