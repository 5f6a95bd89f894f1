"""A backup is taken as docs/operations.md says, everything is destroyed, and fresh servers get it back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from orchestrator.access.keys import KeyStore
from orchestrator.client import Ramify
from orchestrator.reconciling import Reconciled, reconcile
from orchestrator.storing import Storing
from shared.models import Answer
from shared.settings import Settings, load_settings
from tests.faults.redis_stage import pools
from tests.support.qdrant_node import QdrantNode
from tests.support.redis_server import RedisServer
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)
NOTES = Path(__file__).parents[2] / "examples" / "notes" / "en" / "queues"
CHANGED = "redis-streams.md"
QUESTION = "What are Redis Streams good for?"
OTHER = "What does the transactional outbox do?"
LATER = "What is the code word of the streams?"


@dataclass
class Backups:
    """Two moments of one installation: `early`, and `late`, after a document has changed. Each of Redis and store.

    `kind`: of the store, as in its settings.
    """

    folder: Path
    notes: Path
    kind: str
    answers: dict[str, Answer] = field(default_factory=dict)
    later: str = ""
    waiting: list[str] = field(default_factory=list)
    ingest: str = ""
    secret: SecretStr | None = None

    def take(self, name: str, server: RedisServer, settings: Settings) -> None:
        """Redis first: what its jobs know is in the store then, whatever comes in between."""
        with server.client() as client:
            before = client.lastsave()
            client.bgsave()
            until(lambda: client.lastsave() > before, 30, "Redis has written its file", every_s=0.2)
        shutil.copy(server.folder / "dump.rdb", self.folder / f"{name}.rdb")
        Storing(settings).snapshot(self.folder / f"{name}.snapshot")

    @contextmanager
    def settings_at(self, place: Path, server: RedisServer) -> Iterator[Settings]:
        """With a fresh store there."""
        (place / "data").mkdir(mode=0o700, exist_ok=True)
        with ExitStack() as stack:
            store: dict[str, object] = {"kind": self.kind}
            if self.kind == "server":
                store["url"] = stack.enter_context(QdrantNode(place / "qdrant")).url
            yield load_settings(redis={"url": server.url}, data_dir=place / "data", store=store)

    @contextmanager
    def restored(self, redis_of: str, store_of: str) -> Iterator[tuple[RedisServer, Settings]]:
        """Fresh servers and folders with the backup of one moment each."""
        place = self.folder / f"{redis_of}-{store_of}"
        (place / "redis").mkdir(parents=True)
        shutil.copy(self.folder / f"{redis_of}.rdb", place / "redis" / "appendonly.aof")
        with RedisServer(place / "redis", lasting=True) as server, self.settings_at(place, server) as settings:
            Storing(settings).restore(self.folder / f"{store_of}.snapshot")
            yield server, settings


def ingested(client: Ramify, notes: Path) -> str:
    """The job that has put them in."""
    return [step.job_id for step in client.ingest([notes])][-1]


@pytest.fixture(scope="module", params=["embedded", "server"])
def backups(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backups:
    folder = tmp_path_factory.mktemp("backups")
    made = Backups(folder, folder / "notes", request.param)
    shutil.copytree(NOTES, made.notes)
    place = folder / "first"
    with (
        RedisServer(place / "redis", lasting=True) as server,
        made.settings_at(place, server) as settings,
        Ramify(settings) as client,
    ):
        with pools(settings):
            ingested(client, made.notes)
            ids = [client.submit(question) for question in (QUESTION, OTHER)]
            made.answers = {job_id: client.result(client.wait(job_id, 60).job_id) for job_id in ids}
            client.session("talk").append("user", "What is a dead letter?")
            made.secret = KeyStore(client.redis, settings).create("default").secret
            watched = client.watch(OTHER).id
            until(lambda: client.standing.get(watched).state.answer, 60, "the standing question is answered")
            made.take("early", server, settings)
            changed = made.notes / CHANGED
            changed.write_text(f"# Redis Streams\n\n{LATER} The code word of the streams is heliotrope.\n", "utf-8")
            made.ingest = ingested(client, made.notes)
            made.later = client.submit(LATER)
            assert "heliotrope" in client.result(client.wait(made.later, 60).job_id).summary.text
        made.waiting = [client.submit(f"Who takes message {number}?", deadline_s=600) for number in range(10)]
        made.take("late", server, settings)
    shutil.rmtree(place)
    return made


def test_everything_is_there_again(backups: Backups) -> None:
    with backups.restored("late", "late") as (_, settings), Ramify(settings) as client:
        assert {status.state for status in client.statuses(backups.waiting)} == {"queued"}
        with pools(settings):
            for job_id in backups.waiting:
                assert client.wait(job_id, 120).state == "done"
            for job_id, answer in backups.answers.items():
                assert client.result(job_id).but(stale=()) == answer
            assert [mark.path for mark in client.status(next(iter(backups.answers))).stale], "as it was marked"
            assert "heliotrope" in str(client.find("code word of the streams").resources)
            assert len(client.corpus.overview().sources) == 1
            (watched,) = client.standing.all()
            assert watched.state.answer
            assert client.session("talk").load().messages
            assert backups.secret is not None
            assert KeyStore(client.redis, settings).use(backups.secret).tenant == "default"
            found = reconcile(client)
            assert found.said == "The store is as the jobs know it."
            assert not found.lost


def reconciled(settings: Settings, client: Ramify) -> Reconciled:
    """What the command says; its marks are final once the ops pool had the answers looked at closely."""
    with pools(settings, ("search",)):
        found = reconcile(client)
    assert found.checks["default"].left >= found.checks["default"].checked > 0, "it says that they are not final"
    with pools(settings):
        until(lambda: not client.unchecked_answers(), 120, "all answers were looked at closely", every_s=0.5)
    return found


def test_a_store_of_an_earlier_backup_is_told_with_what_it_lost(backups: Backups) -> None:
    with backups.restored("late", "early") as (_, settings), Ramify(settings) as client:
        assert not client.status(backups.later).stale
        found = reconciled(settings, client)
        assert "the store is of an earlier backup than Redis" in found.said
        assert backups.ingest in {one.job_id for one in found.lost}
        assert client.status(backups.later).stale, "what it was written from is not stored"
        assert not client.status(next(iter(backups.answers))).stale, "its document is as it was again"


def test_a_redis_of_an_earlier_backup_gets_the_marks_that_it_lacks(backups: Backups) -> None:
    with backups.restored("early", "late") as (_, settings), Ramify(settings) as client:
        first, other = backups.answers
        assert not client.status(first).stale
        found = reconciled(settings, client)
        assert not found.lost
        assert client.status(first).stale, "the document that it rests on has changed since"
        assert not client.status(other).stale
