"""What a reranker takes and gives. Scores are replaced, hits never dropped; searching is not its business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from pydantic import Field

from shared.models import Hit
from shared.models.base import Model

#: How the parts of a lexical score begin in `Hit.parts`.
LEXICAL_PART = "lexical_"


class Reranked(Model):
    """Hits best first, by which reranker, and what it cost.

    Every hit holds its old score as `parts["fused"]`; where it was scored also `parts["rerank"]`, the calibrated score
    (0..1, see `shared.providers.rerankers.calibration`), and `parts["rerank_raw"]`, the reranker's own.
    `calls` counts HTTP calls or model runs, `documents` the texts that were scored: a long chunk is several.
    `failed`: the reranker that was asked in vain; calls and tokens are then its own.
    `verdict` is "nothing relevant" when no hit reaches rerank.min_relevance; the hits are kept all the same.
    """

    hits: tuple[Hit, ...] = ()
    reranker: str
    failed: str | None = None
    calls: int = Field(default=0, ge=0)
    documents: int = Field(default=0, ge=0)
    tokens_in: int = Field(default=0, ge=0)
    tokens_out: int = Field(default=0, ge=0)
    verdict: str | None = None
    warnings: tuple[str, ...] = ()


class Reranker(Protocol):
    """Re-sorts the hits of one query. Called from many threads.

    `name` is provider and model, e.g. "lexical:v1"; scores of one name are on one scale.
    """

    name: str

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:
        """Score `hits` (in fused order) against `query` within `timeout_s` seconds.

        Raises: TransientError, PermanentError or ReplyError; what `reranker(settings)` gives never does.
        """


class NoReranker:
    """Keeps order and scores; the fused score counts as the rerank score."""

    name = "none"

    def rerank(self, query: str, hits: Sequence[Hit], timeout_s: float) -> Reranked:  # noqa: ARG002 (the Protocol's)
        """The hits as they came."""
        return Reranked(hits=tuple(with_score(hit, hit.score) for hit in hits), reranker=self.name)


def rescored(hits: Sequence[Hit], scores: Sequence[float], raw: Sequence[float] | None = None) -> tuple[Hit, ...]:
    """`hits` with new `scores`, best first by `raw`, the scores before calibration; equal ones keep the fused order."""
    order = sorted(range(len(hits)), key=lambda at: -(raw or scores)[at])
    return tuple(with_score(hits[at], scores[at], raw[at] if raw else None) for at in order)


def with_score(
    hit: Hit, score: float, raw: float | None = None, made_of: Mapping[str, float] = MappingProxyType({})
) -> Hit:
    """`hit` with a reranker's score; its old score becomes `parts["fused"]`, `raw` is the score before calibration.

    `made_of`: more parts.
    """
    own = {} if raw is None else {"rerank_raw": raw}
    parts = {**hit.parts, **made_of, **own, "fused": hit.score, "rerank": score}
    return hit.but(score=score, parts=parts)


def unscored(hit: Hit, score: float) -> Hit:
    """`hit` at `score` without a reranker's score: only its old one is noted."""
    return hit.but(score=score, parts={**hit.parts, "fused": hit.score})


def score_parts(hit: Hit) -> dict[str, float | str]:
    """What the score of a hit was made of, if it is a reranker's: its raw score, and the parts of that it names."""
    if hit.parts.get("rerank") != hit.score:
        return {}
    found: dict[str, float | str] = {"raw": hit.parts["rerank_raw"]} if "rerank_raw" in hit.parts else {}
    for name, value in hit.parts.items():
        if name.startswith(LEXICAL_PART):
            found[name[len(LEXICAL_PART) :]] = value
    return found
