"""Sends webhooks, in the processes of the ops pool: beside the reaper, on threads of its own.

What has ended stands in Redis before anybody is told. A delivery is claimed, sent, then settled: a worker that dies
between the last two leaves a delivery that is sent again once its claim is over, so a receiver may see it twice and
knows it by its `webhook-id`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.webhooks.endpoints import ENDPOINT_PREFIX, OPERATOR
from orchestrator.webhooks.request import Reply, post, signed_headers
from shared.connections.clock import ServerClock
from shared.errors import NotFoundError, PermanentError, RamifyError, TransientError
from shared.jobs import JobReader, JobStore
from shared.jobs.codec import text
from shared.jobs.keys import BatchKeys, JobKeys, StandingKeys, WebhookKeys
from shared.jobs.scripts import Scripts
from shared.models import BatchStatus, JobStatus
from shared.models.standing import NotifyBy, StandingQuestion
from shared.models.webhook import WebhookEvent
from shared.tenants import DEFAULT_TENANT

log = logging.getLogger("ramify.webhooks")
#: Seconds between two looks for what has ended.
SEND_EVERY_S = 1.0
#: Ended jobs and batches of which one look makes deliveries, and deliveries that are listed of one tenant.
_PAGE, _MOST_LOGGED = 500, 10_000
#: Deliveries under way to one target.
_OF_ONE_TARGET = 2
#: Seconds beyond the time of a delivery after which another worker may take it.
_CLAIM_MORE_S = 20.0
#: The share of a wait that is drawn by lot.
_JITTER = 0.3
_GONE = 410


class Claim(NamedTuple):
    """A delivery that this worker may send now."""

    id: str
    target: str
    tries: int


class Sender:
    """Makes deliveries of what has ended, and sends those that are due. Several may run, in several processes."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs, self._settings = jobs, jobs.settings.webhooks
        self._client: Redis = jobs.client
        self._clock = ServerClock(self._client)
        self._reader = JobReader(self._client)
        self._run = Scripts(self._client, __package__ or "")
        self._lock = threading.Lock()
        self._busy = Counter[str]()
        self._threads = 0

    def run(self) -> None:
        """Look once, in milliseconds; what is due is sent on other threads. Raises: RedisError."""
        for entry in self._client.zrange(WebhookKeys.ended, 0, _PAGE - 1):
            self._make(text(entry))
        if not self._settings.enabled:
            return
        due = self._client.zcount(WebhookKeys.due, "-inf", self._clock.now())
        with self._lock:
            free = self._settings.threads - self._threads
        for _ in range(min(due * _OF_ONE_TARGET, free)):
            if not (claim := self._claim()):
                return
            with self._lock:
                self._threads += 1
            threading.Thread(target=self._work, args=(claim,), name="webhook", daemon=True).start()

    def _make(self, entry: str) -> None:
        """Deliveries for one ended job or batch. One that is gone, or cannot be read, leaves the list without any."""
        kind, _, subject = entry.partition(":")
        rows = list[list[str]]()
        try:
            ways = {"job": self._job_rows, "batch": self._batch_rows, "notice": self._notice_rows}
            rows = ways[kind](subject) if kind in ways else []
        except NotFoundError:
            pass
        except RamifyError as error:
            log.warning("nobody is told of the end of %s %s: %s", kind, subject, error)
        args = [entry, f"{self._clock.now():.3f}", self._jobs.settings.jobs.ttl_s, json.dumps(rows), _MOST_LOGGED]
        self._run("make_deliveries", [WebhookKeys.ended], args)

    def _job_rows(self, job_id: str) -> list[list[str]]:
        status = self._reader.status(job_id)
        if not status.terminal:
            return []
        named = self._client.hget(JobKeys(job_id).job, "webhook")
        event = WebhookEvent(f"job.{status.state}")
        return list(self._rows(event, job_id, status.tenant, named, _job_data(status)))

    def _batch_rows(self, batch_id: str) -> list[list[str]]:
        status = self._jobs.batches.status(batch_id)
        named = self._client.hget(BatchKeys(batch_id).batch, "webhook")
        return list(self._rows(WebhookEvent.BATCH_DONE, batch_id, status.tenant, named, _batch_data(status)))

    def _notice_rows(self, notice_id: str) -> list[list[str]]:
        """Of a notice of a standing question, whose id begins with that of the question."""
        standing_id = notice_id.partition(" ")[0]
        raw = self._client.hget(StandingKeys.questions, standing_id)
        notices = self._client.lrange(StandingKeys.notices(standing_id), 0, -1)
        try:
            question = StandingQuestion.of_record(raw or b"")
            found = next(one for one in map(json.loads, notices) if one["id"] == notice_id)
        except (ValueError, KeyError, StopIteration):  # it was removed, or is gone
            return []
        notify = question.notify
        named = notify.target if notify is not None and notify.by is NotifyBy.WEBHOOK else None
        return list(self._rows(WebhookEvent.NOTICE, notice_id, question.tenant, named, _notice_data(found)))

    def _rows(
        self, event: WebhookEvent, subject: str, tenant: str | None, named: object, data: dict[str, Any]
    ) -> Iterator[list[str]]:
        """Of each delivery what `make_deliveries` takes. Its id is made of what it is about, so it is made once."""
        payload = {"type": event.value, "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"), "data": data}
        tail = f",{json.dumps(payload, ensure_ascii=True)[1:]}"
        for target, owner, url in self._targets(event, tenant, named):
            made_of = f"{event} {subject} {target}"
            delivery_id = f"msg_{hashlib.sha256(made_of.encode()).hexdigest()[:24]}"
            yield [delivery_id, target, owner, url, event.value, subject, '{"number":', tail]

    def _targets(self, event: WebhookEvent, tenant: str | None, named: object) -> Iterable[tuple[str, str, str]]:
        """(target, whose it is, URL): the URL that the request names, and the endpoints that want to hear of it."""
        owners = [OPERATOR, *([tenant] if tenant else [])]
        if named:
            owner, url = tenant or DEFAULT_TENANT, text(named)
            yield f"url_{hashlib.sha256(f'{owner} {url}'.encode()).hexdigest()[:32]}", owner, url
        for owner in owners:
            for endpoint, events in self._client.hgetall(WebhookKeys.wanted + owner).items():
                found = self._client.hget(WebhookKeys.target + text(endpoint), "url")
                if found is not None and f",{event}," in text(events):
                    yield text(endpoint), owner, text(found)

    def _claim(self) -> Claim | None:
        lasts = self._settings.timeout_s + _CLAIM_MORE_S
        with self._lock:
            args = [f"{self._clock.now():.3f}", lasts, _OF_ONE_TARGET, json.dumps(dict(self._busy))]
            found = self._run("claim_delivery", [WebhookKeys.due], args)
            if not found:
                return None
            claim = Claim(text(found[0]), text(found[1]), int(found[2]))
            self._busy[claim.target] += 1
        return claim

    def _work(self, claim: Claim | None) -> None:
        """Send one delivery after another until none is due."""
        try:
            while claim:
                try:
                    self._send(claim)
                finally:
                    with self._lock:
                        self._busy[claim.target] -= 1
                        self._busy += Counter()
                claim = self._claim()
        except RedisError as error:
            log.warning("webhooks wait for Redis (%s)", type(error).__name__)
        except Exception:
            log.exception("a webhook could not be sent; it is tried again")
        finally:
            with self._lock:
                self._threads -= 1

    def _send(self, claim: Claim) -> None:
        url, body, tenant = map(text, self._client.hmget(WebhookKeys.delivery + claim.id, ["url", "body", "tenant"]))
        final = False
        try:
            reply = post(url, signed_headers(self._secret(claim.target, tenant), claim.id, body), body, self._settings)
            error = "" if reply.taken else f"it answered with status {reply.status}"
        except (TransientError, PermanentError) as failure:
            reply, error, final = Reply(0), str(failure), isinstance(failure, PermanentError)
        self._settle(claim, reply, error, final=final)

    def _secret(self, target: str, tenant: str) -> str:
        secret = self._client.hget(WebhookKeys.target + target, "secret")
        secret = secret or self._client.hget(WebhookKeys.secrets, tenant)
        if secret is None:
            fix = "make one with `ramify webhooks secret`"
            raise TransientError(f"there is no secret that signs for the URLs of requests: {fix}")
        return text(secret)

    def _settle(self, claim: Claim, reply: Reply, error: str, *, final: bool) -> None:
        settings, gone = self._settings, reply.status == _GONE
        share = 1 + random.uniform(-_JITTER, _JITTER)  # noqa: S311 - spreads load, hides nothing
        doubled = settings.first_wait_s * 2 ** min(claim.tries - 1, 30)
        asked = min(reply.retry_after or 0.0, settings.longest_wait_s)
        wait = max(min(doubled, settings.longest_wait_s) * share, asked)
        keys = [
            WebhookKeys.delivery + claim.id, WebhookKeys.target + claim.target, WebhookKeys.waiting + claim.target,
            WebhookKeys.counts,
        ]  # fmt: skip
        args = [
            claim.id, claim.tries, f"{self._clock.now():.3f}", reply.status or "", error,
            "" if final or gone else f"{wait:.3f}", settings.first_wait_s, settings.longest_wait_s, share,
            settings.give_up_s, int(gone), self._jobs.settings.jobs.ttl_s,
            int(claim.target.startswith(ENDPOINT_PREFIX)),
        ]  # fmt: skip
        self._run("settle_delivery", keys, args)
        if error:
            log.info("webhook %s to %s, try %d: %s", claim.id, claim.target, claim.tries, error)


