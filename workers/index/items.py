"""What a worker does with one item of an ingest: walk, hash, read, index, remove. Knows no Redis and no queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from shared.files.found import FoundFile
from shared.files.pieces import GROUP_FILES, FileGroup, hashed, read_span
from shared.files.walk import discover, discover_changed
from shared.jobs.ingests import ItemDone
from shared.models import Cost, DocumentOutcome, JobRequest, RawDocument
from shared.models.ingest import FORMATS, FileSpan, IngestItem, IngestReport
from workers.index.dry_run import DryRun
from workers.index.pipeline import Indexer, timed

#: What is put in as one: documents, their bytes, and files that a parser reads, each of which may take half a minute.
BATCH_DOCUMENTS, BATCH_BYTES, BATCH_PARSED = 64, 2_000_000, 4
_MOST_SENTENCES = 1_000


def walk(item: str, request: JobRequest) -> ItemDone:
    """The files below the request's roots, in groups that are to be hashed; what is gone of them, to be removed.

    Raises: InputError for a root that is not there any more.
    """
    ingest = request.ingest
    assert ingest is not None  # noqa: S101 - the caller has looked
    parts = list[IngestItem]()
    gone = list[Path]()
    with timed("walking"):
        if ingest.changed:
            root = Path(ingest.sources[0])
            found, gone, passed = discover_changed(root, [Path(name) for name in ingest.changed])
        else:
            found, passed = discover([Path(source) for source in ingest.sources])
    own = {"tenant": request.tenant, "namespace": request.filters.namespace}
    for source, members in groupby(found, key=lambda one: one.source):
        names = [str(one.file) for one in members]
        for start in range(0, len(names), GROUP_FILES):
            parts.append(IngestItem(source=str(source), files=tuple(names[start : start + GROUP_FILES]), **own))
    if gone:
        parts.append(IngestItem(source=ingest.sources[0], removed=tuple(map(str, gone)), **own))
    if len(passed) > _MOST_SENTENCES:
        passed = [*passed[:_MOST_SENTENCES], f"{len(passed) - _MOST_SENTENCES:,} more"]
    return ItemDone(IngestReport(item=item, passed_over=tuple(passed)), files=len(found), parts=parts)


def work(item: str, content: IngestItem, indexer: Indexer | DryRun, max_bytes: int) -> tuple[ItemDone, Cost]:
    """Do an item, and what it cost. Raises: StoreMismatchError, StoreError or TransientError of the store."""
    source, cost = content.source, Cost()
    if content.files:
        return _split(item, content, indexer, max_bytes), cost
    if content.hashes is not None:
        known, wanted = indexer.split_known(content.hashes)
        asked, sent = content.hashes.files, set(wanted)
        read = len({file.identity for number, file in enumerate(asked) if number not in sent})
        return ItemDone(IngestReport(item=item, outcomes=tuple(known), wanted=tuple(wanted)), source, read=read), cost
    if content.removed:
        removed = indexer.remove(content.source, content.namespace, content.removed)
        return ItemDone(IngestReport(item=item, outcomes=tuple(removed)), source), cost
    given: list[RawDocument | DocumentOutcome] = [*content.documents, *_read(content, max_bytes)]
    documents = [one for one in given if isinstance(one, RawDocument)]
    outcomes = [*content.met, *(one for one in given if isinstance(one, DocumentOutcome))]
    if documents:
        indexed, cost = indexer.index(documents)
        outcomes += indexed
    read = content.ends + sum(span.ends for span in content.spans)
    empty = tuple(f"{one.path}: empty" for one in content.documents if not one.content)
    report = IngestReport(item=item, outcomes=tuple(outcomes), passed_over=empty)
    return ItemDone(report, source, read=read, pieces=pieces_of(content)), cost


def pieces_of(content: IngestItem) -> tuple[str, ...]:
    """The files of which it has a piece to be read."""
    return tuple(dict.fromkeys(span.file for span in content.spans if span.size is not None))


def first_document(content: IngestItem, max_bytes: int) -> RawDocument | None:
    """The one document that an item is of, with its bytes; None where they cannot be read (any more)."""
    given = content.documents or _read(content, max_bytes)
    return next((one for one in given if isinstance(one, RawDocument)), None)


def path_of(content: IngestItem) -> str:
    """The path that people read, of the one document that an item is of."""
    if content.documents:
        return content.documents[0].path
    return FoundFile(Path(content.source), Path(content.spans[0].file)).shown


def _read(content: IngestItem, max_bytes: int) -> Iterator[RawDocument | DocumentOutcome]:
    for span in content.spans:
        found = FoundFile(Path(content.source), Path(span.file))
        yield from read_span(found, span, content.tenant, content.namespace, max_bytes)


def _split(item: str, content: IngestItem, indexer: Indexer | DryRun, max_bytes: int) -> ItemDone:
    """Ask which files the store has whole; the others are to be read, in batches."""
    source = Path(content.source)
    with timed("hashing"):
        group = hashed([FoundFile(source, Path(name)) for name in content.files], content.namespace, max_bytes)
    known, wanted = indexer.split_known(group.hashes) if group.hashes.files else ([], [])
    missing = _missing(group, wanted)
    parts = [
        IngestItem(tenant=content.tenant, namespace=content.namespace, source=content.source, spans=tuple(spans))
        for spans in _batches(missing)
    ]
    read = len(group.files) - len({span.file for span, _ in missing})
    return ItemDone(IngestReport(item=item, outcomes=tuple(known)), content.source, read=read, parts=parts)


def _missing(group: FileGroup, wanted: Iterable[int]) -> list[tuple[FileSpan, int]]:
    """What is to be read, with its size: files that the store lacks, and those that could not be hashed."""
    lacking = {group.hashes.files[number].identity for number in wanted}
    rows = [(span, size) for span, size in zip(group.spans, group.sizes, strict=True) if span.file in lacking]
    rows += [(FileSpan(file=name), 0) for name in group.unhashed]
    return sorted(rows, key=lambda row: (row[0].file, row[0].start))


def _batches(spans: Sequence[tuple[FileSpan, int]]) -> Iterator[list[FileSpan]]:
    waiting, total, parsed = list[FileSpan](), 0, 0
    for span, size in spans:
        slow = Path(span.file).suffix.lower() in FORMATS
        full = len(waiting) >= BATCH_DOCUMENTS or total + size > BATCH_BYTES or parsed + slow > BATCH_PARSED
        if waiting and full:
            yield waiting
            waiting, total, parsed = [], 0, 0
        waiting.append(span)
        total, parsed = total + size, parsed + slow
    if waiting:
        yield waiting
