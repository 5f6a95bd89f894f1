"""Flower's counts of events, where the event of a task's end holds those before it (`shared.tasks.task_events`)."""

from __future__ import annotations

from typing import Any

from flower import events

from shared.tasks.task_events import FOLDED


class FoldedState(events.EventsState):  # type: ignore[misc]  # Flower has no types
    """Counts a task that ended as received and as started, too, where its event says so."""

    def event(self, event: dict[str, Any]) -> None:
        """Flower calls it once an event."""
        worker, told = event["hostname"], [f"task-{step}" for step in FOLDED if step in event]
        super().event(event)
        name = self.tasks[event["uuid"]].name or "" if told else ""
        for kind in told:
            self.counter[worker][kind] += 1
            self.metrics.events.labels(worker, kind, name).inc()


def install() -> None:
    """Flower makes its state by this name. Repeatable."""
    events.EventsState = FoldedState
