"""The states of a job and the only ways between them. The Lua scripts get both from here (`scripts.source`)."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    PLANNING = "planning"
    SEARCHING = "searching"
    MERGING = "merging"
    SUMMARISING = "summarising"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


TERMINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED, State.EXPIRED})
#: States of a leaf in which its outcome is recorded.
ENDED_LEAVES = frozenset({"done", "failed"})
STOPPED = frozenset({State.FAILED, State.CANCELLED, State.EXPIRED})

TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.PLANNING}) | STOPPED,
    State.PLANNING: frozenset({State.SEARCHING}) | STOPPED,
    State.SEARCHING: frozenset({State.MERGING}) | STOPPED,
    State.MERGING: frozenset({State.SUMMARISING}) | STOPPED,
    State.SUMMARISING: frozenset({State.DONE}) | STOPPED,
    **{state: frozenset() for state in TERMINAL},
}
