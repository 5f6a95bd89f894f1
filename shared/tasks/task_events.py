"""Events of tasks, as Flower gets them: one for a task that ends before they are published, in place of three."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from celery.app import events
from celery.events.dispatcher import EventDispatcher

Event = Mapping[str, Any]
#: What an event of the end of a task holds of those before it: the name of the event's type and of the field.
FOLDED = ("received", "started")
_ENDS = frozenset({"task-succeeded", "task-failed"})
#: Events that are published together at most; Celery's own limit is 24.
_MOST_TOGETHER = 120


class TaskEvents(EventDispatcher):
    """Celery's dispatcher, for 5.7; named by `App`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        untyped: Any = super()
        untyped.__init__(*args, **{"buffer_limit": _MOST_TOGETHER, **kwargs})

    def _publish(self, event: Any, *args: Any, **kwargs: Any) -> Any:
        """Events of a group come as a list."""
        untyped: Any = super()
        return untyped._publish(folded(event) if isinstance(event, list) else event, *args, **kwargs)  # noqa: SLF001


class AppEvents(events.Events):
    """What `App.events` is."""

    dispatcher_cls = f"{__name__}:{TaskEvents.__name__}"


def folded(told: Sequence[Event]) -> list[Event]:
    """`told`, with those that a task was received and started within the one of its end, as fields with their times."""
    ended = {str(event["uuid"]) for event in told if event.get("type") in _ENDS}
    before: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    left = list[Event]()
    for event in told:
        kind = str(event.get("type"))
        step = kind.removeprefix("task-")
        uuid = str(event.get("uuid"))
        if uuid in ended and step in FOLDED:
            before[uuid] |= {**event, step: event["timestamp"]}
        elif kind in _ENDS:
            left.append({**before[uuid], **event})
        else:
            left.append(event)
    return left
