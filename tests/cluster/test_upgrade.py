"""Pools are replaced one after the other by those of another release, under load: no job fails, none waits for long.

RAMIFY_TEST_OLD_TREE names a checkout of an older release, whose workers then begin instead of made-up ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from orchestrator.client import Ramify
from orchestrator.local import commands
from orchestrator.local.stack import answering_pools
from shared.jobs.keys import TotalKeys
from shared.settings import Settings, load_settings
from tests.support.kept_keys import put_back, read_kept
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[2]
RELEASES = sorted(path for path in (ROOT / "tests" / "data" / "releases").iterdir() if path.is_dir())
NOTES = ROOT / "examples" / "notes" / "en" / "queues"
OLD_TREE = os.environ.get("RAMIFY_TEST_OLD_TREE", "")
ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "1"))
#: What each release reads and writes: one that knows the next version, and one that writes it.
THIS, NEXT = ("1,2", "1"), ("1,2", "2")
#: One that was not prepared for the next version.
NOT_PREPARED = ("1", "1")
#: Jobs that come fast while pools are replaced.
_MANY = 150 * ROUNDS
#: Who reads comes before who writes; the pool that plans writes most.
ORDER = ("merge", "rerank", "search", "plan", "ops")


@dataclass
class Pools:
    """Worker processes of several releases on one Redis."""

    settings: Settings
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, release: tuple[str, str] | str, suffix: str = "") -> None:
        """Start a pool's worker. `release`: what it reads and writes, or the folder of an older one."""
        pool, env = commands.pools(self.settings)[name], commands.environment(self.settings)
        program = commands.worker(f"{name}{suffix}", pool, self.settings, env)
        old = isinstance(release, str)
        options = program.argv[program.argv.index("-A") :]
        module = ["shared.tasks.celery_command"] if old else ["tests.cluster.another_release", *release]
        with (self.settings.data_dir / f"{name}{suffix}.log").open("ab") as log:
            self.running[f"{name}{suffix}"] = subprocess.Popen(
                [sys.executable, "-P", "-m", *module, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **program.env, "PYTHONPATH": release if old else str(ROOT)},
                cwd=self.settings.data_dir,
            )  # fmt: skip

    def ready(self) -> None:
        wanted = set(self.running)
        until(lambda: answering_pools(self.settings, len(wanted)) >= wanted, 240, "every worker answers")

    def end(self, name: str) -> None:
        """As an orchestrator ends a container: it finishes what it is at."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    def kill(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait(10)


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pools]:
    folder = tmp_path_factory.mktemp("upgrade")
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(folder / "redis", lasting=True))
        settings = load_settings(redis={"url": server.url}, data_dir=folder, cache={"enabled": False})
        found = Pools(settings)
        stack.callback(found.kill)
        yield found


@pytest.fixture(scope="module")
def own(pools: Pools) -> Pools:
    """All pools of this release, and no other."""
    for name in [*pools.running]:
        pools.end(name)
    for name in ORDER:
        pools.start(name, THIS)
    pools.ready()
    return pools


class Load:
    """Submits a job every `every_s` seconds until it is stopped; behind `_MANY` every second, where that takes long."""

    def __init__(self, client: Ramify, every_s: float) -> None:
        self.ids, self._client, self._every_s = list[str](), client, every_s
        self._stop, self._thread = Event(), Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s if len(self.ids) < _MANY else 1.0):
            number = len(self.ids)
            question = f"What is stream {number}, and what is a transactional outbox of {time.time()}?"
            self.ids.append(self._client.submit(question, deadline_s=300))


def ended(client: Ramify, ids: Iterable[str], seconds: float = 300.0) -> Counter[str]:
    """How many are in each state, once all have ended."""
    found, end = Counter[str](), time.monotonic() + seconds
    for job_id in ids:
        status = client.wait(job_id, max(0.1, end - time.monotonic()))
        found["partial" if status.partial else str(status.state)] += 1
        found["degraded"] += bool(status.degraded)
    return +found


def refused(client: Ramify) -> int:
    """Messages that workers could not read, as far as they have told."""
    rows = client.redis.hgetall(TotalKeys.runs)
    return sum(int(count) for name, count in rows.items() if name.startswith(b"count:") and name.endswith(b":refused"))


def test_pools_are_replaced_under_load_and_no_job_fails(pools: Pools) -> None:
    old, new = (OLD_TREE, ("1", "1")) if OLD_TREE else (THIS, NEXT)
    for name in ORDER:
        pools.start(name, old)
    pools.ready()
    with Ramify(pools.settings) as client:
        for _ in client.ingest([NOTES]):
            pass
        with Load(client, 0.1) as load:
            until(lambda: len(load.ids) > 30 * ROUNDS, 120, "some jobs are under way")
            for name in ORDER:
                pools.end(name)
                pools.start(name, new)
                pools.ready()
            until(lambda: len(load.ids) >= _MANY, 300, "all have been submitted")
        assert ended(client, load.ids) == {"done": len(load.ids)}
        assert refused(client) == 0
        assert not client.redis.exists("ramify:quarantine")


@pytest.mark.skipif(bool(OLD_TREE), reason="an older release does not read the next version")
def test_workers_that_cannot_read_a_version_give_it_to_those_that_can(pools: Pools) -> None:
    """given a release that skips one / when both share queues / then jobs take seconds more, and none fails."""
    for name in ("merge", "rerank", "plan"):
        pools.start(name, NOT_PREPARED, "-old")
    pools.ready()
    with Ramify(pools.settings) as client:
        with Load(client, 0.1) as load:
            until(lambda: len(load.ids) >= 40 * ROUNDS, 60, "all have been submitted")
        assert ended(client, load.ids) == {"done": len(load.ids)}
        until(lambda: refused(client) > 0, 30, "some messages were refused")


@pytest.mark.parametrize("stage", ["queued", "planned", "searched", "reranked", "merged"])
@pytest.mark.parametrize("recorded", RELEASES, ids=lambda path: path.name)
def test_a_job_that_a_release_has_left_with_its_messages_is_answered(own: Pools, recorded: Path, stage: str) -> None:
    """given keys and queues as that release left them / when pools of this one run / then the job is done."""
    with Ramify(own.settings) as client:
        if not client.corpus.overview().documents:
            for _ in client.ingest([NOTES]):
                pass
        kept = read_kept(recorded / f"{stage}.json")
        (job_id,) = (key[8:29] for key in kept if key.endswith(":job"))
        client.redis.delete(*client.redis.keys(f"ramify:{{{job_id}}}:*"), "ramify:{line}:front")
        put_back(client.redis, kept, time.time())
        status = client.wait(job_id, 90)
        assert (status.state, status.partial, status.degraded) == ("done", False, ()), status.error
        assert "Redis Streams" in client.result(job_id).summary.text
