"""A `Ramify` client without Redis and workers, for the command line: jobs end as soon as they are submitted."""

import json
from collections import Counter
from collections.abc import Callable

from orchestrator.documents.ingest import Progress
from orchestrator.intake import as_request, number_questions
from orchestrator.planning.intent import intent_by_rules
from orchestrator.records.replaying import ReplayStarted, replay_stage
from orchestrator.searching import grouped, no_retrieval_result, session_result
from shared.errors import NotFoundError, RamifyError
from shared.jobs.job_list import JobList
from shared.jobs.states import State, outcome_of
from shared.models import (
    Answer,
    BatchStatus,
    Citation,
    DocumentOutcome,
    DocumentStatus,
    Facet,
    Hit,
    JobEvent,
    JobRequest,
    JobStatus,
    LeafResult,
    LeafStatus,
    MergedHit,
    Node,
    SearchResult,
    Source,
    Summary,
)
from shared.models.batch import BatchPosition, BatchSource, LineRecord, LineReport
from shared.models.find import Context, Related
from shared.models.hits import StageTrace
from shared.models.manifest import Manifest, Record, RunRecord
from shared.models.request import Session
from shared.settings import load_settings

AROUND = Context(
    abstract="What the team knows of queues.",
    related=(Related(uri="ramify://default/notes/9.md", title="Back-pressure", how="links to"),),
)
CREATED = 1_795_000_000.0
STAGES = (StageTrace(stage="fusion", ms=3.0, hits=4), StageTrace(stage="rerank", ms=4.0, hits=1))


def hit(number: int = 1, text: str = "streams keep order", **fields) -> Hit:
    values = {
        "chunk_id": f"c{number}", "doc_id": f"d{number}", "path": f"notes/{number}.md", "title": f"Note {number}",
        "heading": "Context", "text": text, "date": "2026-04-02", "score": 0.5 / number,
    }  # fmt: skip
    return Hit(**{**values, **fields})


def nodes(question: str) -> tuple[Node, ...]:
    return (
        Node(id="0.0", parent_id="0", level=1, facet=Facet.ORIGINAL, query=question),
        Node(id="0.1", parent_id="0", level=1, facet=Facet.WHY, query=f"Why: {question}"),
    )


def answer(job_id: str, question: str, *, partial: bool = False, text: str = "Streams keep order. [1]") -> Answer:
    sources = (Source(node_id="0.0", facet="original", rank=1, score=0.5),)
    return Answer(
        job_id=job_id,
        question=question,
        state="done",
        partial=partial,
        coverage="1 of 2 leaves answered" if partial else "2 of 2 leaves answered",
        summary=Summary(
            text=text,
            kind="extractive",
            citations=(
                Citation(number=1, chunk_id="c1", path="notes/1.md", title="Note 1", quote="streams keep order"),
            ),
        ),
        results=(MergedHit(**hit().model_dump(), sources=sources),),
        tree=nodes(question),
        leaves=(
            LeafResult(node_id="0.0", status=LeafStatus.DONE, hits=(hit(),), stages=STAGES),
            LeafResult(node_id="0.1", status=LeafStatus.FAILED, error="the store is gone")
            if partial
            else LeafResult(node_id="0.1", status=LeafStatus.DONE, hits=(hit(2),)),
        ),
        warnings=("No LLM is configured.",),
        timings_ms={"queued": 1.0, "total": 1200.0, "summarising": 5.0},
    )


def events(question: str, state: str = "done") -> list[JobEvent]:
    first, second = (json.dumps(node.model_dump(mode="json"), ensure_ascii=False) for node in nodes(question))
    steps = [
        ("state", {"state": "searching"}),
        ("node", {"node": first}),
        ("node", {"node": second}),
        ("leaf", {"id": "0.0", "status": "searched"}),
        ("leaf", {"id": "0.0", "status": "done", "hits": "5", "error": ""}),
        ("leaf", {"id": "0.1", "status": "failed", "hits": "0", "error": "the store is gone"}),
        ("warning", {"text": "No LLM is configured."}),
        ("state", {"state": state, "partial": "0"}),
    ]
    return [
        JobEvent(id=f"{1_795_000_000_000 + 100 * i}-0", type=kind, data=data) for i, (kind, data) in enumerate(steps)
    ]


