"""What a cancel costs: as much as what is cancelled, however many jobs wait behind it."""

from __future__ import annotations

import pytest
import redis

import orchestrator.submitting
from orchestrator.client import Ramify
from shared.jobs import JobStore, State
from shared.models import Lane
from tests.fakes.walked_jobs import admission_is_empty, queued


def test_given_many_batches_when_cancelled_one_by_one_then_the_jobs_behind_are_not_sent_first(
    ramify: Ramify, store: JobStore, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cancel used to let the next jobs in, a message each, to be cancelled by the next call: most of its time."""
    monkeypatch.setattr(orchestrator.submitting, "_LET_IN_S", 3600.0)
    batches = [ramify.submit_many([f"why {batch} {number}?" for number in range(10)]).batch_id for batch in range(20)]
    window = store.settings.lanes.under_way
    assert sum(ramify.cancel_batch(batch_id) for batch_id in batches) == 200
    assert queued(client)["plan"] <= window
    assert admission_is_empty(client, Lane.BATCH)


def test_given_a_full_window_when_one_job_is_cancelled_then_the_next_one_is_let_in_at_once(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    window = store.settings.lanes.under_way
    batch_id = ramify.submit_many([f"why {number}?" for number in range(window)]).batch_id
    sent = queued(client)["plan"]
    assert ramify.cancel(ramify.batch_jobs(batch_id)[0], State.CANCELLED)
    assert queued(client)["plan"] == sent + 1
