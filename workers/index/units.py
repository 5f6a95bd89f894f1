"""Recognises files that the store has already, by a hash of their bytes, so that their contents need not travel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from shared.job_store.inbox import Offer, Offers
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.settings.sections import Chunking
from shared.store import ChunkStore
from shared.store.filters import of_documents
from shared.store.units import Held, whole_units
from workers.index.documents import INDEX_VERSION, Document, prune_scope
from workers.index.origin import belongs_to


class Unit(NamedTuple):
    """What a document was read from: the key of that file or piece, and how many documents it has."""

    key: str
    size: int

    def fields(self) -> dict[str, Any]:
        """As a chunk carries it."""
        return {"unit": self.key, "unit_size": self.size}


def unit_key(offer: Offer, namespace: str, sizes: Chunking) -> str:
    """SHA-256 (hex) over all that decides what a piece becomes: its bytes, its place, and how it is read and cut.

    The root and the shown path are left out: they may differ from one ingest to the next, and are compared apart.
    """
    parts = [INDEX_VERSION, sizes.model_dump(mode="json"), namespace, offer.identity, offer.line_offset, offer.digest]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def units_of(
    read: Sequence[tuple[RawDocument, Sequence[Document | DocumentOutcome]]], sizes: Chunking
) -> dict[str, Unit]:
    """doc_id -> its unit, of the pieces that gave nothing but documents without a note.

    What a person must be told (a bad line, a date left out) is told on every ingest, so such a piece always travels.
    """
    units: dict[str, Unit] = {}
    for raw, items in read:
        documents = [item for item in items if isinstance(item, Document) and not item.notes]
        if len(documents) == len(items):
            digest = hashlib.sha256(raw.content).hexdigest()
            offer = Offer(identity=raw.identity, digest=digest, line_offset=raw.line_offset)
            unit = Unit(unit_key(offer, raw.namespace, sizes), len(documents))
            units |= {document.doc_id: unit for document in documents}
    return units


def answer_offers(store: ChunkStore, offers: Offers, sizes: Chunking) -> tuple[list[DocumentOutcome], list[int]]:
    """Outcomes of the offers that are stored whole, and the numbers of those that must travel.

    A file travels with all its pieces or with none: what a later piece says of an id must still come later.
    Raises: StoreError or TransientError of the store.
    """
    keys = [unit_key(offer, offers.namespace, sizes) for offer in offers.offers]
    held = whole_units(store, keys)
    scope = prune_scope(offers.source, offers.namespace)
    wanted = {offer.identity for offer, key in zip(offers.offers, keys, strict=True) if not _at_home(held, key, scope)}
    outcomes = [
        DocumentOutcome(path=document.path, doc_id=document.doc_id, status=DocumentStatus.UNCHANGED)
        for offer, key in zip(offers.offers, keys, strict=True)
        if offer.identity not in wanted
        for document in held[key]
    ]
    return outcomes, [number for number, offer in enumerate(offers.offers) if offer.identity in wanted]


def mark_units(store: ChunkStore, units: Mapping[str, Unit], unchanged: Collection[str]) -> None:
    """Note the units of documents that were stored already: their bytes differ, but not what was read from them."""
    if known := [doc_id for doc_id in unchanged if doc_id in units]:
        chunks = [
            (chunk_id, units[held["doc_id"]], held.get("unit"))
            for chunk_id, held in store.read(of_documents(known), ("doc_id", "unit"))
        ]
        if changes := {chunk_id: unit.fields() for chunk_id, unit, stored in chunks if stored != unit.key}:
            store.set_payloads(changes)


def _at_home(held: Mapping[str, Sequence[Held]], key: str, scope: str) -> bool:
    return key in held and all(belongs_to(document.source, scope) for document in held[key])
