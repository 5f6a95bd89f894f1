"""Runs questions as jobs of the running stack: over a corpus that is ingested once, or as kept jobs asked them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from orchestrator.client import Ramify
from orchestrator.evaluation.dataset import LabelledCorpus
from orchestrator.evaluation.eval_folder import corpus_copy, documents, eval_dir
from orchestrator.evaluation.runner import ArmOutcome, ArmQuestion, IndexProgress, distinct
from orchestrator.intake import as_request
from shared.errors import InputError, NotFoundError, RamifyError
from shared.jobs import new_id
from shared.models import Answer, DocumentStatus, JobRequest, JobStatus, Lane
from shared.settings.strategies import ADAPTIVE

#: Jobs on the way at a time. Few: latency is measured under this load, and a queue in front would be part of it.
IN_FLIGHT = 2
#: Results asked for per document wanted: several chunks of one document count once.
_CHUNKS_PER_DOCUMENT = 3
_MOST_RESULTS = 200
_POLL_S = 0.03
_CACHED = (
    "The stack's caches are on (cache.enabled): answers of earlier runs make latencies and calls look smaller. "
    "For bare figures use --direct, or start the stack with --set cache.enabled=false."
)
_CACHED_JOBS = (
    "The stack's caches are on (cache.enabled): what the kept jobs left there makes latencies and calls of the others "
    "look smaller. For bare figures start the stack with --set cache.enabled=false."
)
#: How the idempotency keys of an evaluation's own jobs begin: `--from-jobs` leaves these jobs out.
EVAL_KEY_PREFIX = "ramify-eval-"


class Pipeline:
    """A Runner. Jobs use the batch lane and are cancelled when the evaluation ends before them.

    An arm searches every question as it is, with its strategy; the arm `adaptive` leaves all that to the routing table.
    A question of a kept job is asked as that job asked it, but for the strategy.
    """

    mode = "pipeline"

    def __init__(
        self,
        client: Ramify,
        namespace: str = "default",
        warnings: tuple[str, ...] = (),
        requests: Mapping[str, JobRequest] | None = None,
    ) -> None:
        """`namespace`: where the corpus is. `requests`: question id -> request of the kept job that asked it."""
        self._client, self._namespace, self._requests = client, namespace, requests or {}
        cached = (_CACHED_JOBS if requests else _CACHED,) if client.settings.cache.enabled else ()
        self.warnings = (*warnings, *cached)
        self._open: dict[str, ArmQuestion] = {}

    def answers(self, questions: Iterable[ArmQuestion]) -> Iterator[ArmOutcome]:
        """As the Runner says. Raises: NotRunningError when Redis is unreachable."""
        waiting = iter(questions)
        try:
            while True:
                for question in islice(waiting, IN_FLIGHT - len(self._open)):
                    if (refused := self._submit(question)) is not None:
                        yield refused
                if not self._open:
                    return
                yield from self._ended()
        finally:
            while self._open:
                job_id, _ = self._open.popitem()
                with suppress(NotFoundError):
                    self._client.cancel(job_id)

    def _submit(self, question: ArmQuestion) -> ArmOutcome | None:
        """Enqueue a question; an outcome when it is refused."""
        try:
            job_id = self._client.submit(self._request(question))
        except InputError as error:
            return _failed(question, str(error))
        self._open[job_id] = question
        return None

    def _request(self, question: ArmQuestion) -> JobRequest:
        """Raises: InputError when the question cannot be taken."""
        request = self._requests.get(question.question_id) or as_request(
            question.text,
            {
                "decompose": bool(question.subqueries) or question.strategy == ADAPTIVE,
                "subqueries": question.subqueries,
                "top_n": min(_MOST_RESULTS, question.limit * _CHUNKS_PER_DOCUMENT),
                "filters": {"namespace": self._namespace},
            },
        )
        own = {
            "strategy": None if question.strategy == ADAPTIVE else question.strategy,
            "lane": Lane.BATCH,
            "deadline_s": self._client.settings.jobs.deadline_s,
            "queue_limit_s": self._client.settings.jobs.deadline_s,
            "idempotency_key": f"{EVAL_KEY_PREFIX}{new_id()}",
        }
        return without_run_options(request).model_copy(update=own)

    def _ended(self) -> Iterator[ArmOutcome]:
        """Check the open jobs; the outcomes of those that have ended."""
        time.sleep(_POLL_S)
        for job_id, question in list(self._open.items()):
            status = self._client.status(job_id)
            if status.terminal:
                del self._open[job_id]
                yield self._outcome(question, status)
            elif self._client.patience_s(status) < 0:
                yield _failed(question, f"its job is still {status.state} long after its deadline: `ramify doctor`")
                self._client.cancel(job_id)
                del self._open[job_id]

    def _outcome(self, question: ArmQuestion, status: JobStatus) -> ArmOutcome:
        if status.state != "done":
            return _failed(question, status.error or f"its job ended {status.state}")
        try:
            answer = self._client.result(status.job_id)
        except RamifyError as error:
            return _failed(question, str(error))
        whole = question.question_id in self._requests
        found = outcome_of(question.question_id, question.strategy, answer)
        documents = found.documents if whole else document_ids(found.documents)
        scored = [(hit.path, hit.parts["rerank"]) for hit in answer.results if "rerank" in hit.parts]
        relevance = {_document_id(path): score for path, score in sorted(scored, key=lambda one: one[1])}
        return found.model_copy(update={"documents": documents[: question.limit], "relevance": relevance})


def without_run_options(request: JobRequest) -> JobRequest:
    """What a request asks, without the strategy, the summary, and how its job was run."""
    as_default = ("mode", "strategy", "explain", "lane", "deadline_s", "queue_limit_s", "idempotency_key", "webhook")
    unset = {name: JobRequest.model_fields[name].default for name in as_default}
    return request.model_copy(update={**unset, "summary": False})


def outcome_of(question_id: str, strategy: str, answer: Answer) -> ArmOutcome:
    """An answer as an outcome. Documents are paths; of a complete list, which has no results, those of its rows."""
    rows = answer.table.rows if answer.table and not answer.results else ()
    times = answer.timings_ms
    return ArmOutcome(
        question_id=question_id,
        strategy=strategy,
        documents=distinct((*(hit.path for hit in answer.results), *(row.path for row in rows))),
        ms=times.get("searching", 0.0) + times.get("merging", 0.0) or times.get("total", 0.0),
        job_ms=times.get("total", 0.0),
        cost=answer.cost,
        warnings=answer.warnings,
    )


def document_ids(paths: Iterable[str]) -> tuple[str, ...]:
    """The corpus ids of documents that are JSON lines, shown as "corpus.jsonl#ID"."""
    return distinct(map(_document_id, paths))


def _document_id(path: str) -> str:
    return path.partition("#")[2] or path


def _failed(question: ArmQuestion, error: str) -> ArmOutcome:
    return ArmOutcome(question_id=question.question_id, strategy=question.strategy, error=error)


def namespace_of(corpus: LabelledCorpus) -> str:
    """`eval-` and 12 hex digits of the corpus's SHA-256: the same documents are the same namespace everywhere."""
    return f"eval-{corpus.digest[:12]}"


