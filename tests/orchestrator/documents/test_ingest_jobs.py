"""An ingest is a job: on a real Redis and an embedded store, with the pools' tasks on a thread of the test."""

from __future__ import annotations

import json
import runpy
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import redis

from orchestrator.client import Ramify
from orchestrator.documents.hand_over import HandOver
from orchestrator.documents.ingest import IngestOptions, Progress
from orchestrator.documents.watching import FolderWatch, keep_fresh
from orchestrator.reaper.reaper import Reaper
from shared.connections.heartbeat import worker_id
from shared.errors import IngestUnderWayError, InputError, LaneFullError, NotFoundError, RamifyError
from shared.jobs import JobStore, State, codec
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.keys import IngestKeys, JobKeys
from shared.jobs.work import Attempt
from shared.models import DocumentStatus, RawDocument
from shared.models.ingest import HandedOver, IngestItem
from shared.settings import Settings
from shared.settings.path_key import key_file
from tests.fakes.index_pool import IndexPool
from workers.index.pipeline import Indexer

_PLACE, _, _MARK, _SPACE = worker_id().rsplit(":", 3)
#: A process of this host that is gone: no process has this number.
GONE = f"{_PLACE}:4194305:{_MARK}:{_SPACE}"


@pytest.fixture
def pool(client: redis.Redis, settings: Settings) -> Iterator[IndexPool]:
    pool = IndexPool(client, settings)
    yield pool
    pool.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for number in range(5):
        write(root / f"{number}.md", f"# Page {number}\n\nvacuum {number}\n")
    return root


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def told(steps: list[Progress]) -> dict[str, list[str]]:
    by_status: dict[str, list[str]] = {}
    for outcome in sorted((out for step in steps for out in step.outcomes), key=lambda out: out.path):
        by_status.setdefault(outcome.status.value, []).append(outcome.path)
    return by_status


def lose(pool: IndexPool, job_id: str, item: str) -> None:
    """The worker that has begun the item is killed."""
    keys = JobKeys(job_id)
    pool.client.hset(keys.work, f"busy:{item}", str(Attempt(time.time() + 0.1, GONE, "index.documents")))


def reap(pool: IndexPool, store: JobStore) -> None:
    Reaper(pool.app, store).run()


def test_given_files_of_this_machine_when_ingested_then_names_travel_and_a_second_time_nothing_is_read(
    ramify: Ramify, pool: IndexPool, notes: Path
) -> None:
    write(notes / "lines.jsonl", "".join(json.dumps({"id": n, "text": f"line {n}"}) + "\n" for n in range(3)))
    write(notes / "odd.xyz", "no reader")
    (notes / "bad.md").write_bytes(b"\xff\xff")
    job_id = ramify.start_ingest(notes, prune=True)
    blobs = list[bytes]()
    while pool.step():
        blobs += pool.client.hvals(IngestKeys(job_id).inbox)
    assert not any(b"vacuum" in codec.decompressed(blob.partition(b" ")[2], IngestItem) for blob in blobs)
    steps = list(ramify.follow_ingest(job_id))
    pages, records = [f"notes/{n}.md" for n in range(5)], [f"notes/lines.jsonl#{n}" for n in range(3)]
    assert told(steps) == {"added": [*pages, *records], "failed": ["notes/bad.md"]}
    assert (steps[-1].read, steps[-1].total, steps[-1].state) == (7, 7, "done")
    assert pool.paths() == [*pages, *records]
    found = ramify.ingest_result(job_id)
    assert (found.counts.added, found.counts.failed, found.partial) == (8, 1, True)
    assert [(one.path, bool(one.reason)) for one in found.failures] == [("notes/bad.md", True)]
    assert found.passed_over == ("1 .xyz: no reader for them",)

    (notes / "0.md").unlink()
    write(notes / "1.md", "# Page 1\n\nother\n")
    (notes / "bad.md").unlink()
    with pool.serving():
        steps = list(ramify.ingest(notes, prune=True))
    assert told(steps) == {"changed": pages[1:2], "removed": pages[:1], "unchanged": [*pages[2:], *records]}
    assert pool.client.exists(IngestKeys(steps[-1].job_id).inbox, IngestKeys(steps[-1].job_id).seen) == 0
    assert all(pool.client.ttl(key) > 0 for key in pool.client.scan_iter(f"ramify:{{{job_id}}}:*"))


