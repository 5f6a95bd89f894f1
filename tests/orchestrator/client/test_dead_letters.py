"""Dead letters from the command line: read, replayed as new work, dropped."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.dead_letters import replay_document
from shared.errors import InputError
from shared.jobs import JobStore, codec
from shared.jobs.dead_letters import DeadLetterStore
from shared.jobs.inbox import DocumentBatch, Inbox, IngestReport
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.status import DeadLetter
from shared.settings import Settings
from shared.tasks.app import make_app
from tests.fakes.walked_jobs import WalkedJob

EVIL = "what is \x1b[31mred\x1b[0m \u202eback?"
PROOF = ("1795200000.5 search@host:12:abcdef01-5:1 search.leaf", "no mark at all")


@pytest.fixture
def dead(client: redis.Redis, settings: Settings) -> DeadLetterStore:
    return DeadLetterStore(client, settings)


@pytest.fixture(autouse=True)
def _shell(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAMIFY_REDIS__URL", settings.redis.url.get_secret_value())


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead", *arguments], env={"COLUMNS": "200"})


def work(job_id: str, item: str = "0.1", tenant: str = "default") -> DeadLetter:
    return DeadLetter(
        id=f"{job_id}:{item}", kind="work", at=1_795_200_000.0, tenant=tenant, job_id=job_id, item=item,
        task="search.leaf", what=EVIL, reason="it killed its worker 3 times", proof=PROOF,
    )  # fmt: skip


def document(tenant: str = "default") -> tuple[DeadLetter, bytes]:
    raw = RawDocument(source="/s", path="a.md", identity="/s/a.md", suffix=".md", content=b"# A\n", tenant=tenant)
    dead_letter = DeadLetter(
        id="660b00000000000000001:0/1", kind="document", at=1_795_200_001.0, tenant="default",
        job_id="660b00000000000000001", item="a.md", task="index.documents", what="a.md", reason="it killed its worker",
    )  # fmt: skip
    return dead_letter, codec.pack(raw)


def retired(ramify: Ramify, settings: Settings, client: redis.Redis, dead: DeadLetterStore, *items: str) -> str:
    """A job that is partial, since these leaves were retired."""
    walked = WalkedJob(JobStore(client, settings), ramify.submit("why?")).to("searching")
    walked.merging(failed=items)
    walked.summarising()
    walked.done(partial=True)
    for item in items:
        dead.add(work(walked.id, item))
    return walked.id


def test_dead_letters_are_listed_and_shown_without_control_characters(dead: DeadLetterStore) -> None:
    assert command("list").stdout == ""
    dead.add(work("660b00000000000000000"))
    dead.add(*document())
    listed, shown = command("list").stdout, command("show", "660b00000000000000000:0.1").stdout
    for text in (listed, shown):
        assert "what is [31mred[0m back?" in text
        assert not {"\x1b", "\u202e"} & set(text)
    assert listed.index("a.md") < listed.index("0.1"), "the newest first"
    for part in ("search@host pid 12", "no mark at all", "it killed its worker 3 times", "2026-11-20 18:40:00 UTC"):
        assert part in shown
    found = json.loads(command("list", "-n", "1", "--json").stdout)
    assert (found["total"], len(found["dead_letters"])) == (2, 1)
    assert json.loads(command("show", "660b00000000000000000:0.1", "--json").stdout)["proof"] == list(PROOF)
    assert command("show", "x").exit_code == 2


def test_a_replay_of_work_is_a_new_job_without_its_deaths(
    ramify: Ramify, settings: Settings, client: redis.Redis, dead: DeadLetterStore
) -> None:
    job_id = retired(ramify, settings, client, dead, "0.1", "0.2")
    done = command("replay", f"{job_id}:0.1", f"{job_id}:0.2", "--json")
    assert done.exit_code == 0, done.stderr
    first, second = json.loads(done.stdout)["replayed"]
    assert first["job_id"] == second["job_id"], "one job replays both"
    assert ramify.status(first["job_id"]).retry_of == job_id
    assert JobStore(client, settings).work.items(first["job_id"]) == {}
    assert dead.count() == 0


def test_what_cannot_be_replayed_stays_and_says_why(
    ramify: Ramify, settings: Settings, client: redis.Redis, dead: DeadLetterStore
) -> None:
    running = ramify.submit("why?")
    dead.add(work(running))
    dead.add(work("660b00000000000000000"))
    dead.add(work(retired(ramify, settings, client, dead), "0.2", tenant="another"))
    dead.add(document()[0])
    done = command("replay", "--all")
    assert done.exit_code == 2
    for said in ("it is still queued", "has expired", "its document was not kept"):
        assert said in done.stderr
    assert dead.count() == 4


def test_some_refused_and_some_replayed_is_partial(
    ramify: Ramify, settings: Settings, client: redis.Redis, dead: DeadLetterStore
) -> None:
    job_id = retired(ramify, settings, client, dead, "0.1")
    done = command("replay", f"{job_id}:0.1", "unknown")
    assert done.exit_code == 3
    assert f"{job_id}:0.1 replayed as" in done.stdout
    assert "there is no such dead letter" in done.stderr


def test_dead_letters_are_dropped_by_name_or_all(dead: DeadLetterStore) -> None:
    for number in range(5):
        dead.add(work(f"660b0000000000000000{number}"))
    assert command("drop", "660b00000000000000000:0.1").exit_code == 0
    assert command("drop", "660b00000000000000000:0.1").exit_code == 2
    for wrong in (("drop",), ("drop", "x", "--all"), ("replay",)):
        assert command(*wrong).exit_code == 2
    assert dead.count() == 4
    assert len(json.loads(command("drop", "--all", "--json").stdout)["dropped"]) == 4
    assert dead.count() == 0


def answering(client: redis.Redis, status: DocumentStatus, seen: list[DocumentBatch]) -> Thread:
    """An index queue that answers two batches: the document's and the order to finish."""

    def run() -> None:
        for _ in range(400):
            for name in client.scan_iter("ramify:*:inbox"):
                inbox = Inbox(client, name.decode().split("{")[1].split("}")[0])
                for batch in sorted(inbox.waiting()):
                    if batch == 0:
                        content = inbox.documents(0)
                        assert content is not None
                        seen.append(content)
                        outcome = DocumentOutcome(path="a.md", doc_id="d", status=status, chunks=1, reason="it is bad")
                        inbox.report(IngestReport(batch=0, outcomes=(outcome,)))
                    else:
                        inbox.report(IngestReport(batch=batch))
                        return
            over.wait(0.01)

    from threading import Event

    over = Event()
    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("status", "code"), [(DocumentStatus.ADDED, 0), (DocumentStatus.FAILED, 1)])
def test_a_replayed_document_goes_to_the_index_queue_as_an_ingest_does(
    dead: DeadLetterStore, client: redis.Redis, status: DocumentStatus, code: int
) -> None:
    dead_letter, content = document()
    dead.add(dead_letter, content)
    seen: list[DocumentBatch] = []
    thread = answering(client, status, seen)
    done = command("replay", dead_letter.id, "--json")
    thread.join(timeout=10)
    assert done.exit_code == code, done.stderr
    assert [raw.content for raw in seen[0].documents] == [b"# A\n"]
    assert seen[0].tenant == "default"
    assert dead.count() == (1 if code else 0), "a dead letter stays until its document is in"
    if code:
        assert "it is bad" in done.stderr
    else:
        assert json.loads(done.stdout)["replayed"][0]["document"]["chunks"] == 1


@pytest.mark.parametrize("content", [b"no blob", document("another")[1]])
def test_a_damaged_document_or_one_of_another_tenant_is_not_replayed(
    client: redis.Redis, settings: Settings, content: bytes
) -> None:
    dead_letter, _ = document()
    app = make_app(settings)
    with pytest.raises(InputError, match=r"damaged|another tenant"):
        replay_document(app, client, dead_letter, content)
    app.close()
    assert client.llen("index") == 0
