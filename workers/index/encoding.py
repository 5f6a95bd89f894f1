"""The encoders of a tenant's chunks: dense vectors, BM25 with its average passage length, trigrams. Writes no chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Lock

from shared.errors import PermanentError, RamifyError, ReplyError, StoreError, TransientError
from shared.models import Chunk, Cost
from shared.providers.encoders import Bm25Encoder, DenseEncoder
from shared.providers.encoders.sparse import TrigramEncoder
from shared.store import BuiltWith, ChunkStore, check_built_with
from shared.store.directories import in_dirs
from workers.index.keywords import KeywordEncoders, KeywordVectors

#: Passages of one call to the dense encoder, which makes its own smaller batches.
_PASSAGES = 512
#: Sparse vectors are encoded again when the mean length is off by more than this share of the recorded one. Up to it
#: the weights are those of k 1.0 to 1.4 and b 0.7 to 0.8, the range in which BM25 is used.
MAX_DRIFT = 0.25
_PAGE = 256
#: As many as keep several processes busy.
_REFIT_PAGE = 1024
#: Passages and what to encode them with -> their vectors.
Encode = Callable[[Sequence[str], KeywordEncoders], Sequence[KeywordVectors]]
#: Chunk ids are hashes, so the first pages in id order are a random sample. With passage lengths that spread half as
#: widely as their mean, 512 of them put the mean within about 4 % (two standard errors); each costs a third of a ms.
_SAMPLE_PAGES = 2
#: Times that the collection is made or joined: between a look at it and that, another process may do the same.
_TRIES = 3


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


def mean_length(encoder: Bm25Encoder, chunks: Sequence[Chunk]) -> float:
    """Average passage length in tokens, at least 1."""
    return max(sum(encoder.length(chunk.full_text) for chunk in chunks) / len(chunks), 1.0) if chunks else 1.0


def dense_vectors(encoder: DenseEncoder | None, chunks: Sequence[Chunk]) -> tuple[list[tuple[float, ...]], Cost]:
    """One vector a chunk, empty without an encoder, and what they cost. Raises: EncoderError."""
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


def refit(store: ChunkStore, avg_len: float, encode: Encode) -> float:
    """Encode all sparse vectors again if the mean length drifted from `avg_len` by more than MAX_DRIFT.

    Measured on a sample of the documents' chunks; directory nodes do not count. Returns the average length that counts
    from now on. It is recorded last, so an interrupted run is done again.
    """
    pages = islice(store.scroll(None, _PAGE), _SAMPLE_PAGES)
    sample = [hit for page in pages for hit in page if not in_dirs(hit)]
    found = mean_length(Bm25Encoder(avg_len), sample)
    if not sample or abs(found / avg_len - 1) <= MAX_DRIFT:
        return avg_len
    encoders = KeywordEncoders(Bm25Encoder(found), None)
    for page in store.scroll(None, _REFIT_PAGE):
        vectors = encode([hit.full_text for hit in page], encoders)
        store.set_sparse({hit.chunk_id: one["sparse"] for hit, one in zip(page, vectors, strict=True)}, avg_len)
    store.set_sparse({}, found)
    return found


class CollectionEncoders:
    """Knows the encoders of a tenant, and makes or joins the collection when there are none. Safe for threads."""

    def __init__(self, store: ChunkStore, dense: DenseEncoder | None, *, trigrams: bool) -> None:
        self._store, self._dense, self._with_trigrams = store, dense, trigrams
        self._making = Lock()

    def existing(self) -> KeywordEncoders | None:
        """The encoders of the tenant's chunks, None before its first batch.

        Raises: StoreMismatchError when the collection was built with other encoders than these.
        """
        info = self._store.info()
        if info is None:
            return None
        encoder = Bm25Encoder(info.built_with.avg_len)
        with encoder_errors():
            check_built_with(info.built_with, encoder.name, self._dense)
        if info.new:
            return None
        return KeywordEncoders.of(info.built_with.avg_len, trigrams=info.built_with.trigrams == TrigramEncoder.name)

    def ensure(self, chunks: Sequence[Chunk]) -> KeywordEncoders:
        """The encoders; where there are none, the average length is fitted on `chunks`, the tenant's first.

        So no tenant's weights depend on what others wrote. Raises: StoreMismatchError, StoreError.
        """
        with self._making:
            if encoders := self.existing():
                return encoders
            encoder = Bm25Encoder(mean_length(Bm25Encoder(1.0), chunks))
            for left in reversed(range(_TRIES)):
                try:
                    self._store.create(self._built_with(encoder))
                except StoreError:
                    # Another process, or another tenant, was first, and what it has made may still have to be joined.
                    if self.existing() is None and not left:
                        raise
                if encoders := self.existing():
                    return encoders
            raise StoreError("the collection was deleted while its first documents were written: ingest again")

    def _built_with(self, encoder: Bm25Encoder) -> BuiltWith:
        """What the tenant's chunks are to be made with: if the collection exists, its trigram setting is used."""
        if info := self._store.info():
            return info.built_with.model_copy(update={"avg_len": encoder.avg_len})
        name, dim = (self._dense.name, self._dense.dim) if self._dense else (None, 0)
        trigrams = TrigramEncoder.name if self._with_trigrams else None
        return BuiltWith(sparse=encoder.name, avg_len=encoder.avg_len, dense=name, dim=dim, trigrams=trigrams)
