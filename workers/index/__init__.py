"""Ingest: bytes to documents to chunks to points. Never answers a question and never touches Redis."""

from workers.index.chunking import chunk_document
from workers.index.documents import Document, document_hash, document_id, prune_scope
from workers.index.pipeline import Indexer
from workers.index.readers import READERS, read_documents

__all__ = [
    "READERS", "Document", "Indexer", "chunk_document", "document_hash", "document_id", "prune_scope",
    "read_documents",
]  # fmt: skip
