"""Whatever happens in whatever order, with clients and workers killed between any two steps: a batch adds up.

Read from Redis alone after every step. Two faults at each command: it is not sent, or it is and nobody hears of it.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.intake import BatchFullError, bounded_lines, read_questions
from orchestrator.reaper.reaper import Reaper
from shared.errors import BatchCancelledError, InputError, LaneFullError
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.keys import JobKeys
from shared.settings import Settings, load_settings
from tests.fakes.walked_jobs import WalkedJob
from tests.support.accounts import assert_adds_up

ROUNDS = int(os.environ.get("RAMIFY_TEST_ROUNDS", "0")) or 6
STEPS = 70
LANES = {"max_waiting_batch": 150, "max_waiting_interactive": 40, "tenant_share": 0.8, "under_way": 8}


class KilledError(BaseException):
    """The process is dead: nothing of it runs any more but the unwinding of this test."""


@contextmanager
def doomed(client: redis.Redis, dice: random.Random, most: int) -> Iterator[None]:
    """Its process is killed within `most` commands, or after them. What it had sent counts."""
    left, unheard = dice.randint(1, most), dice.random() < 0.5
    execute, pipeline = client.execute_command, client.pipeline

    def last(call: Callable[[], object]) -> object:
        nonlocal left
        left -= 1
        if left > 0:
            return call()
        if left == 0 and unheard:
            call()
        raise KilledError

    def piped(*given: Any, **options: Any) -> Any:
        pipe = pipeline(*given, **options)
        send = pipe.execute
        pipe.execute = lambda *a, **o: last(lambda: send(*a, **o))
        return pipe

    client.execute_command = lambda *a, **o: last(lambda: execute(*a, **o))  # type: ignore[method-assign]
    client.pipeline = piped  # type: ignore[method-assign]
    try:
        with suppress(KilledError):
            yield
    finally:
        del client.execute_command, client.pipeline


@dataclass
class Day:
    """A few clients, and what they hand in."""

    settings: Settings
    client: redis.Redis
    dice: random.Random
    files: dict[str, bytes] = field(default_factory=dict)
    retried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ramify = Ramify(self.settings)
        self.jobs = JobStore(redis.Redis.from_url(self.settings.redis.url.get_secret_value()), self.settings)

    def lines(self) -> bytes:
        """A file of up to 500 lines of all kinds, most of which name one of 120 keys."""
        kinds = [self._line(number) for number in range(self.dice.randint(1, self.dice.choice([5, 250, 500])))]
        return b"\n".join(kinds) + self.dice.choice([b"", b"\n", b"\n\n"])

    def _line(self, number: int) -> bytes:
        kind = self.dice.random()
        if kind < 0.05:
            return b""
        if kind < 0.1:
            return self.dice.choice([b"null", b'{"question": ""}', b'{"question": "q", "strategy": "none_such"}'])
        line = {"question": f"why, {number}?", "id": number, "lane": "interactive" if kind < 0.15 else "batch"}
        if kind < 0.6:
            key = f"key {self.dice.randint(1, 120)}"
            line |= {"question": f"why, {key}?", "idempotency_key": key}
        if kind > 0.9:
            line["tenant"] = "acme"
        return json.dumps(line).encode()

    def open(self) -> None:
        with doomed(self.ramify._redis, self.dice, 3):
            self.ramify.open_batch()
        for batch in self.ramify.batches(1000):
            if batch.batch_id not in self.files and not batch.retry_of:
                self.files[batch.batch_id] = self.lines()

    def read(self, batch: str | None = None, most: int = 12) -> None:
        """A client begins with a file, or goes on with it."""
        if batch := batch or self.some(self.files):
            with doomed(self.ramify._redis, self.dice, most), suppress(BatchFullError, BatchCancelledError):
                lines = read_questions(bounded_lines(io.BytesIO(self.files[batch])))
                list(self.ramify.read_into_batch(batch, lines))

    def end(self) -> None:
        """A worker ends some jobs, the last one as it is killed."""
        for job_id in self.dice.sample(open_ := self.open_jobs(), min(len(open_), self.dice.randint(1, 40))):
            walked = WalkedJob(self.jobs, job_id)
            if self.dice.random() < 0.3:
                walked.to("summarising")
                self.client.hset(JobKeys(job_id).job, "degraded", self.dice.choice(["", "llm_unavailable,over_budget"]))
                walked.done(partial=self.dice.random() < 0.3)
            else:
                self.jobs.stop(walked.job, self.dice.choice([State.FAILED, State.EXPIRED]), "why not")
        if (job_id := self.some(self.open_jobs())) and (job := self.jobs.job(job_id)):
            with doomed(self.jobs.client, self.dice, 3):
                self.jobs.stop(job, State.FAILED, "killed while it ended the job")

    def cancel(self) -> None:
        if batch := self.some(self.files):
            with doomed(self.ramify._redis, self.dice, 5):
                self.ramify.cancel_batch(batch)

    def retry(self) -> None:
        if batch := self.some(self.files):
            with doomed(self.ramify._redis, self.dice, 25), suppress(InputError, LaneFullError):
                self.ramify.retry(batch)
            self.open_known()

    def open_known(self) -> None:
        """Batches that a retry has made are batches as any."""
        for status in self.ramify.batches(1000):
            if status.retry_of and status.batch_id not in self.retried:
                self.retried.append(status.batch_id)

    def ask(self) -> None:
        with doomed(self.ramify._redis, self.dice, 3), suppress(LaneFullError):
            key = f"key {self.dice.randint(1, 120)}"
            self.ramify.submit(f"why, {key}?", idempotency_key=key, lane="batch")

    def reap(self) -> None:
        Reaper(self.ramify._app, self.jobs).run()

    def some(self, among: Any) -> str | None:
        return self.dice.choice(sorted(among)) if among else None

    def open_jobs(self) -> list[str]:
        ids = [job_id.decode() for job_id in self.client.zrange("ramify:jobs", 0, -1)]
        states = [self.client.hget(JobKeys(job_id).job, "state") for job_id in ids]
        return [job_id for job_id, state in zip(ids, states, strict=True) if state and state.decode() not in TERMINAL]

    def check(self) -> None:
        for batch in (*self.files, *self.retried):
            assert_adds_up(self.client, batch)


@pytest.fixture
def small(settings: Settings) -> Settings:
    return load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes=LANES)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_batch_adds_up_after_every_step_and_every_line_of_it_in_the_end(
    client: redis.Redis, small: Settings, seed: int
) -> None:
    day = Day(small, client, random.Random(seed))
    acts = [day.open, *4 * [day.read], *2 * [day.end], day.cancel, day.retry, day.ask, day.reap]
    for _ in range(STEPS):
        day.dice.choice(acts)()
        day.check()
    for batch, content in day.files.items():
        read = 0
        while read < len(content.splitlines()) and not day.ramify.batch_status(batch).cancelled_early:
            day.read(batch, most=1_000_000)
            day.end()
            read = day.ramify.resume_batch(batch).read
    while jobs := day.open_jobs():
        day.jobs.endings.stop(jobs, State.CANCELLED, "the day is over")
    day.check()
    made = [client.hget(key, "batch_id") for key in client.scan_iter("ramify:{*}:job")]
    for batch, content in day.files.items():
        status, lines = day.ramify.batch_status(batch), content.splitlines()
        if status.cancelled_early:
            lines = lines[: day.ramify.resume_batch(batch).read]
        assert status.lines == len(lines)
        assert status.blank == sum(not line for line in lines)
        assert status.terminal
        assert made.count(batch.encode()) == status.enqueued, "no job stands beside the lines"
    assert client.keys("*named_by*") == []
    day.ramify.close()
