"""What a caller may ask: the question and its options, checked at the door."""

from __future__ import annotations

import unicodedata
from datetime import date
from enum import StrEnum
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from shared.models.base import Model

MAX_QUESTION_CHARS = 4000
#: Names that stand in keys and filters: no separators, no braces, no white space.
Name = Annotated[str, Field(pattern=r"^[\w.\-]{1,64}$")]


class SearchMode(StrEnum):
    """Search modes (D1): each is the strategy of its name."""

    HYBRID = "hybrid"
    BM25_ONLY = "bm25_only"
    VEC_ONLY = "vec_only"
    DEEP = "deep"


class Lane(StrEnum):
    """Interactive work overtakes batch work in every queue (A3)."""

    INTERACTIVE = "interactive"
    BATCH = "batch"


class Filters(Model):
    """Which chunks may be found. The same filter reaches every arm. Dates are inclusive."""

    after: date | None = None
    before: date | None = None
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    paths: tuple[str, ...] = Field(default=(), description="prefixes of a document's path")
    namespace: Name = "default"

    @model_validator(mode="after")
    def _in_order(self) -> Filters:
        if self.after and self.before and self.after > self.before:
            raise ValueError(f"after ({self.after}) lies behind before ({self.before})")
        return self


class JobRequest(Model):
    """One research question. `None` means: as the settings say.

    `strategy` names a list of search stages; `subqueries` are a plan of the caller's own, used instead of a
    decomposition (G7); `explain` keeps how every score came to be.
    `top_n` is the number of merged results (settings: multi_query.max_total_results); `summary` switches the
    LLM summary; `deadline_s` is in seconds from submission.
    """

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    mode: SearchMode | None = None
    strategy: Name | None = None
    explain: bool = False
    decompose: bool = True
    subqueries: tuple[Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)], ...] = Field(
        default=(), max_length=63
    )
    summary: bool | None = None
    top_n: int | None = Field(default=None, ge=1, le=200)
    deadline_s: float | None = Field(default=None, gt=0, le=86_400)
    filters: Filters = Filters()
    lane: Lane = Lane.INTERACTIVE
    tenant: Name = "default"
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=200)

    @field_validator("question")
    @classmethod
    def _clean(cls, value: str) -> str:
        text = value.strip()
        if not text:
            raise ValueError("is empty: write a question")
        bad = next((c for c in text if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t\r"), None)
        if bad is not None:
            raise ValueError(f"holds the control character U+{ord(bad):04X}: remove it")
        return text
