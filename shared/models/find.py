"""A quick search without a job (C1)."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model
from shared.models.hits import SearchResult
from shared.models.request import MAX_QUESTION_CHARS, Filters, Name, SearchMode


class FindRequest(Model):
    """One query; `top_n` is the number of results."""

    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    mode: SearchMode | None = None
    strategy: Name | None = None
    explain: bool = False
    filters: Filters = Filters()
    top_n: int = Field(default=10, ge=1, le=200)


class FindReply(Model):
    """The result, or the sentence that says why there is none; `bad_input` when another question would have one."""

    result: SearchResult | None = None
    error: str | None = None
    bad_input: bool = False
