"""Work that kills its worker each time is retired, with the evidence, and everything beside it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client import Ramify
from shared.connections.heartbeat import alive_workers
from shared.contract import Queue, queue_keys
from shared.jobs import connect
from shared.jobs.dead_letters import DeadLetterStore
from shared.models import DocumentStatus
from tests.acceptance.conftest import NOTES, ingested, launched
from tests.faults.poisoned import WORD, write_poison
from tests.support.waiting import until

PATIENCE_S = 100


@pytest.fixture(scope="module")
def ramify(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ramify]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(write_poison(tmp_path_factory.mktemp("poison"))))
        for client in launched(tmp_path_factory.mktemp("stack")):
            yield ingested(client, NOTES / "en" / "queues")


def dead(ramify: Ramify) -> DeadLetterStore:
    return DeadLetterStore(connect(ramify.settings), ramify.settings)


@pytest.mark.timeout(PATIENCE_S + 60)
def test_a_leaf_that_kills_its_worker_is_retired_and_its_neighbours_are_answered(ramify: Ramify) -> None:
    plan = ["What is a visibility timeout?", f"What is {WORD}?", "What is vacuum?", "缓存击穿是什么？"]
    first = ramify.submit("How do queues lose work?", subqueries=plan)
    others = ramify.submit_many([f"How does Redis lose messages, case {n}?" for n in range(20)])
    began = time.monotonic()
    job = ramify.wait(first, PATIENCE_S)
    assert (job.state, job.leaves_done, job.leaves_failed) == ("done", 4, 1)
    answer = ramify.result(first)
    assert answer.partial
    assert any("killed its worker" in warning for warning in job.warnings), job.warnings
    (dead_letter,) = dead(ramify).list()
    assert (dead_letter.kind, dead_letter.job_id, dead_letter.item) == ("work", first, "0.2")
    assert WORD in dead_letter.what
    assert 3 <= len({line.split(" ")[1] for line in dead_letter.proof}) == len(dead_letter.proof), (
        "each worker is named"
    )
    for job_id in others.job_ids:
        assert ramify.wait(job_id, PATIENCE_S).state == "done"
        assert not ramify.result(job_id).partial, "what died beside it is innocent"
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.timeout(PATIENCE_S + 60)
def test_a_document_that_kills_its_worker_is_retired_and_its_batch_goes_in(ramify: Ramify, tmp_path: Path) -> None:
    for number in range(8):
        text = WORD if number == 3 else "plain words about queues"
        (tmp_path / f"page{number}.md").write_text(f"# Page {number}\n\n{text} {number}\n", encoding="utf-8")
    outcomes = [outcome for step in ramify.ingest(tmp_path) for outcome in step.outcomes]
    (failed,) = [outcome for outcome in outcomes if outcome.status is DocumentStatus.FAILED]
    assert failed.path.endswith("page3.md")
    rest = {Path(outcome.path).name for outcome in outcomes} - {"page3.md"}
    assert rest == {f"page{number}.md" for number in range(8) if number != 3}
    found = ramify.find("plain words about queues", top_n=20)
    assert {Path(hit.path).name for hit in found.hits} >= rest
    assert "killed its worker" in failed.reason
    (dead_letter,) = [dead_letter for dead_letter in dead(ramify).list() if dead_letter.kind == "document"]
    assert (dead_letter.what, dead_letter.has_content) == (failed.path, True)
    assert 3 <= len({line.split(" ")[1] for line in dead_letter.proof}) == len(dead_letter.proof)


@pytest.mark.timeout(PATIENCE_S + 60)
def test_given_bad_entries_in_every_queue_then_no_worker_ends_and_jobs_are_done(ramify: Ramify) -> None:
    client = connect(ramify.settings)
    known = [worker.decode() for worker in client.zrange("ramify:workers", 0, -1)]
    workers = alive_workers(client, known)
    for queue in Queue:
        for raw in (b"not json", b"{}", b"[[]]"):
            client.lpush(queue.value, raw)
        client.set(queue_keys(queue)[-1], "of another program")
    job_id = ramify.submit("What is a dead letter exchange?")
    assert ramify.wait(job_id, PATIENCE_S).state == "done"
    until(lambda: len(ramify.dead.quarantined()) >= 4 * len(Queue), 20)
    assert ramify.wait(ramify.submit("What is a quorum queue?"), PATIENCE_S).state == "done"
    assert alive_workers(client, workers, heartbeats=False) == workers, "the same processes"
