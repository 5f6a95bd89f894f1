"""A strategy that was tried unseen beside a live job (E7): while it runs, and what came of it. Values only."""

from __future__ import annotations

from pydantic import Field

from shared.models.base import Model
from shared.models.cost import Cost

#: Ranks that are compared.
DEPTH = 10


class OpenRun(Model):
    """A run under way: the live job it is held against, and when it began (Unix seconds)."""

    job_id: str
    began: float


class Side(Model):
    """What one of the two jobs gave. `documents` are paths, best first, each once, ten at most.

    `ms` is the time of searching and merging; `nothing`: its verdict was that nothing relevant was found.
    """

    strategy: str
    documents: tuple[str, ...] = Field(default=(), max_length=DEPTH)
    ms: float = 0.0
    cost: Cost = Cost()
    nothing: bool = False


class Comparison(Model):
    """One question answered twice. `question` is a digest of it: whoever has the question can look it up.

    `overlap` is the share of the top ten that both have, `rbo` the rank-biased overlap; None where both found nothing.
    """

    job_id: str
    at: float
    type: str
    question: str
    live: Side
    shadow: Side
    overlap: float | None = None
    rbo: float | None = None
