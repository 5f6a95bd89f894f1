"""A snapshot of the job store as Prometheus' metric families.

Every process that serves `/metrics` tells the same of the store: queries take the `max` over instances, never the sum.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from threading import Lock
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from orchestrator.metrics.snapshot import Snapshot
from shared.contract import Queue, TaskName
from shared.jobs.admission import QUANTUM
from shared.jobs.states import Outcome
from shared.jobs.totals import RAN_S, WAITED_S
from shared.models import Cost, Lane
from shared.models.degraded import Degradation
from shared.process_counts import SECONDS
from shared.providers.metering import money_of
from shared.settings import Settings

#: Seconds for which a snapshot serves all scrapers: an autoscaler and two Prometheus servers cost one reading.
_FRESH_S = 1.0
#: Tasks that a job whose turn has not come will have on each pool.
_TASKS_OF_JOB = {Queue.PLAN: 1, Queue.SEARCH: QUANTUM, Queue.RERANK: QUANTUM, Queue.MERGE: 2}
#: Label values -> value.
_Values = Mapping[Any, float]
_KINDS = ("question", "ingest")
_WEBHOOKS = ("delivered", "failed", "given_up", "switched_off")
_GATES = ("closed", "half-open", "open")


class StoreCollector(Collector):
    """Reads a snapshot at each scrape, at most one a second."""

    def __init__(self, read: Callable[[], Snapshot], settings: Settings) -> None:
        self._read, self._settings = read, settings
        self._lock = Lock()
        self._snapshot, self._until = Snapshot(), 0.0

    def describe(self) -> Sequence[Metric]:
        """Nothing: else registering it would read Redis."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families. Those of a Redis that does not answer are left out."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._snapshot, self._until = self._read(), time.monotonic() + _FRESH_S
            snapshot = self._snapshot
        yield _gauge("redis_up", "1 while the Redis of the job store answers", {(): float(snapshot.up)})
        yield _gauge("scrape_duration_seconds", "Time that reading the job store took", {(): snapshot.seconds})
        if snapshot.up:
            yield _gauge("broker_up", "1 while the broker tells its queues", {(): float(bool(snapshot.queued))})
            yield from _lanes(snapshot, self._settings)
            yield from _pools(snapshot, self._settings)
            yield from _ended(snapshot.jobs)
            yield from _spent(snapshot.jobs, self._settings)
            yield from _runs(snapshot.runs)
            yield from _servers(snapshot)
            yield from _kept(snapshot)


