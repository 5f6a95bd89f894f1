"""Dead letters from the command line: read, replayed as new work, dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.client import Ramify
from orchestrator.retries.dead_letters import replay_document
from shared.errors import InputError
from shared.jobs import JobStore, codec
from shared.jobs.dead_letters import DeadLetterStore
from shared.models import RawDocument
from shared.models.status import DeadLetter
from shared.settings import Settings
from tests.fakes.index_pool import IndexPool
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


def document(tenant: str = "default", text: str = "# A\n") -> tuple[DeadLetter, bytes]:
    raw = RawDocument(source="/s", path="a.md", identity="/s/a.md", suffix=".md", content=text.encode(), tenant=tenant)
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


@pytest.mark.parametrize("text", ["# A\n", "---\n"])
def test_a_replayed_document_is_put_in_by_a_job_of_its_own(
    dead: DeadLetterStore, client: redis.Redis, settings: Settings, text: str
) -> None:
    dead_letter, content = document(text=text)
    dead.add(dead_letter, content)
    pool = IndexPool(client, settings, reads=False)
    with pool.serving():
        done = command("replay", dead_letter.id, "--json")
    fails = text != "# A\n"
    assert done.exit_code == fails, done.stderr
    assert pool.paths() == ([] if fails else ["a.md"])
    assert dead.count() == fails, "a dead letter stays until its document is in"
    if fails:
        assert "a.md could not be indexed" in done.stderr
    else:
        assert json.loads(done.stdout)["replayed"][0]["document"]["chunks"] == 1
    pool.close()


@pytest.mark.parametrize("content", [b"no blob", document("another")[1]])
def test_a_damaged_document_or_one_of_another_tenant_is_not_replayed(
    ramify: Ramify, client: redis.Redis, content: bytes
) -> None:
    dead_letter, _ = document()
    with pytest.raises(InputError, match=r"damaged|another tenant"):
        replay_document(ramify._ingesting, dead_letter, content)
    assert ramify.jobs() == []
