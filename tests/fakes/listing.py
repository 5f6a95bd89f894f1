"""A corpus with a planted category, and a list of it as the pools make it: values, question, shards, rows, table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.planning.lists.planner import list_nodes, shards
from orchestrator.planning.lists.reading import Reading, read_question
from shared.jobs.tables import Tables
from shared.models import Chunk, Filters, RawDocument
from shared.models.enumeration import ListRow, ListTable, Scan, ShardReport
from shared.models.plan import Shard
from shared.providers.encoders.sparse import Bm25Encoder
from shared.settings import Settings
from shared.store import BuiltWith, ChunkPoint, ChunkStore
from workers.enumerate.merge_rows import merge_rows
from workers.enumerate.scan import ValueCache, counted, scan_shard
from workers.index.fields import fields_of
from workers.index.pipeline import Indexer

TODAY = date(2026, 11, 20)
ENCODER = Bm25Encoder()
_WORDS = ("redis", "queue", "vacuum", "ledger", "deploy", "缓存", "索引", "复制", "告警", "账单")


def point(doc_id: str, text: str, ordinal: int = 0, **more: Any) -> ChunkPoint:
    """One chunk, without a dense vector."""
    found = () if ordinal else more.pop("fields", fields_of({}, text))
    chunk = Chunk(
        chunk_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{doc_id}/{ordinal}")),
        doc_id=doc_id,
        ordinal=ordinal,
        text=text,
        **{"path": f"made/{doc_id}.md", "title": doc_id, **more},
    )
    sparse = ENCODER.encode_passage(text)
    return ChunkPoint(chunk=chunk, document_hash=doc_id, source="/made", sparse=sparse, fields=found)


def put(store: ChunkStore, points: Iterable[ChunkPoint]) -> None:
    """Store them; makes the collection if there is none."""
    if store.info() is None:
        store.create(BuiltWith(sparse=ENCODER.name, avg_len=ENCODER.avg_len))
    stream = iter(points)
    while batch := list(islice(stream, 2000)):
        store.upsert(batch)


def noise(count: int, start: int = 0, **more: Any) -> Iterable[ChunkPoint]:
    """Documents of no category, in both languages."""
    for number in range(start, start + count):
        first, second = _WORDS[number % len(_WORDS)], _WORDS[number * 7 % len(_WORDS)]
        yield point(f"noise{number}", f"About {first} and {second}, note {number}. 关于{second}。", **more)


def indexed(store: ChunkStore, settings: Settings, folder: Path) -> int:
    """The sample corpus, read and cut as an ingest does; returns the number of its files."""
    indexer = Indexer(store, None, settings)
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".md", ".jsonl"})
    for path in files:
        name = f"notes/{path.relative_to(folder)}"
        raw = RawDocument(
            source=str(folder), path=name, identity=name, suffix=path.suffix, content=path.read_bytes(),
        )  # fmt: skip
        indexer.index([raw])
    return len(files)


def put_code(store: ChunkStore, settings: Settings, files: Mapping[str, str]) -> None:
    """Source files, path -> text, parsed and cut as an ingest does."""
    raws = [
        RawDocument(source="/made", path=path, identity=path, suffix=PurePosixPath(path).suffix, content=text.encode())
        for path, text in files.items()
    ]
    Indexer(store, None, settings).index(raws)


class Listing:
    """Asks a store for lists. `after_shard` is called behind each shard, with its number."""

    def __init__(self, store: ChunkStore, tables: Tables, settings: Settings) -> None:
        self.store, self.tables, self.settings = store, tables, settings
        self.after_shard: Callable[[int], None] = lambda _: None
        self.stopped: Callable[[], bool] = lambda: False
        self.job_id = ""

    def read(self, question: str, filters: Filters | None = None) -> Reading:
        """The question against the values that exist."""
        filters = filters or Filters()
        values = ValueCache(self.settings.enumeration.max_values).of(self.store, filters)
        return read_question(question, filters, values, TODAY)

    def ask(self, question: str, filters: Filters | None = None) -> tuple[ListTable, list[ListRow]]:
        """The table and all rows, read back from the job store."""
        reading = self.read(question, filters)
        assert reading.scan is not None, reading.warnings
        state = counted(self.store, reading.scan)
        scan = reading.scan.model_copy(update={"documents": state.documents, "index_version": state.index_version})
        return self.run(scan, question)

    def run(self, scan: Scan, question: str = "q") -> tuple[ListTable, list[ListRow]]:
        """The shards of a scan, one after the other."""
        job_id, limits = uuid.uuid4().hex[:16], self.settings.enumeration
        self.job_id = job_id
        self.tables.put_scan(job_id, scan)
        tree = list_nodes(question, scan.understood, shards(scan.documents, limits.shard_documents, limits.max_shards))
        for node in tree:
            if node.shard is not None:
                self._shard(job_id, node.id, scan, node.shard)
        table = merge_rows(self.tables, job_id, {node.id: node for node in tree}, limits)
        assert table is not None
        return table, list(self.tables.rows(job_id, table.pages))

    def _shard(self, job_id: str, node_id: str, scan: Scan, shard: Shard) -> None:
        before = self.store.info()
        found = scan_shard(self.store, scan, shard, stopped=self.stopped)
        self.after_shard(shard.number)
        after, size = self.store.info(), self.settings.enumeration.page_rows
        pages = [found.rows[start : start + size] for start in range(0, len(found.rows), size)]
        for number, page in enumerate(pages):
            self.tables.put_page(job_id, node_id, number, page)
        report = ShardReport(
            scanned=found.scanned, matched=len(found.rows), unparsed=found.unparsed, unlabelled=found.unlabelled,
            pages=len(pages), cut=found.cut,
            first_version=before.index_version if before else 0, last_version=after.index_version if after else 0,
        )  # fmt: skip
        self.tables.put_report(job_id, node_id, report)
