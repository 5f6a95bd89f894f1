"""Ingest: bytes to documents to chunks to points. Never answers a question and never touches Redis."""
