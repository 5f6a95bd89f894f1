"""Draws a passage with its marks, a document, and the counts of a corpus. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import RenderableType, group
from rich.text import Text

from orchestrator.cli.text import columns, counted, heading, pair, pairs, plain
from orchestrator.documents.corpus import CorpusOverview
from shared.hidden import visible
from shared.models.corpus import Passage, StoredDocument

#: Around what is marked where nothing can be coloured.
_OPEN, _CLOSE = "»", "«"
_ROWS = 12


@group()
def draw_passage(passage: Passage, *, styled: bool) -> Iterator[RenderableType]:
    """Where it is from, then its text; what is marked is coloured (`styled`), or stands between » and «."""
    place = passage.place
    yield (
        plain(passage.document.title or passage.document.path, "bold")
        .append("  ")
        .append(plain(passage.document.path, "dim"))
    )
    where = [
        place.name,
        " > ".join(place.heading),
        f"characters {passage.start:,}-{passage.end:,} of {passage.characters:,}",
    ]
    if place.box:
        where.insert(1, f"box {', '.join(map(str, place.box))} pt")
    yield plain(", ".join(filter(None, where)), "cyan")
    yield plain("")
    yield _marked(passage, styled=styled)


def _marked(passage: Passage, *, styled: bool) -> Text:
    shown, reached = Text("…\n" if passage.start else ""), passage.start
    for mark in passage.marks:
        start, end = max(mark.start, reached), min(mark.end, passage.end)
        if start >= end:
            continue
        shown.append(_clean(passage, reached, start))
        text = _clean(passage, start, end)
        shown.append(text if styled else f"{_OPEN}{text}{_CLOSE}", "reverse" if styled else "")
        reached = end
    shown.append(_clean(passage, reached, passage.end))
    return shown.append("\n…" if passage.end < passage.characters else "")


def _clean(passage: Passage, start: int, end: int) -> str:
    return visible(passage.text[start - passage.start : end - passage.start])


def draw_document(document: StoredDocument) -> RenderableType:
    """What is known of a document."""
    size = document.size
    return pairs({
        "path": document.path,
        "title": document.title,
        "id": document.doc_id,
        "from": document.source,
        "namespace": document.namespace,
        "kind": document.kind,
        "date": document.date or "",
        "tags": ", ".join(document.tags),
        "language": size.language if size else "",
        "size": f"{size.characters:,} characters in {counted(size.chunks, 'chunk')}" if size else "",
        "ingested": _moment(size.ingested) if size else "",
    })  # fmt: skip


@group()
def draw_overview(found: CorpusOverview) -> Iterator[RenderableType]:
    """The counts, then how fresh each source is."""
    chunks, characters = counted(found.chunks, "chunk"), f"{found.characters:,} characters"
    yield plain(f"{counted(found.documents, 'document')}, {chunks}, {characters}", "bold")
    for name in ("namespaces", "kinds", "folders", "formats", "languages", "years", "sizes"):
        counts: dict[str, int] = getattr(found, name)
        shown = [f"{key} {count:,}" for key, count in list(counts.items())[:_ROWS]]
        more = f", and {len(counts) - _ROWS} more" if len(counts) > _ROWS else ""
        if shown:
            yield pair(name, ", ".join(shown) + more)
    if not found.sources:
        return
    yield from heading("Freshness")
    table = columns("source", "documents", "last ingested", "file newer", "file gone", right=("documents",))
    for source in found.sources:
        changed, gone = ("?" if count is None else f"{count:,}" for count in (source.changed, source.gone))
        table.add_row(
            plain(source.source),
            plain(f"{source.documents:,}"),
            plain(_moment(source.ingested)),
            plain(changed),
            plain(gone),
        )
    yield table
    for failures in found.failures:
        yield from heading(f"Failed: {counted(failures.failed, 'document')} of {', '.join(failures.sources)}")
        for document in failures.documents[:_ROWS]:
            yield plain(f"{document.path}: {document.reason}", "red")
        if failures.failed > _ROWS:
            yield plain(f"{failures.failed - _ROWS:,} more: ramify result {failures.job_id}", "dim")


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else "not known"
