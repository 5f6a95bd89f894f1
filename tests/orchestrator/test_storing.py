"""`ramify store` over an embedded store, with and without a search worker that has it open."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient
from typer.testing import CliRunner

from orchestrator import storing as module
from orchestrator.cli.main import app
from orchestrator.storing import Storing
from shared.errors import InputError, StoreInUseError
from shared.settings import Settings, data_folder, load_settings
from shared.settings.store import QdrantSettings
from shared.store import BuiltWith, ChunkStore
from shared.store.generations import Generations
from shared.store.migration import MigrationOptions
from shared.store.server import ServerStore
from tests.fakes.stores import OpenedStore, open_store
from tests.shared.store import conftest as stores
from tests.support.redis_server import free_port
from workers.corpus.replies import store_reply
from workers.search.resources import SearchResources

MakePoint = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")
make_point = stores.make_point
BUILT = BuiltWith(sparse="bm25:multilingual+code:v1", avg_len=20.0, dense="test:8", dim=8)


@pytest.fixture
def storing(tmp_path: Path) -> Storing:
    settings = load_settings(data_dir=tmp_path / "data", store={"qdrant": {"shards": 2}})
    data_folder.made(settings)
    return Storing(settings)


@pytest.fixture
def filled(storing: Storing, make_point: MakePoint) -> Storing:
    store = open_store(storing.settings)
    store.create(BUILT)
    store.upsert([make_point("saved", "a"), make_point("too", "b")])
    store.close()
    return storing


def texts(store: OpenedStore | ChunkStore) -> set[str]:
    return {hit.text for page in store.scroll(None) for hit in page}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a server that is the client's local mode."""
    client = QdrantClient(":memory:")
    monkeypatch.setattr(client, "close", lambda: None)
    monkeypatch.setattr(module, "server_client", lambda _: client)
    monkeypatch.setattr(module, "Generations", lambda *given: Generations(*given[:2], QdrantSettings(), indexed=False))
    return load_settings(store={"kind": "server", "url": "http://127.0.0.1:9"})


def on(server: Settings) -> ChunkStore:
    return ChunkStore(ServerStore(module.server_client(server), "ramify", indexed=False), "default")


def test_without_a_stack_the_store_is_opened_here(filled: Storing, make_point: MakePoint, server: Settings) -> None:
    def ramify(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["--data-dir", str(filled.settings.data_dir), "store", *arguments])

    found = filled.status()
    assert (found.kind, found.chunks, found.tenants, found.ignored) == ("embedded", 2, 1, ("store.qdrant.shards",))
    assert found.warnings == ("the embedded store has none of store.qdrant.shards: they are for a server",)

    saved = json.loads(ramify("snapshot", "create", "--json").stdout)["path"]
    assert saved in ramify("snapshot", "list").stdout
    store = open_store(filled.settings)
    store.upsert([make_point("later", "c")])
    with pytest.raises(StoreInUseError):
        filled.restore(Path(saved))
    store.close()
    assert json.loads(ramify("status", "--json").stdout)["chunks"] == 3

    (filled.folder / "meta.json").write_text("{")  # a damaged one, too
    assert ramify("status").exit_code == 1
    assert "what was there is in" in ramify("snapshot", "restore", saved).stdout
    assert "2 chunks of 1 tenants" in ramify("status").stdout

    assert filled.migrate_to(server, MigrationOptions(settle_s=0), lambda _: None).switched
    assert texts(on(server)) == {"saved", "too"}
    with pytest.raises(InputError, match="leave out --to"):
        Storing(server).migrate_to(server, MigrationOptions(), print)
    assert "give one of them" in ramify("migrate", "--cancel", "--drop-old").stderr
    assert "should be a valid URL" in ramify("migrate", "--to", "nowhere").stderr


def test_with_a_stack_the_search_worker_is_asked(
    filled: Storing, tmp_path: Path, make_point: MakePoint, server: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the snapshots; what comes while one is copied to a server is copied as well."""
    resources = SearchResources(filled.settings)
    monkeypatch.setattr(module, "connection", lambda settings: settings)
    monkeypatch.setattr(module, "make_app", nullcontext)

    def call(_app: object, settings: Any, _name: object, request: Any, _timeout_s: float) -> str:
        return store_reply(resources, settings.data_dir, request.model_dump(mode="json")).model_dump_json()

    def tell(_: object) -> None:
        resources.store("default").upsert([make_point("meanwhile", "c")])

    monkeypatch.setattr(module, "call_pool", call)
    for name, found in {
        "connect": nullcontext(),
        "reachable": nullcontext(),
        "workers": [],
        "alive_workers": {"one"},
    }.items():
        monkeypatch.setattr(module, name, lambda *_, found=found, **__: found)
    assert filled.status().chunks == 2
    saved = filled.snapshot(tmp_path / "there" / "saved.tar.gz")
    assert saved.path == str(tmp_path / "there" / "saved.tar.gz")
    empty = load_settings(data_dir=tmp_path / "empty")
    Storing(empty).restore(Path(saved.path))
    assert data_folder.fault_of(empty) == "", "made for this user alone"
    with pytest.raises(StoreInUseError):
        filled.restore(Path(saved.path))

    monkeypatch.setattr(module, "_COPIES", 2)
    assert filled.migrate_to(server, MigrationOptions(settle_s=0), tell).switched

    assert texts(on(server)) == {"saved", "too", "meanwhile"}
    assert filled.snapshots() == []
    assert [path.name for path in filled.settings.data_dir.iterdir() if path.name.startswith(".migrate")] == []
    assert store_reply(resources, tmp_path, {"snapshot": "../../elsewhere.tar.gz"}).error
    resources.close()


def test_what_is_for_a_server_says_so(storing: Storing) -> None:
    for call in (
        storing.init, storing.cancel_migration, lambda: storing.drop_old(print),
        lambda: storing.migrate(MigrationOptions(), print), lambda: storing.download("a", Path("b")),
    ):  # fmt: skip
        with pytest.raises(InputError, match="is for a Qdrant server"):
            call()


def test_given_nothing_at_the_address_when_migrated_then_that_is_said_at_once_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAMIFY_DATA_DIR", str(tmp_path / "data"))
    url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    done = CliRunner().invoke(app, ["store", "migrate", "--to", url])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert f"Qdrant does not answer while connecting to {url}" in done.stderr
    assert time.monotonic() - began < 20, "no patience before the first answer"
    assert not [one for one in caplog.records if one.name == "stamina"]
