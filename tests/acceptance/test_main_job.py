"""The main job on the embedded stack without any model: real Redis, real worker processes, the sample corpus."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
import redis

from orchestrator.client import Ramify
from shared.contract import Queue
from shared.errors import InputError, NotFoundError, RamifyError
from shared.models import Answer, Facet
from shared.models.manifest import Manifest
from shared.models.replay import ReplayStage
from tests.support.waiting import until

QUESTIONS = ["如何优化数据库查询性能", "Compare Redis Streams and RabbitMQ for our order pipeline."]


def answer_to(ramify: Ramify, question: str, **options: object) -> Answer:
    job_id = ramify.submit(question, **options)
    assert ramify.wait(job_id, 60).state == "done"
    return ramify.result(job_id)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_gives_a_tree_leaf_results_merged_results_and_citations_that_exist(
    ramify: Ramify, question: str
) -> None:
    answer = answer_to(ramify, question)

    facets = {node.facet for node in answer.tree}
    assert Facet.ORIGINAL in facets
    assert len(answer.tree) >= 3
    assert [leaf.node_id for leaf in answer.leaves] == [n.id for n in answer.tree if n.kind == "leaf"]
    assert all(leaf.hits for leaf in answer.leaves)
    assert 0 < len(answer.results) <= 20
    found_by = {source.node_id for hit in answer.results for source in hit.sources}
    assert found_by <= {leaf.node_id for leaf in answer.leaves}
    assert len(found_by) == len(answer.leaves), "every leaf keeps a place in the merge"
    numbers = {int(n) for n in re.findall(r"\[(\d+)\]", answer.summary.text)}
    assert numbers
    numbers |= {number for step in answer.steps for number in step.passages}
    assert numbers == {citation.number for citation in answer.summary.citations}
    by_chunk = {hit.chunk_id: hit for hit in answer.results}
    for citation in answer.summary.citations:
        assert citation.chunk_id in by_chunk
        assert citation.path == by_chunk[citation.chunk_id].path
    cited = answer.summary.citations[0]
    assert ramify.corpus.text(cited.doc_id)[cited.start : cited.end] == cited.quote
    (mark,) = ramify.corpus.cited(answer.job_id, cited.number).marks
    assert (mark.start, mark.end) == (cited.start, cited.end)
    assert answer.coverage == f"{len(answer.leaves)} of {len(answer.leaves)} leaves answered"
    assert not answer.partial
    assert answer.cost.llm_calls == 0
    assert any("No LLM is configured" in warning for warning in answer.warnings)


def test_the_evidence_of_a_known_question_is_found(ramify: Ramify) -> None:
    answer = answer_to(ramify, QUESTIONS[1])
    evidence = ("streams-vs-rabbitmq", "adr-007-redis-streams", "adr-014-rabbitmq", "moving-to-rabbitmq")
    assert sum(any(name in hit.path for name in evidence) for hit in answer.results[:5]) >= 4


def test_filters_reach_every_leaf(ramify: Ramify) -> None:
    answer = answer_to(ramify, QUESTIONS[1], filters={"paths": ["notes/zh/"], "after": "2025-01-01"})
    hits = [hit for leaf in answer.leaves for hit in leaf.hits]
    assert hits
    assert all(hit.path.startswith("notes/zh/") for hit in hits)
    assert all(hit.date and hit.date >= "2025-01-01" for hit in hits)


@pytest.mark.parametrize("start", ReplayStage)
def test_a_replay_from_any_stage_with_nothing_changed_gives_the_same_record_and_a_changed_setting_another(
    ramify: Ramify, start: ReplayStage
) -> None:
    before = answer_to(ramify, "Compare Redis Streams and RabbitMQ: why was one chosen, and what went wrong?")
    made = ramify.replay(before.job_id, start)
    assert ramify.wait(made.job_id, 60).state == "done"
    first, again = ramify.manifest(before.job_id), ramify.manifest(made.job_id)
    assert again.digest == first.digest == made.digest
    assert ramify.status(made.job_id).replay_of == before.job_id
    assert (again.run.replay_of, again.run.replayed_from) == (first.digest, start)
    told = {"job_id", "cost", "timings_ms", "leaves"}
    assert ramify.result(made.job_id).model_dump(exclude=told) == before.model_dump(exclude=told)

    changes = {"aggregators": {"reasoning": {"sentences": 1}}, "summary": {"unsupported": "mark"}}
    other = ramify.replay(before.job_id, start, settings=changes)
    assert ramify.wait(other.job_id, 60).state == "done"
    assert ramify.manifest(other.job_id).record.settings.values == first.record.settings.values | {
        "aggregators.reasoning.sentences": 1, "summary.unsupported": "mark",
    }  # fmt: skip
    assert ramify.manifest(other.job_id).digest != made.digest


def test_a_manifest_is_replayed_by_whoever_has_the_file_and_what_is_not_kept_is_refused(ramify: Ramify) -> None:
    before = answer_to(ramify, QUESTIONS[0])
    found = Manifest.model_validate_json(ramify.manifest(before.job_id).model_dump_json())
    for start in (ReplayStage.PLAN, ReplayStage.SEARCH):
        made = ramify.replay(found, start)
        assert ramify.wait(made.job_id, 60).state == "done"
        assert ramify.manifest(made.job_id).digest == found.digest
    with pytest.raises(InputError, match="a manifest holds no passages: replay it from plan or from search"):
        ramify.replay(found, ReplayStage.MERGE)
    with pytest.raises(InputError, match="the pools hold it"):
        ramify.replay(before.job_id, ReplayStage.PLAN, settings={"store": {"collection": "other"}})
    with pytest.raises(InputError, match="choose from plan, search, rerank, merge, summary"):
        ramify.replay(before.job_id, "fusion")
    listed = answer_to(ramify, "List all notes tagged redis.")
    with pytest.raises(InputError, match="a list is read anew"):
        ramify.replay(listed.job_id, ReplayStage.MERGE)
    made = ramify.replay(listed.job_id, ReplayStage.PLAN)
    assert ramify.wait(made.job_id, 60).state == "done"
    assert ramify.manifest(made.job_id).digest == made.digest


def test_top_n_caps_the_merged_results(ramify: Ramify) -> None:
    assert len(answer_to(ramify, QUESTIONS[0], top_n=3).results) == 3


def test_a_batch_of_two_pages_ends_its_counts_add_up_and_nothing_is_left_behind(ramify: Ramify) -> None:
    topics = ["Redis", "RabbitMQ", "vacuum", "backup", "缓存", "慢查询", "库存", "索引", "on-call", "chunking"]
    questions = [f"What do we know about {topics[n % 10]}, part {n}?" for n in range(190)]
    batch = ramify.submit_many([*questions, "", {"question": "x", "mode": "nope"}, *["如何优化索引？"] * 10])
    assert len(batch.job_ids) == 200
    assert [rejected.line for rejected in batch.rejected] == [191, 192]

    until(lambda: ramify.batch_status(batch.batch_id).terminal, 100, "the batch ends", 0.5)
    status = ramify.batch_status(batch.batch_id)
    assert status.outcomes() == {"done": 200}
    assert (status.enqueued, status.finished, status.partial, status.rejected) == (200, 200, 0, 2)
    for job_id in batch.job_ids[::20]:
        job = ramify.status(job_id)
        assert job.leaves_done == job.leaves_total > 0
        assert job.leaves_failed == 0
    client = redis.Redis.from_url(ramify.settings.redis.url.get_secret_value())
    without_ttl = [key for key in client.keys("*") if client.ttl(key) == -1 and not key.startswith(b"_kombu.binding")]
    assert without_ttl == []
    assert [key for queue in Queue for key in client.keys(f"{queue.value}*")] == []
    client.close()


def test_what_waits_for_too_long_expires_unplanned_and_the_rest_has_all_of_its_time(ramify: Ramify) -> None:
    batch = ramify.submit_many([f"What expires in week {n}?" for n in range(150)], queue_limit_s=1, deadline_s=60)
    until(lambda: ramify.batch_status(batch.batch_id).terminal, 90, "the batch ends", 0.2)
    status = ramify.batch_status(batch.batch_id)
    assert status.outcomes() == {"done": status.done, "expired": status.expired}
    assert (status.done + status.expired, status.done > 0, status.expired > 0) == (150, True, True)
    for job_id in batch.job_ids:
        job = ramify.status(job_id)
        if job.state == "expired":
            assert set(job.timings_ms) == {"queued", "total"}, "neither planned nor searched"
            assert (job.leaves_total, job.deadline_at) == (0, None)
            assert "waited for 1 s" in (job.error or "")
        else:
            assert job.deadline_at is not None
            assert job.deadline_at - job.created_at >= 60, "its wait took none of it"


def test_interactive_work_overtakes_a_batch(ramify: Ramify) -> None:
    batch = ramify.submit_many([f"What is known about topic {n}?" for n in range(150)])
    job_id = ramify.submit("What is a write-ahead log?")
    assert ramify.wait(job_id, 30).state == "done"
    assert not ramify.batch_status(batch.batch_id).terminal
    for member in batch.job_ids:
        ramify.cancel(member)
    assert ramify.batch_status(batch.batch_id).terminal


def test_a_cancelled_job_ends_at_once_and_stays_so(ramify: Ramify) -> None:
    filler = ramify.submit_many(["What is known?"] * 20)
    job_id = ramify.submit("Why is it slow?", lane="batch")
    assert ramify.cancel(job_id)
    assert not ramify.cancel(job_id)
    status = ramify.status(job_id)
    assert (status.state, status.error) == ("cancelled", "cancelled by the caller")
    with pytest.raises(RamifyError, match="cancelled"):
        ramify.result(job_id)
    assert [event.data["state"] for event in ramify.stream(job_id, 5) if event.type == "state"][-1] == "cancelled"
    for member in filler.job_ids:
        ramify.wait(member, 30)
    assert ramify.status(job_id).state == "cancelled"


def test_the_same_idempotency_key_gives_the_same_job(ramify: Ramify) -> None:
    ids = {ramify.submit("Who is on call?", idempotency_key="once") for _ in range(3)}
    assert len(ids) == 1


def test_a_deadline_that_cannot_be_met_ends_the_job_with_a_word(ramify: Ramify) -> None:
    job_id = ramify.submit("How do we restore the orders database?", deadline_s=0.001)
    status = ramify.wait(job_id, 60)
    assert status.state in {"failed", "expired"}
    assert "time was up" in str(status.error) or "deadline" in str(status.error)


def test_vec_only_without_a_model_fails_with_the_setting_to_change(ramify: Ramify) -> None:
    status = ramify.wait(ramify.submit("Who owns checkout?", mode="vec_only"), 30)
    assert status.state == "failed"
    assert "embedding.provider" in str(status.error)


def test_find_answers_without_a_job(ramify: Ramify) -> None:
    before = len(ramify.jobs(200))
    found = ramify.find("缓存穿透", top_n=5)
    assert 0 < len(found.hits) <= 5
    assert found.timings_ms.keys() == {trace.stage for trace in found.stages}
    assert "缓存" in found.hits[0].text
    assert any("keyword search only" in warning for warning in found.warnings)
    assert len(ramify.jobs(200)) == before
    with pytest.raises(InputError, match="top_n"):
        ramify.find("x", top_n=0)


def test_ids_that_do_not_exist_are_named(ramify: Ramify) -> None:
    for ask in (ramify.status, ramify.result, ramify.cancel, ramify.batch_status):
        with pytest.raises(NotFoundError, match="nosuchjob"):
            ask("nosuchjob")


def ingested(ramify: Ramify, folder: Path, *, prune: bool = False) -> dict[str, list[str]]:
    """An ingest's outcomes: status -> names of files."""
    found: dict[str, list[str]] = {}
    for step in ramify.ingest([folder], prune=prune):
        for outcome in step.outcomes:
            found.setdefault(outcome.status.value, []).append(Path(outcome.path).name)
    return found


