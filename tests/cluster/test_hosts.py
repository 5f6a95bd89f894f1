"""Pools on three hosts with their own networks, names, processes and disks: jobs pass, whatever is cut off.

The short form cuts one host off for half a minute; RAMIFY_TEST_ROUNDS above 1 each of them, in every way, for a minute.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.lan import Host
from tests.cluster.machines import ROOT, Machines, machines, qdrant, redis_url, store_settings
from tests.faults.harness.answers import Essence
from tests.faults.harness.census import keys_without_end, until_quiet
from tests.faults.harness.checks import job_faults
from tests.faults.harness.jobs import seen
from tests.support.accounts import assert_adds_up
from tests.support.waiting import last, until

LONG = int(os.environ.get("RAMIFY_TEST_ROUNDS", "1")) > 1
NOTES = ROOT / "examples" / "notes" / "en" / "queues"
QUESTIONS = (
    "How does a queue keep its order?",
    "Compare Redis Streams and RabbitMQ for our order pipeline.",
    "Why was RabbitMQ chosen, and what went wrong?",
    "What is a dead letter?",
    "Who is on call for the queues?",
)
#: Modules whose tests run at pools elsewhere, and those of them that look at the folder, the processes or the settings
#: of a stack on their own machine.
ACCEPTANCE = (
    "main_job", "accounts", "answers", "binding", "enumeration", "examples", "http", "ingest", "mcp", "page", "retry",
    "routing", "search", "tenants",
)  # fmt: skip
OF_ONE_MACHINE = (
    "test_examples.py::test_given_an_agent_when_it_asks_over_mcp_then_the_answer_comes_and_its_source_is_read[stdio]",
    "test_http.py::test_given_operators_when_they_look_then_pools_lanes_and_counts_are_told",
    "test_ingest.py::test_given_a_corpus_when_ingested_again_then_only_what_changed_is_read_and_all_is_told",
    "test_main_job.py::test_a_line_that_a_long_file_no_longer_has_is_removed_when_the_ingest_ends",
    "test_tenants.py::test_given_the_command_line_when_a_tenant_is_named_then_it_reaches_the_store_and_nobody_is_default",
)
JOBS = 300 if LONG else 100
#: Seconds that a host is away: longer than its heartbeats last, so that its work is given to others.
AWAY_S = 60.0 if LONG else 25.0
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """With the notes in its index, which were on the client's disk alone."""
    with machines(tmp_path_factory.mktemp("hosts")) as found:
        notes = found.desk.path("notes")
        notes.mkdir()
        for file in NOTES.glob("*.md"):
            (notes / file.name).write_bytes(file.read_bytes())
        told = json.loads(found.cli("ingest", str(found.desk.disk / "notes"), "--json").splitlines()[-1])
        assert (told["added"], told["failed"]) == (len(list(notes.glob("*.md"))), 0), told
        yield found


@pytest.fixture(scope="module")
def calm(cluster: Machines) -> dict[str, Essence]:
    """What the answers are while nothing happens."""
    jobs = {question: cluster.ramify.submit(question, lane="batch") for question in QUESTIONS}
    for job_id in jobs.values():
        assert cluster.ramify.wait(job_id, 60).state == "done", cluster.logs()
    return {question: Essence(cluster.ramify.result(job_id)) for question, job_id in jobs.items()}


def test_doctor_sees_all_pools_of_hosts_that_have_the_same_name(cluster: Machines) -> None:
    checks = json.loads(cluster.cli("doctor", "--json"))["checks"]
    wanted = {"redis", "pools", "pool settings", "store", "reaper"}
    assert {check["name"] for check in checks if check["ok"]} >= wanted, checks
    assert [check for check in checks if check["ok"] is False] == []
    (pools,) = (check["detail"] for check in checks if check["name"] == "pools")
    assert "6 workers" in pools, pools


@pytest.mark.skipif(not qdrant(), reason="needs a Qdrant server: RAMIFY_TEST_QDRANT names it")
def test_the_main_job_passes_its_acceptance_tests_from_another_host(cluster: Machines) -> None:
    elsewhere = {
        "redis": {"url": redis_url(cluster.services)},
        "store": store_settings(cluster.services),
    }
    folder = ROOT / "tests" / "acceptance"
    chosen = [str(folder / f"test_{name}.py") for name in (ACCEPTANCE if LONG else ACCEPTANCE[:1])]
    fewer = () if LONG else ("-k", "tree or evidence or filters or cancelled or idempotency or prune")
    left_out = [word for name in OF_ONE_MACHINE for word in ("--deselect", f"tests/acceptance/{name}")]
    done = cluster.desk.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *fewer, *left_out],
        {"RAMIFY_TEST_ELSEWHERE": json.dumps(elsewhere), "PYTHONPATH": str(ROOT)},
        900,
    )
    print(done.stdout.splitlines()[-1])
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{cluster.logs()}"


