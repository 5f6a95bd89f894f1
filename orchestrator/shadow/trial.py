"""One live question tried with a second strategy: whether, how, and both answers side by side. Sends nothing."""

from __future__ import annotations

import hashlib
import time

from orchestrator.evaluation.agreement import overlap, rank_biased_overlap
from orchestrator.evaluation.query_types import UNSURE, type_of
from shared.job_store import Job
from shared.models import Answer, JobRequest, Lane
from shared.models.ab import DEPTH, Comparison, Side
from shared.models.route import PlannerName
from shared.settings import Settings
from shared.settings.shadow import ADAPTIVE

#: A job that waited longer (seconds) is not tried: the corpus may have changed under it.
STALE_S = 900.0


def live_strategy(request: JobRequest) -> str:
    """What the caller let answer the question."""
    return request.strategy or (request.mode.value if request.mode else ADAPTIVE)


def unfit(job: Job, answer: Answer, strategy: str) -> str | None:
    """Why a job is not tried with `strategy`; None when it is."""
    request, planner = job.request, answer.route.planner if answer.route else None
    reasons = {
        "same strategy": live_strategy(request) == strategy,
        "about one symbol": request.near_symbol is not None or request.depth is not None,
        "nothing retrieved": planner is PlannerName.NONE,
        "a complete list": planner is PlannerName.ENUMERATION,
        "partial": answer.partial,
        "waited too long": time.time() - job.updated_at > STALE_S,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def tried(request: JobRequest, settings: Settings) -> JobRequest:
    """The same question for the second strategy: never the LLM's summary, behind everybody's work, on its own clock."""
    name = settings.shadow.strategy
    changed = {
        "strategy": None if name == ADAPTIVE else name, "mode": None, "summary": False, "explain": False,
        "lane": Lane.BATCH, "deadline_s": settings.shadow.deadline_s, "idempotency_key": None,
    }  # fmt: skip
    return request.model_copy(update=changed)


def comparison(job: Job, live: Answer, shadow: Answer, settings: Settings) -> Comparison:
    """Both answers to one question side by side."""
    a = _side(live, live_strategy(job.request))
    b = _side(shadow, settings.shadow.strategy)
    route = live.route
    read = (UNSURE if route.unsure else route.type.value) if route else type_of(live.question, settings)
    return Comparison(
        job_id=job.id,
        at=time.time(),
        type=read,
        question=digest(live.question),
        live=a,
        shadow=b,
        overlap=overlap(a.documents, b.documents, DEPTH),
        rbo=rank_biased_overlap(a.documents, b.documents),
    )


def digest(question: str) -> str:
    """A question by which its copies are known again, and which says nothing: 32 hex digits; blanks and case fold."""
    return hashlib.sha256(" ".join(question.casefold().split()).encode("utf-8", "replace")).hexdigest()[:32]


def _side(answer: Answer, strategy: str) -> Side:
    times = answer.timings_ms
    return Side(
        strategy=strategy,
        documents=tuple(dict.fromkeys(hit.path for hit in answer.results))[:DEPTH],
        ms=times.get("searching", 0.0) + times.get("merging", 0.0),
        cost=answer.cost,
        nothing=answer.verdict is not None,
    )