def test_given_no_key_of_the_data_folder_when_ingested_then_bytes_travel_and_the_job_is_the_same(
    client: redis.Redis, settings: Settings, ramify: Ramify, notes: Path
) -> None:
    pool = IndexPool(client, settings, reads=False)
    (notes / "bad.md").write_bytes(b"\xff\xff")
    write(notes / "lines.jsonl", "".join(json.dumps({"id": n, "text": f"line {n}"}) + "\n" for n in range(3)))
    write(notes / "odd.xyz", "no reader")
    assert not ramify.reads_by_name()
    with pool.serving():
        first = list(ramify.ingest(notes, prune=True))
        (notes / "0.md").unlink()
        write(notes / "1.md", "# Page 1\n\nother\n")
        second = list(ramify.ingest(notes, prune=True))
        third = list(ramify.ingest(notes / "2.md"))
    pages, records = [f"notes/{n}.md" for n in range(5)], [f"notes/lines.jsonl#{n}" for n in range(3)]
    assert told(first) == {"added": [*pages, *records], "failed": ["notes/bad.md"]}
    assert (first[-1].read, first[-1].total) == (7, 7)
    assert [said for step in first for said in step.passed_over] == ["1 .xyz: no reader for them"]
    assert ramify.ingest_result(first[-1].job_id).passed_over == ("1 .xyz: no reader for them",)
    expected = {"changed": pages[1:2], "removed": pages[:1], "unchanged": [*pages[2:], *records]}
    assert told(second) == expected | {"failed": ["notes/bad.md"]}
    assert told(third) == {"unchanged": [pages[2]]}, "what need not be sent is told of as well"
    pool.close()


