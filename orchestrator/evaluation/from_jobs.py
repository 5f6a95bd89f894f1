"""The questions of kept jobs, asked again under other strategies: which are fit, and how far the answers agree.

Agreement is not quality: without judgements nothing here says which answer is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count

import numpy as np
from pydantic import Field

from orchestrator.evaluation.compare import FEW, calls_of, frequent_warnings, percentiles
from orchestrator.evaluation.dataset import LabelledQuestion
from orchestrator.evaluation.pipeline import EVAL_KEY_PREFIX, outcome_of, without_run_options
from orchestrator.evaluation.report import Calls, Percentiles
from orchestrator.evaluation.runner import ArmOutcome
from orchestrator.evaluation.statistics import interval, resampled_means
from shared.errors import InputError
from shared.jobs import JobReader, JobStore, State
from shared.jobs.codec import text
from shared.jobs.keys import RECENT
from shared.models import Answer, Cost, JobRequest, JobStatus
from shared.models.base import Model
from shared.models.route import PlannerName

#: Ranks that are compared.
DEPTH = 10
#: The column of what the kept jobs answered; no strategy has a blank in its name.
KEPT = "kept answer"
_PAGE = 200
_WRITTEN = "The LLM wrote the summaries of {} kept answers: their calls and tokens hold that, the others do not."


@dataclass(frozen=True)
class KeptJobs:
    """Questions whose id is their job's, the newest first; the jobs' requests and answers; reason -> jobs left out."""

    questions: tuple[LabelledQuestion, ...]
    requests: Mapping[str, JobRequest]
    answers: tuple[ArmOutcome, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Agreement(Model):
    """How far two columns agree over the `n` questions that both answered and for which one of them found something.

    `overlap`: mean share of the first ten documents that both have, of those that the longer list has; `low` and
    `high`: its 95 % interval. `same_first`: share of questions with the same best document. `differ`: questions whose
    first ten documents differ, in kind or in order.
    """

    a: str
    b: str
    n: int
    overlap: float
    low: float
    high: float
    same_first: float
    differ: int


class Rerun(Model):
    """What one column took. `latency_ms`: searching and merging; `calls` and `llm_tokens`: the whole job."""

    strategy: str
    latency_ms: Percentiles
    calls: Calls
    llm_tokens: int = 0
    failed: int = 0


class Difference(Model):
    """A question whose first ten documents differ. `overlap`: of each strategy with the kept answer."""

    job_id: str
    question: str
    overlap: dict[str, float]
    documents: dict[str, tuple[str, ...]]


class JobsEvaluation(Model):
    """Kept jobs and their reruns; the kept answers are the first column."""

    questions: int
    left_out: dict[str, int]
    columns: tuple[Rerun, ...]
    agreements: tuple[Agreement, ...]
    differences: tuple[Difference, ...]
    depth: int = DEPTH
    warnings: tuple[str, ...] = ()
    latencies: dict[str, tuple[float, ...]] = Field(default_factory=dict, exclude=True)


def kept_jobs(jobs: JobStore, most: int, tenant: str | None = None) -> KeptJobs:
    """The newest `most` finished jobs that can be asked again, of one tenant or of all.

    Raises: InputError when there is none, redis.exceptions.RedisError.
    """
    reader, left_out = JobReader(jobs.client), Counter[str]()
    requests: dict[str, JobRequest] = {}
    answers: list[ArmOutcome] = []
    written = 0
    known = set[str]()
    for status in _newest(jobs, reader, tenant):
        job, answer = jobs.job(status.job_id), reader.answer(status.job_id)
        reason = _reason_left_out(status, job.request if job else None, answer)
        if job is None or answer is None or reason is not None:
            left_out[reason or "expired"] += 1
            continue
        asked = without_run_options(job.request).model_dump_json()
        if asked in known:
            left_out["asked again by a newer job"] += 1
            continue
        known.add(asked)
        requests[status.job_id] = job.request
        answers.append(outcome_of(status.job_id, KEPT, answer))
        written += answer.summary.kind == "llm"
        if len(answers) == most:
            break
    if not answers:
        of = f" of tenant {tenant}" if tenant else ""
        reasons = ", ".join(f"{number} {reason}" for reason, number in left_out.items())
        none = f"no kept job{of} can be asked again{f' ({reasons})' if reasons else ''}"
        raise InputError("--from-jobs", str(most), f"{none}: ask a question first, `ramify jobs`")
    questions = tuple(LabelledQuestion(id=name, text=request.question, labels={}) for name, request in requests.items())
    warnings = (_WRITTEN.format(written),) if written else ()
    return KeptJobs(questions, requests, tuple(answers), dict(left_out), warnings)


def _newest(jobs: JobStore, reader: JobReader, tenant: str | None) -> Iterator[JobStatus]:
    for start in count(0, _PAGE):
        ids = [text(job_id) for job_id in jobs.client.zrevrange(RECENT, start, start + _PAGE - 1)]
        if not ids:
            return
        yield from (status for status in reader.statuses(ids) if tenant in {None, status.tenant})


def _reason_left_out(status: JobStatus, request: JobRequest | None, answer: Answer | None) -> str | None:
    """Why a job is not asked again; None when it is."""
    if status.state != State.DONE:
        return f"{status.state}"
    if request is None or answer is None:
        return "expired"
    planner = answer.route.planner if answer.route else None
    reasons = {
        "asked by an evaluation": (request.idempotency_key or "").startswith(EVAL_KEY_PREFIX),
        "replayed": request.replay is not None,
        "partial": answer.partial,
        "about one symbol": request.near_symbol is not None or request.depth is not None,
        "nothing retrieved": planner is PlannerName.NONE,
        "a complete list": planner is PlannerName.ENUMERATION,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def compare_jobs(
    kept: KeptJobs, outcomes: Mapping[str, Sequence[ArmOutcome]], warnings: Sequence[str] = ()
) -> JobsEvaluation:
    """The kept answers beside the outcomes of each strategy, both in the order of `kept.questions`. Pure."""
    found = {KEPT: kept.answers, **outcomes}
    total = len(kept.questions)
    few = [f"Only {total} questions: the intervals are rough."] if total < FEW else []
    return JobsEvaluation(
        questions=total,
        left_out=dict(kept.left_out),
        columns=tuple(_column(name, rows) for name, rows in found.items()),
        agreements=tuple(_agreement(a, b, found[a], found[b]) for a, b in combinations(found, 2)),
        differences=tuple(sorted(_differences(kept, found), key=lambda one: sum(one.overlap.values()))),
        warnings=(*kept.warnings, *warnings, *few, *frequent_warnings(outcomes, total, "failed, and is left out")),
        latencies={name: tuple(row.ms for row in rows if row.error is None) for name, rows in found.items()},
    )


def _column(name: str, rows: Sequence[ArmOutcome]) -> Rerun:
    answered = [row for row in rows if row.error is None]
    cost = sum((row.cost for row in rows), Cost())
    return Rerun(
        strategy=name,
        latency_ms=percentiles([row.ms for row in answered]),
        calls=calls_of(cost),
        llm_tokens=cost.llm_tokens_in + cost.llm_tokens_out,
        failed=len(rows) - len(answered),
    )


def overlap(a: Sequence[str], b: Sequence[str], depth: int = DEPTH) -> float | None:
    """Documents that both lists have in their first `depth`, of those that the longer one has; None for two empty."""
    first, second = set(a[:depth]), set(b[:depth])
    longer = max(len(first), len(second))
    return len(first & second) / longer if longer else None


def _agreement(a: str, b: str, of_a: Sequence[ArmOutcome], of_b: Sequence[ArmOutcome]) -> Agreement:
    pairs = [
        (one.documents[:DEPTH], other.documents[:DEPTH], share)
        for one, other in zip(of_a, of_b, strict=True)
        if one.error is None and other.error is None and (share := overlap(one.documents, other.documents)) is not None
    ]
    if not pairs:
        return Agreement(a=a, b=b, n=0, overlap=0.0, low=0.0, high=0.0, same_first=0.0, differ=0)
    shares = np.array([[share] for *_, share in pairs])
    low, high = interval(resampled_means(shares))
    return Agreement(
        a=a,
        b=b,
        n=len(pairs),
        overlap=round(float(shares.mean()), 6),
        low=round(float(low[0]), 6),
        high=round(float(high[0]), 6),
        same_first=round(sum(one[:1] == other[:1] for one, other, _ in pairs) / len(pairs), 6),
        differ=sum(one != other for one, other, _ in pairs),
    )


def _differences(kept: KeptJobs, found: Mapping[str, Sequence[ArmOutcome]]) -> Iterator[Difference]:
    for place, question in enumerate(kept.questions):
        rows = {name: rows[place] for name, rows in found.items() if rows[place].error is None}
        documents = {name: row.documents[:DEPTH] for name, row in rows.items()}
        if len(set(documents.values())) > 1:
            shares = {name: overlap(documents[KEPT], listed) for name, listed in documents.items() if name != KEPT}
            known = {name: round(share, 6) for name, share in shares.items() if share is not None}
            yield Difference(job_id=question.id, question=question.text, overlap=known, documents=documents)