def test_a_second_ingest_changes_nothing_and_prune_removes_what_is_gone(ramify: Ramify, tmp_path: Path) -> None:
    ingest = partial(ingested, ramify, tmp_path)
    (tmp_path / "zebra.md").write_text("# Zebrafish\n\nThe quokkawump sleeps in the reeds.", encoding="utf-8")
    (tmp_path / "other.md").write_text("# Other\n\nSomething about a plain topic.", encoding="utf-8")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00bad\x00")
    first = ingest()
    assert sorted(first["added"]) == ["other.md", "zebra.md"]
    assert first["failed"] == ["bad.md"]
    assert sorted(ingest()["unchanged"]) == ["other.md", "zebra.md"]
    failures = [one for one in ramify.corpus.overview().failures if one.sources == (str(tmp_path),)]
    assert [Path(document.path).name for one in failures for document in one.documents] == ["bad.md"]

    (tmp_path / "zebra.md").write_text("# Zebrafish\n\nThe florbaxian moved to the hills.", encoding="utf-8")
    assert ingest()["changed"] == ["zebra.md"]
    assert "florbaxian" in ramify.find("florbaxian").hits[0].text
    assert not any("quokkawump" in hit.text for hit in ramify.find("quokkawump").hits)

    (tmp_path / "zebra.md").unlink()
    assert "removed" not in ingest()
    assert ingest(prune=True)["removed"] == ["zebra.md"]
    assert not any("florbaxian" in hit.text for hit in ramify.find("florbaxian").hits)
    (other,) = ramify.corpus.remove(ramify.corpus.chosen([f"{tmp_path.name}/other.md"]))
    assert Path(other.path).name == "other.md"
    assert ingest()["added"] == ["other.md"], "what was removed is no known file"


