"""The manifest of an answer: what was asked, what it rests on and what came of it, by content. Kept beside the job.

`record` is what the digest is made of: the same run gives the same bytes. What differs from run to run although nothing
has changed (ids, times, cost, the counter of the index) stands in `run`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, Self

from pydantic import Field

from shared.models.base import Model
from shared.models.cost import Cost
from shared.models.gaps import GapSignal
from shared.models.plan import Node
from shared.models.replay import PlanningNotes
from shared.models.route import Route

#: Goes up when a field changes its meaning, or one that was there goes.
MANIFEST_VERSION = 1
#: Significant digits of scores, and characters of an answer's text.
_DIGITS, MAX_TEXT = 6, 4000


class DocumentVersion(Model):
    """A document that an answer rests on: one of its passages stands in the results, in a leaf's, or in a list.

    `version` is of its content: the first digits of the hash that an ingest goes by (text, metadata, chunk sizes).
    Empty: stored by a release that did not hand it on. `cited`: the text of the answer cites it.
    """

    doc_id: str
    path: str
    version: str = ""
    cited: bool = False


class FoundBy(Model):
    """Which leaf found a result, at which rank (from 1) and score."""

    leaf: str
    rank: int
    score: float


class RecordedResult(Model):
    """One result, best first. `parts`: scores of the single steps that made `score`; `via`: how it was reached."""

    chunk_id: str
    doc_id: str
    title: str = ""
    score: float
    parts: dict[str, float] = Field(default_factory=dict)
    found_by: tuple[FoundBy, ...] = ()
    via: str = ""


class LeafHit(Model):
    """What a leaf kept: a passage and its score there."""

    chunk_id: str
    score: float


class RecordedLeaf(Model):
    """One leaf as it was recorded. `reranker` is the one that scored it, `candidates` how many it chose from."""

    id: str
    status: str
    strategy: str = ""
    reranker: str = ""
    verdict: str = ""
    candidates: int = 0
    error: str = ""
    hits: tuple[LeafHit, ...] = ()


class ModelUsed(Model):
    """A model that the run could call: `digest` is of its name and of all that decides what it is asked."""

    provider: str
    model: str = ""
    digest: str


class SettingsUsed(Model):
    """The settings that decide answers: a digest of each part, and the values that are not the release's own."""

    fingerprint: dict[str, str] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict, description="by dotted name; the others are defaults")


class RecordedPlan(Model):
    """How the question was read and what it became. `route.by` says who read it, each node's `by` who made that.

    `without`: what the planning was done without, as codes of `Degradation`.
    """

    route: Route | None = None
    nodes: tuple[Node, ...] = ()
    without: tuple[str, ...] = ()


class RecordedGap(Model):
    """A gap as the answer tells it."""

    signal: GapSignal
    what: str
    closed: bool = False


class RecordedList(Model):
    """A complete list: how many documents fit, and the digest of its first rows."""

    matched: int
    rows: int
    digest: str


class RecordedAnswer(Model):
    """What was answered. `text` is cut at MAX_TEXT characters; `digest` is of all of it, with its citations."""

    text: str = ""
    kind: str = "none"
    digest: str = ""
    citations: tuple[str, ...] = Field(default=(), description="chunk ids by their numbers in the text, [1] first")
    numbers: tuple[int, ...] = Field(default=(), description="these numbers")
    coverage: str = ""
    partial: bool = False
    verdicts: tuple[str, ...] = ()
    gaps: tuple[RecordedGap, ...] = ()
    table: RecordedList | None = None


class Record(Model):
    """What a digest is made of. All of it is content: no id of a job, no time, no count of writes."""

    question: str
    options: dict[str, Any] = Field(default_factory=dict, description="of the request, those that were given")
    plan: RecordedPlan = RecordedPlan()
    settings: SettingsUsed = SettingsUsed()
    models: dict[str, ModelUsed] = Field(default_factory=dict, description="llm, embedding, rerank, verifier")
    prompts: dict[str, str] = Field(default_factory=dict, description="digests of prompts, where there is an LLM")
    documents: tuple[DocumentVersion, ...] = ()
    leaves: tuple[RecordedLeaf, ...] = ()
    results: tuple[RecordedResult, ...] = ()
    reranked_by: str = ""
    answer: RecordedAnswer = RecordedAnswer()
    warnings: tuple[str, ...] = ()
    degraded: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="codes by item of the work")
    releases: dict[str, str] = Field(default_factory=dict)


class RunRecord(Model):
    """What differs between two runs of the same. `index_versions`: the lowest and highest that its leaves saw.

    `planning`: which of the record's warnings and degradations a replay of the search takes over; filled in when the
    manifest is read, from the job's events.
    """

    job_id: str = ""
    tenant: str = "default"
    lane: str = ""
    index_versions: tuple[int, ...] = ()
    cost: Cost = Cost()
    created_at: float | None = None
    finished_at: float | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)
    replay_of: str = Field(default="", description="the digest of the manifest that this run goes on from")
    replayed_from: str = Field(default="", description="the stage from which on it ran itself")
    planning: PlanningNotes = PlanningNotes()


class Manifest(Model):
    """The manifest of one answer, as `ramify manifest ID` prints it and another installation reads it."""

    kind: Literal["ramify manifest"] = "ramify manifest"
    version: int = MANIFEST_VERSION
    digest: str = Field(description="SHA-256 (hex) of `record` as canonical JSON")
    record: Record
    run: RunRecord = RunRecord()

    @classmethod
    def of(cls, record: Record, run: RunRecord) -> Self:
        """With its digest."""
        return cls(digest=digest_of(record), record=record, run=run)

    @property
    def intact(self) -> bool:
        """Whether the digest is that of the record: False for a file that somebody has changed."""
        return self.digest == digest_of(self.record)

    @property
    def versions(self) -> dict[str, str]:
        """Document id -> content version, of all that the answer rests on."""
        return {document.doc_id: document.version for document in self.record.documents}


def canonical(value: Any) -> bytes:
    """JSON that is the same for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def digest_of(record: Record) -> str:
    """SHA-256 (hex). Defaults are left out: a field that a later release adds changes no digest."""
    return hashlib.sha256(canonical(record.model_dump(mode="json", exclude_defaults=True))).hexdigest()


def rounded(value: float) -> float:
    """A score with six significant digits: what is recorded of it."""
    return float(f"{value:.{_DIGITS}g}")
