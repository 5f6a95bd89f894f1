"""What the store holds whole need not travel: files are known by their bytes, and by all that makes chunks of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from shared.models import RawDocument
from shared.models.ingest import FileHash, FileHashes
from shared.settings import Settings
from shared.store import ChunkStore
from workers.index.documents import document_id
from workers.index.dry_run import DryRun
from workers.index.pipeline import Indexer

ROOT = "/notes"


def raw(name: str, text: str, source: str = ROOT, namespace: str = "default", line_offset: int = 0) -> RawDocument:
    return RawDocument(
        source=source, path=f"notes/{name}", identity=f"{ROOT}/{name}", suffix=Path(name).suffix,
        content=text.encode(), namespace=namespace, line_offset=line_offset,
    )  # fmt: skip


def hashes(*batch: RawDocument) -> FileHashes:
    return FileHashes(
        source=batch[0].source,
        namespace=batch[0].namespace,
        files=tuple(
            FileHash(
                identity=item.identity, digest=hashlib.sha256(item.content).hexdigest(), line_offset=item.line_offset
            )
            for item in batch
        ),
    )


def jsonl(*texts: str) -> str:
    return "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts))


def test_given_an_empty_store_when_asked_about_then_everything_must_travel(indexer: Indexer) -> None:
    assert indexer.split_known(hashes(raw("a.md", "a"), raw("b.md", "b"))) == ([], [0, 1])


def test_given_indexed_files_when_asked_about_again_then_only_the_changed_one_must_travel(indexer: Indexer) -> None:
    batch = [raw("a.md", "# A\n\na"), raw("b.md", "b"), raw("zh.txt", "缓存雪崩"), raw("c.jsonl", jsonl("x", "y"))]
    indexed, _ = indexer.index(batch)
    known, wanted = indexer.split_known(hashes(*batch))
    assert wanted == []
    assert {(out.path, out.doc_id) for out in known} == {(out.path, out.doc_id) for out in indexed}
    assert {(out.status.value, out.chunks) for out in known} == {("unchanged", 0)}

    batch[1] = raw("b.md", "other")
    assert indexer.split_known(hashes(*batch))[1] == [1]
    indexer.index([batch[1]])
    assert indexer.split_known(hashes(*batch))[1] == []


@pytest.mark.parametrize("change", [{"target_chars": 300}, {"max_chars": 5000}, {"max_document_bytes": 2000}])
def test_given_other_chunking_when_asked_about_then_all_must_travel(
    indexer: Indexer, store: ChunkStore, settings: Settings, change: dict[str, int]
) -> None:
    batch = [raw("a.md", "a")]
    indexer.index(batch)
    other = settings.model_copy(update={"chunking": settings.chunking.model_copy(update=change)})
    assert Indexer(store, None, other).split_known(hashes(*batch)) == ([], [0])


def test_given_another_release_when_asked_about_then_all_must_travel(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [raw("a.md", "a")]
    indexer.index(batch)
    monkeypatch.setattr("workers.index.units.INDEX_VERSION", 10_000)
    assert indexer.split_known(hashes(*batch)) == ([], [0])


def test_given_another_namespace_when_asked_about_then_it_must_travel(indexer: Indexer) -> None:
    indexer.index([raw("a.md", "a")])
    assert indexer.split_known(hashes(raw("a.md", "a", namespace="team"))) == ([], [0])


def test_given_other_bytes_with_the_same_text_when_indexed_then_they_are_known_from_then_on(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([raw("a.md", "one\ntwo")])
    windows = raw("a.md", "one\r\ntwo")
    assert indexer.split_known(hashes(windows))[1] == [0]
    (outcome,), _ = indexer.index([windows])
    assert outcome.status.value == "unchanged"
    assert indexer.split_known(hashes(windows))[1] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.md", "---\ndate: soon\n---\nbody"), ("a.jsonl", jsonl("x") + "{broken\n"), ("a.jsonl", jsonl("x") * 2)],
)
def test_given_something_to_tell_when_asked_about_then_it_travels_each_time_and_is_told(
    indexer: Indexer, name: str, text: str
) -> None:
    for _ in range(2):
        outcomes, _ = indexer.index([raw(name, text)])
        assert any(outcome.reason for outcome in outcomes)
        assert indexer.split_known(hashes(raw(name, text)))[1] == [0]


def test_given_one_changed_piece_when_asked_about_then_all_pieces_of_the_file_travel(indexer: Indexer) -> None:
    pieces = [raw("c.jsonl", jsonl("x")), raw("c.jsonl", '{"id": "k", "text": "y"}\n', line_offset=1)]
    indexer.index([*pieces, raw("a.md", "a")])
    assert indexer.split_known(hashes(*pieces))[1] == []
    changed = raw("c.jsonl", '{"id": "k", "text": "z"}\n', line_offset=1)
    known, wanted = indexer.split_known(hashes(pieces[0], raw("a.md", "a"), changed))
    assert wanted == [0, 2]
    assert [outcome.path for outcome in known] == ["notes/a.md"]


def test_given_a_torn_document_when_asked_about_then_it_travels_and_is_made_whole(
    indexer: Indexer, store: ChunkStore
) -> None:
    batch = [raw("a.md", "# A\n\nzero\n\n# B\n\none")]
    indexer.index(batch)
    second = next(hit for page in store.scroll(None) for hit in page if hit.ordinal == 1)
    store.delete_chunks(document_id(f"{ROOT}/a.md", "default", "default"), [second.chunk_id])
    assert indexer.split_known(hashes(*batch)) == ([], [0])
    indexer.index(batch)
    assert indexer.split_known(hashes(*batch))[1] == []
    assert sorted(hit.text for page in store.scroll(None) for hit in page) == ["one", "zero"]


def test_given_a_part_of_its_root_when_asked_about_then_it_is_known_but_not_from_another_root(indexer: Indexer) -> None:
    indexer.index([raw("sub/a.md", "a")])
    known, wanted = indexer.split_known(hashes(raw("sub/a.md", "a", source=f"{ROOT}/sub")))
    assert (wanted, [outcome.path for outcome in known]) == ([], ["notes/sub/a.md"])
    assert indexer.split_known(hashes(raw("sub/a.md", "a", source="/")))[1] == [0], "it moves to the larger root"


def test_given_nothing_written_when_finished_then_lengths_and_links_are_left_alone(
    indexer: Indexer, store: ChunkStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer.index([raw("a.md", "a")])
    indexer.finish()
    done: list[str] = []
    monkeypatch.setattr("workers.index.pipeline.refit", lambda *_: done.append("refit"))
    monkeypatch.setattr("workers.index.pipeline.update_edges", lambda *_: done.append("settle"))
    again = Indexer(store, None, settings)
    assert again.finish(written=False) == []
    assert done == []
    again.finish(written=True)
    assert done == ["refit", "settle"]


def test_given_an_ingest_killed_before_its_end_when_finished_by_the_next_then_all_is_done(
    indexer: Indexer, store: ChunkStore, settings: Settings
) -> None:
    indexer.index([raw("a.md", "[[b]]"), raw("b.md", "text")])  # and then the process is gone
    Indexer(store, None, settings).finish(written=False)
    assert {hit.path: hit.backlinks for page in store.scroll(None) for hit in page if hit.path == "notes/b.md"} == {
        "notes/b.md": 1
    }


def whole(name: str, text: str) -> RawDocument:
    return raw(name, text).model_copy(update={"whole": True})


def said(indexer: Indexer, *batch: RawDocument) -> list[tuple[str, str]]:
    return sorted((out.path, out.status.value) for out in indexer.index(batch)[0])


def test_given_a_file_of_several_documents_when_it_comes_again_with_fewer_then_the_others_go(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([whole("c.jsonl", jsonl("x", "y", "z")), whole("d.jsonl", jsonl("other"))])
    assert said(indexer, whole("c.jsonl", jsonl("x", "y"))) == [
        ("notes/c.jsonl#0", "unchanged"), ("notes/c.jsonl#1", "unchanged"), ("notes/c.jsonl#2", "removed"),
    ]  # fmt: skip
    assert sorted(store.documents(ROOT).values()) == ["notes/c.jsonl#0", "notes/c.jsonl#1", "notes/d.jsonl#0"]


def test_given_two_forms_of_a_file_in_one_batch_when_indexed_then_the_last_one_counts(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([whole("c.jsonl", jsonl("x", "y")), whole("c.jsonl", jsonl("z"))])
    assert list(store.documents(ROOT).values()) == ["notes/c.jsonl#0"]


def test_given_a_piece_or_a_bad_line_when_indexed_then_nothing_of_the_file_goes(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([whole("c.jsonl", jsonl("x", "y"))])
    indexer.index([raw("c.jsonl", jsonl("x"))])
    indexer.index([whole("c.jsonl", jsonl("x") + "{bad\n")])
    assert len(store.documents(ROOT)) == 2


def test_given_a_file_in_pieces_when_all_were_read_then_what_none_of_them_has_goes(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([raw("c.jsonl", jsonl("x", "y", "z")), whole("d.jsonl", jsonl("other"))])
    again, _ = indexer.index([raw("c.jsonl", jsonl("x", "w"))])
    pieces = {f"{ROOT}/c.jsonl": [one.doc_id for one in again]}
    told = DryRun(store, Settings().chunking).finish(None, (), "default", pieces=pieces)
    removed = indexer.finish(pieces=pieces, written=False)
    assert [one.path for one in removed] == [one.path for one in told] == ["notes/c.jsonl#2"]
    assert sorted(store.documents(ROOT).values()) == ["notes/c.jsonl#0", "notes/c.jsonl#1", "notes/d.jsonl#0"]


def test_given_lines_with_paths_of_their_own_when_their_file_is_removed_then_they_go(
    indexer: Indexer, store: ChunkStore
) -> None:
    lines = "".join(json.dumps({"id": n, "text": "x", "url": f"http://a/{n}"}) + "\n" for n in range(3))
    indexer.index([whole("c.jsonl", lines)])
    assert len(indexer.remove(ROOT, "default", [f"{ROOT}/c.jsonl"])) == 3
    assert store.documents(ROOT) == {}


@pytest.mark.parametrize("name", ["a.md", "a.py", "a.csv", "a.jsonl"])
def test_given_a_file_that_became_empty_when_indexed_then_what_it_said_is_removed(
    indexer: Indexer, store: ChunkStore, name: str
) -> None:
    old = {"a.csv": "a,b\n1,2\n", "a.jsonl": jsonl("x", "y")}.get(name, "x = 1\n")
    indexer.index([whole(name, old)])
    assert {status for _, status in said(indexer, whole(name, ""))} == {"removed"}
    assert store.documents(ROOT) == {}