def _gauge(name: str, text: str, values: _Values, labels: Sequence[str] = ()) -> Metric:
    family = GaugeMetricFamily(f"ramify_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _counter(name: str, text: str, values: _Values, labels: Sequence[str] = ()) -> Metric:
    family = CounterMetricFamily(f"ramify_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _lanes(snapshot: Snapshot, settings: Settings) -> Iterator[Metric]:
    lanes = snapshot.lanes.items()
    of_tenant = ("lane", "tenant")
    waiting = {(lane.value, name): float(jobs) for lane, state in lanes for name, jobs in state.waiting.items()}
    yield _gauge("jobs_waiting", "Jobs whose turn has not come", waiting, of_tenant)
    begun = {(lane.value, name): float(jobs) for lane, state in lanes for name, jobs in state.under_way.items()}
    yield _gauge("jobs_under_way", "Jobs that were admitted and have not ended", begun, of_tenant)
    most = {
        Lane.INTERACTIVE: settings.lanes.max_waiting_interactive,
        Lane.BATCH: settings.lanes.max_waiting_batch,
    }
    limits = {(lane.value,): float(limit) for lane, limit in most.items()}
    yield _gauge("jobs_waiting_limit", "Jobs that may wait before others are refused", limits, ("lane",))
    ages = {
        (lane.value, name): seconds
        for lane, state in lanes
        for name, seconds in (("waiting", state.oldest_waiting_s), ("under_way", state.oldest_under_way_s))
    }
    yield _gauge("oldest_job_age_seconds", "Since the oldest open job was submitted", ages, ("lane", "state"))


def _pools(snapshot: Snapshot, settings: Settings) -> Iterator[Metric]:
    """By queue, since a pool serves one or more of them.

    Jobs whose turn has not come count as the tasks that they will bring, as far as they may be under way: more workers
    could take no more.
    """
    running = defaultdict[Queue, int](int)
    for beat in snapshot.workers:
        for queue, number in beat.of_queue.items():
            if queue in set(Queue):
                running[Queue(queue)] += number
    coming = sum(min(state.all_waiting, settings.lanes.under_way) for state in snapshot.lanes.values())
    tasks = {
        queue: (coming * _TASKS_OF_JOB.get(queue, 0), snapshot.queued.get(queue, 0), running[queue]) for queue in Queue
    }
    states = {
        (queue.value, state): float(count)
        for queue, counts in tasks.items()
        for state, count in zip(("waiting", "queued", "running"), counts, strict=True)
    }
    yield _gauge(
        "pool_tasks", "Tasks to come of jobs that wait, messages, and tasks that run", states, ("pool", "state")
    )
    owed = {(queue.value,): float(sum(counts)) for queue, counts in tasks.items()}
    yield _gauge("pool_owed_tasks", "All of them: what an autoscaler divides by a worker's threads", owed, ("pool",))
    serving = {queue: [beat for beat in snapshot.workers if queue.value in beat.queues] for queue in Queue}
    workers = {(queue.value,): float(len(beats)) for queue, beats in serving.items()}
    yield _gauge("pool_workers", "Processes with a heartbeat that serve the pool", workers, ("pool",))
    threads = {(queue.value,): float(sum(beat.threads for beat in beats)) for queue, beats in serving.items()}
    yield _gauge("pool_threads", "Tasks that they may run at once", threads, ("pool",))
    longest = {(queue.value,): max((beat.longest_s for beat in beats), default=0.0) for queue, beats in serving.items()}
    yield _gauge("pool_longest_task_seconds", "Since the longest task that runs was begun", longest, ("pool",))


def _ended(jobs: Mapping[str, int]) -> Iterator[Metric]:
    # From 0 on: a series that begins with its first event has no increase.
    ended: dict[tuple[str, ...], float] = dict.fromkeys(product(Lane, _KINDS, Outcome), 0.0)
    ended |= {tuple(name.split(":")[1:]): float(by) for name, by in jobs.items() if name.startswith("ended:")}
    yield _counter("jobs_ended", "Jobs that have ended", ended, ("lane", "kind", "outcome"))
    waited = "From submission to the job's turn"
    yield _histogram("job_queue_wait_seconds", waited, _of(jobs, "waited", 1), WAITED_S, ("lane",))
    ran = "From the job's turn to its end"
    yield _histogram("job_run_seconds", ran, _of(jobs, "ran", 2), RAN_S, ("lane", "kind"))
    reasons: dict[tuple[str, ...], float] = {(reason.value,): 0.0 for reason in Degradation}
    reasons |= {(name.partition(":")[2],): float(by) for name, by in jobs.items() if name.startswith("degraded:")}
    yield _counter("jobs_degraded", "Ended jobs by what they were made without", reasons, ("reason",))
    names = ("added", "changed", "unchanged", "removed", "failed")
    documents = {(name,): float(jobs.get(f"ingest:{name}", 0)) for name in names}
    yield _counter("ingest_documents", "Documents of ended ingests", documents, ("result",))
    if last := jobs.get("ingest:last"):
        text = "When an ingest has ended last (Unix seconds)"
        yield _gauge("index_last_ingest_timestamp_seconds", text, {(): float(last)})


def _of(sums: Mapping[str, int], word: str, labels: int) -> dict[tuple[str, ...], tuple[dict[str, int], float]]:
    """Labels -> count by upper bound, and sum in seconds, of `<word>:<labels>:<bound>` and `us:<word>:<labels>`."""
    found = dict[tuple[str, ...], tuple[dict[str, int], float]]()
    for name, by in sums.items():
        first, *key = name.split(":")
        if first == word and len(key) == labels + 1:
            of_key = found.setdefault(tuple(key[:-1]), ({}, sums.get(f"us:{':'.join((word, *key[:-1]))}", 0) / 1e6))
            of_key[0][key[-1]] = by
    return found


def _histogram(
    name: str,
    text: str,
    values: Mapping[tuple[str, ...], tuple[Mapping[str, int], float]],
    bounds: Sequence[float],
    labels: Sequence[str],
) -> Metric:
    family = HistogramMetricFamily(f"ramify_{name}", text, labels=labels)
    for key, (counts, seconds) in values.items():
        buckets, below = list[tuple[str, float]](), 0
        for bound in (*(f"{bound:g}" for bound in bounds), "inf"):
            below += counts.get(bound, 0)
            buckets.append(("+Inf" if bound == "inf" else str(float(bound)), below))
        family.add_metric(key, buckets, seconds)
    return family


def _spent(jobs: Mapping[str, int], settings: Settings) -> Iterator[Metric]:
    cost = Cost(**{name: jobs.get(f"cost:{name}", 0) for name in Cost.model_fields})
    yield _counter("llm_calls", "Calls of the LLM by ended jobs", {(): cost.llm_calls})
    tokens = {("in",): cost.llm_tokens_in, ("out",): cost.llm_tokens_out}
    yield _counter("llm_tokens", "Tokens of the LLM by ended jobs", tokens, ("direction",))
    yield _counter("embedding_calls", "Calls of the encoder by ended jobs", {(): cost.embed_calls})
    yield _counter("embedding_tokens", "Tokens of the encoder by ended jobs", {(): cost.embed_tokens})
    yield _counter("rerank_calls", "Calls of the reranker by ended jobs", {(): cost.rerank_calls})
    yield _counter("rerank_documents", "Documents that were reranked for ended jobs", {(): cost.rerank_documents})
    if (money := money_of(cost, settings)) is not None:
        text = "What all of that costs by today's prices"
        yield _counter("cost", text, {(settings.prices.currency,): money}, ("currency",))


def _runs(runs: Mapping[str, int]) -> Iterator[Metric]:
    """What the worker processes have counted themselves."""
    tasks: dict[tuple[str, ...], float] = {(task.queue, task, "refused"): 0.0 for task in TaskName}  # see _ended
    calls = dict[tuple[str, ...], float]()
    for name, by in runs.items():
        first, of, what, *outcome = (*name.split(":"), "", "")[:4]
        if first == "count" and of == "task":
            tasks[what.partition(".")[0], what, *outcome] = by
        elif first == "count" and of == "call":
            calls[what, *outcome] = by
    yield _counter("task_runs", "Runs of tasks by how they ended", tasks, ("pool", "task", "outcome"))
    times = _of(runs, "time", 2)
    of_tasks = {key[1:]: value for key, value in times.items() if key[0] == "task"}
    yield _histogram("task_run_seconds", "What runs of tasks took", of_tasks, SECONDS, ("task",))
    yield _counter("provider_calls", "HTTP calls of model servers and Qdrant", calls, ("provider", "outcome"))
    of_calls = {key[1:]: value for key, value in times.items() if key[0] == "call"}
    yield _histogram("provider_call_seconds", "What these calls took", of_calls, SECONDS, ("provider",))


def _servers(snapshot: Snapshot) -> Iterator[Metric]:
    of_gate = ("provider", "host")
    states = {
        (gate.provider, gate.host, state): float(gate.state == state) for gate in snapshot.gates for state in _GATES
    }
    yield _gauge("gate_state", "1 for the state that a server's circuit breaker is in", states, (*of_gate, "state"))
    failures = {(gate.provider, gate.host): float(gate.failures) for gate in snapshot.gates}
    yield _gauge("gate_failures", "Failures of a server in a row", failures, of_gate)
    paused = {(gate.provider, gate.host): float(gate.paused_until is not None) for gate in snapshot.gates}
    yield _gauge("gate_paused", "1 while a server wants no requests (Retry-After)", paused, of_gate)


def _kept(snapshot: Snapshot) -> Iterator[Metric]:
    """What is kept in Redis, and Redis itself."""
    stats = {(kind, what): float(by) for name, by in snapshot.cache.items() for kind, _, what in [name.partition(":")]}
    results = {(name,): float(snapshot.webhooks.get(name, 0)) for name in _WEBHOOKS}
    text = "Tries of deliveries, deliveries that were given up, endpoints that were switched off"
    yield _counter("webhooks", text, results, ("result",))
    yield _counter("cache_requests", "Values asked of the cache by how they were had", stats, ("kind", "result"))
    for name, text in (
        ("cache_bytes", "Bytes of all cached values"),
        ("cache_entries", "Cached values"),
        ("dead_letters", "Pieces of work and documents that killed their workers too often"),
        ("damaged_jobs", "Jobs that are set aside since they cannot be read"),
        ("ingests", "Ingests that have claimed their folders and not ended"),
        ("webhook_targets_waiting", "Receivers of webhooks for which something waits to be sent"),
    ):
        if name in snapshot.sizes:
            yield _gauge(name, text, {(): float(snapshot.sizes[name])})
    if snapshot.reaper_at is not None:
        text = "When the reaper has looked after the jobs last (Unix seconds)"
        yield _gauge("reaper_last_run_timestamp_seconds", text, {(): snapshot.reaper_at})
    redis = snapshot.redis
    for name, key, text in (
        ("redis_memory_used_bytes", "used_memory", "Memory that Redis uses"),
        ("redis_memory_max_bytes", "maxmemory", "Memory that Redis may use; 0 = all of the machine's"),
        ("redis_connected_clients", "connected_clients", "Connections to Redis"),
        ("redis_saving", "saving", "1 while Redis can write to its disk what it holds"),
        ("redis_last_copy_timestamp_seconds", "rdb_last_save_time", "When Redis has made a copy last, or began"),
    ):
        if key in redis:
            yield _gauge(name, text, {(): float(redis[key])})
    for name, key, text in (
        ("redis_evicted_keys", "evicted_keys", "Keys that Redis has thrown away: jobs are lost"),
        ("redis_rejected_connections", "rejected_connections", "Connections that Redis has refused"),
    ):
        if key in redis:
            yield _counter(name, text, {(): float(redis[key])})
