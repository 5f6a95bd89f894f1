"""Keeps BM25's average passage length true to a tenant's corpus. Never touches dense vectors or text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from shared.encoders import SparseEncoder
from shared.store import ChunkStore
from shared.store.directories import in_dirs
from workers.index.encoding import mean_length

SparseFactory = Callable[[float], SparseEncoder]

#: Weights are made anew when the mean length is off by more than this share of the recorded one.
MAX_DRIFT = 0.10
_PAGE = 256
#: Chunk ids are hashes, so the first pages in id order are a random sample. With passage lengths that spread as widely
#: as their mean, 2,048 of them put the mean within about 4 % (two standard errors).
_SAMPLE_PAGES = 8


def measured_length(store: ChunkStore, encoder: SparseEncoder) -> float:
    """Mean passage length in tokens of (a sample of) the documents' chunks, 0 without; directory nodes do not count."""
    pages = islice(store.scroll(None, _PAGE), _SAMPLE_PAGES)
    sample = [hit for page in pages for hit in page if not in_dirs(hit)]
    return mean_length(encoder, sample) if sample else 0.0


def refit(store: ChunkStore, make: SparseFactory, avg_len: float) -> float:
    """Make all sparse vectors anew if the mean length drifted from `avg_len` by more than MAX_DRIFT.

    Returns the average length that counts from now on. It is recorded last, so an interrupted run is done again.
    """
    found = measured_length(store, make(avg_len))
    if not found or abs(found / avg_len - 1) <= MAX_DRIFT:
        return avg_len
    encoder = make(found)
    for page in store.scroll(None, _PAGE):
        store.set_sparse({hit.chunk_id: encoder.encode_passage(hit.full_text) for hit in page}, avg_len)
    store.set_sparse({}, found)
    return found
