"""Whatever happens to Redis or to the way there, every pool takes work again by itself, and no submit says two things.

Real processes, which nobody would start anew. RAMIFY_TEST_SEED chooses another order of faults; RAMIFY_TEST_ROUNDS
above 1 adds the long ones (silence of more than 20 s) and the defaults' own timeouts.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.local.stack import answering_pools
from orchestrator.reaper.reaper import LAST_RUN
from orchestrator.submitting import SUBMIT_RETRY_S
from shared.connections.heartbeat import workers
from shared.errors import RamifyError
from shared.jobs import connect
from shared.settings import Settings, load_settings
from tests.faults.redis_proxy import Proxy
from tests.faults.redis_stage import PATIENCE_S as WAIT_S
from tests.faults.redis_stage import come_back, pools, states, tails
from tests.support.redis_server import RedisServer
from tests.support.waiting import seconds_until, until

SEED = int(os.environ.get("RAMIFY_TEST_SEED", "1"))
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "1"))
#: Six processes start first, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(400)
NOTES = Path(__file__).parents[2] / "examples" / "notes" / "en" / "queues"
#: The short form has short timeouts, so that silence is noticed sooner.
TIMEOUT_S = 2.0 if ROUNDS == 1 else 5.0
LONG_S = 22.0
SUBMIT_S = SUBMIT_RETRY_S + 8 * TIMEOUT_S


@dataclass
class Stage:
    """Everything that runs; `accepted`: ids that a submit gave; `refused`: text to the sentence that it gave."""

    server: RedisServer
    proxy: Proxy
    settings: Settings
    processes: dict[str, psutil.Process]
    client: Ramify
    accepted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    def submit(self, text: str) -> None:
        """Gives an id or raises a sentence, and either in bounded time."""
        began = time.monotonic()
        try:
            self.accepted.append(self.client.submit(text, deadline_s=240))
        except RamifyError as error:
            self.refused[text] = str(error)
            self.said.add(str(error))
        assert not any("\n" in said for said in self.said)
        assert time.monotonic() - began < SUBMIT_S

    def submit_for(self, seconds: float) -> None:
        until, number = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            number += 1
            self.submit(f"How does a queue order its jobs, number {number} of {time.time()}?")
            time.sleep(0.2)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("pools")
    with RedisServer(folder / "redis", lasting=True) as server, Proxy(server.port) as proxy:
        settings = load_settings(
            redis={"url": proxy.url, "timeout_s": TIMEOUT_S},
            data_dir=folder,
            cache={"enabled": False},
            jobs={"redrive_after_s": 5},
        )
        with pools(settings) as processes, Ramify(settings) as client:
            for _ in client.ingest([NOTES]):
                pass
            come_back(settings, client)
            yield Stage(server, proxy, settings, processes, client)


# -- the faults ------------------------------------------------------------------------------------------------------


def killed(stage: Stage) -> None:
    stage.server.kill()
    stage.submit_for(2 if ROUNDS == 1 else LONG_S)
    stage.server.start()


def clients_killed(stage: Stage) -> None:
    with stage.server.client() as client:
        for kind in ("normal", "pubsub"):
            assert client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            stage.submit_for(0.5)


def cut(stage: Stage) -> None:
    assert stage.proxy.cut()
    stage.submit_for(0.5)


def half_closed(stage: Stage) -> None:
    assert stage.proxy.half_close()
    stage.submit_for(0.5)


def half_open(stage: Stage) -> None:
    """The classic: the connections stand, and nothing comes through them any more."""
    assert stage.proxy.mute()
    stage.submit_for(1)


def slow(stage: Stage) -> None:
    stage.proxy.delay_s = TIMEOUT_S / 8
    stage.submit_for(2)
    stage.proxy.delay_s = 0.0


def full(stage: Stage) -> None:
    """`OOM command not allowed`, on and off, so that some commands of one task are taken and some are not."""
    dice = random.Random(SEED)
    with stage.server.client() as client:
        for _ in range(6):
            client.config_set("maxmemory", "100kb")
            stage.submit_for(dice.uniform(0.1, 0.5))
            client.config_set("maxmemory", 0)
            stage.submit_for(dice.uniform(0.1, 0.5))
    assert any("out of memory" in said for said in stage.said)


def demoted(stage: Stage) -> None:
    """A failover as seen without Sentinel: the same address is a read-only replica for a while."""
    with stage.server.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        stage.submit_for(2)
        client.execute_command("REPLICAOF", "NO", "ONE")
    assert any("read-only replica" in said for said in stage.said)


def output_buffer_full(stage: Stage) -> None:
    """Redis closes a client whose replies it cannot get rid of; a limit of a kilobyte makes that any of them."""
    with stage.server.client() as client:
        client.config_set("client-output-buffer-limit", "normal 1024 512 1 pubsub 1024 512 1")
        stage.submit_for(1)
        client.config_set("client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 8388608 60")


def replies_lost(stage: Stage) -> None:
    """The connection breaks in the middle of a script: it was run, and nobody hears of it."""
    stage.proxy.swallowed = 0
    for request in (b"EVALSHA", b"BRPOP", b"LPUSH", b"EXEC"):
        stage.proxy.swallow(request, 3)
        stage.submit_for(0.7)
    assert stage.proxy.swallowed > 3


def paused(stage: Stage) -> None:
    with stage.server.client() as client:
        client.execute_command("CLIENT", "PAUSE", str(int(LONG_S * 1000)), "ALL")
    stage.submit_for(LONG_S + 1)


def frozen(stage: Stage) -> None:
    assert stage.server.process
    stage.server.process.send_signal(signal.SIGSTOP)
    stage.submit_for(2 * LONG_S)
    stage.server.process.send_signal(signal.SIGCONT)


def busy(stage: Stage) -> None:
    with stage.server.client() as client, suppress(redis.RedisError):
        client.execute_command("DEBUG", "SLEEP", "4")


SHORT = (killed, clients_killed, cut, half_closed, half_open, slow, full, demoted, output_buffer_full, replies_lost)
LONG = (paused, frozen, busy)


@pytest.mark.parametrize(
    "fault",
    random.Random(SEED).sample(SHORT + (LONG if ROUNDS > 1 else ()), len(SHORT) + (len(LONG) if ROUNDS > 1 else 0)),
    ids=lambda fault: fault.__name__,
)
def test_every_pool_takes_work_again_by_itself(stage: Stage, fault: Callable[[Stage], None]) -> None:
    before = {name: process.pid for name, process in stage.processes.items()}
    stage.said.clear()
    fault(stage)
    back = come_back(stage.settings, stage.client)
    with_control = seconds_until(lambda: len(answering_pools(stage.settings, 5)) == 5, WAIT_S)
    seen = _looked(stage)
    until(lambda: _looked(stage) != seen, WAIT_S)  # the reaper is back as well
    print(f"{fault.__name__}: work after {back:.1f} s, remote control after {back + with_control:.1f} s")
    for name, process in stage.processes.items():
        assert process.is_running(), f"{name} ended\n{tails(stage.settings)}"
        assert process.pid == before[name]
        assert process.status() != psutil.STATUS_ZOMBIE, f"{name} ended\n{tails(stage.settings)}"


def _looked(stage: Stage) -> bytes | None:
    with stage.server.client() as client:
        looked: bytes | None = client.get(LAST_RUN)
    return looked


def test_all_that_was_accepted_is_answered_and_nothing_that_was_refused(stage: Stage) -> None:
    """Runs last: every id that a submit gave ends as done, whatever happened to its messages; what was refused does
    not run."""
    assert len(stage.accepted) > 10
    ends = states(stage.client, stage.accepted, 120)
    assert {job_id: state for job_id, state in ends.items() if state != "done"} == {}
    found = {job.question: str(job.state) for job in stage.client.jobs(10_000)}
    assert {text: found[text] for text in stage.refused if found.get(text, "cancelled") != "cancelled"} == {}
    with connect(stage.settings) as client:
        signs = {sign.pool for sign in workers(client)}
    assert signs == {"plan", "search", "rerank", "merge", "ops"}
