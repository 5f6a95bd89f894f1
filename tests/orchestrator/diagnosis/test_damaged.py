"""What people are told of jobs that cannot be read: one sentence, a command that helps, and the other jobs."""

from __future__ import annotations

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.local.checks_stack import jobs as job_checks
from shared.errors import DamagedError, RamifyError
from shared.jobs import JobStore
from shared.jobs.keys import JobKeys
from shared.settings import Settings
from tests.fakes.walked_jobs import WalkedJob, submitted

#: Field of a job's hash, what stands there, and what is said of it.
UNREADABLE = [
    ("state", "postponed", "its field state is 'postponed', a word that this release does not know"),
    ("lane", "bulk", "its field lane is 'bulk', a word that this release does not know"),
    ("tenant", b"\xff\xfe", "its field tenant is no UTF-8"),
    ("deadline_at", "soon", "its field deadline_at is 'soon', no number"),
]


@pytest.mark.parametrize(("field", "value", "said"), UNREADABLE)
def test_why_names_what_cannot_be_read_and_what_to_do(
    ramify: Ramify, client: redis.Redis, field: str, value: str | bytes, said: str
) -> None:
    job_id = submitted(ramify, 1)[0]
    client.hset(JobKeys(job_id).job, field, value)
    why = ramify.why(job_id)
    assert said in why.said
    assert why.next == f"ramify cancel {job_id}"
    assert ("newer release" in why.said) is ("does not know" in said)


def test_of_a_key_of_another_type_why_says_which_and_since_when_it_is_set_aside(
    ramify: Ramify, store: JobStore, client: redis.Redis
) -> None:
    job_id = submitted(ramify, 1)[0]
    client.set(JobKeys(job_id).work, "x")
    store.damaged.add(job_id, DamagedError("a key of it is of another type"))
    why = ramify.why(job_id)
    assert "work is a string, not a hash" in why.said
    assert "set aside since" in why.said


@pytest.mark.parametrize(
    "field", ["state", "lane", "deadline_at", "created_at", "leaves_done", "route", "cost:llm_calls"]
)
def test_status_and_jobs_show_what_can_be_read_and_warn_of_the_rest(
    ramify: Ramify, client: redis.Redis, field: str
) -> None:
    whole, broken, gone = submitted(ramify, 3)
    client.hset(JobKeys(broken).job, field, b"\xff")
    client.delete(JobKeys(gone).job)
    client.set(JobKeys(gone).job, "no hash")
    status = ramify.status(broken)
    assert status.question == "why, 1?"
    assert any(field in warning for warning in status.warnings)
    with pytest.raises(RamifyError, match=f"^job {gone} cannot be read: a key of it is of another type"):
        ramify.status(gone)
    listed = {one.job_id: one.state for one in ramify.jobs()}
    assert listed[whole] == "queued"
    assert listed[gone] == "unreadable"
    assert broken in listed


def test_a_route_and_a_budget_of_another_release_cost_the_status_nothing(ramify: Ramify, store: JobStore) -> None:
    job = WalkedJob(store, submitted(ramify, 1, max_calls=5)[0]).to("searching")
    key = JobKeys(job.id).job
    route = (store.client.hget(key, "route") or b"").decode()
    store.client.hset(key, "route", route.replace("{", '{"detail": "fine", ', 1))
    store.client.hset(key, mapping={"budget:max_joules": "7", "cost:joules": "3"})
    status = ramify.status(job.id)
    assert status.route is not None
    assert status.budget is not None
    assert status.warnings == ()


@pytest.mark.parametrize("state", ["", "postponed", "done?", b"\xff"])
def test_a_caller_can_end_a_job_whatever_its_state_says(
    ramify: Ramify, client: redis.Redis, state: str | bytes
) -> None:
    job_id = submitted(ramify, 1)[0]
    client.hset(JobKeys(job_id).job, "state", state)
    assert ramify.cancel(job_id)
    assert ramify.status(job_id).state == "cancelled"
    assert not ramify.cancel(job_id)


def test_an_end_that_only_a_newer_release_knows_is_not_overwritten(ramify: Ramify, client: redis.Redis) -> None:
    job_id = submitted(ramify, 1)[0]
    client.hset(JobKeys(job_id).job, mapping={"state": "archived", "finished_at": "1800000000"})
    assert not ramify.cancel(job_id)
    assert ramify.status(job_id).state == "archived"


def test_doctor_counts_the_jobs_that_are_set_aside(client: redis.Redis, store: JobStore, settings: Settings) -> None:
    def damaged() -> tuple[bool | None, str, str]:
        check = next(check for check in job_checks(settings) if check.name == "damaged jobs")
        return check.ok, check.detail, check.fix

    assert damaged()[:2] == (True, "none")
    store.damaged.add("0a", DamagedError("its field rank is torn"))
    assert damaged() == (False, "1 cannot be read and are set aside, 1 so far", "`ramify why 0a`")
    store.damaged.remove(["0a"])
    assert damaged()[:2] == (True, "none now, 1 so far")
