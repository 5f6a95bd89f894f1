"""The part of the client that puts documents in: files and folders, and what other programs push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from orchestrator.documents.hand_over import HandOver
from orchestrator.documents.ingest import Ingesting, IngestOptions, Progress
from shared.errors import IngestUnderWayError, InputError, encodable
from shared.files.passed_over import has_reader, no_reader
from shared.files.walk import checked_root
from shared.jobs import reachable
from shared.jobs.tenant_scope import TenantScope
from shared.models import RawDocument
from shared.models.base import Model
from shared.models.ingest import HandedOver, IngestItem, IngestResult
from shared.settings import Settings
from shared.settings.faults import request_fault
from shared.tenants import bound_tenant, checked_name

Paths = Sequence[Path | str] | Path | str
#: Ids of one item that removes documents.
_REMOVED = 1_000
#: Levels of a document's metadata.
_DEEPEST = 50


class PushedDocument(Model):
    """A document from another program, known there by `id`, which stays the same over its changes.

    `content` is read by the reader for `suffix` (".md", ".pdf" ...). `path` is what people read in a citation (else the
    id); `metadata`: title, date, tags, kind, and fields of its own that lists can ask for.
    """

    id: str = Field(min_length=1, max_length=1000)
    content: bytes | str
    suffix: str = ".md"
    path: str = Field(default="", max_length=1000)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("metadata")
    @classmethod
    def _writable(cls, given: dict[str, Any]) -> dict[str, Any]:
        """What cannot be handed over as JSON would cost all documents of its item, and the job."""
        waiting: list[tuple[Any, int]] = [(given, 1)]
        while waiting:
            value, depth = waiting.pop()
            if depth > _DEEPEST:
                raise ValueError(f"it is nested too deeply: {_DEEPEST} levels at most")
            if isinstance(value, Mapping):
                waiting.extend((one, depth + 1) for pair in value.items() for one in pair)
            elif isinstance(value, list | tuple):
                waiting.extend((one, depth + 1) for one in value)
            elif isinstance(value, str) and not encodable(value):
                raise ValueError("it cannot be written as UTF-8: half a surrogate pair stands in it")
        return given

    def raw(self, source: str, namespace: str, tenant: str) -> RawDocument:
        """As the index pool gets it. Raises: InputError for a suffix without a reader."""
        if not has_reader(self.suffix.lower()):
            raise InputError("suffix", self.suffix, no_reader(self.suffix.lower()))
        content = self.content.encode("utf-8", "replace") if isinstance(self.content, str) else self.content
        return RawDocument(
            source=source, path=f"{source}/{self.path or self.id}", identity=pushed_identity(source, self.id),
            suffix=self.suffix.lower(), content=content, namespace=namespace, tenant=tenant, whole=True,
            metadata=self.metadata,
        )  # fmt: skip


def pushed_identity(source: str, id_: str) -> str:
    """What makes a pushed document's id in the store: no path is spelt so."""
    return f"{source}:{id_}"


