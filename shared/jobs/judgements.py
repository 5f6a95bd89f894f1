"""What people say of kept answers. It stands in the job's hash, and expires with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redis import Redis

from shared.connections.clock import ServerClock
from shared.jobs.codec import text
from shared.jobs.keys import JobKeys, judged_answers
from shared.jobs.scripts import Scripts
from shared.models.judgement import Judged, Judgement
from shared.settings import Settings

_WHOLE, _OF_DOCUMENT = "judged", "judged:"
_VERDICTS = frozenset(Judged)


class Judgements:
    """May raise redis.exceptions.RedisError."""

    def __init__(self, client: Redis, settings: Settings, clock: ServerClock) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._run = Scripts(client)

    def judge(self, tenant: str, job_id: str, verdict: Judged, documents: Iterable[str] = ()) -> bool:
        """Of these documents, by id; none: of the answer as a whole. False for a job without an answer."""
        fields = [f"{_OF_DOCUMENT}{doc_id}" for doc_id in documents] or [_WHOLE]
        flat = [part for name in fields for part in (name, verdict.value)]
        args = [f"{self._clock.now():.3f}", self._settings.jobs.ttl_s, job_id, *flat]
        return bool(self._run("judge", [JobKeys(job_id).job, judged_answers(tenant)], args))

    def of_tenant(self, tenant: str, most: int) -> list[Judgement]:
        """The answers that were judged last, the newest first; what has expired is left out."""
        ids = [text(job_id) for job_id in self._client.zrevrange(judged_answers(tenant), 0, most - 1)]
        return [found for found in self.read(ids) if found.answer or found.documents]

    def read(self, job_ids: Sequence[str]) -> list[Judgement]:
        """What has been said of each."""
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hgetall(JobKeys(job_id).job)
            rows = pipe.execute(raise_on_error=False) if job_ids else []
        return [
            _judgement(job_id, {text(name): text(value) for name, value in row.items()})
            for job_id, row in zip(job_ids, rows, strict=True)
            if isinstance(row, dict)
        ]


def _judgement(job_id: str, job: dict[str, str]) -> Judgement:
    documents = {
        name.removeprefix(_OF_DOCUMENT): Judged(value)
        for name, value in job.items()
        if name.startswith(_OF_DOCUMENT) and value in _VERDICTS
    }
    whole = job.get(_WHOLE)
    return Judgement(job_id=job_id, answer=Judged(whole) if whole in _VERDICTS else None, documents=documents)