def test_given_a_request_or_an_item_that_names_files_without_a_seal_then_nothing_is_read(
    ramify: Ramify, pool: IndexPool, store: JobStore, notes: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    write(secret / "key.md", "# Key\n\nhidden\n")
    job_id = ramify.start_ingest(notes)
    request = store.job(job_id).request  # type: ignore[union-attr]
    forged = request.model_copy(update={"ingest": request.ingest.model_copy(update={"sources": (str(secret),)})})
    pool.client.hset(JobKeys(job_id).job, "request", forged.model_dump_json(exclude_defaults=True))
    pool.run_all()
    status = ramify.status(job_id)
    assert status.state == "failed"
    assert "without the seal of this stack's data folder, so nothing was read" in (status.error or "")

    job_id = ramify.start_ingest(notes)
    for _ in range(2):  # the plan, the walk
        pool.step()
    item = IngestItem(tenant="default", source=str(secret), files=(str(secret / "key.md"),))
    pool.client.hset(IngestKeys(job_id).inbox, "0.1", codec.pack(item))
    pool.run_all()
    assert "without the seal" in (ramify.status(job_id).error or "")
    assert pool.paths() == []


def test_given_a_key_that_others_may_read_then_no_files_are_named(ramify: Ramify, pool: IndexPool) -> None:
    assert ramify.reads_by_name()
    assert key_file(pool.settings).stat().st_mode & 0o077 == 0
    key_file(pool.settings).chmod(0o644)
    assert not ramify.reads_by_name()


def test_given_an_open_ingest_when_its_files_are_ingested_again_then_it_is_refused_by_its_id_or_waits(
    ramify: Ramify, pool: IndexPool, notes: Path
) -> None:
    first = ramify.start_ingest(notes)
    for path in (notes, notes / "1.md", notes.parent):
        with pytest.raises(IngestUnderWayError, match=first):
            ramify.start_ingest(path, prune=True)
    elsewhere = ramify.start_ingest(notes, namespace="other")
    other = ramify.start_ingest(notes, tenant="acme")
    assert len({first, elsewhere, other}) == 3
    pool.run_all()
    second = ramify.start_ingest(notes)
    assert ramify.status(second).state == "queued"
    with pool.serving():
        steps = list(ramify.ingest(notes))  # that one is waited for
    assert {step.job_id for step in steps if step.waits} == {second}
    assert told(steps) == {"unchanged": [f"notes/{n}.md" for n in range(5)]}


def test_given_a_lane_that_is_full_when_ingested_then_its_files_are_free_for_the_next(
    ramify: Ramify, pool: IndexPool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ramify._submitter, "submit", lambda _: ([], LaneFullError("full", [])))
        with pytest.raises(LaneFullError):
            ramify.start_ingest(notes)
    assert ramify.start_ingest(notes)


def test_given_an_ingest_that_is_cancelled_while_documents_are_put_in_then_these_are_counted_once(
    ramify: Ramify, pool: IndexPool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.index.items.BATCH_DOCUMENTS", 2)
    index = Indexer.index

    def cancelled(self: Indexer, batch: Sequence[RawDocument]) -> object:
        ramify.cancel(job_id)
        return index(self, batch)

    monkeypatch.setattr(Indexer, "index", cancelled)
    job_id = ramify.start_ingest(notes)
    pool.run_all()
    status = ramify.status(job_id)
    assert status.ingest is not None
    assert (status.state, status.ingest.added, status.ingest.read) == ("cancelled", 2, 2)
    assert len(pool.paths()) == 2


def test_given_a_cancelled_ingest_then_what_is_in_stays_and_nothing_is_pruned(
    ramify: Ramify, pool: IndexPool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.index.items.BATCH_DOCUMENTS", 1)
    with pool.serving():
        list(ramify.ingest(notes))
    for number in range(1, 5):
        write(notes / f"{number}.md", f"# Page {number}\n\nother {number}\n")
    (notes / "0.md").unlink()
    job_id = ramify.start_ingest(notes, prune=True)
    while ramify.status(job_id).leaves_done < 4:  # walk, group, two of four files
        pool.step()
    assert ramify.cancel(job_id)
    pool.run_all()
    status = ramify.status(job_id)
    assert (status.state, status.ingest.changed, status.ingest.removed) == ("cancelled", 2, 0)  # type: ignore[union-attr]
    assert "notes/0.md" in pool.paths()
    with pytest.raises(RamifyError, match="cancelled"):
        list(ramify.follow_ingest(job_id))
    assert "2 of 4 files" in ramify.why(job_id).said
    made = ramify.retry(job_id)
    pool.run_all()
    steps = list(ramify.follow_ingest(made.job_id or ""))
    assert told(steps) == {
        "changed": ["notes/3.md", "notes/4.md"], "unchanged": ["notes/1.md", "notes/2.md"], "removed": ["notes/0.md"]
    }  # fmt: skip


def test_given_a_worker_that_dies_then_the_reaper_sends_its_item_again_and_a_document_that_kills_is_retired(
    ramify: Ramify, pool: IndexPool, store: JobStore, notes: Path
) -> None:
    job_id = ramify.start_ingest(notes)
    for _ in range(3):  # the plan, the walk, the group of files
        pool.step()
    assert pool.take() == ("index.documents", {"v": 1, "job_id": job_id, "node_id": "0.1.1"})
    lose(pool, job_id, "0.1.1")
    reap(pool, store)
    pool.step()
    assert ramify.status(job_id).leaves_total == 8, "the batch is taken apart"
    for _ in range(3):
        while found := pool.take():
            if found[1]["node_id"] == "0.1.1.2":
                lose(pool, job_id, "0.1.1.2")
            else:
                pool.run(*found)
        reap(pool, store)
    pool.run_all()
    steps = list(ramify.follow_ingest(job_id))
    (failed,) = [out for step in steps for out in step.outcomes if out.status is DocumentStatus.FAILED]
    assert failed.path == "notes/1.md"
    assert "killed its worker 3 times" in failed.reason
    assert pool.paths() == [f"notes/{n}.md" for n in (0, 2, 3, 4)]
    (dead_letter,) = DeadLetterStore(pool.client, pool.settings).list()
    assert (dead_letter.kind, dead_letter.what, dead_letter.job_id) == ("document", "notes/1.md", job_id)
    assert len(dead_letter.proof) == 3
    kept = DeadLetterStore(pool.client, pool.settings).content(dead_letter.id)
    assert codec.unpack(kept, RawDocument).content == b"# Page 1\n\nvacuum 1\n"
    with pool.serving():
        replayed = ramify.dead.replay(dead_letter.id)
    assert replayed.document is not None
    assert replayed.document.status is DocumentStatus.ADDED


def test_given_a_client_that_is_killed_while_it_hands_over_then_what_it_handed_over_is_in(
    client: redis.Redis, settings: Settings, ramify: Ramify, store: JobStore
) -> None:
    pool = IndexPool(client, settings, reads=False)
    options = IngestOptions("default", prune=True)
    job_id = ramify._ingesting.submit(HandedOver.DOCUMENTS, ["wiki"], options)
    pool.run_all()
    hand_over = HandOver(ramify._ingesting, job_id, options)
    raw = RawDocument(source="wiki", path="wiki/a.md", identity="wiki:a", suffix=".md", content=b"# A\n\nvacuum\n")
    assert list(hand_over.documents("wiki", (raw, None))) == [1]
    pool.run_all()
    assert "has not handed over all documents yet" in ramify.why(job_id).said
    reap(pool, store)
    assert not pool.step(), "it may still come"
    long_ago = {"updated_at": "1000.0"}
    client.hset(JobKeys(job_id).job, mapping=long_ago)
    client.hset(JobKeys(job_id).work, "sent:0", "1000.0")
    client.delete("ramify:{reaper}:lock")
    reap(pool, store)
    pool.run_all()
    status = ramify.status(job_id)
    assert (status.state, status.partial, status.ingest.added) == ("done", True, 1)  # type: ignore[union-attr]
    assert any("before it had handed all documents over" in warning for warning in status.warnings)
    with pytest.raises(RamifyError, match="takes no more documents"):
        hand_over.put(IngestItem(tenant="default", source="wiki", removed=("wiki:a",)))
    pool.close()


def test_given_pushed_documents_when_changed_and_deleted_then_the_corpus_follows(
    ramify: Ramify, pool: IndexPool
) -> None:
    pages = [{"id": str(n), "content": f"# Page {n}\n\nvacuum {n}", "metadata": {"tags": ["x"]}} for n in range(3)]
    known = {"title": "T", "date": "2026-05-01", "Owner": "Ada"}
    titled = {"id": "t", "content": "plain", "suffix": ".txt", "path": "team/t.txt", "metadata": known}
    with pool.serving():
        job_id = ramify.upsert([*pages, titled], source="wiki")
        assert ramify.wait(job_id).state == "done"
        assert pool.paths() == ["wiki/0", "wiki/1", "wiki/2", "wiki/team/t.txt"]
        (found,) = [hit for page in pool.store.scroll(None) for hit in page if hit.path.endswith("t.txt")]
        assert (found.title, found.date) == ("T", "2026-05-01")
        again = ramify.upsert([pages[0] | {"content": "# Other"}, pages[1]], source="wiki")
        assert ramify.wait(again).ingest.changed == 1  # type: ignore[union-attr]
        assert ramify.status(again).ingest.unchanged == 1  # type: ignore[union-attr]
        gone = ramify.wait(ramify.delete(["0", "unknown"], source="wiki"))
    assert gone.ingest.removed == 1  # type: ignore[union-attr]
    assert pool.paths() == ["wiki/1", "wiki/2", "wiki/team/t.txt"]
    for wrong in ({"id": "", "content": "x"}, {"id": "a"}, {"id": "a", "content": "x", "suffix": ".exe"}):
        with pytest.raises(InputError):
            ramify.upsert([wrong], source="wiki")
    with pytest.raises(InputError):
        ramify.upsert([], source="/etc")


def test_given_a_pushed_box_of_mail_when_pushed_shorter_emptied_or_deleted_then_its_messages_follow(
    ramify: Ramify, pool: IndexPool
) -> None:
    mails = [f"From a@b Mon Nov 23 04:00:00 2026\nMessage-ID: <{n}@x>\nSubject: S{n}\n\nvacuum\n\n" for n in range(5)]
    box = {"id": "mb", "suffix": ".mbox"}

    def removed(job_id: str) -> int:
        return ramify.wait(job_id).ingest.removed  # type: ignore[union-attr]

    def push(count: int) -> str:
        return ramify.upsert([box | {"content": "".join(mails[:count])}], source="wiki")

    with pool.serving():
        assert removed(push(5)) == 0
        assert removed(push(2)) == 3
        assert pool.paths() == ["wiki/mb#0@x", "wiki/mb#1@x"]
        assert removed(ramify.delete(["mb"], source="wiki")) == 2
        push(5)
        assert removed(push(0)) == 5
    assert pool.paths() == []


def test_given_a_file_that_was_emptied_when_ingested_again_then_its_text_is_gone(
    ramify: Ramify, pool: IndexPool, notes: Path
) -> None:
    with pool.serving():
        list(ramify.ingest(notes))
        before = pool.paths()
        write(notes / "1.md", "")
        outcomes = [out for step in ramify.ingest(notes) for out in step.outcomes]
    assert [out.path for out in outcomes if out.status == "removed"] == ["notes/1.md"]
    assert set(before) - set(pool.paths()) == {"notes/1.md"}


@pytest.mark.parametrize("deadline_s", [-5.0, 0.0, float("nan"), 1e9])
def test_given_a_deadline_that_is_none_when_ingested_then_it_is_refused_in_a_sentence(
    ramify: Ramify, notes: Path, deadline_s: float
) -> None:
    with pytest.raises(InputError, match="at most 86400 seconds"):
        ramify.start_ingest(notes, deadline_s=deadline_s)


def test_given_files_that_changed_when_these_are_ingested_then_no_other_is_looked_at(
    ramify: Ramify, pool: IndexPool, notes: Path
) -> None:
    write(notes / "old" / "a.md", "# A\n\nlocks\n")
    with pool.serving():
        list(ramify.ingest(notes))
        write(notes / "1.md", "# Page 1\n\nother\n")
        write(notes / "2.md", "# Page 2\n\nunseen\n")
        write(notes / ".git" / "x.md", "# X\n")
        (notes / "0.md").unlink()
        (notes / "old" / "a.md").unlink()
        (notes / "old").rmdir()
        write(notes / "new" / "b.md", "# B\n\nfresh\n")
        changed = [notes / name for name in ("1.md", "0.md", "old", "new", ".git/x.md")]
        steps = list(ramify.ingest_changes(notes, changed))
    assert told(steps) == {
        "changed": ["notes/1.md"], "removed": ["notes/0.md", "notes/old/a.md"], "added": ["notes/new/b.md"]
    }  # fmt: skip
    assert steps[-1].total == 2


def test_given_an_ingest_when_asked_as_a_question_or_by_another_tenant_then_it_says_so(
    ramify: Ramify, pool: IndexPool, notes: Path, settings: Settings
) -> None:
    job_id = ramify.start_ingest(notes, tenant="acme")
    (listed,) = ramify.jobs()
    assert listed.question == f"ingest {notes}"
    assert listed.ingest is not None
    with pytest.raises(RamifyError, match="puts documents in"):
        ramify.result(job_id)
    with Ramify(settings, tenant="other") as other:
        for ask in (other.ingest_result, lambda id_: list(other.follow_ingest(id_))):
            with pytest.raises(NotFoundError):
                ask(job_id)
    with pytest.raises(InputError, match="documents come in by"):
        ramify.submit({"question": "why?", "ingest": {"by": "paths", "sources": ["/etc"]}})
    question = ramify.submit("why?")
    with pytest.raises(RamifyError, match="is a question"):
        ramify.ingest_result(question)
    assert ramify.status(job_id).state == State.QUEUED


def test_given_the_connector_of_the_examples_when_run_again_then_the_corpus_is_the_database(
    ramify: Ramify, pool: IndexPool, tmp_path: Path
) -> None:
    connector = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "connector.py"))
    database = sqlite3.connect(tmp_path / "wiki.db")
    database.execute("CREATE TABLE articles (id INTEGER, title TEXT, body TEXT, day TEXT, owner TEXT)")
    rows = [(n, f"Title {n}", f"Body {n}", "2026-05-01", "Ada") for n in range(3)]
    database.executemany("INSERT INTO articles VALUES (?, ?, ?, ?, ?)", rows)
    database.commit()
    with pool.serving():
        pushed, _ = connector["sync"](ramify, tmp_path / "wiki.db")
        database.execute("DELETE FROM articles WHERE id = 1")
        database.execute("UPDATE articles SET body = 'Other' WHERE id = 2")
        database.commit()
        again, gone = connector["sync"](ramify, tmp_path / "wiki.db")
    assert (pushed.added, again.changed, again.unchanged, gone.removed) == (3, 1, 1, 1)
    assert pool.paths() == ["wiki/0", "wiki/2"]


def test_given_a_watched_folder_when_files_change_then_they_are_ingested_and_refusals_are_tried_again(
    ramify: Ramify, pool: IndexPool, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.documents.watching.AGAIN_S", 0.05)
    with pool.serving(), FolderWatch(notes, poll=True) as watched:
        time.sleep(0.5)  # the first look at all files
        list(ramify.ingest(notes))
        blocking = ramify._ingesting.submit(HandedOver.DOCUMENTS, [str(notes)], IngestOptions("default"))
        write(notes / "new.md", "# New\n\nfresh\n")
        write(notes / ".hidden.md", "# Not\n")
        (notes / "0.md").unlink()
        rounds = keep_fresh(ramify, watched)
        assert blocking in next(rounds).waits
        ramify.cancel(blocking)
        steps = list[Progress]()
        while len(told(steps)) < 2:
            steps += next(rounds).steps
    assert told(steps) == {"added": ["notes/new.md"], "removed": ["notes/0.md"]}
