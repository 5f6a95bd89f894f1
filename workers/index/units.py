"""Recognises files that the store has already, by a hash of their bytes, so that their contents need not be sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import FileHash, FileHashes
from shared.settings.sections import ChunkingSettings
from shared.store import ChunkStore
from shared.store.schema import of_documents
from shared.store.units import whole_units
from workers.index.documents import INDEX_VERSION, Document, belongs_to, prune_scope


class Unit(NamedTuple):
    """What a document was read from: the key of that file or piece, and how many documents it has."""

    key: str
    size: int

    def fields(self) -> dict[str, Any]:
        """As a chunk carries it."""
        return {"unit": self.key, "unit_size": self.size}


def unit_key(file: FileHash, namespace: str, sizes: ChunkingSettings) -> str:
    """SHA-256 (hex) over all that decides what a piece becomes: its bytes, its place, and how it is read and cut.

    The root and the shown path are left out: they may differ from one ingest to the next, and are compared apart.
    """
    parts = [INDEX_VERSION, sizes.model_dump(mode="json"), namespace, file.identity, file.line_offset, file.digest]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def units_of(
    read: Sequence[tuple[RawDocument, Sequence[Document | DocumentOutcome]]], sizes: ChunkingSettings
) -> dict[str, Unit]:
    """doc_id -> its unit, of the pieces that gave nothing but documents without a note.

    A note (a bad line, a date left out) is reported on every ingest, so such a piece is always sent.
    """
    units: dict[str, Unit] = {}
    for raw, items in read:
        documents = [item for item in items if isinstance(item, Document) and not item.notes]
        if len(documents) == len(items):
            digest = hashlib.sha256(raw.content).hexdigest()
            file = FileHash(identity=raw.identity, digest=digest, line_offset=raw.line_offset)
            unit = Unit(unit_key(file, raw.namespace, sizes), len(documents))
            units |= {document.doc_id: unit for document in documents}
    return units


def split_known(
    store: ChunkStore, hashes: FileHashes, sizes: ChunkingSettings
) -> tuple[list[DocumentOutcome], list[int]]:
    """Outcomes of the files that are stored whole, and the numbers of those that must be sent.

    A file is sent with all its pieces or with none: of two documents of one id, the later one must still win.
    Raises: StoreError or TransientError of the store.
    """
    keys = [unit_key(file, hashes.namespace, sizes) for file in hashes.files]
    held = whole_units(store, keys)
    scope = prune_scope(hashes.source, hashes.namespace)
    wanted = {
        file.identity
        for file, key in zip(hashes.files, keys, strict=True)
        if key not in held or not all(belongs_to(document.source, scope) for document in held[key])
    }
    outcomes = [
        DocumentOutcome(path=document.path, doc_id=document.doc_id, status=DocumentStatus.UNCHANGED)
        for file, key in zip(hashes.files, keys, strict=True)
        if file.identity not in wanted
        for document in held[key]
    ]
    return outcomes, [number for number, file in enumerate(hashes.files) if file.identity in wanted]


def mark_units(store: ChunkStore, units: Mapping[str, Unit], unchanged: Collection[str]) -> None:
    """Store the units of documents that were stored already: their bytes differ, but not what was read from them."""
    if known := [doc_id for doc_id in unchanged if doc_id in units]:
        chunks = [
            (chunk_id, units[held["doc_id"]], held.get("unit"))
            for chunk_id, held in store.read(of_documents(known), ("doc_id", "unit"))
        ]
        if changes := {chunk_id: unit.fields() for chunk_id, unit, stored in chunks if stored != unit.key}:
            store.set_payloads(changes)
