"""What another release has written is read, job by job and message by message; and what this one writes, by that one.

The data were written by `python -m tests.record_release` with the release that names their folder.
"""

from __future__ import annotations

import base64
import json
import re
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from shared import contract
from shared.contract import Queue, TaskMessage, TaskName, read_message, read_request
from shared.errors import MessageVersionError
from shared.jobs import JobStore
from shared.models.find import FindRequest
from shared.models.plan import Node
from shared.settings import Settings
from shared.tasks import message_faults
from tests.support.kept_keys import Kept, put_back, read_kept
from tests.support.shapes import differences, shapes

RELEASES = sorted(path for path in (Path(__file__).parents[1] / "data" / "releases").iterdir() if path.is_dir())
#: How far the job is in each of the recorded stages, and the queue with its next message.
STAGES = {
    "queued": Queue.PLAN,
    "planned": Queue.SEARCH,
    "searched": Queue.RERANK,
    "reranked": Queue.MERGE,
    "merged": Queue.RERANK,
}
_JOB = re.compile(r"ramify:\{([0-9a-f]{21})\}:job")
of_releases = pytest.mark.parametrize("recorded", RELEASES, ids=lambda path: path.name)


def kept(client: redis.Redis, recorded: Path, stage: str) -> tuple[Kept, list[str]]:
    """The recorded keys, put before this release, and the ids of the jobs among them."""
    found = read_kept(recorded / f"{stage}.json")
    put_back(client, found, time.time())
    return found, [match[1] for key in found if (match := _JOB.fullmatch(key))]


def messages(client: redis.Redis, queue: Queue) -> Iterator[tuple[str, dict[str, object]]]:
    """Task and argument of each message of a job that waits in a queue, read as a worker reads it."""
    for raw in client.lrange(queue.value, 0, -1):
        message, fault = message_faults.read_message(raw)
        assert not fault
        body = base64.b64decode(message["body"])
        assert not message_faults.read_task(message["headers"], body)[1]
        (given,), _, _ = json.loads(body)
        if "job_id" in given:  # else it is what the planner asks the search pool
            yield message["headers"]["task"], given


@of_releases
@pytest.mark.parametrize("stage", STAGES)
def test_a_job_of_another_release_goes_on_from_where_it_is(
    client: redis.Redis, settings: Settings, recorded: Path, stage: str
) -> None:
    _, (job_id,) = kept(client, recorded, stage)
    jobs = JobStore(client, settings)
    waiting = list(messages(client, STAGES[stage]))
    assert waiting, "what the next pool is to do"
    for task, raw in waiting:
        message = read_message(raw)
        begun = jobs.work.begin(job_id, message.node_id or task, task)
        assert begun.job is not None
        assert begun.job.remaining() > 60
        if task == TaskName.SEARCH_LEAF:
            assert Node.of_record(begun.node).id == message.node_id
        if task == TaskName.RERANK_LEAF:
            found = jobs.candidates(job_id, message.node_id or "", begun.candidates)
            assert found is not None
            assert found.hits
        if task == TaskName.MERGE_TREE:
            assert {leaf.status for leaf in jobs.results(job_id).values()} == {"done"}
        if task == TaskName.RERANK_ROOT:
            pool = jobs.pool(job_id)
            assert pool is not None
            assert pool.hits


@of_releases
def test_what_another_release_has_answered_and_keeps_is_there(
    client: redis.Redis, settings: Settings, recorded: Path
) -> None:
    _, ids = kept(client, recorded, "ended")
    with Ramify(settings) as ramify:
        (batch,) = ramify.batches()
        assert batch.done + batch.degraded + batch.duplicate == batch.lines == 3
        lists = 0
        for status in ramify.statuses(ids):
            assert status.state == "done", status.warnings
            assert not [warning for warning in status.warnings if "cannot be read" in warning]
            if status.ingest is not None:
                assert status.ingest.added
                continue
            answer = ramify.result(status.job_id)
            assert answer.results
            assert ramify.manifest(status.job_id).intact
            assert ramify.tree(status.job_id).nodes
            lists += bool(list(ramify.rows(status.job_id))) if answer.table else 0
        assert lists
        (watched,) = ramify.standing.all()
        assert watched.state.answer in ids
        assert ramify.session("talk").load().messages
        assert [key.name for key in KeyStore(client, settings).list()] == ["recorded"]


@of_releases
def test_what_this_release_writes_is_read_by_that_one_and_the_other_way(recorded: Path) -> None:
    """given the forms of that release / then only fields with a default have come or gone, or it is said why not."""
    allowed = tomllib.loads((recorded / "allowed.toml").read_text("utf-8"))
    found = dict(differences(json.loads((recorded / "shapes.json").read_text("utf-8")), shapes()))
    assert {name: why for name, why in found.items() if name not in allowed} == {}, "see CONTRIBUTING.md"
    assert allowed.keys() <= found.keys(), "what is allowed and does not differ"


def test_differences_name_what_the_other_release_cannot_read() -> None:
    field = {"type": "string"}
    old = {
        "Kind": {"words": ["a", "b"]},
        "Node": {"fields": {"id": field, "kind": field, "note": field}, "needed": ["id"]},
        "Gone": {"words": ["a"]},
    }
    same = {**old, "Node": {"fields": {"id": field, "kind": field, "colour": field}, "needed": ["id"]}, "New": {}}
    assert list(differences(old, same)) == [], "fields with a default come and go"
    new = {
        "Kind": {"words": ["b", "c"]},
        "Node": {"fields": {"kind": {"type": "integer"}, "colour": field}, "needed": ["colour"]},
    }
    assert [name for name, _ in differences(old, new)] == [
        "Kind",
        "Kind",
        "Node.kind",
        "Node.id",
        "Node.colour",
        "Gone",
    ]


def test_a_request_says_only_what_it_asks_for_and_is_refused_where_that_is_not_known() -> None:
    asked = FindRequest(query="red", top_n=3).model_dump(mode="json", exclude_defaults=True)
    assert asked == {"query": "red", "top_n": 3}
    assert read_request(FindRequest, asked).top_n == 3
    with pytest.raises(MessageVersionError, match="colour is not known to this worker") as refused:
        read_request(FindRequest, {**asked, "colour": "red"})
    assert refused.value.other_release
    with pytest.raises(MessageVersionError, match="not a request of Ramify: query"):
        read_request(FindRequest, {"query": 5})


def test_a_version_is_read_a_release_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert contract.MESSAGE_VERSION in contract.READ_VERSIONS
    wire = {**TaskMessage(job_id="0123456789abc").wire(), "v": 2}
    with pytest.raises(MessageVersionError, match="version 2 is not spoken here"):
        read_message(wire)
    monkeypatch.setattr(contract, "READ_VERSIONS", frozenset({1, 2}))
    assert read_message(wire).job_id == "0123456789abc"
