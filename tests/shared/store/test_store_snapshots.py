"""Snapshots: of an embedded store as a file that can be put back, of a server through its own ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from shared.errors import InputError, StoreError
from shared.settings import Settings
from shared.settings.store import QdrantSettings
from shared.store import BuiltWith, TenantStores, server_client
from shared.store.generations import Generations
from shared.store.snapshot_file import put_back, sha256_of, write_checksum
from shared.store.snapshots import ServerSnapshots
from tests.fakes.qdrant_server import Answer, FakeQdrant
from tests.fakes.stores import in_place
from tests.shared.store.conftest import MakePoint

CONTENT = b"a snapshot" * 1000
SUM = "61a4372d8ae0e9ae7d4bcf0b1d3a9d4fbc0a3b4a9a6dc1d1b2c8f2f4c0b4c4d6"


@pytest.fixture
def folder(tmp_path: Path, built_with: BuiltWith, make_point: MakePoint) -> Path:
    """A store with one chunk."""
    store = in_place(tmp_path / "store" / "ramify")
    store.create(built_with)
    store.upsert([make_point("saved", "a")])
    store.close()
    return tmp_path / "store" / "ramify"


def texts(folder: Path) -> set[str]:
    store = in_place(folder)
    try:
        return {hit.text for page in store.scroll(None) for hit in page}
    finally:
        store.close()


def test_what_was_saved_comes_back_and_what_was_there_is_kept(
    folder: Path, tmp_path: Path, make_point: MakePoint
) -> None:
    store = in_place(folder)
    saved = TenantStores(store.collection).snapshot(tmp_path / "out" / "saved.tar.gz")
    store.upsert([make_point("later", "b")])
    store.close()

    before = put_back(Path(saved.path), folder)

    assert texts(folder) == {"saved"}
    assert texts(before) == {"saved", "later"}
    assert saved.sha256 == sha256_of(Path(saved.path))
    assert saved.bytes < 3_000_000, "what the engine has only reserved takes no room"
    assert (tmp_path / "out" / "saved.tar.gz.sha256").read_text() == f"{saved.sha256}  saved.tar.gz\n"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["ramify", before.name]


def test_a_file_that_is_damaged_or_no_snapshot_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store" / "ramify"
    damaged, other = tmp_path / "saved.tar.gz", tmp_path / "other.tar.gz"
    damaged.write_bytes(CONTENT)
    write_checksum(damaged)
    damaged.write_bytes(CONTENT[1:])
    other.write_bytes(b"no archive")

    for path, kind, words in (
        (damaged, StoreError, "is damaged"),
        (other, InputError, "no snapshot of an embedded store"),
        (tmp_path / "none", InputError, "no such file"),
    ):
        with pytest.raises(kind, match=words):
            put_back(path, folder)
        assert list(folder.parent.iterdir()) == []


@pytest.fixture
def qdrant() -> Iterator[FakeQdrant]:
    with FakeQdrant() as server:
        yield server


@pytest.fixture
def snapshots(qdrant: FakeQdrant) -> Iterator[ServerSnapshots]:
    settings = Settings(store={"kind": "server", "url": qdrant.url})
    client = server_client(settings)
    yield ServerSnapshots(Generations(client, "ramify", QdrantSettings()), settings)
    client.close()


def listing(checksum: str) -> list[Answer]:
    """The answers of a server that has one collection with one snapshot."""
    told = {"name": "s1", "size": len(CONTENT), "checksum": checksum, "creation_time": "2026-11-23T08:00:00"}
    return [answer({"collections": [{"name": "ramify-2"}, {"name": "theirs"}]}), answer([told])]


def answer(result: Any) -> Answer:
    return Answer(body={"result": result, "status": "ok", "time": 0.1})


def test_a_snapshot_of_the_collection_in_use_is_made_and_fetched(
    qdrant: FakeQdrant, snapshots: ServerSnapshots, tmp_path: Path
) -> None:
    expected = tmp_path / "expected"
    expected.write_bytes(CONTENT)
    qdrant.script.extend([
        answer({"aliases": [{"alias_name": "ramify", "collection_name": "ramify-2"}]}),
        answer({"name": "s1", "size": 5, "checksum": "c"}),
        *listing(sha256_of(expected)),
        Answer(body=CONTENT),
    ])  # fmt: skip

    made = snapshots.create()
    fetched = snapshots.download("s1", tmp_path / "deep" / "s1")

    assert made.collection == "ramify-2"
    assert (tmp_path / "deep" / "s1").read_bytes() == CONTENT
    assert fetched.path == str(tmp_path / "deep" / "s1")
    assert [path.split("?")[0] for _, _, path in qdrant.seen] == [
        "/aliases", "/collections/ramify-2/snapshots", "/collections", "/collections/ramify-2/snapshots",
        "/collections/ramify-2/snapshots/s1",
    ]  # fmt: skip


@pytest.mark.parametrize("whole", [True, False])
def test_one_that_was_to_go_into_a_file_does_not_stay_on_the_server(
    qdrant: FakeQdrant, snapshots: ServerSnapshots, tmp_path: Path, *, whole: bool
) -> None:
    (expected := tmp_path / "expected").write_bytes(CONTENT)
    qdrant.script.extend([
        answer({"aliases": [{"alias_name": "ramify", "collection_name": "ramify-2"}]}),
        answer({"name": "s1", "size": 5, "checksum": "c"}),
        *listing(sha256_of(expected)), Answer(body=CONTENT if whole else CONTENT[:-1]),
        *listing(sha256_of(expected)), answer(True),
    ])  # fmt: skip
    with nullcontext() if whole else pytest.raises(StoreError, match="is damaged"):
        snapshots.fetched(tmp_path / "s1")
    assert (tmp_path / "s1").exists() == whole
    assert [(how, path.split("?")[0]) for _, how, path in qdrant.seen][-1] == (
        "DELETE", "/collections/ramify-2/snapshots/s1",
    )  # fmt: skip


def test_what_was_damaged_on_the_way_is_no_file(qdrant: FakeQdrant, snapshots: ServerSnapshots, tmp_path: Path) -> None:
    qdrant.script.extend([*listing(SUM), Answer(body=CONTENT)])
    with pytest.raises(StoreError, match="is damaged: its SHA-256"):
        snapshots.download("s1", tmp_path / "s1")
    qdrant.script.extend(listing(SUM))
    with pytest.raises(InputError, match="no such snapshot"):
        snapshots.download("s2", tmp_path / "s2")
    assert list(tmp_path.iterdir()) == []
