"""Entries of a job's event stream as they go over the wire. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from fastapi.sse import format_sse_event

from shared.jobs import TERMINAL
from shared.jobs.codec import text
from shared.jobs.events import events_of
from shared.models import BatchStatus

#: Milliseconds and sequence number of an id of a Redis stream: they sort as Redis does.
StreamId = tuple[int, int]
BEGINNING: StreamId = (0, 0)


class StreamEntry(NamedTuple):
    """What listeners are sent at once: one entry of a stream, or a word of the server's own, which has no id.

    `type` and `data` are those of its last event, `raw` is all of it as server-sent events. `ends`: nothing follows.
    """

    id: StreamId
    type: str
    data: Mapping[str, str]
    raw: bytes
    ends: bool = False


def stream_id(given: str) -> StreamId | None:
    """An id of a Redis stream as a client gives it back; None for what is none."""
    milliseconds, _, sequence = given.strip().partition("-")
    digits = (milliseconds, sequence or "0")
    if not all(part.isascii() and part.isdigit() and len(part) <= 20 for part in digits):
        return None
    return int(digits[0]), int(digits[1])


def shown_id(found: StreamId) -> str:
    """As Redis writes it."""
    return f"{found[0]}-{found[1]}"


def entry_of(entry_id: bytes, fields: Mapping[bytes, bytes]) -> StreamEntry:
    """One entry of a stream. Whoever resumes behind an event that is not its last is told all of it again."""
    told = events_of(fields) or [{}]
    kinds = [data.pop("type", "unknown") for data in told]
    place = stream_id(text(entry_id)) or BEGINNING
    raw = b"".join(_event(kind, data) for kind, data in zip(kinds[:-1], told[:-1], strict=True))
    raw += _event(kinds[-1], told[-1], shown_id(place))
    ends = kinds[-1] == "state" and told[-1].get("state") in TERMINAL
    return StreamEntry(place, kinds[-1], told[-1], raw, ends)


def queued(created: bytes | None) -> StreamEntry:
    """Stands for the first entry of a job that waits for its turn: `opened.lua` adds it, under this id, at its turn.

    `created`: when the job was created, as its hash has it.
    """
    data = {"state": "queued"}
    try:
        at = max(1, math.floor(1000 * float(created or 0))), 0
    except (ValueError, OverflowError):
        at = 1, 0
    return StreamEntry(at, "state", data, _event("state", data, shown_id(at)))


def end(state: str) -> StreamEntry:
    """The last word to a listener: how the job has ended; `gone` where it is not kept any more, or `unreadable`."""
    return _own("end", {"state": state})


def accounts(found: BatchStatus) -> StreamEntry:
    """A batch as it stands, whole: whoever resumes needs no others. Its id is the digest of what it says."""
    data = found.model_dump_json()
    digest = hashlib.sha256(data.encode()).hexdigest()[:16]
    raw = format_sse_event(event="accounts", data_str=data, id=digest)
    return StreamEntry(BEGINNING, "accounts", {"digest": digest}, raw, found.terminal and found.read_whole)


def dropped(after: StreamId) -> StreamEntry:
    """The last word to a listener that did not keep up."""
    reason = "events came faster than they were read: connect again with this Last-Event-ID"
    return _own("dropped", {"reason": reason, "last_event_id": shown_id(after)})


def _own(kind: str, data: Mapping[str, str]) -> StreamEntry:
    return StreamEntry(BEGINNING, kind, data, _event(kind, data), ends=True)


def _event(kind: str, data: Mapping[str, str], event_id: str | None = None) -> bytes:
    return format_sse_event(event=kind, data_str=json.dumps(data, ensure_ascii=False), id=event_id)
