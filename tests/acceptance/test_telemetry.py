"""A job on a real stack as a collector, the logs and Prometheus see it."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from orchestrator.client import Ramify
from orchestrator.server.metrics import ServerMetrics
from shared.tasks import health
from shared.tracing import spans
from tests.fakes.otlp_receiver import OtlpReceiver, ReceivedSpan
from tests.support.waiting import until

LEAF_TASKS = ("search.leaf", "rerank.leaf")


def test_given_a_job_when_it_runs_then_it_is_one_trace_of_all_leaves_whose_logs_and_counts_agree(
    with_models: Ramify, collector: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
):
    word = uuid4().hex
    spans.configure(with_models.settings)
    job_id = with_models.submit(f"How do Redis Streams and RabbitMQ differ? {word}", summary=True, deadline_s=40)
    assert with_models.wait(job_id, 60).state == "done"
    answer = with_models.result(job_id)

    # Every process sends its spans in batches of its own, in no order.
    leaves = {leaf.node_id for leaf in answer.leaves}
    until(lambda: collected(collector.of_job(job_id), leaves), 20, "the spans of all steps are sent")
    found = collector.of_job(job_id)
    assert len({one.trace_id for one in found}) == 1
    by_id = {one.span_id: one for one in found}
    (submit,) = (one for one in found if one.name == "submit")
    (plan,) = (one for one in found if one.name == "plan.job")
    assert (submit.parent_id, plan.service) == ("", "ramify-plan")
    assert all(one.parent_id in by_id for one in found if one is not submit), "no span hangs in the air"
    assert plan.parent_id == submit.span_id
    for task in LEAF_TASKS:
        of_task = [one for one in found if one.name == task]
        assert {one.attributes["ramify.node_id"] for one in of_task} == leaves
        assert {by_id[one.parent_id].name for one in of_task} <= {"plan.job", "plan.refine", "merge.tree"}
    called = {(one.attributes["ramify.provider"], by_id[one.parent_id].name) for one in found if is_call(one)}
    assert {("llm", "plan.job"), ("llm", "merge.summarise"), ("embedding", "search.leaf")} <= called
    assert word not in str(found), "no question stands in a span"

    logs = with_models.settings.data_dir / "logs"
    lines = [json.loads(line) for line in (logs / "plan.log").read_text().splitlines() if line.startswith("{")]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    monkeypatch.setenv("RAMIFY_REDIS__URL", with_models.settings.redis.url.get_secret_value())
    assert health.main("merge") == 0, "the health check of containers"
    metrics = ServerMetrics(with_models.settings)
    try:
        until(lambda: counted(metrics) >= len(leaves), 20)
    finally:
        metrics.close()


def collected(found: list[ReceivedSpan], leaves: set[str]) -> bool:
    names = {one.name for one in found}
    by_task = ({one.attributes["ramify.node_id"] for one in found if one.name == task} for task in LEAF_TASKS)
    return {"submit", "plan.job", "merge.summarise"} <= names and all(nodes >= leaves for nodes in by_task)


def is_call(one: ReceivedSpan) -> bool:
    return "ramify.provider" in one.attributes


def counted(metrics: ServerMetrics) -> float:
    """Leaves that were searched, as Prometheus reads it."""
    labels = {"pool": "search", "task": "search.leaf", "outcome": "done"}
    return metrics.registry.get_sample_value("ramify_task_runs_total", labels) or 0.0
