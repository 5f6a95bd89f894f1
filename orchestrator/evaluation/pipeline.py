"""Runs questions as jobs of the running stack, over a corpus that is ingested once. Uses the client as any program."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from orchestrator.client import Ramify
from orchestrator.evaluation.runner import Asked, Found, distinct
from shared.errors import InputError, NotFoundError, RamifyError
from shared.models import Answer, JobStatus, Lane
from shared.settings.strategies import ADAPTIVE

#: Jobs on the way at a time. Few: latency is measured under this load, and a queue in front would be part of it.
IN_FLIGHT = 2
#: Results asked for per document wanted: several chunks of one document count once.
_CHUNKS_PER_DOCUMENT = 3
_MOST_RESULTS = 200
#: Seconds past its deadline after which a job is given up: the reaper does it before.
_GRACE_S = 90.0
_POLL_S = 0.03
_CACHED = (
    "The stack's caches are on (cache.enabled): answers of earlier runs make latencies and calls look smaller. "
    "For bare figures use --direct, or start the stack with --set cache.enabled=false."
)


class Pipeline:
    """A Runner. Jobs ride the batch lane and are cancelled when the evaluation ends before them.

    An arm searches every question as it is, with its strategy; the arm `adaptive` leaves all that to the routing table.
    """

    mode = "pipeline"

    def __init__(self, client: Ramify, namespace: str, warnings: tuple[str, ...] = ()) -> None:
        """`namespace` is where the corpus was ingested, `warnings` what that left to say."""
        self._client, self._namespace, self._said = client, namespace, warnings
        self._open: dict[str, Asked] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """About the ingest, and about caches where they are on."""
        return (*self._said, *((_CACHED,) if self._client.settings.cache.enabled else ()))

    def answers(self, asked: Iterable[Asked]) -> Iterator[Found]:
        """As the Runner says. Raises: NotRunningError when Redis is gone."""
        waiting = iter(asked)
        try:
            while True:
                for question in islice(waiting, IN_FLIGHT - len(self._open)):
                    if (refused := self._submit(question)) is not None:
                        yield refused
                if not self._open:
                    return
                yield from self._ended()
        finally:
            self._cancel()

    def _submit(self, asked: Asked) -> Found | None:
        """Enqueue a question; an outcome when the door refuses it."""
        decides = (
            {} if asked.strategy == ADAPTIVE else {"strategy": asked.strategy, "decompose": bool(asked.subqueries)}
        )
        try:
            job_id = self._client.submit(
                asked.text,
                **decides,
                subqueries=asked.subqueries,
                top_n=min(_MOST_RESULTS, asked.limit * _CHUNKS_PER_DOCUMENT),
                summary=False,
                lane=Lane.BATCH,
                deadline_s=self._client.settings.jobs.deadline_s,
                filters={"namespace": self._namespace},
            )
        except InputError as error:
            return _failed(asked, str(error))
        self._open[job_id] = asked
        return None

    def _ended(self) -> Iterator[Found]:
        """Look at the open jobs; the outcomes of those that have ended."""
        time.sleep(_POLL_S)
        for job_id, asked in list(self._open.items()):
            status = self._client.status(job_id)
            if status.terminal:
                del self._open[job_id]
                yield self._outcome(asked, status)
            elif time.time() > status.deadline_at + _GRACE_S:
                yield _failed(asked, f"its job is still {status.state} long after its deadline: `ramify doctor`")
                self._client.cancel(job_id)
                del self._open[job_id]

    def _outcome(self, asked: Asked, status: JobStatus) -> Found:
        if status.state != "done":
            return _failed(asked, status.error or f"its job ended {status.state}")
        try:
            answer = self._client.result(status.job_id)
        except RamifyError as error:
            return _failed(asked, str(error))
        times = answer.timings_ms
        return Found(
            question_id=asked.question_id,
            strategy=asked.strategy,
            documents=documents_of(answer)[: asked.limit],
            ms=times.get("searching", 0.0) + times.get("merging", 0.0) or times.get("total", 0.0),
            job_ms=times.get("total", 0.0),
            cost=answer.cost,
            warnings=answer.warnings,
        )

    def _cancel(self) -> None:
        while self._open:
            job_id, _ = self._open.popitem()
            with suppress(NotFoundError):
                self._client.cancel(job_id)


def documents_of(answer: Answer) -> tuple[str, ...]:
    """The corpus ids of the merged results, best first: JSON lines are shown as "corpus.jsonl#ID".

    Of a complete list (E3), which has no results, those of its rows in their order.
    """
    rows = answer.table.rows if answer.table and not answer.results else ()
    paths = (*(hit.path for hit in answer.results), *(row.path for row in rows))
    return distinct(path.partition("#")[2] or path for path in paths)


def _failed(asked: Asked, error: str) -> Found:
    return Found(question_id=asked.question_id, strategy=asked.strategy, error=error)