def ensure_ingested(
    client: Ramify, corpus: LabelledCorpus, progress: IndexProgress, *, rebuild: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The corpus's namespace and warnings about documents that could not be taken.

    It is ingested first, unless that was done before and a search still finds something there.
    Raises: RamifyError when nothing can be taken or the stack does not answer.
    """
    namespace, folder, store = namespace_of(corpus), eval_dir(client.settings), client.settings.store
    where = "embedded" if store.kind == "embedded" else f"{store.url.host if store.url else ''}-{store.collection}"
    done = folder / f"{namespace}.{where}.ingested"
    known = done.is_file() and not rebuild
    beginning = next(documents(corpus))["text"].strip()[:200]  # a question that some document must answer
    if known and client.find(beginning, top_n=1, filters={"namespace": namespace}).hits:
        return namespace, tuple(done.read_text(encoding="utf-8").splitlines())
    done.unlink(missing_ok=True)
    failed: list[str] = []
    count = 0
    for step in client.ingest([corpus_copy(corpus, folder)], prune=rebuild, namespace=namespace):
        for outcome in step.outcomes:
            count += outcome.status is not DocumentStatus.REMOVED
            if outcome.status is DocumentStatus.FAILED:
                failed.append(" ".join(f"{outcome.path}: {outcome.reason}".split()))
        progress(count, len(corpus.ids))
    warning = (
        f"{len(failed)} of {len(corpus.ids)} documents could not be taken; the first: {failed[0]}" if failed else ""
    )
    if len(failed) >= len(corpus.ids):
        raise RamifyError(warning)
    done.write_text(warning, encoding="utf-8")
    return namespace, tuple(warning.splitlines())
