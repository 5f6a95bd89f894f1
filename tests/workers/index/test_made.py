"""Documents that a process makes: the same as this process makes them, and none of another file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.settings import Settings
from shared.settings.sections import ChunkingSettings
from tests.fakes.stores import OpenedStore
from tests.support.pdf import pdf
from workers.formats.process import ParserPool
from workers.index import made, maker
from workers.index.cutting import cut
from workers.index.documents import Document, document_hash
from workers.index.keywords import KeywordEncoders, packed, unpacked
from workers.index.maker import Maker
from workers.index.pipeline import Indexer

SIZES = ChunkingSettings(target_chars=200, max_chars=400)
ENCODERS = KeywordEncoders.of(50.0, trigrams=True)
FILES = {
    "a.md": b"---\ntags: [x]\n---\n# Pumps\n\n- Owner: Ada\n\nOil the [pump](b.md). " + b"It was dry. " * 60,
    "b.md": "# 泵\n\n一号泵漏油。".encode(),
    "c.py": b"def oil(pump):\n    '''Oil it.'''\n    return pump\n",
    "d.jsonl": b'{"id": "1", "text": "One."}\nbad\n{"id": "2", "text": "Two.", "path": "elsewhere/2"}\n',
    "e.pdf": pdf([["Pump 1 is old.", "It was dry."], ["Pump 2 is new."]]),
    "f.mbox": b"From a@b Mon Jan  1 00:00:00 2024\nSubject: Oil\nFrom: a@b\n\nThe pump leaks.\n",
    "g.pdf": b"%PDF-broken",
    "h.txt": b"\n",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    found = ParserPool(1)
    yield found
    found.close()


def _raw(name: str, content: bytes, **given: object) -> RawDocument:
    fields = {"source": "/r", "path": f"r/{name}", "identity": f"/r/{name}", "suffix": Path(name).suffix, **given}
    return RawDocument.model_validate({**fields, "content": content})


def _make(pool: ParserPool, raws: list[RawDocument], encoders: KeywordEncoders | None = ENCODERS) -> made.MadeFiles:
    return pool.ask("make", *made.asked_of(raws, 1, SIZES, encoders), partial(made.made_files, raws))


def test_given_files_of_many_kinds_when_a_process_makes_their_documents_then_they_are_those_of_this_process(
    pool: ParserPool,
) -> None:
    raws = [_raw(name, content, metadata={"tags": ["given"]}) for name, content in FILES.items()]
    files, cuts = _make(pool, raws)
    here = Maker(SIZES)
    for raw, items in zip(raws, files, strict=True):
        own = here.read_again(raw)
        bare = [one.but(text="", places=(), boxes=()) if isinstance(one, Document) else one for one in own]
        assert items == bare
        for document in own:
            if isinstance(document, Document):
                expected = cut(document, document_hash(document, SIZES), SIZES)
                found = cuts[document.doc_id]
                size = found.size.model_copy(update={"ingested": expected.size.ingested})
                assert replace(found, vectors=(), size=size) == expected
                vectors = [ENCODERS.vectors(chunk.full_text) for chunk in expected.chunks]
                assert list(found.vectors) == unpacked(packed(vectors))
    assert [type(one) for items in files for one in items].count(DocumentOutcome) == 2, "a bad line and a broken file"


def test_given_no_encoders_when_made_then_the_vectors_come_later(pool: ParserPool) -> None:
    raws = [_raw("a.md", FILES["a.md"])]
    _, cuts = _make(pool, raws, None)
    (found,) = cuts.values()
    assert found.vectors == ()
    texts = [chunk.full_text for chunk in found.chunks]
    vectors = pool.ask("encode", *made.asked_to_encode(texts, ENCODERS), unpacked)
    assert vectors == unpacked(packed(map(ENCODERS.vectors, texts)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("doc_id", "00000000-0000-0000-0000-000000000000"),
        ("identity", "/r/other.md"),
        ("namespace", "team"),
        ("source", "/other"),
        ("path", "r/other.md"),
    ],
)
def test_given_a_process_that_is_taken_over_when_it_names_another_file_s_document_then_it_is_refused(
    old: str, new: str
) -> None:
    raw = _raw("a.md", FILES["a.md"])
    length, reply, vectors = made.make(*made.asked_of([raw], 0, SIZES, ENCODERS), is_read=lambda: None)
    made.made_files([raw], memoryview(length + reply + vectors))
    said = json.loads(reply)
    said["files"][0][0]["document"][old] = new
    forged = json.dumps(said).encode()
    with pytest.raises(ValueError, match="of another file"):
        made.made_files([raw], memoryview(made._LENGTH.pack(len(forged)) + forged + vectors))


@pytest.mark.parametrize(
    "data",
    [
        b"\x02\0\0\0",
        b"\x01\0\0\0\0\0\0\0",
        packed([ENCODERS.vectors("a pump")])[:-4],
        b"\x01\0\0\0\0\0\0\0\0\0\xc0\x7f" * 2,
    ],
)
def test_given_what_are_no_vectors_when_unpacked_then_they_are_refused(data: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpacked(data)


def test_given_an_ingest_that_goes_on_when_processes_make_its_documents_then_it_ends_as_in_one_process(
    store: OpenedStore, settings: Settings, pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "_ALONE_BYTES", 0)
    monkeypatch.setattr(pool, "size", 2)
    monkeypatch.setattr(maker, "parsers", lambda: pool)
    indexer = Indexer(store, None, settings)
    batch = [_raw(name, content) for name, content in FILES.items()]
    first, _ = indexer.index(batch[:2])
    (again, *_), _ = indexer.index(batch)
    assert [one.status for one in first] == [DocumentStatus.ADDED] * 2
    assert again.status is DocumentStatus.UNCHANGED
    # a file alone keeps the root that it is known from, and its links are those of that place
    alone = _raw("a.md", FILES["a.md"] + b"More.", source="/r/a.md", path="a.md")
    ((outcome,), _) = indexer.index([alone])
    assert (outcome.status, outcome.path) == (DocumentStatus.CHANGED, "r/a.md")
    (hit, *_) = (hit for page in store.scroll(None) for hit in page if hit.doc_id == outcome.doc_id)
    assert "path:r/b.md" in hit.refs
