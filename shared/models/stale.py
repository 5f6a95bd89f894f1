"""What has made an answer stale: documents that it rests on and that are no longer as they were, or that came since."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model


class StaleBy(StrEnum):
    """What became of a document since an answer was made."""

    CHANGED = "changed"  # a passage that a leaf has kept is not in it any more, or a new one of it would be kept
    GONE = "gone"
    NEW = "new"  # it was not among what the leaf has kept, and would be now
    MOVED = "moved"  # it has not changed, and is found now where it was not, or at another place


class StaleMark(Model):
    """One document that an answer is stale by, since when (Unix seconds), and the leaves that it touches.

    `rank`: the best place (from 1) that a passage of it had, or would have, among what a leaf keeps.
    """

    doc_id: str
    path: str
    by: StaleBy
    since: float
    leaves: tuple[str, ...] = ()
    rank: int = Field(default=1, ge=1)


class StaleCheckRequest(Model):
    """Hold a tenant's answers against what is stored: those that ended behind a check, or, with `since`, all of them.

    `since`: against documents that were written since then (Unix seconds), or are gone. 0: against all documents.
    """

    tenant: str
    since: float | None = None


class StaleCheck(Model):
    """What a change of the corpus means for the answers that are kept.

    `answers`: how many it has made stale; `fresh`: how many are no longer stale, since what they rest on is back;
    `checked`: how many were looked at; `left`: answers that there was no time for, which are checked later.
    """

    answers: int = 0
    fresh: int = 0
    checked: int = 0
    left: int = Field(default=0, ge=0)
    unchecked: tuple[str, ...] = Field(default=(), description="ids of those")
