"""What the supervisor reports while it works, for a terminal or a log."""

from __future__ import annotations

from enum import StrEnum

from shared.models.base import Model


class EventKind(StrEnum):
    """What can happen to a part of the stack."""

    STARTING = "starting"
    READY = "ready"
    DIED = "died"
    RESTARTED = "restarted"
    STOPPING = "stopping"
    KILLED = "killed"
    STOPPED = "stopped"


class Event(Model):
    """Something happened to `name` (a child, or "stack"); `detail` is a short phrase for people."""

    kind: EventKind
    name: str
    detail: str = ""
