"""What people say of answers."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from shared.models.base import Model


class Judged(StrEnum):
    """Whether an answer, or a document for its question, is right."""

    GOOD = "good"
    BAD = "bad"


class Judgement(Model):
    """What people have said of one answer: of it as a whole, and of documents by id."""

    job_id: str
    answer: Judged | None = None
    documents: dict[str, Judged] = Field(default_factory=dict)
