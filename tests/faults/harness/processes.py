"""Mischief with processes: killed at once, frozen, doubled, with a wrong clock; and with the ground under Redis."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.local import commands
from orchestrator.local.child_process import importable
from tests.faults.harness.rig import POOLS, Rig
from tests.faults.harness.rounds import Harm
from tests.support.waiting import until

_WORK_S = 2.5
#: Seconds that a frozen worker is not heard of.
FROZEN_S = 20.0
_SKEW_S = 3600.0


def frozen(of: Harm) -> None:
    """A worker stands still in the middle of its work, then goes on as if nothing had been."""
    of.pause(_WORK_S)
    pool = of.dice.choice(("search", "rerank", "merge", "plan"))
    pid = of.rig.signal(pool, signal.SIGSTOP)
    assert pid is not None
    try:
        of.pause(FROZEN_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def without_ops(of: Harm) -> None:
    """The process of the reaper is killed, again and again, and workers beside it."""
    for _ in range(3):
        of.pause(_WORK_S)
        of.kills.kill("ops")
        of.kills.kill(of.dice.choice(("search", "rerank")))


def two_at_once(of: Harm) -> None:
    """Two pools die in the same moment."""
    for _ in range(3):
        of.pause(_WORK_S)
        for name in of.dice.sample(POOLS, 2):
            of.kills.kill(name)


def without_supervisor(of: Harm) -> None:
    """The supervisor is killed, and everything dies with it; then somebody starts the stack again."""
    of.pause(_WORK_S)
    of.kills.kill("supervisor")
    until(lambda: of.rig.pid("redis") is None, 20, "Redis ended with its supervisor")
    of.rig.start_again()


def two_reapers(of: Harm) -> None:
    """A second ops worker, while workers die."""
    with _another(of.rig, "ops"):
        of.kills.storm(of.seconds, of.stop, every=2.0, pools=("search", "rerank", "merge"))


@contextmanager
def _another(rig: Rig, name: str) -> Iterator[None]:
    """A second process of that name, which the supervisor knows nothing of."""
    env = commands.environment(rig.settings)
    folder = rig.logs().parent / f"another-{name}"
    folder.mkdir(exist_ok=True)
    pool = commands.pools(rig.settings)[name]
    program = commands.worker(f"another-{name}", pool, rig.settings, env)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            program.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **importable(), **env}
        )
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def wrong_clock(of: Harm) -> None:
    """One worker's wall clock is an hour off; another one's, an hour the other way."""
    skewed = dict(
        zip(of.dice.sample(("search", "rerank", "merge", "plan", "ops"), 2), (_SKEW_S, -_SKEW_S), strict=True)
    )
    file = of.rig.skew_file
    file.write_text(json.dumps(skewed), encoding="utf-8")
    try:
        for name in skewed:
            of.kills.kill(name)
        of.pause(of.seconds)
    finally:
        file.write_text("{}", encoding="utf-8")
        for name in skewed:
            of.kills.kill(name)


def full_disk(of: Harm) -> None:
    """Redis cannot write its file any more, for some seconds."""
    of.pause(_WORK_S)
    pid = of.rig.pid("redis")
    assert pid is not None
    size = max(file.stat().st_size for file in (of.rig.logs().parent / "redis").rglob("*") if file.is_file())
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        until(lambda: of.rig.redis.info("persistence")["aof_last_write_status"] == "err", 10, "a write failed")
        of.pause(6)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)


def no_memory(of: Harm) -> None:
    """Redis takes no more data, for ten seconds."""
    of.pause(_WORK_S)
    of.rig.config_set("maxmemory", "1mb")
    try:
        of.pause(10)
    finally:
        of.rig.config_set("maxmemory", "0")
