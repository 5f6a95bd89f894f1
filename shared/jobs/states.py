"""The states of a job and the only ways between them. The Lua scripts get both from here (`scripts.source`)."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class State(StrEnum):
    """Where a job stands. One that puts documents in is `indexing` and `finishing` where others search and merge."""

    QUEUED = "queued"
    PLANNING = "planning"
    SEARCHING = "searching"
    MERGING = "merging"
    SUMMARISING = "summarising"
    INDEXING = "indexing"
    FINISHING = "finishing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Outcome(StrEnum):
    """How an ended job counts in the accounts of its batch: every ended job has exactly one."""

    DONE = "done"
    DEGRADED = "degraded"
    PARTIAL = "partial"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


TERMINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED, State.EXPIRED})
#: States of a leaf in which its outcome is recorded.
ENDED_LEAVES = frozenset({"done", "failed"})
#: All states of a leaf, and of a branch.
LEAF_STATES = ENDED_LEAVES | {"waiting", "pending", "searched", "open", "grown"}
STOPPED = frozenset({State.FAILED, State.CANCELLED, State.EXPIRED})

TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.PLANNING}) | STOPPED,
    State.PLANNING: frozenset({State.SEARCHING, State.INDEXING}) | STOPPED,
    State.SEARCHING: frozenset({State.MERGING}) | STOPPED,
    State.MERGING: frozenset({State.SUMMARISING}) | STOPPED,
    State.SUMMARISING: frozenset({State.DONE}) | STOPPED,
    State.INDEXING: frozenset({State.FINISHING}) | STOPPED,
    State.FINISHING: frozenset({State.DONE}) | STOPPED,
    **{state: frozenset() for state in TERMINAL},
}


def outcome_of(state: State, *, partial: bool, degraded: Collection[str]) -> Outcome:
    """The outcome of an ended job.

    Done with missing leaves is partial; complete, but with a reason in `degraded` (something helpful was left out), is
    degraded.
    """
    if state is not State.DONE:
        return Outcome(state.value)
    if partial:
        return Outcome.PARTIAL
    return Outcome.DEGRADED if degraded else Outcome.DONE
