"""A described directory as two chunks, ready to store: where they stand and what leads to them. Writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Protocol

from shared.encoders import DenseEncoder, SparseEncoder, SparseVector
from shared.encoders.trigram import TrigramEncoder
from shared.models import Chunk, Cost
from shared.models.hits import Part
from shared.store import ChunkPoint
from shared.store.directories import dirs_namespace, dirs_source, lineage, parent_of, path_key
from workers.index.directories.describe import Described
from workers.index.directories.tree import Directory
from workers.index.documents import document_id
from workers.index.encoding import dense_vectors

_DIRECTORY = "directory"


class Encoders(Protocol):
    """What keyword vectors are made with; no trigrams: the collection has none."""

    @property
    def sparse(self) -> SparseEncoder: ...

    @property
    def trigrams(self) -> TrigramEncoder | None: ...


def node_id(namespace: str, path: str, tenant: str) -> str:
    """The doc_id of a directory: the same for ever."""
    return document_id(path, dirs_namespace(namespace), tenant)


def points_of(
    namespace: str,
    tenant: str,
    described: Sequence[tuple[Directory, Described, str]],
    dense: DenseEncoder | None,
    encoders: Encoders,
) -> tuple[list[ChunkPoint], Cost]:
    """Two points a directory, with the hash that is given with it, and what the dense encoder cost.

    Raises: EncoderError.
    """
    chunks = [chunk for directory, words, _ in described for chunk in _chunks(namespace, tenant, directory, words)]
    hashes = [content_hash for _, _, content_hash in described for _ in (Part.ABSTRACT, Part.OVERVIEW)]
    vectors, cost = dense_vectors(dense, chunks)
    points = [
        ChunkPoint(
            chunk=chunk,
            document_hash=content_hash,
            source=dirs_source(namespace),
            sparse=encoders.sparse.encode_passage(chunk.full_text),
            dense=vector,
            trigrams=encoders.trigrams.encode_passage(chunk.full_text) if encoders.trigrams else SparseVector(),
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
        for ordinal, (part, text) in enumerate(((Part.ABSTRACT, words.abstract), (Part.OVERVIEW, words.overview)))
    ]
