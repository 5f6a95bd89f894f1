"""Whatever stands in the keys of one job or batch: who reads it gets one sentence that names it, and others go on."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from itertools import islice

import pytest
from redis import Redis
from typer.testing import CliRunner

from orchestrator.cli.main import app as command_line
from orchestrator.client import Ramify
from orchestrator.reaper.reaper import Reaper
from shared.errors import RamifyError
from shared.jobs import JobStore, new_id
from shared.jobs.damaged import DamagedKeys
from shared.jobs.keys import BatchKeys, JobKeys
from shared.jobs.tables import TableKeys
from shared.models import JobRequest
from shared.models.enumeration import ListTable, RowPage
from shared.settings import Settings
from shared.tasks.app import make_app
from tests.fakes.walked_jobs import PLACES, WalkedJob
from tests.support.fixtures import ramify, store
from tests.support.foreign import GARBAGE, put

__all__ = ["ramify", "store"]
BOMB = zlib.compress(b'{"a":"' + b"0" * 40_000_000 + b'"}')
_LONGEST = 1200


def types_of_job(job_id: str) -> dict[str, str]:
    lists = TableKeys(job_id)
    return JobKeys.types(job_id) | {lists.table: "string", lists.scan: "string", lists.rows: "hash"}


def types_of_batch(batch_id: str) -> dict[str, str]:
    return {key: "list" if name == "failed" else "hash" for name, key in vars(BatchKeys(batch_id)).items()}


def poison(rng: random.Random, client: Redis, types: dict[str, str]) -> None:
    for key, kind in types.items():
        if rng.random() < 0.6:
            continue
        if kind == "hash" and rng.random() < 0.5 and (fields := client.hkeys(key)):
            client.hset(key, rng.choice(fields), rng.choice((*GARBAGE, BOMB)))
        elif kind == "string" and rng.random() < 0.5:
            client.set(key, rng.choice((*GARBAGE, BOMB)))
        else:
            put(rng, client, key, kind, wrong=rng.random() < 0.3)


def refusals(name: str, reads: Iterable[Callable[[], object]]) -> list[str]:
    """The sentences of those that refuse; each names the job or batch."""
    said = []
    for read in reads:
        try:
            read()
        except RamifyError as error:
            said.append(str(error))
    assert all(name in one and "\n" not in one and len(one) < _LONGEST for one in said), said
    return said


def commands_end(settings: Settings, *commands: tuple[str, ...]) -> None:
    for command in commands:
        url = f"redis.url={settings.redis.url.get_secret_value()}"
        done = CliRunner().invoke(command_line, ["--set", url, *command])
        assert done.exception is None or isinstance(done.exception, SystemExit | RamifyError), (command, done.exception)


def goes_on(settings: Settings, jobs: JobStore) -> bool:
    """Whether the reaper lets another job in."""
    other = new_id()
    jobs.enqueue([(other, JobRequest(question="why?"))])
    with make_app(settings) as app:
        reaper = Reaper(app, jobs)
        for _ in range(2):
            reaper.run()
    return other in jobs.admission.under_way()


@pytest.mark.parametrize("seed", range(4))
def test_given_a_job_of_garbage_then_it_costs_itself_alone(
    ramify: Ramify, store: JobStore, client: Redis, settings: Settings, seed: int
) -> None:
    rng, job_id = random.Random(seed), ramify.submit("why?")
    if (place := rng.choice(PLACES)) in PLACES[2:]:
        store.admit()
        WalkedJob(store, job_id).to(place)
    poison(rng, client, types_of_job(job_id))
    refusals(
        job_id,
        (
            lambda: ramify.status(job_id), lambda: ramify.result(job_id), lambda: ramify.why(job_id),
            lambda: list(ramify.jobs()), lambda: list(islice(ramify.rows(job_id), 5)),
            lambda: list(islice(ramify.stream(job_id, 0.1), 50)),
        ),
    )  # fmt: skip
    commands_end(settings, ("status", job_id, "--json"), ("result", job_id), ("why", job_id), ("jobs",))
    assert goes_on(settings, store)


@pytest.mark.parametrize("seed", range(3))
def test_given_a_batch_of_garbage_then_it_costs_itself_alone(
    ramify: Ramify, store: JobStore, client: Redis, settings: Settings, seed: int
) -> None:
    batch_id = ramify.submit_many(["why?", "what?"]).batch_id
    poison(random.Random(seed), client, types_of_batch(batch_id))
    refusals(
        batch_id,
        (
            lambda: ramify.batch_status(batch_id), lambda: ramify.batch_jobs(batch_id),
            lambda: list(ramify.batch_report(batch_id)), lambda: ramify.resume_batch(batch_id),
        ),
    )  # fmt: skip
    commands_end(settings, ("status", batch_id), ("why", batch_id), ("result", batch_id))
    assert goes_on(settings, store)


def test_given_garbage_where_damaged_jobs_are_noted_then_they_are_noted_all_the_same(
    ramify: Ramify, store: JobStore, client: Redis, settings: Settings
) -> None:
    job_id = ramify.submit("why?")
    client.hset(JobKeys(job_id).job, "state", "\x00")
    client.set(DamagedKeys.count, "many")
    client.zadd(DamagedKeys.since, {job_id: "inf"})
    client.hset(DamagedKeys.jobs, job_id, "[[")
    found = store.damaged.get(job_id)
    assert found is not None
    assert store.damaged.counts() == (1, 0)
    assert goes_on(settings, store)
    found = store.damaged.get(job_id)
    assert found is not None
    assert "its field state" in found.reason
    assert found.since < 1e12
    assert store.damaged.counts() == (1, 1)


def test_given_bombs_then_the_key_is_named_and_little_memory_is_taken(ramify: Ramify, client: Redis) -> None:
    job_id = ramify.submit("why?")
    keys = TableKeys(job_id)
    for key in (JobKeys(job_id).answer, keys.table):
        client.set(key, BOMB)
    tracemalloc.start()
    said = refusals(job_id, (lambda: ramify.result(job_id), lambda: list(ramify.rows(job_id))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ["answer" in said[0], "key table" in said[1]] == [True, True]
    assert peak < 45_000_000


def test_given_a_list_of_absurd_length_then_reading_ends(ramify: Ramify, client: Redis) -> None:
    job_id = ramify.submit("why?")
    client.set(
        TableKeys(job_id).table, zlib.compress(ListTable(understood="all", pages=10**15).model_dump_json().encode())
    )
    client.hset(TableKeys(job_id).rows, "0", zlib.compress(RowPage(rows=()).model_dump_json().encode()))
    (said,) = refusals(job_id, [lambda: list(ramify.rows(job_id))])
    assert "page 2" in said
    batch_id = ramify.submit_many(["why?"]).batch_id
    client.hset(BatchKeys(batch_id).batch, "read", 10**15)
    assert len(list(ramify.batch_lines(batch_id))) == 1
