"""Several jobs' trees on one screen, each fed by a thread of its own that reads the job's events."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live

from orchestrator.cli.follow import FRAMES_PER_S
from orchestrator.cli.render.growth import Growth, apply
from orchestrator.cli.render.tree import compact, draw
from orchestrator.client import Ramify

_MARGIN_LINES = 2


class Board:
    """The trees of some jobs, in the order of their ids."""

    def __init__(self, client: Ramify, job_ids: Sequence[str], questions: Sequence[str]) -> None:
        self._client = client
        self._growths = {job_id: Growth(question=text) for job_id, text in zip(job_ids, questions, strict=True)}
        self._faults: list[Exception] = []
        self._left = False

    def growths(self) -> list[Growth]:
        """The trees as they are now."""
        return list(self._growths.values())

    def watch(self, console: Console, seconds: float) -> None:
        """Follow all jobs until they have ended, at most `seconds`; on a terminal the trees are seen growing.

        Raises: what reading the events raised.
        """
        end = time.monotonic() + seconds
        # Daemons: who presses Ctrl-C does not wait for them.
        threads = [threading.Thread(target=self._read, args=(job_id, seconds), daemon=True) for job_id in self._growths]
        for thread in threads:
            thread.start()
        live = Live(
            console=console,
            get_renderable=lambda: self._frame(console),
            refresh_per_second=FRAMES_PER_S,
            transient=True,
            auto_refresh=console.is_terminal,
        )
        try:
            with live:
                for thread in threads:
                    thread.join(max(0.0, end - time.monotonic()))
        finally:
            self._left = True
        if self._faults:
            raise self._faults[0]

    @staticmethod
    def whole(growth: Growth) -> RenderableType:
        """One finished tree."""
        return draw(growth)

    def _read(self, job_id: str, seconds: float) -> None:
        try:
            for event in self._client.stream(job_id, timeout_s=seconds):
                self._growths[job_id] = apply(self._growths[job_id], event)
        except Exception as error:  # noqa: BLE001 - raised again by `watch`, unless it has left and Redis is going down
            if not self._left:
                self._faults.append(error)

    def _frame(self, console: Console) -> RenderableType:
        """All trees, or two lines for each where the screen is too low for them."""
        now, growths = time.time() * 1000, self.growths()
        trees = Group(*(draw(growth, now) for growth in growths))
        if len(console.render_lines(trees, pad=False)) <= console.height - _MARGIN_LINES:
            return trees
        return Group(*(compact(growth, now) for growth in growths))