@dataclass(frozen=True)
class Cut:
    """What becomes of which hosts. `seconds`: of the long form; the short one has those of the first."""

    who: str
    how: Callable[[Host], None]
    seconds: float = 60.0
    lane: str = "batch"


def lossy(host: Host) -> None:
    host.impair(loss_percent=20, kbit=512, late_ms=2000)


SHORT = {"a host, silently": Cut("two", Host.silence)}
ALL = {
    **SHORT,
    "a host, unplugged": Cut("two", Host.unplug),
    "a host on a bad line": Cut("three", lossy),
    "a host that hears nothing": Cut("one", Host.deafen),
    "a host that nobody hears": Cut("two", Host.mute),
    "two hosts of three": Cut("one two", Host.silence, 40.0),
    "a host that stands still": Cut("three", Host.freeze),
    "the client": Cut("desk", Host.silence),
    "the services": Cut("services", Host.silence, 30.0),
    "the services, that stand still": Cut("services", Host.freeze, 20.0),
    "the services, unplugged, while people wait": Cut("services", Host.unplug, 10.0, "interactive"),
}


@pytest.mark.parametrize("cut", (ALL if LONG else SHORT).values(), ids=(ALL if LONG else SHORT).keys())
def test_jobs_are_done_once_and_alike_though_a_host_is_cut_off_and_comes_back(
    cluster: Machines, calm: dict[str, Essence], cut: Cut
) -> None:
    ramify, before = cluster.ramify, {beat.worker for beat in cluster.beats()}
    hosts = [one for one in (*cluster.hosts, cluster.services, cluster.desk) if one.name in cut.who.split()]
    asked = [{"question": QUESTIONS[n % len(QUESTIONS)], "lane": cut.lane, "deadline_s": 600} for n in range(JOBS)]
    before_it, when_back = ramify.submit_many(asked[: JOBS // 2]), None
    until(lambda: ramify.batch_status(before_it.batch_id).finished > JOBS // 20, 120, "some jobs are done", 0.1)
    for host in hosts:
        cut.how(host)
    time.sleep(cut.seconds if LONG else AWAY_S)
    if hosts[0] in cluster.hosts:  # so that it comes back while the others have work
        when_back = ramify.submit_many(asked[JOBS // 2 :])
    for host in hosts:
        host.plug()
    back_at = time.monotonic()
    when_back = when_back or ramify.submit_many(asked[JOBS // 2 :])
    for batch in (before_it, when_back):
        last(lambda: ramify.batch_status(batch.batch_id).terminal, 240, 0.2)  # noqa: B023 - it is called here
    print(f"{cut.who}: {time.monotonic() - back_at:.1f} s from its return to the last job's end")
    expected = [calm[str(one["question"])] for one in asked]
    _accounts(cluster, before_it.batch_id, list(zip(before_it.job_ids, expected[: JOBS // 2], strict=True)))
    _accounts(cluster, when_back.batch_id, list(zip(when_back.job_ids, expected[JOBS // 2 :], strict=True)))
    assert last(lambda: {beat.worker for beat in cluster.beats()} == before, 60, 0.2), cluster.logs()
    for name in {"two", *cut.who.split()} & {one.name for one in cluster.hosts}:
        _takes_work(cluster, next(one for one in cluster.hosts if one.name == name))


def _accounts(cluster: Machines, batch_id: str, jobs: list[tuple[str, Essence]]) -> None:
    """Every job ended once, whole and with the answer that it has in calm; every leaf was recorded once."""
    assert until_quiet(cluster.redis, 60) == [], cluster.ramify.why(batch_id)
    assert cluster.ramify.batch_status(batch_id).outcomes() == {"done": len(jobs)}, cluster.logs()
    assert_adds_up(cluster.redis, batch_id)
    found, faults = seen(cluster.redis, [job_id for job_id, _ in jobs]), list[str]()
    for job_id, essence in jobs:
        faults += job_faults(found[job_id], None, cluster.ramify, {})
        faults += Essence(cluster.ramify.result(job_id)).differences(essence)
    assert faults == []
    assert keys_without_end(cluster.redis) == []


def _takes_work(cluster: Machines, host: Host) -> None:
    """One that is connected and deaf would not show in what the others do."""
    before = last(lambda: cluster.received(host), 60)

    def has_taken() -> bool:
        cluster.ramify.submit_many([QUESTIONS[0]] * 6)
        return cluster.received(host) > before > 0

    assert last(has_taken, 60, 0.5), f"{before}\n{cluster.logs()}"
    until_quiet(cluster.redis, 60)
