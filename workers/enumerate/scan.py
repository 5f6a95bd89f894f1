"""Reads one shard of a scan to its end, or until its time is up: every document once, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from shared.job_store.tables import Excerpt
from shared.models.enumeration import Row, Scan
from shared.models.shard import Shard
from shared.store.base import ChunkStore
from workers.enumerate.columns import columns_of
from workers.enumerate.conditions import Matcher, row_of
from workers.enumerate.document import FIRST, FURTHER, Document
from workers.enumerate.filters import documents_of, further_chunks

_BATCH = 128
#: Characters of a document that a model is shown.
EXCERPT_CHARS = 2000


class Scanned(NamedTuple):
    """What a shard gave: rows by path, how many documents were read, texts for a model, and whether it was cut."""

    rows: list[Row]
    scanned: int
    excerpts: dict[str, str]
    cut: bool

    def numbered(self) -> tuple[Excerpt, ...]:
        """The texts with the places of their rows."""
        return tuple(
            Excerpt(number=number, text=self.excerpts[row.doc_id])
            for number, row in enumerate(self.rows)
            if row.doc_id in self.excerpts
        )


#: What is read while nothing is ingested.
NOTHING = Scanned([], 0, {}, cut=False)


def scan_shard(
    store: ChunkStore, scan: Scan, shard: Shard, *, excerpts: int = 0, stopped: Callable[[], bool] = lambda: False
) -> Scanned:
    """Every document of the shard that fits, ordered by path.

    `excerpts`: of so many rows with missing columns the text is kept for a model. `stopped` is asked after each batch.
    """
    matcher = Matcher(scan)
    rows: dict[str, Row] = {}
    texts: dict[str, str] = {}
    scanned, cut = 0, False
    for batch in _batches(store.read(documents_of(scan), FIRST, shard.start, shard.stop)):
        for document in _whole(store, batch):
            scanned += 1
            if matcher.fits(document):
                fields = columns_of(document, scan.columns) if scan.columns else {}
                rows[document.doc_id] = row_of(document, matcher.sentence(document), fields)
                if len(fields) < len(scan.columns) and len(texts) < excerpts:
                    texts[document.doc_id] = _text(document)
        if stopped():
            cut = True
            break
    ordered = sorted(rows.values(), key=lambda row: (row.path, row.doc_id))
    return Scanned(ordered, scanned, texts, cut)


def _batches(points: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    stream = iter(points)
    while batch := [payload for _, payload in islice(stream, _BATCH)]:
        yield batch


def _whole(store: ChunkStore, batch: list[dict[str, Any]]) -> list[Document]:
    """The documents of a batch with all their chunks."""
    documents = {str(payload["doc_id"]): Document(payload) for payload in batch}
    for payload in batch:
        documents[str(payload["doc_id"])].add(payload)
    for _, payload in store.read(further_chunks(list(documents)), FURTHER):
        documents[str(payload["doc_id"])].add(payload)
    return list(documents.values())


def _text(document: Document) -> str:
    kept, left = [document.title], EXCERPT_CHARS
    for piece in document.in_order():
        kept.append(piece.text[:left])
        left -= len(kept[-1])
        if left <= 0:
            break
    return "\n".join(kept)
