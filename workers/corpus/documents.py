"""The documents of one tenant's store: pages of them, and those that a name may mean. Reads, and changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from qdrant_client import models

from shared.language.page_keys import folded, title_key
from shared.models import PagePart
from shared.models.corpus import DocumentsReply, DocumentsRequest, StoredDocument
from shared.store import ChunkStore
from shared.store.schema import DOCUMENT, equals, of_documents, one_of

_FIELDS = ("doc_id", "path", "title", "source", "namespace", "kind", "tags", "date", DOCUMENT)
#: Documents that a name may mean, of which some are shown.
_CANDIDATES = 20


def page_of(store: ChunkStore, request: DocumentsRequest) -> DocumentsReply:
    """A page of the documents, by the ids of their first chunks."""
    flt = _documents(request.namespace)
    rows = list(islice(store.read(flt, _FIELDS, request.start), request.most + 1))
    following = rows[request.most][0] if len(rows) > request.most else ""
    total = 0 if request.start else store.count(flt)
    return DocumentsReply(
        documents=tuple(_document(row) for _, row in rows[: request.most]), following=following, total=total
    )


def meant(store: ChunkStore, name: str, namespace: str | None) -> list[StoredDocument]:
    """The documents that a name may mean: by id, path or title, by the end of the path, by a part of these."""
    if _is_id(name) and (found := list(_read(store, None, of_documents([name])))):
        return found
    for way in (equals("path", name), equals("defines", title_key(name))):
        if found := list(islice(_read(store, namespace, way), _CANDIDATES)):
            return found
    part = folded(name)
    ends: list[StoredDocument] = []
    others: list[StoredDocument] = []
    for one in _read(store, namespace):
        path = folded(one.path)
        if path.endswith(f"/{part}"):
            ends.append(one)
        elif len(others) < _CANDIDATES and (part in path or part in folded(one.title)):
            others.append(one)
    return sorted(ends[:_CANDIDATES] or others, key=lambda one: one.path)


def _read(store: ChunkStore, namespace: str | None, *conditions: models.Condition) -> Iterator[StoredDocument]:
    return (_document(row) for _, row in store.read(_documents(namespace, *conditions), _FIELDS))


def _documents(namespace: str | None, *conditions: models.Condition) -> models.Filter:
    """The first chunks of documents; directory nodes are none."""
    own = [equals("namespace", namespace)] if namespace else []
    nodes = one_of("part", (PagePart.ABSTRACT.value, PagePart.OVERVIEW.value))
    return models.Filter(must=[equals("ordinal", 0), *own, *conditions], must_not=[nodes])


def _document(row: Mapping[str, Any]) -> StoredDocument:
    fields = {name: row[name] for name in _FIELDS if name in row and name != DOCUMENT}
    return StoredDocument(**fields, size=row.get(DOCUMENT))


def _is_id(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
