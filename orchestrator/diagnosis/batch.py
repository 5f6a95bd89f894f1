"""Why a batch is not done: how many jobs wait, run and have ended, the slowest, and the commonest error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from celery import Celery
from redis.exceptions import ResponseError

from orchestrator.diagnosis.facts import broker_outage, unavailable_providers
from orchestrator.diagnosis.pace import Outlook, outlook_of_batch
from orchestrator.diagnosis.wording import duration, jobs, remedy, serving, silence, unserved, waiting_for
from shared.connections.heartbeat import silent_workers, workers
from shared.contract import Queue
from shared.errors import shown
from shared.jobs import JobStore
from shared.jobs.fields import Fields, damaged, read_fields
from shared.jobs.keys import BatchKeys, JobKeys
from shared.jobs.work import read_work
from shared.models import BatchStatus, Lane
from shared.models.status import BatchWhy, CommonError, Postponement, Slowest


def why_batch(app: Celery, store: JobStore, batch_id: str) -> BatchWhy:
    """Raises: NotFoundError, redis.exceptions.RedisError when Redis does not answer."""
    status = store.batches.status(batch_id)
    faults: list[str] = []
    running, lane = _running(store, batch_id, faults)
    under_way = min(len(running), status.open)
    waiting = status.open - under_way
    slowest = _slowest(store, running)
    error = _common(store, batch_id)
    outlook = _outlook(store, batch_id, faults) if waiting else Outlook()
    expiring = min(waiting, outlook.expiring(status.open))
    postponed, providers = _waits(store, running), unavailable_providers(store.client, store.settings)
    held = _held(store, postponed, providers) if status.open else ""
    eta = None if held else _eta(store, lane, status.open - expiring, faults)
    if status.terminal:
        message, command = _ended(status, error)
    else:
        message, command = _open(status, waiting, under_way, eta, slowest)
        message = f"{held}{message}{_commonest(error)}"
    if expiring:
        then = f"`ramify retry {batch_id} --queue-limit SECONDS` tries them again when it has ended"
        message = f"{message} About {jobs(expiring)} will expire: {outlook.sentence('the last turn')}; {then}."
    if status.open:
        message, command = _with_workers(store, message, command)
        if broker := broker_outage(app, store.settings):
            message, command = f"{broker}. Until then nothing goes on. {message}", "ramify doctor"
    return BatchWhy(
        batch_id=batch_id, said=message, next=command, enqueued=status.enqueued, waiting=waiting,
        under_way=under_way, finished=status.finished, known_open=status.known_open, outcomes=status.outcomes(),
        reasons=status.reasons, expiring=expiring, postponed=len(postponed), eta_s=eta, slowest=slowest, error=error,
        providers=providers, faults=tuple(faults), budget=status.budget, retry_of=status.retry_of,
        retried_as=status.retried_as, retries=status.retries, repairs=status.repairs, refreshes=status.refreshes,
    )  # fmt: skip


def _with_workers(store: JobStore, message: str, command: str) -> tuple[str, str]:
    """Adds who does not work, if anybody."""
    silent = silent_workers(store.client)
    if not serving(workers(store.client), silent, Queue.PLAN):
        stands, command = unserved(silent, Queue.PLAN)
        return f"{message} No worker serves queue plan, so that nothing begins{stands}.", command
    if silent:
        return f"{message} {'; '.join(map(silence, silent))}.", remedy(silent)
    return message, command


def _running(store: JobStore, batch_id: str, faults: list[str]) -> tuple[list[str], Lane]:
    """Its jobs under way, and their lane; the number under way is bounded by the lanes' windows."""
    try:
        found = store.admission.under_way()
    except ResponseError as error:
        faults.append(f"what is under way cannot be read ({error})")
        return [], Lane.BATCH
    names = list(found)
    with store.client.pipeline(transaction=False) as pipe:
        for job_id in names:
            pipe.hget(BatchKeys(batch_id).members, job_id)
        ends = pipe.execute() if names else []
    mine = [job_id for job_id, end in zip(names, ends, strict=True) if end == b""]
    return mine, found[mine[0]][0] if mine else Lane.BATCH


def with_waits(store: JobStore, status: BatchStatus) -> BatchStatus:
    """A batch's status with what its open jobs wait for. Raises: redis.exceptions.RedisError."""
    waits = _waits(store, _running(store, status.batch_id, [])[0]) if status.open else []
    first = min(waits, key=lambda wait: wait.until, default=None)
    return status.model_copy(update={"postponed": len(waits), "waits_for": first})


def _waits(store: JobStore, job_ids: list[str]) -> list[Postponement]:
    """Of each job that waits for a server, the wait that ends first."""
    with store.client.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.hgetall(JobKeys(job_id).work)
        rows = pipe.execute(raise_on_error=False) if job_ids else []
    waits = (
        [one.postponed for one in read_work(row).values() if one.postponed] for row in rows if damaged(row) is None
    )
    return [min(found, key=lambda wait: wait.until) for found in waits if found]


def _held(store: JobStore, postponed: list[Postponement], providers: Sequence[str]) -> str:
    """What keeps its jobs, as the beginning of the answer: then the pace of what has ended promises nothing."""
    if postponed:
        soonest = min(postponed, key=lambda wait: wait.until)
        return f"{_waiting_jobs(len(postponed))} for a server: {waiting_for(soonest, store.clock.now())}. "
    return "".join(f"{provider[:1].upper()}{provider[1:]}. " for provider in providers[:1])