class FakeSession:
    """A conversation in memory."""

    def __init__(self) -> None:
        self.held = Session()

    def append(self, role, text):
        self.held = Session(summary=self.held.summary, messages=[*self.held.messages, {"role": role, "content": text}])

    def remember(self, question, found):
        self.append("user", question)
        self.append("assistant", "\n".join(f"{number}. {hit.title}" for number, hit in enumerate(found.hits, 1)))

    def summarise(self, summary):
        self.held = self.held.model_copy(update={"summary": summary})

    def load(self):
        return self.held

    def drop(self):
        held, self.held = self.held, Session()
        return bool(held)


class FakeRamify:
    """`ends(question)` says how a job ends: done, partial, failed, or still searching."""

    def __init__(self, ends: Callable[[str], str] = lambda _: "done") -> None:
        self.settings = load_settings()
        self.tenant: str | None = None
        self.ends = ends
        self.requests: dict[str, JobRequest] = {}
        self.batches: dict[str, list[str]] = {}
        self.rejected = self.blank = 0
        self.lines = []
        self.closed = False
        self.interrupted = False
        self.intent = None
        self.sessions = {}
        self.warnings: dict[str, str] = {}

    def for_tenant(self, tenant):
        self.tenant = tenant
        return self

    def opened(self, _, tenant=None):
        """In place of the class: the client of one call, bound as it asks."""
        self.tenant = tenant
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, question, **options):
        job_id = f"job{len(self.requests):05}"
        self.requests[job_id] = as_request(question, options, self.tenant)
        return job_id

    def status(self, job_id):
        if job_id not in self.requests:
            raise NotFoundError("job id", job_id, "there is no such job")
        question, end = self.requests[job_id].question, self.ends(self.requests[job_id].question)
        failed = end == "failed"
        return JobStatus(
            job_id=job_id,
            state="done" if end == "partial" else end,
            partial=end == "partial",
            question=question,
            lane="interactive",
            tenant="default",
            leaves_total=2,
            leaves_done=2,
            created_at=CREATED,
            updated_at=CREATED,
            deadline_at=CREATED + 120,
            error="none of the 2 leaves answered" if failed else None,
        )

    def statuses(self, job_ids):
        return [self.status(job_id) for job_id in job_ids if job_id in self.requests]

    def stream(self, job_id, timeout_s=None, *, outage=None):
        if self.interrupted:
            raise KeyboardInterrupt
        return iter(events(self.requests[job_id].question, self.status(job_id).state))

    def unserved_queues(self):
        return ()

    def result(self, job_id, *, partial=False):
        status = self.status(job_id)
        if status.state != "done" and not partial:
            raise RamifyError(f"job {job_id} is {status.state}")
        found = answer(job_id, status.question, partial=status.partial or partial)
        return found.model_copy(update={"state": status.state})

    def manifest(self, job_id):
        status = self.status(job_id)
        return Manifest.of(Record(question=status.question), RunRecord(job_id=job_id))

    def replay(self, of, start, *, settings=None, strategy=None):
        manifest = of if isinstance(of, Manifest) else self.manifest(of)
        self.replayed = (start, settings, strategy)
        job_id = self.submit(manifest.record.question)
        return ReplayStarted(
            job_id=job_id, replay_of="" if manifest is of else of, digest=manifest.digest, start=replay_stage(start)
        )

    def jobs(self, limit=20, **wanted):
        self.wanted = wanted
        return JobList([self.status(job_id) for job_id in reversed(self.requests)][:limit])

    def settings_differ(self):
        return self.warnings.get("settings")

    def too_slow(self, id_):
        return self.warnings.get(id_)

    def cancel(self, job_id):
        return not self.status(job_id).terminal

    def cancel_batch(self, batch_id):
        return sum(not self.status(job_id).terminal for job_id in self.batches[batch_id])

    def open_batch(self, budget=None, source=None, webhook=None):
        self.budget = budget
        self.batches["batch001"] = []
        return "batch001"

    def read_into_batch(self, batch_id, lines):
        for line in lines:
            fields = {"line": line.line, "id": line.id, "meta": line.meta}
            if line.request:
                job_id = self.submit(line.request)
                self.batches[batch_id].append(job_id)
                self.lines.append(LineRecord(kind="enqueued", job_id=job_id, **fields))
                yield self.lines[-1]
            elif line.rejected:
                self.rejected += 1
                said = {"reason": line.rejected.reason, "text": line.rejected.text}
                self.lines.append(LineRecord(kind="rejected", **said, **fields))
                yield self.lines[-1]
            else:
                self.blank += 1

    def add_to_batch(self, batch_id, questions, **options):
        position = BatchPosition(read=len(self.lines), digest="", source=BatchSource())
        return self.read_into_batch(batch_id, number_questions(questions, options, position))

    def batch_lines(self, batch_id):
        return iter(self.lines)

    def batch_report(self, batch_id, numbers=None):
        for line in self.lines:
            if numbers is None or line.line in numbers:
                given = line.model_dump(include={"line", "kind", "id", "meta", "key", "job_id"})
                if line.job_id is None:
                    yield LineReport(**given, question=line.text or "", error=line.reason)
                    continue
                found = self.status(line.job_id)
                if found.terminal:
                    given["outcome"] = outcome_of(State(found.state), partial=found.partial, degraded=found.degraded)
                yield LineReport(**given, state=found.state, question=found.question, error=found.error)

    def close_batch(self, batch_id):
        self.closed = True

    def batch_status(self, batch_id):
        if batch_id not in self.batches:
            raise NotFoundError("batch id", batch_id, "there is no such batch")
        found = [self.status(job_id) for job_id in self.batches[batch_id]]
        ends = Counter(
            outcome_of(State(status.state), partial=status.partial, degraded=()) if status.terminal else "open"
            for status in found
        )
        return BatchStatus(
            batch_id=batch_id,
            lines=len(found) + self.rejected + self.blank,
            enqueued=len(found),
            rejected=self.rejected,
            blank=self.blank,
            finished=len(found) - ends["open"],
            **ends,
            created_at=CREATED,
        )

    def batch_jobs(self, batch_id):
        return self.batches[batch_id]

    def find(self, query, **options):
        self.options = options
        found = SearchResult(hits=(hit(), hit(2)), mode="bm25_only", candidates=30, warnings=("Keyword search only.",))
        return grouped(found, {"c1": AROUND})

    def search(self, question, session=None, **options):
        self.options, self.said = options, session
        intent = self.intent or intent_by_rules(question, session if isinstance(session, Session) else Session())
        if not intent.retrieval:
            return no_retrieval_result(question, intent)
        found = answer("job00000", question, partial=self.ends(question) == "partial")
        return session_result(intent, found, "default", {"c1": AROUND}, plan=bool(options.get("plan")))

    def session(self, session_id):
        return self.sessions.setdefault((self.tenant, session_id), FakeSession())

    def ingest(self, paths, *, prune=False, namespace="default", deadline_s=None, dry_run=False):
        self.options = {"prune": prune, "namespace": namespace, "tenant": self.tenant}
        self.options |= {"dry_run": True} if dry_run else {}
        yield Progress(read=0, total=2, passed_over=("a/link.md: is a link",))
        good = DocumentOutcome(path="a/1.md", doc_id="d1", status=DocumentStatus.ADDED, chunks=3)
        bad = DocumentOutcome(path="a/2.md", status=DocumentStatus.FAILED, reason="is no UTF-8")
        yield Progress(read=2, total=2, outcomes=(good, bad) if "bad" in str(paths) else (good,))
