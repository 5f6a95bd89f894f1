"""The keyword vectors of passages: BM25 and trigrams, and how they travel between processes. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import isfinite
from operator import lt
from typing import NamedTuple, Self

from shared.providers.encoders.base import SparseVector
from shared.providers.encoders.sparse import Bm25Encoder, TrigramEncoder

#: The keyword vectors of a passage, by their field of ChunkPoint.
KeywordVectors = Mapping[str, SparseVector]
_FIELDS = ("sparse", "trigrams")
_WORD = 4


class KeywordEncoders(NamedTuple):
    """What keyword vectors are made with; no trigrams: the collection was built without."""

    sparse: Bm25Encoder
    trigrams: TrigramEncoder | None

    @classmethod
    def of(cls, avg_len: float, *, trigrams: bool) -> Self:
        """Those of a collection whose passages have `avg_len` tokens."""
        return cls(Bm25Encoder(avg_len), TrigramEncoder() if trigrams else None)

    def vectors(self, text: str) -> KeywordVectors:
        """The keyword vectors of a passage."""
        trigrams = self.trigrams.encode_passage(text) if self.trigrams else SparseVector()
        return {"sparse": self.sparse.encode_passage(text), "trigrams": trigrams}


def packed(passages: Iterable[KeywordVectors]) -> bytes:
    """Of each vector the number of its tokens, these, and their weights: 4 bytes each, in this machine's order."""
    pieces = []
    for vectors in passages:
        for field in _FIELDS:
            indices, values = vectors[field].indices, vectors[field].values
            pieces += [array("I", (len(indices), *indices)).tobytes(), array("f", values).tobytes()]
    return b"".join(pieces)


def unpacked(data: bytes | memoryview) -> list[KeywordVectors]:
    """What `packed` was given, as arrays, which take a tenth of the memory of tuples. Raises: ValueError."""
    words, found, at = memoryview(data).cast("B"), list[SparseVector](), 0
    while at < len(words):
        (count,) = words[at : at + _WORD].cast("I")
        middle, end = at + _WORD * (1 + count), at + _WORD * (1 + 2 * count)
        indices, values = array("I"), array("f")
        indices.frombytes(words[at + _WORD : middle])
        values.frombytes(words[middle:end])
        if len(values) != count or not (_ascend(indices) and isfinite(sum(values))):
            raise ValueError("no keyword vectors")
        found.append(SparseVector.of_valid({"indices": indices, "values": values}))
        at = end
    if len(found) % len(_FIELDS):
        raise ValueError("no keyword vectors")
    return [dict(zip(_FIELDS, two, strict=True)) for two in zip(*[iter(found)] * len(_FIELDS), strict=True)]


def _ascend(indices: Sequence[int]) -> bool:
    return all(map(lt, indices, islice(indices, 1, None)))
