"""Answers what is asked of a tenant's corpus. Each reply holds its error instead of raising it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared.contract import read_request
from shared.errors import InputError, RamifyError
from shared.models import DocumentOutcome
from shared.models.corpus import (
    DocumentsReply,
    DocumentsRequest,
    PassageReply,
    PassageRequest,
    RemoveReply,
    RemoveRequest,
)
from shared.store import ChunkStore
from shared.store.snapshot_file import SNAPSHOTS, StoreReply, StoreRequest
from workers.corpus.documents import meant, page_of
from workers.corpus.passages import passage_of, read_text
from workers.index.pipeline import Indexer
from workers.search.resources import SearchResources


def documents_reply(store_of: Callable[[str], ChunkStore], raw: dict[str, Any]) -> DocumentsReply:
    """A page of a tenant's documents."""
    try:
        request = read_request(DocumentsRequest, raw)
        return page_of(store_of(request.tenant), request)
    except (RamifyError, ValidationError) as error:
        return DocumentsReply(error=str(error))


def passage_reply(store_of: Callable[[str], ChunkStore], raw: dict[str, Any]) -> PassageReply:
    """A passage of the document that a name means, or the documents that it may mean."""
    try:
        request = read_request(PassageRequest, raw)
        store = store_of(request.tenant)
        found = meant(store, request.name, request.namespace)
        if len(found) != 1:
            return PassageReply(candidates=tuple(found))
        return PassageReply(passage=passage_of(read_text(store, found[0].doc_id), found[0], request))
    except InputError as error:
        return PassageReply(bad_input=(error.field, str(error.value), error.fix))
    except (RamifyError, ValidationError) as error:
        return PassageReply(error=str(error))


def remove_reply(
    indexer_of: Callable[[str], Indexer], raw: dict[str, Any], check: Callable[[str, Sequence[DocumentOutcome]], object]
) -> RemoveReply:
    """Remove documents, and at the end do what an ingest does at its end: directories, links, backlinks.

    `check` holds kept answers against what was removed.
    """
    try:
        request = read_request(RemoveRequest, raw)
        indexer = indexer_of(request.tenant)
        outcomes = indexer.remove_documents(request.doc_ids)
        for namespace in request.namespaces if request.last else ():
            indexer.finish(namespace=namespace)
            indexer.optimize()
        check(request.tenant, outcomes)
        return RemoveReply(outcomes=tuple(outcomes))
    except (RamifyError, ValidationError) as error:
        return RemoveReply(error=str(error))


def store_reply(resources: SearchResources, data_dir: Path, raw: dict[str, Any]) -> StoreReply:
    """The embedded store that this process owns, of all tenants; written into a snapshot, if one is named."""
    try:
        request = read_request(StoreRequest, raw)
        state = resources.stored()
        to = data_dir.absolute() / SNAPSHOTS / request.snapshot
        return StoreReply(state=state, snapshot=resources.snapshot(to) if request.snapshot and state else None)
    except (RamifyError, ValidationError) as error:
        return StoreReply(error=str(error))
