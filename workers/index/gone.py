"""Which stored documents are to go: pruned, named, or no more in a file that came whole. Reads, and removes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

from shared.files.found import FoundFile
from shared.models import DocumentOutcome, DocumentStatus, RawDocument
from shared.store import ChunkStore
from workers.index.documents import Document, document_id, file_id, prune_scope

#: A file and what was read of it.
ReadItems = tuple[RawDocument, Sequence[Document | DocumentOutcome]]


def outcomes(lost: Mapping[str, str]) -> list[DocumentOutcome]:
    """What became of documents that are gone: id -> path."""
    return [DocumentOutcome(path=path, doc_id=doc_id, status=DocumentStatus.REMOVED) for doc_id, path in lost.items()]


def pruned(
    store: ChunkStore, namespace: str, seen: Mapping[str, Collection[str]], unreadable: Collection[str]
) -> dict[str, str]:
    """What is stored of sources beyond the ids that were seen there, but for files that could not be read."""
    files, lost = set(unreadable), dict[str, str]()
    for source, ids in seen.items():
        keep = set(ids)
        lost |= {
            doc_id: path
            for doc_id, path in store.documents(prune_scope(source, namespace)).items()
            if doc_id not in keep and path not in files and path.rpartition("#")[0] not in files
        }
    return lost


def named(store: ChunkStore, source: str, namespace: str, identities: Collection[str]) -> dict[str, str]:
    """The documents of files, of all files below folders, or of other identities."""
    root = Path(source)
    shown = {FoundFile(root, Path(name)).shown for name in identities if Path(name).is_relative_to(root)}
    ids = {document_id(name, namespace, store.tenant) for name in identities}
    known = store.documents(prune_scope(source, namespace))
    lost = {doc_id: path for doc_id, path in known.items() if doc_id in ids or _is_below(path, shown)}
    others = store.origins([doc_id for doc_id in ids if doc_id not in lost])
    return lost | {doc_id: path for doc_id, (_, path) in others.items()} | store.parts_of(list(ids))


def of_whole_files(store: ChunkStore, read: Sequence[ReadItems]) -> dict[str, str]:
    """What is stored of files that came whole and is no more in them; of what failed nothing."""
    whole = [(raw, items) for raw, items in read if raw.whole and all(isinstance(one, Document) for one in items)]
    kept = {one.doc_id for _, items in whole for one in items}
    return _beyond(store, [file_id(raw) for raw, _ in whole], kept)


def of_pieces(store: ChunkStore, namespace: str, pieces: Mapping[str, Collection[str]]) -> dict[str, str]:
    """What is stored of files that came in pieces, all of them, and is in none of these: file -> ids that were."""
    kept = {doc_id for ids in pieces.values() for doc_id in ids}
    return _beyond(store, [document_id(file, namespace, store.tenant) for file in pieces], kept)


def _beyond(store: ChunkStore, files: Sequence[str], kept: Collection[str]) -> dict[str, str]:
    """The stored documents of files beyond these."""
    stored = store.parts_of(files)
    alone = store.origins([one for one in files if one not in kept])
    stored |= {doc_id: path for doc_id, (_, path) in alone.items()}
    return {doc_id: path for doc_id, path in stored.items() if doc_id not in kept}


def _is_below(path: str, shown: Collection[str]) -> bool:
    """True for a document of one of these files, or of a file in one of these folders."""
    file = path.partition("#")[0]
    return path in shown or file in shown or any(str(folder) in shown for folder in PurePosixPath(file).parents)