def _job_data(status: JobStatus) -> dict[str, Any]:
    """What a receiver learns of a job: neither question nor answer."""
    return {
        "job_id": status.job_id, "tenant": status.tenant, "batch_id": status.batch_id, "state": status.state,
        "partial": status.partial, "degraded": list(status.degraded), "leaves_total": status.leaves_total,
        "leaves_done": status.leaves_done, "leaves_failed": status.leaves_failed, "created_at": status.created_at,
        "finished_at": status.finished_at, "retry_of": status.retry_of,
    }  # fmt: skip


def _notice_data(notice: Mapping[str, Any]) -> dict[str, Any]:
    """What a receiver learns of a notice: how many facts have changed, not what they say."""
    names = ("id", "standing_id", "tenant", "job_id", "before", "kind", "at")
    counts = {name: len(notice.get(name) or ()) for name in ("new", "gone")}
    return {name: notice.get(name) for name in names} | counts


def _batch_data(status: BatchStatus) -> dict[str, Any]:
    """What a receiver learns of a batch: its accounts."""
    names = (
        "batch_id", "tenant", "lines", "enqueued", "known", "duplicate", "rejected", "blank", "done", "degraded",
        "partial", "failed", "expired", "cancelled", "created_at", "closed_at", "retry_of",
    )  # fmt: skip
    return {name: getattr(status, name) for name in names}
