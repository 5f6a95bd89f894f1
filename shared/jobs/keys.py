"""The key layout. All keys of a job share the hash tag `{job id}`.

Scripts that enter lines or end a job touch keys of batches and of the admission queues, too: one Redis, no cluster.
Every key carries a TTL. Times are Unix seconds, blobs are zlib over JSON.
"""

from __future__ import annotations

import hashlib
import os
import time
from random import Random
from threading import Lock

from shared.connections.key_types import declare
from shared.models import Lane

PREFIX = "ramify"
#: Sorted sets over all jobs: id -> creation time, and id -> when the reaper should check it next.
RECENT = f"{PREFIX}:jobs"
#: Sorted set: batch id -> creation time.
BATCHES = f"{PREFIX}:batches"
ACTIVE = f"{PREFIX}:active"
#: Hash: id of an open ingest -> its roots, with tenant and namespace, as JSON.
INGEST_ROOTS = f"{PREFIX}:ingest_roots"

_ticks = Lock()
_newest = 0
_random = Random()  # noqa: S311 - ids are no secret
os.register_at_fork(after_in_child=_random.seed)


def new_id() -> str:
    """An id that sorts by time, strictly so in one process: 13 hex digits of microseconds and 32 random bits."""
    global _newest  # noqa: PLW0603 - the one clock of this process
    with _ticks:
        _newest = max(_newest + 1, time.time_ns() // 1000)
        return f"{_newest:013x}{_random.getrandbits(32):08x}"


def id_time(job_id: str) -> float:
    """When an id of `new_id` was made (Unix seconds); now for any other id."""
    try:
        return int(job_id[:13], 16) / 1e6
    except ValueError:
        return time.time()


class JobKeys:
    """The keys of one job."""

    def __init__(self, job_id: str) -> None:
        tag = f"{PREFIX}:{{{job_id}}}"
        self.job = f"{tag}:job"  # hash: state, counts, times, costs, the request
        self.nodes = f"{tag}:nodes"  # hash: node id -> node as JSON
        self.leaves = f"{tag}:leaves"  # hash: node id -> waiting | pending | searched | done | failed | open | grown
        self.work = f"{tag}:work"  # hash: what was sent, attempts under way, deaths (see `work`)
        self.candidates = f"{tag}:candidates"  # hash: node id -> blob, between search and rerank
        self.results = f"{tag}:results"  # hash: node id -> blob, the recorded leaf
        self.chunks = f"{tag}:chunks"  # hash: digest -> blob, what was found while the job is open (see `hit_blobs`)
        self.pool = f"{tag}:pool"  # blob: the merged pool
        self.answer = f"{tag}:answer"  # blob: the answer
        self.manifest = f"{tag}:manifest"  # blob: what the answer rests on
        self.warnings = f"{tag}:warnings"  # list of sentences
        self.events = f"{tag}:events"  # capped stream
        self.named_by = f"{tag}:named_by"  # set: batches of which a line names this job by its key, while it is open

    @classmethod
    def types(cls, job_id: str) -> dict[str, str]:
        """Each key of a job -> the type that it has, as Redis names it."""
        others = {"pool": "string", "answer": "string", "manifest": "string", "warnings": "list", "events": "stream"}
        return {key: others.get(name, "hash") for name, key in vars(cls(job_id)).items()}


class AdmissionKeys:
    """The keys of the queues in which jobs wait. They share a hash tag: one script touches several."""

    tag = f"{PREFIX}:{{line}}"
    under_way = f"{tag}:under_way"  # hash: job id -> lane and tenant of the jobs that were admitted
    latest_taken = f"{tag}:front"  # hash: <queue>:<priority> -> when the message taken last had been sent

    def __init__(self, lane: str) -> None:
        tag = f"{self.tag}:{lane}"
        self.ring = f"{tag}:ring"  # list of tenants with waiting jobs, the next one first
        self.counts = f"{tag}:counts"  # hash: waiting, held (jobs under way)
        self.held = f"{tag}:held"  # hash: tenant -> jobs under way
        self.deficit = f"{tag}:deficit"  # hash: tenant -> 0 or less: minus the leaves that it owes
        self.ends = f"{tag}:ends"  # list of the times at which jobs ended, the newest first
        self.waiting = f"{tag}:of:"  # + tenant: sorted set of waiting jobs by time of submission


class BatchKeys:
    """The keys of one batch."""

    def __init__(self, batch_id: str) -> None:
        tag = f"{PREFIX}:{{{batch_id}}}"
        self.batch = f"{tag}:batch"  # hash: the accounts, as in BatchStatus, reason:<code>, tenant
        self.members = f"{tag}:members"  # hash: id of a job of its own -> outcome, or empty
        self.known = f"{tag}:known"  # hash: id of a job from before that a line names -> outcome, or empty
        self.lines = f"{tag}:lines"  # hash: line number -> LineRecord as JSON
        self.failed = f"{tag}:failed"  # list: the last jobs that failed or expired, the newest first


class IngestKeys:
    """The further keys of a job that puts documents in."""

    def __init__(self, job_id: str) -> None:
        tag = f"{PREFIX}:{{{job_id}}}"
        self.inbox = f"{tag}:inbox"  # hash: item -> blob, what is still to be done
        self.line = f"{tag}:line"  # list: items that wait for their turn
        self.outcomes = f"{tag}:outcomes"  # capped stream of reports
        self.passed_over = f"{tag}:passed_over"  # list of sentences: what was left out
        self.failures = f"{tag}:failures"  # capped list: documents that failed, as JSON
        self.seen = f"{tag}:seen"  # hash: item -> blob, ids for a prune


class WebhookKeys:
    """The keys of webhooks. They share a hash tag; scripts that end jobs write `ended`, and read `wanted`.

    A target is a registered endpoint, by its id, or a URL that requests name.
    """

    tag = f"{PREFIX}:{{webhooks}}"
    ended = f"{tag}:ended"  # sorted set: job:ID or batch:ID that somebody wants to hear of -> when it ended
    endpoints = f"{tag}:endpoints"  # sorted set: id of an endpoint -> when it was registered
    secrets = f"{tag}:secrets"  # hash: tenant -> secret that signs what goes to URLs of its requests
    counts = f"{tag}:counts"  # hash: delivered, failed (tries), given_up, switched_off
    due = f"{tag}:due"  # sorted set: target -> when its next delivery may go
    wanted = f"{tag}:wanted:"  # + tenant, or * for the operator: hash: id of an endpoint that is on -> ,its,events,
    target = f"{tag}:target:"  # + target: hash: of an endpoint its URL, events and secret; how deliveries to it went
    waiting = f"{tag}:waiting:"  # + target: sorted set: delivery id -> when it is tried next
    delivery = f"{tag}:delivery:"  # + delivery id: hash: what is sent, and what became of it
    log = f"{tag}:log:"  # + tenant or *: sorted set: delivery id -> when it was made


class SessionKeys:
    """The keys of one conversation of a tenant."""

    def __init__(self, tenant: str, session_id: str) -> None:
        tag = f"{PREFIX}:session:{{{tenant}:{session_id}}}"
        self.messages = tag  # list of messages as JSON, the newest last
        self.summary = f"{tag}:summary"  # text


class TotalKeys:
    """The keys of the totals that `/metrics` shows (see `totals`)."""

    tag = f"{PREFIX}:{{totals}}"
    jobs = f"{tag}:jobs"  # hash: of ended jobs
    runs = f"{tag}:runs"  # hash: of tasks and of calls of servers


class StandingKeys:
    """The keys of standing questions."""

    _tag = f"{PREFIX}:{{standing}}"
    questions = f"{_tag}:questions"  # hash: id -> StandingQuestion as JSON
    states = f"{_tag}:states"  # hash: id -> StandingState as JSON
    facts = f"{_tag}:facts"  # hash: id -> blob, what its answer cites
    previews = (
        f"{_tag}:previews"  # hash: job of an answer -> "1" where it would cite other words now, "0", or "" unknown
    )
    to_tell = f"{_tag}:to_tell"  # list: notices that are still to be given, the oldest first
    telling = f"{_tag}:telling"  # string: a worker is giving one now
    lock = f"{_tag}:lock"  # string: the worker that looks at them now
    spent = f"{_tag}:spent:"  # prefix of strings, with tenant and hour: jobs that were begun

    @classmethod
    def notices(cls, standing_id: str) -> str:
        """List: the notices of one question as JSON, the newest first."""
        return f"{cls._tag}:{standing_id}:notices"


def idempotency(tenant: str, key: str) -> str:
    """Where the job id of an idempotency key is kept. The key is hashed: it is the caller's text."""
    return f"{PREFIX}:idem:{tenant}:{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def batch_idempotency(tenant: str | None, key: str) -> str:
    """The same of a whole batch; `tenant` None: of a client of all tenants."""
    return f"{PREFIX}:idem_batch:{tenant or ''}:{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def stale_answers(tenant: str) -> str:
    """Sorted set: ids of a tenant's answers that are stale -> since when."""
    return f"{PREFIX}:stale:{tenant}"


def changed_documents(tenant: str) -> str:
    """Sorted set: ids of a tenant's documents -> when an ingest changed or removed them last."""
    return f"{PREFIX}:changed:{tenant}"


def corpus_checks(tenant: str) -> str:
    """String: how often a tenant's answers were held against a change, counted when that is done."""
    return f"{PREFIX}:checks:{tenant}"


def judged_answers(tenant: str) -> str:
    """Sorted set: ids of a tenant's answers that people have judged -> when last."""
    return f"{PREFIX}:judged:{tenant}"


def rechecks(tenant: str) -> str:
    """Sorted set: ids of a tenant's jobs that are to be held closely against changed documents -> when last noted."""
    return f"{PREFIX}:rechecks:{tenant}"


def _types_of_lane(lane: Lane) -> dict[str, str]:
    own = AdmissionKeys(lane.value)
    hashes = dict.fromkeys((own.counts, own.held, own.deficit), "hash")
    return {own.ring: "list", own.ends: "list", f"{own.waiting}*": "zset", **hashes}


declare(
    {RECENT: "zset", BATCHES: "zset", ACTIVE: "zset", INGEST_ROOTS: "hash", f"{PREFIX}:idem:*": "string"}
    | {f"{PREFIX}:idem_batch:*": "string", TotalKeys.jobs: "hash", TotalKeys.runs: "hash"}
    | {
        f"{PREFIX}:stale:*": "zset",
        f"{PREFIX}:changed:*": "zset",
        f"{PREFIX}:rechecks:*": "zset",
        f"{PREFIX}:checks:*": "string",
        f"{PREFIX}:judged:*": "zset",
    }
    | {AdmissionKeys.under_way: "hash", AdmissionKeys.latest_taken: "hash"}
    | dict.fromkeys((WebhookKeys.ended, WebhookKeys.endpoints, WebhookKeys.due), "zset")
    | dict.fromkeys((f"{WebhookKeys.waiting}*", f"{WebhookKeys.log}*"), "zset")
    | dict.fromkeys((WebhookKeys.secrets, WebhookKeys.counts, f"{WebhookKeys.wanted}*"), "hash")
    | dict.fromkeys((f"{WebhookKeys.target}*", f"{WebhookKeys.delivery}*"), "hash")
    | dict.fromkeys((StandingKeys.questions, StandingKeys.states, StandingKeys.facts), "hash")
    | {
        StandingKeys.to_tell: "list",
        StandingKeys.lock: "string",
        StandingKeys.telling: "string",
        f"{StandingKeys.spent}*": "string",
    }
    | {key: kind for lane in Lane for key, kind in _types_of_lane(lane).items()}
)
