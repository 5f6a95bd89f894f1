"""What an ingest would do: the steps of an `Indexer` up to what is written. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from shared.models import Cost, DocumentOutcome, DocumentStatus, RawDocument
from shared.models.ingest import FileHashes
from shared.settings.sections import ChunkingSettings
from shared.store import ChunkStore
from workers.index import gone
from workers.index.documents import Document, document_hash, with_known_origin
from workers.index.given_metadata import with_given
from workers.index.pipeline import last_of_each, last_of_whole, outcome_of, timed
from workers.index.readers import read_all
from workers.index.units import split_known


class DryRun:
    """Stands in for an indexer of one tenant's store. What cannot be cut or encoded, it does not find out."""

    def __init__(self, store: ChunkStore, sizes: ChunkingSettings) -> None:
        self._store, self._sizes = store, sizes

    def split_known(self, hashes: FileHashes) -> tuple[list[DocumentOutcome], list[int]]:
        """As an indexer's."""
        if self._store.info() is None:
            return [], list(range(len(hashes.files)))
        return split_known(self._store, hashes, self._sizes)

    def index(self, batch: Sequence[RawDocument]) -> tuple[list[DocumentOutcome], Cost]:
        """What would become of the documents, and what would be removed. Costs nothing."""
        with timed("reading"):
            read_files = read_all(batch, self._sizes.max_document_bytes)
            pieces = last_of_whole([(raw, with_given(raw, items)) for raw, items in read_files])
        read, _ = last_of_each([item for _, items in pieces for item in items])
        ids = [item.doc_id for item in read if isinstance(item, Document)]
        exists = self._store.info() is not None
        if exists:
            read = with_known_origin(read, self._store.origins(ids))
        stored = self._store.document_hashes(ids) if exists else {}
        outcomes = [self._outcome(item, stored) if isinstance(item, Document) else item for item in read]
        return [*outcomes, *(gone.outcomes(gone.of_whole_files(self._store, pieces)) if exists else [])], Cost()

    def _outcome(self, document: Document, stored: Mapping[str, str]) -> DocumentOutcome:
        known = stored.get(document.doc_id)
        if known is None:
            return outcome_of(document, DocumentStatus.ADDED)
        same = known == document_hash(document, self._sizes)
        return outcome_of(document, DocumentStatus.UNCHANGED if same else DocumentStatus.CHANGED)

    def remove(self, source: str, namespace: str, identities: Collection[str]) -> list[DocumentOutcome]:
        """What would be removed."""
        return gone.outcomes(gone.named(self._store, source, namespace, identities)) if self._store.info() else []

    def finish(
        self,
        prune: Mapping[str, Collection[str]] | None,
        unreadable: Collection[str],
        namespace: str,
        pieces: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> list[DocumentOutcome]:
        """What a prune would remove, and what files in pieces have no more."""
        if self._store.info() is None:
            return []
        lost = gone.pruned(self._store, namespace, prune or {}, unreadable)
        return gone.outcomes(lost | gone.of_pieces(self._store, namespace, pieces))
