"""Makes the manifest of an answer that is about to be written. Pure but for the digests of models and prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from shared.contract import TaskName
from shared.jobs import Job
from shared.models import Answer, Citation, Hit, LeafResult, MergedHit
from shared.models.manifest import (
    MAX_TEXT,
    DocumentVersion,
    FoundBy,
    LeafHit,
    Manifest,
    Record,
    RecordedAnswer,
    RecordedGap,
    RecordedLeaf,
    RecordedList,
    RecordedPlan,
    RecordedResult,
    RunRecord,
    SettingsUsed,
    canonical,
    rounded,
)
from shared.providers.models_used import models_used, prompts_used
from shared.settings import Settings
from shared.settings.fingerprint import STRATEGY, Fingerprint, fingerprint, values_that_decide

#: What of a request decides its answer; not whose it is, its place in the queue, its time, or who is told.
_OPTIONS = {
    "mode", "strategy", "near_symbol", "depth", "decompose", "subqueries", "typed", "summary", "top_n", "filters",
    "max_calls", "max_tokens", "max_seconds", "max_cost",
}  # fmt: skip
#: Packages whose releases decide answers beside our own.
_PACKAGES = ("qdrant-edge-py", "fastembed", "py-rust-stemmers")
#: Documents of a list's rows that are named; the digest is of all its rows.
_MOST_ROWS = 100
#: Settings whose fingerprint a process remembers; with a reference to each, so that no id is used again.
_KNOWN = 16
_known: dict[int, tuple[Settings, Fingerprint, dict[str, Any]]] = {}


def manifest_of(job: Job, answer: Answer, settings: Settings) -> Manifest:
    """Of the whole `answer`, before `jobs.keep` leaves anything out. `settings`: those that the job ran with."""
    request = job.request
    record = Record(
        question=request.question,
        options=request.model_dump(mode="json", include=_OPTIONS, exclude_defaults=True),
        plan=RecordedPlan(
            route=answer.route, nodes=answer.tree, without=answer.degraded_at.get(TaskName.PLAN_JOB.value, ())
        ),
        settings=_settings(settings, (leaf.mode for leaf in answer.leaves)),
        models=models_used(settings),
        prompts=prompts_used(settings),
        documents=_documents(answer),
        leaves=tuple(map(_leaf, answer.leaves)),
        results=tuple(map(_result, answer.results)),
        reranked_by=answer.reranked_by or "",
        answer=_answer(answer),
        warnings=tuple(sorted(answer.warnings)),
        degraded=dict(sorted(answer.degraded_at.items())),
        releases=_releases(),
    )
    seen = [leaf.index_version for leaf in answer.leaves if leaf.index_version]
    run = RunRecord(
        job_id=job.id,
        tenant=request.tenant,
        lane=request.lane.value,
        index_versions=tuple(sorted({min(seen), max(seen)})) if seen else (),
        cost=answer.cost,
        created_at=round(job.created_at, 3),
        finished_at=round(job.created_at + answer.timings_ms.get("total", 0.0) / 1000, 3),
        timings_ms=answer.timings_ms,
        replay_of=request.replay.digest if request.replay else "",
        replayed_from=request.replay.start.value if request.replay else "",
    )
    return Manifest.of(record, run)


def made_alike(record: Record, settings: Settings) -> bool:
    """Whether the same settings, models, prompts and releases would make an answer now as made this one."""
    parts = _settings(settings, (leaf.strategy for leaf in record.leaves)).fingerprint
    own = parts, models_used(settings), prompts_used(settings), _releases()
    return own == (record.settings.fingerprint, record.models, record.prompts, record.releases)


def _settings(settings: Settings, modes: Iterable[str]) -> SettingsUsed:
    """`modes`: of the leaves, with the names of their strategies."""
    parts, values = _told_settings(settings)
    used = {f"{STRATEGY}{mode.partition('/')[0]}" for mode in modes if mode}
    return SettingsUsed(
        fingerprint={name: value for name, value in parts.items() if not name.startswith(STRATEGY) or name in used},
        values={name: value for name, value in values.items() if not name.startswith(STRATEGY) or name in used},
    )


def _told_settings(settings: Settings) -> tuple[Fingerprint, dict[str, Any]]:
    """Worked out once for the settings of a process, and for those of the last replays."""
    known = _known.get(id(settings))
    if known is None or known[0] is not settings:
        _known[id(settings)] = known = (settings, fingerprint(settings), values_that_decide(settings))
        while len(_known) > _KNOWN:
            _known.pop(next(iter(_known)), None)
    return known[1], known[2]


def _documents(answer: Answer) -> tuple[DocumentVersion, ...]:
    """Every document of which a passage stands in the results or in a leaf's, by path; then those of a list's rows."""
    hits: list[Hit] = [*answer.results, *(hit for leaf in answer.leaves for hit in leaf.hits)]
    cited = {citation.doc_id for citation in answer.summary.citations}
    found = {
        hit.doc_id: DocumentVersion(doc_id=hit.doc_id, path=hit.path, version=hit.version, cited=hit.doc_id in cited)
        for hit in hits
    }
    for row in answer.table.rows[:_MOST_ROWS] if answer.table else ():
        found.setdefault(row.doc_id, DocumentVersion(doc_id=row.doc_id, path=row.path, cited=row.doc_id in cited))
    return tuple(sorted(found.values(), key=lambda one: (one.path, one.doc_id)))


def _leaf(leaf: LeafResult) -> RecordedLeaf:
    return RecordedLeaf(
        id=leaf.node_id,
        status=leaf.status.value,
        strategy=leaf.mode,
        reranker=leaf.reranker or "",
        verdict=leaf.verdict or "",
        candidates=leaf.candidates,
        error=leaf.error or "",
        hits=tuple(LeafHit(chunk_id=hit.chunk_id, score=rounded(hit.score)) for hit in leaf.hits),
    )


def _result(hit: MergedHit) -> RecordedResult:
    return RecordedResult(
        chunk_id=hit.chunk_id,
        doc_id=hit.doc_id,
        title=hit.title,
        score=rounded(hit.score),
        parts={name: rounded(value) for name, value in sorted(hit.parts.items())},
        found_by=tuple(
            FoundBy(leaf=source.node_id, rank=source.rank, score=rounded(source.score)) for source in hit.sources
        ),
        via=f"{hit.via.how} {hit.via.bridge}" if hit.via else "",
    )


def _answer(answer: Answer) -> RecordedAnswer:
    summary, citations = answer.summary, answer.summary.citations
    return RecordedAnswer(
        text=summary.text[:MAX_TEXT],
        kind=summary.kind,
        digest=_sha([summary.text, _told(citations)]),
        citations=tuple(citation.chunk_id for citation in citations),
        numbers=tuple(citation.number for citation in citations),
        coverage=answer.coverage,
        partial=answer.partial,
        verdicts=answer.verdicts,
        gaps=tuple(RecordedGap(signal=gap.signal, what=gap.what, closed=gap.closed) for gap in answer.gaps),
        table=_list(answer),
    )


def _told(citations: Iterable[Citation]) -> list[list[object]]:
    return [[one.number, one.chunk_id, one.quote, one.start, one.end] for one in citations]


def _list(answer: Answer) -> RecordedList | None:
    if (table := answer.table) is None:
        return None
    rows = [row.model_dump(mode="json", exclude_defaults=True) for row in table.rows]
    return RecordedList(matched=table.matched, rows=len(rows), digest=_sha(rows))


def _sha(value: Sequence[object]) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()[:32]


@cache
def _releases() -> dict[str, str]:
    found = {}
    for name in ("ramify", *_PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
