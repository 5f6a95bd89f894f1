"""Which answers are stale, and by which documents. The marks stand in the job's hash, and expire with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError
from redis import Redis

from shared.connections.clock import ServerClock
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys, StandingKeys, changed_documents, corpus_checks, rechecks, stale_answers
from shared.jobs.scripts import Scripts
from shared.models.stale import StaleMark
from shared.settings import Settings

#: In front of a document's id, the field of a job's hash with its mark.
MARK = "stale:"
#: Documents that one answer is marked with; it is stale by more than that all the same.
_MOST_MARKS = 50
#: Documents of which is known when they have changed: an answer that was searched before and ends later is held
#: against those.
_MOST_CHANGES = 20_000
_PAGE = 500


class StaleAnswers:
    """May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)

    def mark(self, tenant: str, changes: Mapping[str, tuple[Sequence[StaleMark], Iterable[str]]]) -> list[int]:
        """Job id -> (its marks, ids of documents by which it is not stale). What `mark_stale.lua` returns, of each."""
        jobs, found = self._settings.jobs, list[int]()
        rows = iter(changes.items())
        while page := list(islice(rows, _PAGE)):
            with self._client.pipeline(transaction=False) as pipe:
                for job_id, (marks, cleared) in page:
                    flat = [part for mark in marks for part in (mark.doc_id, mark.model_dump_json())]
                    args: list[Any] = [f"{self._clock.now():.3f}", jobs.ttl_s, jobs.max_events, job_id, _MOST_MARKS]
                    keys = [JobKeys(job_id).job, JobKeys(job_id).events, stale_answers(tenant)]
                    self._run("mark_stale", keys, [*args, len(marks), *flat, *cleared], client=pipe)
                found += [int(one) for one in pipe.execute()]
        return found

    def marks(self, job_ids: Sequence[str]) -> dict[str, tuple[StaleMark, ...]]:
        """Those of these jobs that are stale, with their marks."""
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hgetall(JobKeys(job_id).job)
            rows = pipe.execute(raise_on_error=False) if job_ids else []
        read = {
            job_id: marks_in({text(name): text(value) for name, value in row.items()})
            for job_id, row in zip(job_ids, rows, strict=True)
            if isinstance(row, dict)
        }
        return {job_id: marks for job_id, marks in read.items() if marks}

    def of_tenant(self, tenant: str, most: int) -> list[str]:
        """The tenant's stale answers, the one that has been stale for longest first. Some may have expired."""
        return [text(job_id) for job_id in self._client.zrange(stale_answers(tenant), 0, most - 1)]

    def forget(self, tenant: str, job_ids: Iterable[str]) -> None:
        """Take answers off the tenant's list: they have expired, or a newer answer stands in their place."""
        if gone := list(job_ids):
            self._client.zrem(stale_answers(tenant), *gone)

    def note_changes(self, tenant: str, doc_ids: Iterable[str]) -> None:
        """Remember that these documents have changed now."""
        ids, key, now = iter(doc_ids), changed_documents(tenant), self._clock.now()
        while page := list(islice(ids, _PAGE)):
            self._client.zadd(key, dict.fromkeys(page, now))
        with self._client.pipeline(transaction=False) as pipe:
            pipe.zremrangebyrank(key, 0, -_MOST_CHANGES - 1)
            pipe.expire(key, self._settings.jobs.ttl_s)
            pipe.execute()

    def changes_since(self, tenant: str, since: float) -> list[str]:
        """Ids of the documents that have changed since then, as far as is remembered."""
        return [text(doc_id) for doc_id in self._client.zrangebyscore(changed_documents(tenant), since, "+inf")]

    def note_checked(self, tenant: str) -> None:
        """Count a check that is done: its marks stand."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.incr(corpus_checks(tenant))
            pipe.expire(corpus_checks(tenant), self._settings.jobs.ttl_s)
            pipe.execute()

    def checks(self, tenants: Sequence[str]) -> dict[str, int]:
        """How many there were of each tenant."""
        found: Any = self._client.mget([corpus_checks(tenant) for tenant in tenants]) if tenants else []
        return {tenant: int(count or 0) for tenant, count in zip(tenants, found, strict=True)}

    def note_preview(self, job_id: str, differs: bool | None) -> None:
        """Remember whether the answer of a standing question would cite other words now; None: nobody can tell."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(StandingKeys.previews, job_id, "" if differs is None else str(int(differs)))
            pipe.expire(StandingKeys.previews, self._settings.jobs.ttl_s)
            pipe.execute()

    def previews(self, job_ids: Sequence[str]) -> dict[str, bool | None]:
        """Of these answers, as far as they were looked at."""
        found: Any = self._client.hmget(StandingKeys.previews, job_ids) if job_ids else []
        said = {job_id: text(one) for job_id, one in zip(job_ids, found, strict=True) if one is not None}
        return {job_id: one == "1" if one else None for job_id, one in said.items()}

    def forget_preview(self, job_id: str) -> None:
        """A newer answer stands in its place."""
        self._client.hdel(StandingKeys.previews, job_id)

    def note_rechecks(self, tenant: str, job_ids: Iterable[str]) -> None:
        """Remember jobs that, once they have ended, are to be held closely against what has changed by now."""
        if noted := list(job_ids):
            now = self._clock.now()
            with self._client.pipeline(transaction=False) as pipe:
                pipe.zadd(rechecks(tenant), dict.fromkeys(noted, now))
                pipe.expire(rechecks(tenant), self._settings.jobs.ttl_s)
                pipe.execute()

    def rechecks(self, tenant: str) -> dict[str, float]:
        """Those that were noted and not forgotten, with the time of the last note, the oldest first."""
        found: Any = self._client.zrange(rechecks(tenant), 0, -1, withscores=True)
        return {text(job_id): at for job_id, at in found}

    def forget_rechecks(self, tenant: str, noted: Mapping[str, float]) -> None:
        """They have been held against what changed until that note, or have ended without an answer."""
        rows = iter(noted.items())
        while page := list(islice(rows, _PAGE)):
            self._run("forget_rechecks", [rechecks(tenant)], [part for job_id, at in page for part in (at, job_id)])

    def tenants_with_rechecks(self) -> list[str]:
        """Tenants of which such jobs are noted."""
        start = rechecks("")
        return [text(key).removeprefix(start) for key in self._client.scan_iter(f"{start}*", count=1000)]


def marks_in(job: Mapping[str, str]) -> tuple[StaleMark, ...]:
    """The marks in a job's hash, the oldest first; one that cannot be read is left out."""
    found = list[StaleMark]()
    for name, value in job.items():
        if name.startswith(MARK):
            try:
                found.append(StaleMark.of_record(value))
            except ValidationError:
                continue
    return tuple(sorted(found, key=lambda mark: (mark.since, mark.path)))
