"""The documents of a corpus: what there is, a passage of one, its text; removed, and written out as JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from celery import Celery
from pydantic import Field
from redis import Redis

from orchestrator.documents.ingest import Ingesting
from orchestrator.remote import call_pool
from shared.contract import TaskName
from shared.errors import ConflictError, InputError, NotFoundError, RamifyError
from shared.jobs import reachable
from shared.jobs.job_list import JobFilter, newest_jobs
from shared.models import Answer, DocumentOutcome
from shared.models.base import Model
from shared.models.corpus import (
    PAGE,
    DocumentsReply,
    DocumentsRequest,
    Passage,
    PassageReply,
    PassageRequest,
    RemoveReply,
    RemoveRequest,
    StoredDocument,
)
from shared.models.enumeration import ListRow
from shared.models.ingest import IngestResult
from shared.models.support import Citation, Quotation
from shared.models.told import ServerPath
from shared.settings import Settings

_READ_S, _REMOVE_S = 60.0, 300.0
#: Jobs among which the last ingests are sought, and how many of those are looked at.
_NEWEST_JOBS, _MOST_INGESTS = 500, 50
#: Candidates that an error names.
_LISTED = 8
#: Values of each kind that an overview names; the rest is counted together.
_NAMED = 50
Reply = TypeVar("Reply", bound=Model)


class SourceFreshness(Model):
    """The documents of one root: when the newest was written, and how many have a file that is newer, or none.

    `changed` and `gone` None: the root cannot be seen from here.
    """

    source: ServerPath
    documents: int = 0
    ingested: int = Field(default=0, description="seconds since 1970; 0: not known")
    changed: int | None = None
    gone: int | None = None


class IngestFailures(Model):
    """What failed in the last ingest of some roots: how many documents, and the first thousand of them."""

    job_id: str
    sources: tuple[ServerPath, ...]
    failed: int
    documents: tuple[DocumentOutcome, ...]


class CorpusOverview(Model):
    """Documents counted by kind, folder, format (suffix), language, year of their date and size of their text."""

    documents: int
    characters: int
    chunks: int
    namespaces: dict[str, int]
    kinds: dict[str, int]
    folders: dict[str, int]
    formats: dict[str, int]
    languages: dict[str, int]
    years: dict[str, int]
    sizes: dict[str, int]
    sources: tuple[SourceFreshness, ...]
    failures: tuple[IngestFailures, ...] = ()


class Corpus:
    """One tenant's documents. Every method raises NotRunningError where Redis or the search pool does not answer.

    A document is named by its id, its path, its title, or a part of one of these that only it has.
    `namespace` None: any.
    """

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        tenant: str,
        answer_of: Callable[[str], Answer],
        ingests: Callable[[], Iterable[IngestResult]],
    ) -> None:
        """`answer_of` gives a job's answer, `ingests` the last ones of the tenant that have ended."""
        self._app, self._settings, self._tenant = app, settings, tenant
        self._answer_of, self._ingests = answer_of, ingests

    def documents(self, namespace: str | None = None) -> Iterator[StoredDocument]:
        """All of them, or those of a namespace, streamed in the order of their ids."""
        for page in self.pages(namespace):
            yield from page.documents

    def pages(self, namespace: str | None = None) -> Iterator[DocumentsReply]:
        """The same page by page; the first one says how many there are."""
        start, more = "", True
        while more:
            page = self.page(start, namespace=namespace)
            yield page
            start, more = page.following, bool(page.following)

    def page(self, start: str = "", most: int = PAGE, *, namespace: str | None = None) -> DocumentsReply:
        """At most `most` documents from the id `start` on, and the id where the next page begins ("": nowhere)."""
        wanted = DocumentsRequest(tenant=self._tenant, namespace=namespace, start=start, most=most)
        return self._ask(TaskName.SEARCH_DOCUMENTS, wanted, DocumentsReply, _READ_S)

    def overview(self, namespace: str | None = None, seen: Callable[[int, int], None] | None = None) -> CorpusOverview:
        """Everything counted, with flat memory. `seen` is told how many have been read, and of how many."""
        counts = _Counts()
        total = 0
        for page in self.pages(namespace):
            total = total or page.total
            for document in page.documents:
                counts.add(document)
            if seen is not None:
                seen(counts.documents, total)
        failed = (one for one in self._ingests() if one.counts.failed and namespace in {None, one.namespace})
        failures = tuple(
            IngestFailures(job_id=one.job_id, sources=one.sources, failed=one.counts.failed, documents=one.failures)
            for one in failed
        )
        return counts.overview(failures)

    def document(self, name: str, namespace: str | None = None) -> StoredDocument:
        """Raises: NotFoundError; InputError that lists the candidates where several are meant."""
        return self.passage(name, namespace=namespace, around=0).document

    def passage(self, name: str, *, namespace: str | None = None, **wanted: Any) -> Passage:
        """A passage with what stands around it; `wanted` are fields of PassageRequest: chunk_id, quote, page, around.

        Raises: as `document`; InputError where the document has no such chunk, quote or page.
        """
        request = PassageRequest(tenant=self._tenant, name=name, namespace=namespace, **wanted)
        reply = self._ask(TaskName.SEARCH_PASSAGE, request, PassageReply, _READ_S)
        if reply.passage is not None:
            return reply.passage
        if reply.bad_input is not None:
            raise InputError(*reply.bad_input)
        if not reply.candidates:
            raise NotFoundError("document", name, "no document has that id, path or title, or a part of them")
        listed = ", ".join(_named_apart(reply.candidates)[:_LISTED])
        more = " ..." if len(reply.candidates) > _LISTED else ""
        raise ConflictError("document", name, f"it may be one of {listed}{more}: give a path or an id")

    def cited(
        self, job_id: str, number: int, around: int = 600, *, sentence: int | None = None, step: int | None = None
    ) -> Passage:
        """The passage that `[number]` of a job's answer stands for, or the sentence of that row of its list.

        `sentence`: where the sentence that cites it begins in the answer, or in the text of a `step` of it:
        then the passage is what that rests on.

        Raises: as `passage`, and of `Ramify.result`.
        """
        answer = self._answer_of(job_id)
        citations, rows = answer.summary.citations, answer.table.rows if answer.table else ()
        found = next((one for one in citations if one.number == number), None)
        if found is not None:
            with suppress(InputError, NotFoundError):
                if quoted := _quote_of(answer, number, sentence, step):
                    return self._of_quote(found, quoted, around)
            name, quote = found.doc_id or found.path, found.quote or None
            try:
                return self.passage(name, chunk_id=found.chunk_id, quote=quote, around=around)
            except NotFoundError:
                gone = f"its document {found.path} has been removed since; `ramify result {job_id}` has the quote"
                raise NotFoundError("citation", f"{job_id}#{number}", gone) from None
        if 0 < number <= len(rows):
            return self._of_row(rows[number - 1], around)
        known = ", ".join(str(one.number) for one in citations) or (f"rows 1 to {len(rows)}" if rows else "none")
        raise NotFoundError("citation", f"{job_id}#{number}", f"its answer has {known}")

    def _of_quote(self, cited: Citation, quoted: Quotation, around: int) -> Passage:
        where: dict[str, Any] = {"chunk_id": cited.chunk_id} if quoted.start is None else {"at": quoted.start}
        return self.passage(cited.doc_id or cited.path, quote=quoted.text, around=around, **where)

    def _of_row(self, row: ListRow, around: int) -> Passage:
        """Its sentence was made plain to be shown: where it does not stand so in the text, the document's beginning."""
        with suppress(InputError):
            return self.passage(row.doc_id, quote=row.sentence or None, around=around)
        return self.passage(row.doc_id, around=around)

    def text(self, name: str, namespace: str | None = None) -> str:
        """The whole extracted text, to which the offsets of chunks and citations refer. Raises: as `passage`."""
        return self.passage(name, namespace=namespace, whole=True).text

    def remove(self, documents: Iterable[StoredDocument]) -> Iterator[DocumentOutcome]:
        """Remove documents from the corpus; their files stay, and an ingest would add them again."""
        namespaces = set[str]()
        batch: list[str] = []
        for document in documents:
            namespaces.add(document.namespace)
            batch.append(document.doc_id)
            if len(batch) == PAGE:
                yield from self._removed(batch, ())
                batch = []
        yield from self._removed(batch, tuple(sorted(namespaces)))

    def _removed(self, doc_ids: list[str], ended: tuple[str, ...]) -> tuple[DocumentOutcome, ...]:
        wanted = RemoveRequest(tenant=self._tenant, doc_ids=tuple(doc_ids), namespaces=ended, last=bool(ended))
        return self._ask(TaskName.INDEX_REMOVE, wanted, RemoveReply, _REMOVE_S).outcomes

    def chosen(self, names: Iterable[str], namespace: str | None = None) -> list[StoredDocument]:
        """The documents that names mean; a folder, or a file of several, means all in it. Raises: as `document`."""
        found: dict[str, StoredDocument] = {}
        starts = {name: (f"{name.rstrip('/')}/", f"{name}#") for name in names}
        unmet = set(starts)
        for one in self.documents(namespace):
            if met := {name for name, of_name in starts.items() if one.path.startswith(of_name)}:
                found[one.doc_id] = one
                unmet -= met
        named = [self.document(name, namespace) for name in sorted(unmet)]
        return list((found | {one.doc_id: one for one in named}).values())

    def export(self, to: Path, namespace: str | None = None) -> Iterator[StoredDocument]:
        """Write all documents with text and metadata as JSON lines that `ingest` reads; yields each one written.

        `to`: a file, or a folder in which `corpus.jsonl` is made. It stands there whole, or not at all.
        Raises: InputError where nothing can be written there.
        """
        file = to / "corpus.jsonl" if to.is_dir() or not to.suffix else to
        fresh = file.with_name(f".{file.name}.new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("w", encoding="utf-8") as stream:
                for document in self.documents(namespace):
                    text = self.text(document.doc_id, namespace)
                    stream.write(json.dumps(as_line(document, text), ensure_ascii=False) + "\n")
                    yield document
            fresh.replace(file)
        except OSError as error:
            raise InputError("path", str(file), f"{error.strerror}: name another") from None
        finally:
            with suppress(OSError):
                fresh.unlink()

    def _ask(self, name: TaskName, request: Model, reply: type[Reply], timeout_s: float) -> Reply:
        found = reply.of_record(call_pool(self._app, self._settings, name, request, timeout_s))
        if error := getattr(found, "error", None):
            raise RamifyError(error)
        return found


def _quote_of(answer: Answer, number: int, sentence: int | None, step: int | None) -> Quotation | None:
    """What the sentence that begins there quotes of a citation."""
    if step is None:
        spans = answer.summary.support.spans if answer.summary.support else ()
    else:
        spans = next((one.spans for one in answer.steps if one.number == step), ())
    quotes = (one for span in spans if span.start == sentence for one in span.quotes)
    return next((one for one in quotes if one.number == number and one.text), None)


def _named_apart(documents: Sequence[StoredDocument]) -> list[str]:
    """Their paths; where two have the same one, in two namespaces, with namespace and id."""
    paths = Counter(one.path for one in documents)
    return [
        one.path if paths[one.path] == 1 else f"{one.path} (namespace {one.namespace}, {one.doc_id})"
        for one in documents
    ]


def as_line(document: StoredDocument, text: str) -> dict[str, Any]:
    """A line of JSON Lines that an ingest reads back."""
    said = {"title": document.title, "date": document.date, "tags": list(document.tags), "kind": document.kind}
    return {"id": document.doc_id, "path": document.path, **{k: v for k, v in said.items() if v}, "text": text}


def counted_as(document: StoredDocument) -> dict[str, str]:
    """Under which value of each kind an overview counts a document."""
    size = document.size
    return {
        "namespaces": document.namespace,
        "kinds": document.kind,
        "folders": f"{document.path.rpartition('/')[0]}/",
        "formats": document.suffix or "none",
        "languages": (size.language if size else "") or "none",
        "years": (document.date or "none")[:4],
        "sizes": _size_class(size.characters) if size else "unknown",
    }


class _Counts:
    """What is counted of documents, one at a time."""

    def __init__(self) -> None:
        self.documents = self._characters = self._chunks = 0
        self._by: dict[str, Counter[str]] = {
            name: Counter() for name in ("namespaces", "kinds", "folders", "formats", "languages", "years", "sizes")
        }
        self._sources: dict[str, SourceFreshness] = {}

    def add(self, document: StoredDocument) -> None:
        self.documents += 1
        size = document.size
        self._characters += size.characters if size else 0
        self._chunks += size.chunks if size else 0
        for name, key in counted_as(document).items():
            self._by[name][key] += 1
        known = self._sources.get(document.source) or SourceFreshness(source=document.source)
        self._sources[document.source] = _fresh(known, document)

    def overview(self, failures: tuple[IngestFailures, ...]) -> CorpusOverview:
        by = {name: _named(counter) for name, counter in self._by.items()}
        sources = tuple(sorted(self._sources.values(), key=lambda one: one.source))
        return CorpusOverview(
            documents=self.documents, characters=self._characters, chunks=self._chunks, sources=sources,
            failures=failures, **by,
        )  # fmt: skip


def last_ingests(client: Redis, ingesting: Ingesting, tenant: str) -> list[IngestResult]:
    """The last ingest that has ended of each root, among the tenant's newest jobs."""
    with reachable(ingesting.jobs.settings):
        found: dict[tuple[Any, ...], IngestResult] = {}
        for status in newest_jobs(client, _NEWEST_JOBS, JobFilter(tenant=tenant)):
            if status.ingest is not None and status.terminal and len(found) < _MOST_INGESTS:
                result = ingesting.result(status.job_id)
                found.setdefault((result.sources, result.namespace), result)
    return list(found.values())


def _fresh(known: SourceFreshness, document: StoredDocument) -> SourceFreshness:
    ingested = document.size.ingested if document.size else 0
    changed, gone = known.changed, known.gone
    root = Path(document.source.removeprefix(f"{document.namespace}:"))
    if known.documents == 0 and root.exists():
        changed = gone = 0
    of_file = document.path.partition("/")[0] == root.name or document.path.partition("#")[0] == root.name
    if changed is not None and gone is not None and of_file:  # a line of JSON may have a path of its own
        modified = _modified(root, document.path)
        changed += modified is not None and bool(ingested) and modified > ingested
        gone += modified is None
    return known.but(documents=known.documents + 1, ingested=max(known.ingested, ingested), changed=changed, gone=gone)


def _modified(root: Path, path: str) -> int | None:
    """When a document's file was changed last, in whole seconds as ingests are dated; None where it is not there."""
    below = path.partition("#")[0].partition("/")[2]
    with suppress(OSError):
        return int((root / below if below and root.is_dir() else root).stat().st_mtime)
    return None


def _size_class(characters: int) -> str:
    for limit, name in ((1_000, "below 1,000"), (10_000, "1,000 to 10,000"), (100_000, "10,000 to 100,000")):
        if characters < limit:
            return name
    return "100,000 and more"


def _named(counter: Mapping[str, int]) -> dict[str, int]:
    """The most frequent values, and how many documents have another."""
    most = Counter(counter).most_common(_NAMED)
    rest = sum(counter.values()) - sum(count for _, count in most)
    return {**dict(most), **({"other": rest} if rest else {})}
