"""The tasks that look at a corpus and change it, in this process, over one embedded collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from celery.result import EagerResult

from orchestrator.documents.corpus import Corpus
from shared.contract import TaskName
from shared.models import Answer, DocumentOutcome, RawDocument
from shared.models.base import Model
from shared.models.ingest import IngestResult
from shared.settings import Settings
from shared.tenants import DEFAULT_TENANT
from tests.fakes.stores import OpenedStore, open_store
from workers.corpus.replies import documents_reply, passage_reply, remove_reply
from workers.index.pipeline import Indexer
from workers.index.readers import READERS


class Pools:
    """The pools' tasks in this process, over one collection; a corpus for each tenant."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._first = open_store(settings)
        self.store = cache(lambda tenant: OpenedStore(self._first.collection, tenant))
        self.indexer = cache(lambda tenant: Indexer(self.store(tenant), None, settings))
        self.answers: dict[str, Answer] = {}
        self.ingests: list[IngestResult] = []
        self.checked: dict[str, str] = {}

    def _check(self, _: str, changed: Sequence[DocumentOutcome]) -> None:
        self.checked.update((one.doc_id, one.path) for one in changed)

    def send_task(self, name: str, args: tuple[Any], **_: object) -> EagerResult:
        replies: dict[str, Callable[[dict[str, Any]], Model]] = {
            TaskName.SEARCH_DOCUMENTS: partial(documents_reply, self.store),
            TaskName.SEARCH_PASSAGE: partial(passage_reply, self.store),
            TaskName.INDEX_REMOVE: partial(remove_reply, self.indexer, check=self._check),
        }
        return EagerResult("1", replies[name](*args).model_dump_json(), "SUCCESS")

    def corpus(self, tenant: str = DEFAULT_TENANT) -> Corpus:
        app: Any = self
        return Corpus(app, self.settings, tenant, lambda job_id: self.answers[job_id], lambda: self.ingests)

    def ingest(self, folder: Path, tenant: str = DEFAULT_TENANT) -> None:
        files = sorted(file for file in folder.rglob("*") if file.suffix in READERS)
        raws = [
            RawDocument(
                source=str(folder), path=f"{folder.name}/{file.relative_to(folder)}", identity=str(file),
                suffix=file.suffix, content=file.read_bytes(), tenant=tenant,
            )
            for file in files
        ]  # fmt: skip
        self.indexer(tenant).index(raws)

    def close(self) -> None:
        self._first.close()
