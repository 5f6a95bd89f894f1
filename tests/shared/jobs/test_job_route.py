"""How a question was read, kept with its job on a real Redis: while it is planned, and for every reader."""

from __future__ import annotations

import json

import pytest

from shared.jobs import JobStore, State
from shared.jobs.keys import JobKeys, new_id
from shared.jobs.reader import JobReader
from shared.language.routing import route_by_rules
from shared.models import JobRequest
from shared.models.route import PlannerName, Route

QUESTION = "When did the composer of the opera Vanessa die?"


def way(aggregator: str = "reasoning") -> Route:
    read = dict(route_by_rules(QUESTION))
    return Route(**read, row="multi_hop", planner=PlannerName.NESTED, strategy="multihop", aggregator=aggregator)


@pytest.fixture
def jobs(client, settings) -> JobStore:
    return JobStore(client, settings)


@pytest.fixture
def job_id(jobs) -> str:
    job_id = new_id()
    jobs.enqueue([(job_id, JobRequest(question=QUESTION))])
    return job_id


def test_given_a_job_that_is_planned_when_routed_then_every_reader_knows_the_way(jobs, job_id, client):
    assert jobs.start_planning(job_id, "me")
    assert jobs.route(job_id, way())
    assert jobs.routed(job_id) == JobReader(client).status(job_id).route == way()
    assert jobs.job(job_id).aggregator == "reasoning"
    told = [fields for _, fields in client.xrange(JobKeys(job_id).events) if fields[b"type"] == b"routed"]
    assert [json.loads(fields[b"route"])["row"] for fields in told] == ["multi_hop"]
    assert client.ttl(JobKeys(job_id).job) > 0


def test_given_another_planner_when_it_routes_again_then_its_word_holds(jobs, job_id):
    jobs.start_planning(job_id, "me")
    jobs.route(job_id, way())
    assert jobs.route(job_id, way("simple"))
    assert jobs.job(job_id).aggregator == jobs.routed(job_id).aggregator == "simple"


def test_given_a_job_that_is_not_planned_when_routed_then_nothing_is_noted(jobs, job_id):
    assert not jobs.route(job_id, way())
    jobs.start_planning(job_id, "me")
    jobs.stop(jobs.job(job_id), State.CANCELLED, "enough")
    assert not jobs.route(job_id, way())
    assert not jobs.route(new_id(), way())
    assert jobs.routed(job_id) is None


def test_given_no_leaves_when_searching_starts_then_the_body_may_run_at_once(jobs, job_id):
    jobs.start_planning(job_id, "me")
    assert jobs.start_searching(job_id, ())
    assert jobs.start_merging(job_id, "body")
