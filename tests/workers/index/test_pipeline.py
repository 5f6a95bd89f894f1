"""Batches reach the store once, change what changed and remove what is gone. On the embedded store and real BM25."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
from qdrant_client import models

from shared.errors import PermanentError, StoreMismatchError, TransientError
from shared.models import DocumentOutcome, DocumentStatus, Filters, Hit, RawDocument
from shared.providers.encoders import Embedded
from shared.providers.encoders.sparse import Bm25Encoder
from shared.settings import Settings
from shared.store import SPARSE, ChunkStore, to_filter
from workers.index.documents import document_id
from workers.index.pipeline import Indexer

ROOT = "/notes"


class FakeDense:
    """Two-number vectors; fails with `error` when told to."""

    dim = 2

    def __init__(self, name: str = "fake", error: Exception | None = None) -> None:
        self.name, self.error = name, error

    def embed_queries(self, texts: Sequence[str]) -> Embedded:
        return self.embed_passages(texts)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        if self.error:
            raise self.error
        return Embedded(vectors=((0.6, 0.8),) * len(texts), calls=1, tokens=len(texts))


def raw(name: str, text: str, namespace: str = "default") -> RawDocument:
    return RawDocument(
        source=ROOT, path=name, identity=f"{ROOT}/{name}", suffix=Path(name).suffix, content=text.encode(),
        namespace=namespace,
    )  # fmt: skip


def statuses(outcomes: Sequence[DocumentOutcome]) -> list[str]:
    return [outcome.status.value for outcome in outcomes]


def stored(store: ChunkStore) -> list[Hit]:
    """All chunks of documents: directories have a namespace of their own."""
    return [hit for page in store.scroll(None) for hit in page if not hit.namespace.endswith(":dirs")]


def texts(store: ChunkStore) -> list[str]:
    return sorted(hit.text for hit in stored(store))


def search(store: ChunkStore, question: str) -> list[str]:
    vector = Bm25Encoder().encode_query(question)
    query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
    own = to_filter(Filters())
    (hits,) = store.query([models.QueryRequest(query=query, using=SPARSE, limit=5, filter=own, with_payload=True)])
    return [hit.path for hit in hits]


def test_given_new_documents_when_indexed_then_they_are_found_in_both_languages(
    indexer: Indexer, store: ChunkStore
) -> None:
    outcomes, cost = indexer.index([raw("en.md", "# Vacuum\n\ndead rows"), raw("zh.md", "# 缓存雪崩\n\n同时过期")])
    assert statuses(outcomes) == ["added", "added"]
    assert [outcome.chunks for outcome in outcomes] == [1, 1]
    assert not cost
    assert search(store, "vacuum") == ["en.md"]
    assert search(store, "缓存雪崩") == ["zh.md"]


def test_given_the_same_batch_twice_when_indexed_then_the_second_writes_nothing(
    indexer: Indexer, store: ChunkStore
) -> None:
    batch = [raw("a.md", "a"), raw("b.txt", "b")]
    indexer.index(batch)
    before = store.info()
    outcomes, _ = indexer.index(batch)
    assert statuses(outcomes) == ["unchanged", "unchanged"]
    assert store.info() == before


def test_given_a_changed_file_when_indexed_then_its_old_chunks_are_gone(indexer: Indexer, store: ChunkStore) -> None:
    indexer.index([raw("a.md", "# A\n\nold\n\n# B\n\nsame"), raw("b.md", "other")])
    outcomes, _ = indexer.index([raw("a.md", "# A\n\nnew")])
    assert statuses(outcomes) == ["changed"]
    assert texts(store) == ["new", "other"]


def test_given_other_chunk_sizes_when_indexed_then_the_file_is_cut_again(
    indexer: Indexer, store: ChunkStore, settings: Settings
) -> None:
    document = raw("a.md", "\n\n".join(f"paragraph {n} " + "word " * 30 for n in range(10)))
    (first,), _ = indexer.index([document])
    smaller = settings.model_copy(update={"chunking": settings.chunking.model_copy(update={"target_chars": 200})})
    (second,), _ = Indexer(store, None, smaller).index([document])
    assert second.status is DocumentStatus.CHANGED
    assert second.chunks > first.chunks
    assert len(texts(store)) == second.chunks


def test_given_bad_files_among_good_when_indexed_then_only_they_fail_and_the_order_stays(
    indexer: Indexer, store: ChunkStore
) -> None:
    lines = json.dumps({"id": "1", "text": "one"}) + "\n{broken\n" + json.dumps({"id": "2", "text": "two"})
    batch = [raw("a.md", "\0"), raw("b.md", "b"), raw("c.jsonl", lines), raw("d.md", "---\n\n#\n")]
    outcomes, _ = indexer.index(batch)
    assert statuses(outcomes) == ["failed", "added", "added", "failed", "added", "failed"]
    assert [outcome.path for outcome in outcomes] == ["a.md", "b.md", "c.jsonl#1", "c.jsonl", "c.jsonl#2", "d.md"]
    assert "line 2" in outcomes[3].reason
    assert texts(store) == ["b", "one", "two"]


def test_given_nothing_that_can_be_read_when_indexed_then_no_collection_is_made(
    indexer: Indexer, store: ChunkStore
) -> None:
    assert statuses(indexer.index([raw("a.md", "\0")])[0]) == ["failed"]
    assert indexer.index([raw("a.md", " \n")])[0] == []
    assert indexer.finish() == []
    assert store.info() is None


def test_given_a_dropped_date_when_indexed_then_the_outcome_says_so_every_time(indexer: Indexer) -> None:
    for status in ("added", "unchanged"):
        ((outcome,), _) = indexer.index([raw("a.md", "---\ndate: soon\n---\nbody")])
        assert outcome.status.value == status
        assert "'soon' left out" in outcome.reason


def test_given_an_id_twice_in_a_batch_when_indexed_then_the_last_wins_and_says_so(
    indexer: Indexer, store: ChunkStore
) -> None:
    ((outcome,), _) = indexer.index([raw("a.md", "first"), raw("a.md", "last")])
    assert outcome.status is DocumentStatus.ADDED
    assert "more than once" in outcome.reason
    assert texts(store) == ["last"]


@pytest.mark.parametrize("error", [TransientError("the server is busy"), PermanentError("the key is wrong")])
def test_given_an_encoder_that_fails_when_indexed_then_the_documents_fail_with_its_sentence(
    store: ChunkStore, settings: Settings, error: Exception
) -> None:
    dense = FakeDense(error=error)
    indexer = Indexer(store, dense, settings)
    outcomes, cost = indexer.index([raw("a.md", "a"), raw("b.md", "---\na: b\n---\n")])
    assert [(outcome.status.value, outcome.reason) for outcome in outcomes] == [
        ("failed", str(error)), ("failed", "is empty"),
    ]  # fmt: skip
    assert not cost
    assert store.info() is None
    dense.error = None
    outcomes, cost = indexer.index([raw("a.md", "a")])
    assert statuses(outcomes) == ["added"]
    assert (cost.embed_calls, cost.embed_tokens) == (1, 1)


def test_given_a_collection_of_another_encoder_when_indexed_then_the_ingest_is_refused(
    indexer: Indexer, store: ChunkStore, settings: Settings
) -> None:
    indexer.index([raw("a.md", "a")])
    with pytest.raises(StoreMismatchError):
        Indexer(store, FakeDense(), settings).index([raw("a.md", "a")])


def test_given_a_document_torn_by_a_crash_when_indexed_again_then_no_old_chunk_is_left(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([raw("a.md", "# A\n\nzero\n\n# B\n\none")])
    first = next(hit for page in store.scroll(None) for hit in page if hit.ordinal == 1)
    store.delete_chunks(document_id(f"{ROOT}/a.md", "default", "default"), [first.chunk_id])
    outcomes, _ = indexer.index([raw("a.md", "new")])
    assert statuses(outcomes) == ["added"]
    assert texts(store) == ["new"]


def test_given_first_batches_at_the_same_time_when_indexed_then_all_are_stored(
    indexer: Indexer, store: ChunkStore
) -> None:
    threads = [Thread(target=indexer.index, args=([raw(f"{n}.md", f"text {n}")],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert texts(store) == [f"text {n}" for n in range(8)]


def test_given_a_prune_when_finished_then_only_what_is_gone_under_that_source_is_removed(
    indexer: Indexer, store: ChunkStore
) -> None:
    lines = "\n".join(json.dumps({"id": n, "text": f"line {n}"}) for n in range(2))
    elsewhere = raw("z.md", "z").model_copy(update={"source": "/other"})
    batch = [raw("a.md", "a"), raw("b.md", "b"), raw("c.jsonl", lines), raw("b.md", "team b", "team"), elsewhere]
    outcomes, _ = indexer.index(batch)
    removed = indexer.finish({ROOT: {outcomes[0].doc_id}}, unreadable=["c.jsonl"])
    assert [(outcome.path, outcome.status.value) for outcome in removed] == [("b.md", "removed")]
    assert texts(store) == ["a", "line 0", "line 1", "team b", "z"]
    assert [outcome.path for outcome in indexer.finish({ROOT: set()}, namespace="team")] == ["b.md"]


def test_given_lengths_that_drifted_when_finished_then_weights_are_made_anew(
    indexer: Indexer, store: ChunkStore
) -> None:
    indexer.index([raw("a.md", "short note")])
    before = store.info()
    assert before is not None
    indexer.index([raw(f"{n}.md", " ".join(f"word{n}x{i}" for i in range(150))) for n in range(5)])
    indexer.finish()
    after = store.info()
    assert after is not None
    assert after.built_with.avg_len > 10 * before.built_with.avg_len
    assert search(store, "short note") == ["a.md"]
    indexer.finish()
    assert store.info() == after


def backlinks(store: ChunkStore) -> dict[str, int]:
    return {hit.path: hit.backlinks for hit in stored(store)}


def test_given_links_when_finished_then_documents_know_how_many_and_a_removed_link_lowers_it(
    indexer: Indexer, store: ChunkStore
) -> None:
    names = ("notes/a.md", "notes/b.md", "notes/zh.md")
    indexer.index(
        [raw(names[0], "# A\n\n[[缓存雪崩]]"), raw(names[1], "[x](zh.md) [[A]]"), raw(names[2], "# 缓存雪崩\n\n同时")]
    )
    assert backlinks(store) == dict.fromkeys(names, 0)
    indexer.finish()
    assert backlinks(store) == dict(zip(names, (1, 0, 2), strict=True))

    indexer.index([raw(names[1], "[x](zh.md)")])
    indexer.finish()
    assert backlinks(store) == dict(zip(names, (0, 0, 2), strict=True))
    kept = {document_id(f"{ROOT}/{name}", "default", "default") for name in names[1:]}
    indexer.finish({ROOT: kept})
    assert backlinks(store) == dict(zip(names[1:], (0, 1), strict=True))


def test_given_links_when_the_document_is_written_anew_then_it_is_counted_anew_and_its_hash_ignores_the_count(
    indexer: Indexer, store: ChunkStore
) -> None:
    batch = [raw("notes/a.md", "[[b]]"), raw("notes/b.md", "text")]
    indexer.index(batch)
    indexer.finish()
    assert statuses(indexer.index(batch)[0]) == ["unchanged", "unchanged"]
    indexer.index([raw("notes/b.md", "other text")])
    assert backlinks(store)["notes/b.md"] == 0
    indexer.finish()
    assert backlinks(store)["notes/b.md"] == 1


def test_given_nothing_written_since_when_finished_then_links_are_not_counted_again(
    indexer: Indexer, store: ChunkStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer.index([raw("notes/a.md", "[[b]]"), raw("notes/b.md", "text")])
    indexer.finish()
    counted = []
    monkeypatch.setattr(type(store), "set_backlinks", lambda _, counts: counted.append(len(counts)))
    indexer.index([raw("notes/b.md", "text")])
    indexer.finish()
    Indexer(store, None, settings).finish()
    assert counted == [], "what is left to do stands in the store, not in a process"