class Feeding:
    """Puts documents in, as jobs: each method that submits one takes the namespace and the tenant that they go to."""

    settings: Settings
    tenant: str | None
    _ingesting: Ingesting
    _scope: TenantScope

    @contextmanager
    def _own_job(self, job_id: str) -> Iterator[None]:
        """For what is asked of one job. Raises: NotFoundError for another tenant's, NotRunningError."""
        with reachable(self.settings):
            self._scope.check_job(job_id)
            yield

    def ingest(  # noqa: PLR0913 - what an ingest may be asked for
        self,
        paths: Paths,
        *,
        prune: bool = False,
        namespace: str = "default",
        tenant: str | None = None,
        deadline_s: float | None = None,
        dry_run: bool = False,
    ) -> Iterator[Progress]:
        """Put files into a tenant's corpus; yields progress. The job goes on where the caller stops listening.

        `dry_run`: nothing is put in; what would become of each document is told, and `ingest_result` counts the answers
        that rest on documents which would change or go.
        `prune`: what the corpus has from these paths and is not there any more is removed. Another ingest of these
        files is waited for.
        Raises: InputError, NotRunningError, RamifyError when the job ends otherwise than done.
        """
        chosen = _chosen(paths)
        options = self._options(namespace, tenant, deadline_s, prune=prune, dry_run=dry_run)
        with reachable(self.settings):
            while True:
                try:
                    yield from self._ingest(chosen, options)
                except IngestUnderWayError as other:
                    yield from self._ingesting.wait_for(other)
                else:
                    return

    def _ingest(self, paths: Sequence[Path], options: IngestOptions) -> Iterator[Progress]:
        if self._ingesting.by_name():
            yield from self._ingesting.follow(self._ingesting.submit_paths(paths, options))
            return
        roots = list(dict.fromkeys(checked_root(path) for path in paths))
        job_id = self._ingesting.submit(HandedOver.DOCUMENTS, [str(root) for root in roots], options)
        with HandOver(self._ingesting, job_id, options) as hand_over:
            yield from hand_over.files(roots)
        yield from self._ingesting.follow(job_id, hand_over.after)

    def start_ingest(
        self,
        paths: Paths,
        *,
        prune: bool = False,
        namespace: str = "default",
        tenant: str | None = None,
        deadline_s: float | None = None,
    ) -> str:
        """The same without following it; returns the job's id at once where the index pool reads the files itself.

        Else when all are handed over (`reads_by_name` tells which). Raises besides: IngestUnderWayError.
        """
        chosen, options = _chosen(paths), self._options(namespace, tenant, deadline_s, prune=prune)
        with reachable(self.settings):
            if self._ingesting.by_name():
                return self._ingesting.submit_paths(chosen, options)
            roots = list(dict.fromkeys(checked_root(path) for path in chosen))
            job_id = self._ingesting.submit(HandedOver.DOCUMENTS, [str(root) for root in roots], options)
            with HandOver(self._ingesting, job_id, options) as hand_over:
                for _ in hand_over.files(roots):
                    pass
            return job_id

    def reads_by_name(self) -> bool:
        """True where the index pool reads this machine's files itself, so that their names will do."""
        with reachable(self.settings):
            return self._ingesting.by_name()

    def ingest_changes(
        self, root: Path | str, changed: Iterable[Path | str], *, namespace: str = "default", tenant: str | None = None
    ) -> Iterator[Progress]:
        """Put in what has changed of these files and folders below `root`, and remove what of them is gone.

        Raises: as `ingest`.
        """
        options = self._options(namespace, tenant)
        with reachable(self.settings):
            resolved, paths = checked_root(Path(root)), [Path(path) for path in changed]
            if self._ingesting.by_name():
                yield from self._ingesting.follow(self._ingesting.submit_paths([resolved], options, paths))
                return
            job_id = self._ingesting.submit(HandedOver.DOCUMENTS, [str(resolved)], options)
            with HandOver(self._ingesting, job_id, options) as hand_over:
                yield from hand_over.changes(resolved, paths)
            yield from self._ingesting.follow(job_id, hand_over.after)

    def upsert(
        self,
        documents: Iterable[PushedDocument | Mapping[str, Any]],
        *,
        source: str,
        removed: Iterable[str] = (),
        namespace: str = "default",
        tenant: str | None = None,
    ) -> str:
        """Put documents of another program in, or in the place of their older forms; returns the job's id.

        `source` names the program's documents: ids are its own. `removed`: ids of those that go, read behind the last
        document. Documents are taken as they are needed, and the call returns when all are handed over; `wait` waits
        for the job. Behind a document that cannot be taken none is.
        Raises: InputError, LaneFullError, RamifyError.
        """
        options, source = self._options(namespace, tenant), checked_name("source", source)
        own = {"tenant": options.tenant, "namespace": options.namespace, "source": source}
        stream = _raw(documents, source, options)
        first = list(islice(stream, 1))  # what is wrong from its beginning makes no job
        with reachable(self.settings):
            job_id = self._ingesting.submit(HandedOver.DOCUMENTS, [source], options)
            with HandOver(self._ingesting, job_id, options) as hand_over:
                for _ in hand_over.documents(source, chain(first, stream)):
                    pass
                names = (pushed_identity(source, id_) for id_ in removed)
                while page := tuple(islice(names, _REMOVED)):
                    hand_over.put(IngestItem(removed=page, **own))
            return job_id

    def delete(self, ids: Iterable[str], *, source: str, namespace: str = "default", tenant: str | None = None) -> str:
        """Remove documents that were put in by `upsert`, by their ids; returns the job's id.

        Ids of which there is none are no fault. Raises: InputError, LaneFullError, RamifyError.
        """
        return self.upsert((), source=source, removed=ids, namespace=namespace, tenant=tenant)

    def follow_ingest(self, job_id: str) -> Iterator[Progress]:
        """The steps of an ingest that was submitted before, from its beginning. Raises: as `ingest`."""
        with self._own_job(job_id):
            yield from self._ingesting.follow(job_id)

    def ingest_result(self, job_id: str) -> IngestResult:
        """How far an ingest is, or how it ended, with what failed. Raises: NotFoundError, RamifyError."""
        with self._own_job(job_id):
            return self._ingesting.result(job_id)

    def _options(
        self,
        namespace: str,
        tenant: str | None,
        deadline_s: float | None = None,
        *,
        prune: bool = False,
        dry_run: bool = False,
    ) -> IngestOptions:
        return IngestOptions(bound_tenant(self.tenant, tenant), namespace, prune, deadline_s, dry_run)


def _chosen(paths: Paths) -> list[Path]:
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def _raw(
    documents: Iterable[PushedDocument | Mapping[str, Any]], source: str, options: IngestOptions
) -> Iterator[RawDocument | None]:
    for given in documents:
        try:
            document = given if isinstance(given, PushedDocument) else PushedDocument.model_validate(given)
        except ValidationError as error:
            raise request_fault(error) from None
        yield document.raw(source, options.namespace, options.tenant)
        yield None
