"""What is encoded of a chunk, how long it is, and its dense vector if there is an encoder. Never writes to a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shared.encoders import DenseEncoder, SparseEncoder
from shared.errors import PermanentError, RamifyError, ReplyError, StoreError, TransientError
from shared.models import Chunk, Cost

#: Passages of one call to the dense encoder, which makes its own smaller batches.
_PASSAGES = 512


class EncoderError(RamifyError):
    """The encoder failed, not the store: the batch's documents fail with this sentence, the ingest goes on."""


@contextmanager
def encoder_errors() -> Iterator[None]:
    """Tells an encoder's errors from a store's, which have the same classes."""
    try:
        yield
    except StoreError:
        raise
    except (TransientError, PermanentError, ReplyError) as error:
        raise EncoderError(str(error)) from error


def mean_length(encoder: SparseEncoder, chunks: Sequence[Chunk]) -> float:
    """Average passage length in tokens, at least 1."""
    return max(sum(encoder.length(chunk.full_text) for chunk in chunks) / len(chunks), 1.0) if chunks else 1.0


def dense_vectors(encoder: DenseEncoder | None, chunks: Sequence[Chunk]) -> tuple[list[tuple[float, ...]], Cost]:
    """One vector a chunk, empty without an encoder, and what they cost.

    Raises: EncoderError.
    """
    if encoder is None:
        return [()] * len(chunks), Cost()
    vectors: list[tuple[float, ...]] = []
    cost = Cost()
    for start in range(0, len(chunks), _PASSAGES):
        texts = [chunk.full_text for chunk in chunks[start : start + _PASSAGES]]
        with encoder_errors():
            embedded = encoder.embed_passages(texts)
            if len(embedded.vectors) != len(texts):
                raise PermanentError(f"{encoder.name} gave {len(embedded.vectors)} vectors for {len(texts)} passages")
        vectors += embedded.vectors
        cost += Cost(embed_calls=embedded.calls, embed_tokens=embedded.tokens)
    return vectors, cost
