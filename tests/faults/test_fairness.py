"""A batch of one tenant does not hold up the single question of another, in whatever lane that comes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from orchestrator.client import Ramify
from shared.models import Lane
from tests.acceptance.conftest import NOTES, ingested, launched

FLOOD = 700
#: Jobs of the flood that may end while the single question goes through its six steps, each of which may have to wait
#: for a task under way. Measured: 0 to 8; without the tenants' ranks 29 to 33, those that are under way.
MOST = 15
#: Questions that are asked until one is served so: on a loaded machine a task under way may take as long as many jobs
#: of the flood. Without ranks none is.
TRIES = 6


@pytest.fixture(scope="module")
def ramify(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ramify]:
    for client in launched(tmp_path_factory.mktemp("stack"), cache={"enabled": False}):
        yield ingested(client, NOTES / "en" / "queues")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("lane", [Lane.BATCH, Lane.INTERACTIVE])
def test_given_a_flood_of_one_tenant_when_another_asks_then_it_is_served_next(ramify: Ramify, lane: Lane) -> None:
    plan = [f"part {n}: how does a queue lose work?" for n in range(7)]
    flood = ramify.submit_many(
        ({"question": f"case {n}: what is lost?", "subqueries": plan, "lane": lane} for n in range(FLOOD)),
        tenant="many",
    )
    try:
        while ramify.batch_status(flood.batch_id).finished < 5:
            time.sleep(0.1)
        passed = list[int]()
        while len(passed) < TRIES and min(passed, default=MOST) >= MOST:
            before = ramify.batch_status(flood.batch_id).finished
            one = ramify.submit("What is a visibility timeout?", tenant="one", lane=lane)
            assert ramify.wait(one, 60).state == "done"
            after = ramify.batch_status(flood.batch_id).finished
            assert after < FLOOD, "the flood is not over"
            passed.append(after - before)
        assert min(passed) < MOST, f"{passed} jobs of the flood went before it"
    finally:
        ramify.cancel_batch(flood.batch_id)
    ended = ramify.batch_status(flood.batch_id)
    assert ended.finished == ended.enqueued == FLOOD
