"""Which documents a scan reads: its filter as the store has it, and documents with all their chunks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from qdrant_client import models

from shared.models import Filters
from shared.models.enumeration import Choice, Scan
from shared.models.hits import PagePart
from shared.store import ChunkStore, fields
from shared.store.schema import equals, one_of, to_filter
from workers.enumerate.document import ListedDocument

FIRST_CHUNK = models.FieldCondition(key="ordinal", range=models.Range(gte=0, lte=0))
FURTHER_CHUNKS = models.FieldCondition(key="ordinal", range=models.Range(gte=1))
_HAVING: dict[str, models.Condition] = {
    "date": models.FieldCondition(key="day", range=models.Range(gte=0)),
    "tags": models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="tags"))]),
}
CODE = equals("part", PagePart.CODE)


def documents_of(scan: Scan) -> models.Filter:
    """The first chunk of every document that the scan's filters let in; what it must say is not tested here."""
    must: list[models.Condition] = [to_filter(scan.filters), to_filter(scan.found), FIRST_CHUNK]
    must += [one_of("tags", group) for group in scan.tags]
    must += [fields.condition(wanted) for wanted in scan.fields]
    must += map(_choice, scan.choices)
    if scan.dates:
        spans: list[models.Condition] = [_in_namespace(span, scan.found.namespace) for span in scan.dates]
        must.append(models.Filter(should=spans))
    must += [CODE] if scan.code else []
    out: list[models.Condition] = []
    out += [one_of("tags", scan.without_tags)] if scan.without_tags else []
    out += [one_of("kind", scan.without_kinds)] if scan.without_kinds else []
    out += [models.FieldCondition(key="path", match=models.MatchPrefix(prefix=path)) for path in scan.without_paths]
    out += map(_in_namespace, scan.without_dates, repeat(scan.found.namespace))
    out += [_HAVING[name] for name in scan.lacking]
    return models.Filter(must=must, must_not=out or None)


def _choice(choice: Choice) -> models.Filter:
    ways = [*map(fields.condition, choice.fields), *(one_of("tags", (tag,)) for tag in choice.tags)]
    if choice.least == 1:
        return models.Filter(should=ways)
    return models.Filter(min_should=models.MinShould(conditions=ways, min_count=choice.least))


def _in_namespace(span: Filters, namespace: str) -> models.Filter:
    return to_filter(span.model_copy(update={"namespace": namespace}))


def whole(store: ChunkStore, batch: list[dict[str, Any]], payload_fields: Sequence[str]) -> list[ListedDocument]:
    """The documents of a batch with all their chunks."""
    documents = {str(payload["doc_id"]): ListedDocument(payload) for payload in batch}
    for payload in batch:
        documents[str(payload["doc_id"])].add(payload)
    further = models.Filter(must=[one_of("doc_id", list(documents)), FURTHER_CHUNKS])
    for _, payload in store.read(further, payload_fields):
        documents[str(payload["doc_id"])].add(payload)
    return list(documents.values())
