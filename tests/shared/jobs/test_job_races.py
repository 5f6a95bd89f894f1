"""Whatever races at whatever state, a job ends once, is counted once, and holds no place afterwards."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from celery import Celery

from orchestrator.client import Ramify
from orchestrator.reaper.reaper import Reaper
from shared.errors import InputError
from shared.jobs import TERMINAL, JobStore, State
from shared.jobs.keys import ACTIVE, JobKeys
from shared.models import Lane
from shared.settings import Settings, load_settings
from shared.tasks.app import make_app
from tests.fakes.walked_jobs import ADMITTED, PLACES, WAITING, WalkedJob, admission_is_empty

ROUNDS = 6
Act = Callable[[str], object]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A lane of two: one job of a tenant is under way, the next one waits."""
    return load_settings(redis={"url": settings.redis.url}, data_dir=settings.data_dir, lanes={"under_way": 2})


@pytest.fixture
def app(settings: Settings) -> Iterator[Celery]:
    app = make_app(settings)
    yield app
    app.close()


def at_once(seed: int, *acts: Callable[[], object]) -> list[object]:
    """Run all of them from the same moment on, each after a small random pause. What each returned, or raised."""
    dice, barrier = random.Random(seed), threading.Barrier(len(acts))
    out: list[object] = [None] * len(acts)

    def run(place: int, pause: float) -> None:
        barrier.wait(timeout=10)
        time.sleep(pause)
        try:
            out[place] = acts[place]()
        except Exception as error:  # noqa: BLE001 - it is looked at by the test
            out[place] = error

    threads = [threading.Thread(target=run, args=(n, dice.random() * 0.004)) for n in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), f"seed {seed} hangs"
    return out


def placed(ramify: Ramify, store: JobStore, place: str) -> tuple[WalkedJob, list[str]]:
    """A job there, and the others that were needed for it."""
    others = [ramify.submit("it takes the only place")] if place == WAITING else []
    walked = WalkedJob(store, ramify.submit("why?"))
    at = store.admission.position(walked.id, Lane.INTERACTIVE, "default")
    assert (at.waiting, at.under_way) == (place == WAITING, place != WAITING)
    return (walked if place in {WAITING, ADMITTED} else walked.to(place)), others


def past_its_deadline(app: Celery, store: JobStore, by: float) -> Act:
    """The reaper looks at a job whose deadline has passed `by` seconds ago."""
    reaper = Reaper(app, store)

    def act(job_id: str) -> int:
        over = store.clock.now() - by
        store.client.hset(JobKeys(job_id).job, mapping={"waits_until": over, "deadline_at": over})
        store.client.zadd(ACTIVE, {job_id: 0}, xx=True)
        return reaper.run()

    return act


ACTS: dict[str, Callable[[Ramify, Celery, JobStore], Act]] = {
    "cancel": lambda ramify, *_: ramify.cancel,
    "expire": lambda ramify, *_: lambda job_id: ramify.cancel(job_id, State.EXPIRED, "too late"),
    "deadline": lambda _, app, store: past_its_deadline(app, store, 10),
    "given up": lambda _, app, store: past_its_deadline(app, store, 1000),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", list(ACTS))
def test_an_end_races_a_worker_that_finishes(
    ramify: Ramify, app: Celery, store: JobStore, place: str, name: str
) -> None:
    """given a job at any state / when it is ended while a worker finishes it / then it ends once, and all adds up."""
    act = ACTS[name](ramify, app, store)
    for seed in range(ROUNDS):
        walked, others = placed(ramify, store, place)
        finished, acted = at_once(seed, lambda: walked.finish(place), lambda: act(walked.id))  # noqa: B023 - joined before
        print(f"seed {seed}: {place}, {name}: finished {finished}, {acted!r}, {walked.job.state.value}")
        assert not isinstance(finished, Exception), finished
        assert not isinstance(acted, Exception), acted
        assert finished == (walked.job.state is State.DONE)
        if name in {"cancel", "expire"}:
            assert bool(acted) is not finished, "one of the two, never both"
        if walked.job.state not in TERMINAL:
            ramify.cancel(walked.id)
        ends = [event.data["state"] for event in ramify.stream(walked.id, 1) if event.type == "state"]
        assert ends[0] == "queued"
        assert [state in TERMINAL for state in ends].count(True) == 1
        for other in others:
            ramify.cancel(other)
        assert admission_is_empty(store.client)


@pytest.mark.parametrize("place", PLACES)
def test_a_retry_races_the_end_of_its_job(ramify: Ramify, store: JobStore, place: str) -> None:
    """given a job at any state / when it is tried again while it ends / then it is refused, or a new job is made."""
    made = 0
    for seed in range(ROUNDS):
        walked, others = placed(ramify, store, place)
        with pytest.raises(InputError, match=r"still|done and complete"):
            ramify.retry(walked.id)
        cancelled, tried = at_once(seed, lambda: ramify.cancel(walked.id), lambda: ramify.retry(walked.id))  # noqa: B023
        print(f"seed {seed}: {place}: cancelled {cancelled}, {tried!r}")
        assert cancelled is True
        assert walked.job.state is State.CANCELLED
        if isinstance(tried, Exception):
            assert isinstance(tried, InputError), tried
            assert ramify.status(walked.id).retried_as is None
            tried = ramify.retry(walked.id)
        made += 1
        new = store.job(tried.job_id)
        assert new is not None
        assert (new.state, new.retry_of) == (State.QUEUED, walked.id)
        assert ramify.status(walked.id).retried_as == new.id
        with pytest.raises(InputError, match="tried again already"):
            ramify.retry(walked.id)
        for job_id in (new.id, *others):
            ramify.cancel(job_id)
        assert admission_is_empty(store.client)
    assert made == ROUNDS


def test_a_batch_is_cancelled_while_workers_finish_it(ramify: Ramify, store: JobStore) -> None:
    """given a batch and many workers / when it is cancelled under them / then every job is cancelled or done."""
    for seed in range(2):
        batch = ramify.submit_many([f"why, {n}?" for n in range(120)], lane=Lane.INTERACTIVE)
        dice = random.Random(seed)
        mine = dice.sample(batch.job_ids, 80)
        shares = [mine[n::8] for n in range(8)]

        def work(share: list[str]) -> int:
            return sum(WalkedJob(store, job_id).finish(ADMITTED) for job_id in share)

        acts = [lambda share=share: work(share) for share in shares]
        cancel = partial(ramify.cancel_batch, batch.batch_id)
        *done, first, second = at_once(seed, *acts, cancel, cancel)
        print(f"seed {seed}: done {done}, cancelled {first} and {second}")
        status = ramify.batch_status(batch.batch_id)
        assert status.outcomes() == {
            name: count for name, count in {"done": sum(done), "cancelled": first + second}.items() if count
        }
        assert status.finished == status.enqueued == 120
        states = [job.state for job_id in batch.job_ids if (job := store.job(job_id))]
        assert (states.count(State.DONE), states.count(State.CANCELLED)) == (sum(done), first + second)
        assert admission_is_empty(store.client)