def test_a_line_that_a_long_file_no_longer_has_is_removed_when_the_ingest_ends(ramify: Ramify, tmp_path: Path) -> None:
    lines = [json.dumps({"id": n, "text": f"Line {n}.", "padding": "x" * 400_000}) + "\n" for n in range(4)]
    (tmp_path / "long.jsonl").write_text("".join(lines), encoding="utf-8")
    assert len(ingested(ramify, tmp_path)["added"]) == 4
    (tmp_path / "long.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    assert ingested(ramify, tmp_path)["removed"] == ["long.jsonl#0"], "it travels in pieces"


def test_a_part_of_a_folder_ingested_alone_keeps_its_path_and_is_pruned_with_the_folder(
    ramify: Ramify, tmp_path: Path
) -> None:
    root = tmp_path / "garden"
    (root / "beds").mkdir(parents=True)
    file = root / "beds" / "a.md"
    file.write_text("# Beds\n\nThe snozzberry likes shade.", encoding="utf-8")
    (root / "b.md").write_text("# Else\n\nNothing much.", encoding="utf-8")

    def ingest(path: Path, *, prune: bool = False) -> list[str]:
        return [o.status.value for step in ramify.ingest([path], prune=prune) for o in step.outcomes]

    assert ingest(root) == ["added", "added"]
    assert ingest(file) == ["unchanged"]
    file.write_text("# Beds\n\nThe snozzberry likes sun.", encoding="utf-8")
    assert ingest(root / "beds") == ["changed"]
    assert ramify.find("snozzberry").hits[0].path == "garden/beds/a.md"
    file.unlink()
    assert sorted(ingest(root, prune=True)) == ["removed", "unchanged"]
    assert not any("snozzberry" in hit.text for hit in ramify.find("snozzberry").hits)