def _waiting_jobs(number: int) -> str:
    return "1 of its jobs waits" if number == 1 else f"{number:,} of its jobs wait"


def _slowest(store: JobStore, job_ids: list[str]) -> Slowest | None:
    rows = read_fields(store.client, job_ids, ("admitted_at", "state"))
    times = [(Fields({"at": at}, []).number("at", 0.0), state) for at, state in rows]
    found = [(at, job_id, state) for job_id, (at, state) in zip(job_ids, times, strict=True) if at and state]
    if not found:
        return None
    since, job_id, state = min(found)
    return Slowest(job_id=job_id, state=state, for_s=round(max(0.0, store.clock.now() - since), 1))


def _common(store: JobStore, batch_id: str) -> CommonError | None:
    """The commonest error among the last jobs that failed or expired."""
    ended = store.batches.failed(batch_id)
    counts = Counter(shown(error) for (error,) in read_fields(store.client, ended, ("error",)) if error)
    if not counts:
        return None
    error, count = counts.most_common(1)[0]
    return CommonError(error=error, count=count, looked_at=sum(counts.values()))


def _outlook(store: JobStore, batch_id: str, faults: list[str]) -> Outlook:
    try:
        return outlook_of_batch(store, batch_id)
    except (ResponseError, ValueError) as error:
        faults.append(f"whether the turns of its jobs come in time cannot be read ({error})")
        return Outlook()


def _eta(store: JobStore, lane: Lane, left: int, faults: list[str]) -> float | None:
    """In about how many seconds `left` jobs will have ended, at the lane's pace and with the tenants that share it."""
    try:
        place = store.admission.position("", lane, "")
    except (ResponseError, ValueError) as error:
        faults.append(f"the admission queues cannot be read ({error})")
        return None
    most = max(left, place.lane_waiting + place.lane_under_way)
    ends = min(left * max(1, place.tenants), most)
    return round(ends / place.ends_per_s, 1) if place.ends_per_s and left else None


def _ended(status: BatchStatus, error: CommonError | None) -> tuple[str, str]:
    """How it ended, what tries it again, and what is left to be tried again or repaired."""
    retry, repair = f"ramify retry {status.batch_id}", f"ramify retry --degraded {status.batch_id}"
    unanswered = status.partial + status.failed + status.expired + status.cancelled
    done = f"{status.done:,} of {jobs(status.enqueued)} are done"
    said = [f"It has ended: {', '.join(part for part in (done, _bad(status)) if part)}.{_commonest(error)}"]
    if status.cancelled_early:
        said.append(_unread(status))
    if status.reasons:
        said.append(f"Something was left out: {_reasons(status)}.")
    if status.retries:
        said.append(f"It is tried again as {' and '.join(status.retries)}.")
    if status.repairs:
        said.append(f"Its degraded answers are made again as {' and '.join(status.repairs)}.")
    if status.refreshes:
        said.append(f"Its stale answers are made again as {' and '.join(status.refreshes)}.")
    if status.retried_as and not (status.retries or status.repairs or status.refreshes):  # as an older release wrote it
        said.append(f"It is tried again as {status.retried_as}.")
    if unanswered and status.repairs and not status.retries:
        said.append(f"`{retry}` tries again what has no complete answer.")
    if status.degraded and not status.repairs:
        said.append(f"`{repair}` repairs the degraded ones.")
    otherwise = retry if unanswered else repair if status.degraded else f"ramify result {status.batch_id}"
    return " ".join(said), f"ramify why {status.retried_as}" if status.retried_as else otherwise


def _bad(status: BatchStatus) -> str:
    counts = status.outcomes().items()
    return ", ".join(f"{count:,} {name}" for name, count in counts if name not in {"open", "done"})


def _reasons(status: BatchStatus) -> str:
    return ", ".join(f"{reason} ({jobs(count)})" for reason, count in sorted(status.reasons.items()))


def _commonest(error: CommonError | None) -> str:
    return f" The commonest error: {error.error} ({error.count} of {error.looked_at})." if error else ""


def _open(
    status: BatchStatus, waiting: int, under_way: int, eta: float | None, slowest: Slowest | None
) -> tuple[str, str]:
    """How far it is, and what its open jobs wait for."""
    message = f"{jobs(waiting)} wait, {under_way:,} are under way, {status.finished:,} of {status.enqueued:,} ended"
    bad = _bad(status)
    message += f" ({bad})." if bad else "."
    if status.known_open:
        message += f" It waits for {jobs(status.known_open)} of others, which its lines name by their keys."
    if not status.read_whole:
        message += f" {_unread(status)}"
    if eta is not None:
        message += f" At the present pace it may take about {duration(eta)} more."
    if slowest:
        message += f" The slowest, {slowest.job_id}, is {slowest.state} since {duration(slowest.for_s)}."
    return message, f"ramify status {status.batch_id} --watch"


def _unread(status: BatchStatus) -> str:
    """How far it was read, and whether it may go on."""
    if status.cancelled_early:
        return f"It was cancelled before all was read: it took no more than {status.lines:,} lines."
    read = f"Of {status.source} {status.lines:,} lines were read so far: if nobody reads on, resume it"
    return f"{read} (`ramify batch --resume {status.batch_id}`)."
