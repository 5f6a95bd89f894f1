"""Directories in the store: their nodes as chunks, ready to write, and what describes them. Writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from qdrant_client import models

from shared.language.page_keys import path_key
from shared.models import Chunk, Cost, Hit
from shared.models.hits import PagePart
from shared.providers.encoders import DenseEncoder
from shared.store import ChunkPoint, ChunkStore
from shared.store.directories import dirs_namespace, dirs_source, lineage, parent_of
from shared.store.schema import DOCUMENT_FIELDS, equals, hashes_of, of_source, one_of, sliced
from workers.index.directories.describe import Described, lead_of
from workers.index.directories.tree import Directory, DirectoryEntry
from workers.index.documents import document_id
from workers.index.encoding import dense_vectors
from workers.index.keywords import KeywordEncoders

_DIRECTORY = "directory"
_ENTRY_FIELDS = ("doc_id", "document_hash", "path", "title", "kind")
#: Documents whose beginnings are read with one request.
_PAGE = 500


def node_id(namespace: str, path: str, tenant: str) -> str:
    """The doc_id of a directory's node: the same over ingests."""
    return document_id(path, dirs_namespace(namespace), tenant)


def points_of(
    namespace: str,
    tenant: str,
    described: Sequence[tuple[Directory, Described, str]],
    dense: DenseEncoder | None,
    encoders: KeywordEncoders,
) -> tuple[list[ChunkPoint], Cost]:
    """Two points a directory, with the hash given with it, and what the encoder cost. Raises: EncoderError."""
    chunks = [chunk for directory, words, _ in described for chunk in _chunks(namespace, tenant, directory, words)]
    hashes = [content_hash for _, _, content_hash in described for _ in (PagePart.ABSTRACT, PagePart.OVERVIEW)]
    vectors, cost = dense_vectors(dense, chunks)
    points = [
        ChunkPoint(
            chunk=chunk,
            document_hash=content_hash,
            source=dirs_source(namespace),
            dense=vector,
            **encoders.vectors(chunk.full_text),
        )
        for chunk, content_hash, vector in zip(chunks, hashes, vectors, strict=True)
    ]
    return points, cost


def _chunks(namespace: str, tenant: str, directory: Directory, words: Described) -> list[Chunk]:
    """The abstract, then the overview. Their ids do not depend on the text: a new one takes the old one's place."""
    doc_id = node_id(namespace, directory.path, tenant)
    parent = parent_of(directory.path)
    above = [at.strip("/") for at in lineage(directory.path)][1:-1]
    return [
        Chunk(
            chunk_id=str(uuid.uuid5(uuid.UUID(doc_id), part.value)),
            doc_id=doc_id,
            path=directory.path,
            title=directory.name,
            heading=above[0].replace("/", " > ") if above else "",
            text=text,
            tags=tuple(sorted(directory.kinds)),
            kind=_DIRECTORY,
            ordinal=ordinal,
            namespace=dirs_namespace(namespace),
            part=part,
            defines=(path_key(directory.path), *directory.root_keys),
            refs=(path_key(parent),) if parent else (),
            mentions=tuple(map(path_key, directory.below)),
        )
        for ordinal, (part, text) in enumerate(
            ((PagePart.ABSTRACT, words.abstract), (PagePart.OVERVIEW, words.overview))
        )
    ]


def entries(store: ChunkStore, namespace: str) -> Iterator[DirectoryEntry]:
    """Every document of the namespace."""
    flt = models.Filter(must=[equals("namespace", namespace), equals("ordinal", 0)])
    for _, payload in store.read(flt, _ENTRY_FIELDS):
        yield DirectoryEntry(*(payload[name] for name in _ENTRY_FIELDS))


def stored_nodes(store: ChunkStore, namespace: str) -> tuple[dict[str, str], set[str]]:
    """The digests of the namespace's whole nodes by doc_id, and the doc_ids of all, torn ones too."""
    payloads = [payload for _, payload in store.read(of_source(dirs_source(namespace)), DOCUMENT_FIELDS)]
    return hashes_of(payloads), {payload["doc_id"] for payload in payloads}


def beginnings(store: ChunkStore, doc_ids: Sequence[str]) -> dict[str, str]:
    """How documents begin: by their compiled truth where they have one, else by their first chunk."""
    found: dict[str, Hit] = {}
    for some in sliced(list(doc_ids), _PAGE):
        first = models.Filter(should=[equals("ordinal", 0), equals("part", PagePart.TRUTH.value)])
        for hit in _all(store, models.Filter(must=[one_of("doc_id", some), first])):
            known = found.get(hit.doc_id)
            if known is None or _rank(hit) < _rank(known):
                found[hit.doc_id] = hit
    return {doc_id: lead_of(hit) for doc_id, hit in found.items()}


def abstracts(store: ChunkStore, namespace: str, paths: Sequence[str]) -> dict[str, str]:
    """The stored abstracts of these directories, by path."""
    found: dict[str, str] = {}
    own = [equals("namespace", dirs_namespace(namespace)), equals("part", PagePart.ABSTRACT.value)]
    for some in sliced(list(paths), _PAGE):
        found |= {hit.path: hit.text for hit in _all(store, models.Filter(must=[*own, one_of("path", some)]))}
    return found


def _all(store: ChunkStore, flt: models.Filter) -> Iterator[Hit]:
    return (hit for page in store.scroll(flt) for hit in page)


def _rank(chunk: Chunk) -> tuple[bool, int]:
    return chunk.part is not PagePart.TRUTH, chunk.ordinal
