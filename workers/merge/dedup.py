"""Which hits repeat a better one: by vector cosine, or by shingle overlap where there is no vector. Pure.

For the merged pool. Within a leaf the stage `dedup` (workers/search/stages/diversity.py) does it, by other thresholds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shared.byte_cache import ByteCache
from shared.language.text import shingles
from shared.models import Hit

_SHINGLE = 3
_MEMORY_BYTES = 4 * 1024 * 1024
_EPSILON = 1e-6  # vectors are stored in 32 bits: the cosine of a vector with itself may be 0.9999999


def near_duplicates(hits: Sequence[Hit], threshold: float) -> dict[str, str]:
    """Chunk id of each repeated hit -> chunk id of the better hit that is kept for it.

    `hits` are best first, one per chunk id. Two hits with vectors of one size are near-duplicates from a cosine of
    `threshold` on; any others from that Jaccard overlap of 3-word shingles of title, heading and text (Broder's
    resemblance). Hits are only compared with kept ones, so nothing is folded over a chain.
    """
    units = [_unit(hit.vector) for hit in hits]
    sizes = {0 if unit is None else len(unit) for unit in units}
    vectors = _VectorIndex(threshold)
    texts = _ShingleIndex(threshold) if len(sizes) > 1 or 0 in sizes else None  # else every pair compares by vector
    folded: dict[str, str] = {}
    for hit, vector in zip(hits, units, strict=True):
        kept = vectors.find(vector) if vector is not None else None
        own = _Shingles.of(hit, threshold) if texts is not None else None
        if kept is None and texts is not None and own is not None:
            kept = texts.find(own, 0 if vector is None else len(hit.vector))
        if kept is not None:
            folded[hit.chunk_id] = kept
            continue
        if vector is not None:
            vectors.add(hit.chunk_id, vector)
        if texts is not None and own is not None:
            texts.add(hit.chunk_id, own, 0 if vector is None else len(hit.vector))
    return folded


def _unit(vector: Sequence[float]) -> npt.NDArray[np.float64] | None:
    """`vector` at length 1; None for an empty, zero or infinite one, which has no direction."""
    if not vector:
        return None
    array = np.asarray(vector, dtype=np.float64)
    norm = float(np.linalg.norm(array))
    return array / norm if math.isfinite(norm) and norm > 0 else None


class _VectorIndex:
    """Unit vectors by size; an exact scan, since a pool holds at most a few thousand."""

    def __init__(self, threshold: float) -> None:
        self._least = threshold - _EPSILON
        self._rows: dict[int, tuple[list[str], npt.NDArray[np.float64]]] = {}

    def find(self, vector: npt.NDArray[np.float64]) -> str | None:
        ids, matrix = self._rows.get(len(vector), ([], None))
        if matrix is None:
            return None
        close = np.flatnonzero(matrix[: len(ids)] @ vector >= self._least)
        return ids[int(close[0])] if len(close) else None

    def add(self, chunk_id: str, vector: npt.NDArray[np.float64]) -> None:
        ids, matrix = self._rows.get(len(vector), ([], np.empty((16, len(vector)))))
        if len(ids) == len(matrix):
            matrix = np.concatenate([matrix, np.empty_like(matrix)])
        matrix[len(ids)] = vector
        self._rows[len(vector)] = ([*ids, chunk_id], matrix)


class _Shingles(NamedTuple):
    """A text, and the few of its shingles of which one must be shared with any other above the threshold."""

    text: str
    prefix: list[str]

    @property
    def all(self) -> frozenset[str]:
        """Made anew: hardly a pair of texts has to be compared by all of them."""
        return shingles(self.text, _SHINGLE)

    @classmethod
    def of(cls, hit: Hit, threshold: float) -> _Shingles:
        """Kept for a while: the best chunks of a corpus are found again and again."""
        text = hit.full_text
        if (known := _known.get((text, threshold))) is None:
            known = cls(text, _prefix(shingles(text, _SHINGLE), threshold))
            _known.keep((text, threshold), known, sum(map(sys.getsizeof, (text, known.prefix, *known.prefix))))
        return known


def _prefix(own: frozenset[str], threshold: float) -> list[str]:
    return sorted(own)[: len(own) - math.ceil(threshold * len(own) - _EPSILON) + 1]


_known = ByteCache[tuple[str, float], _Shingles](_MEMORY_BYTES)


class _ShingleIndex:
    """Texts by the few shingles of which two texts above the threshold must share one (prefix filtering).

    Source: Chaudhuri, Ganti, Kaushik 2006, "A primitive operator for similarity joins".
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._by_shingle: dict[str, list[int]] = {}
        self._kept: list[tuple[str, int, _Shingles]] = []
        self._compared: dict[int, frozenset[str]] = {}

    def find(self, text: _Shingles, size: int) -> str | None:
        """The first kept text like this one, but for those with a vector of `size`: these were compared by it."""
        own: frozenset[str] | None = None
        for at in sorted({at for shingle in text.prefix for at in self._by_shingle.get(shingle, ())}):
            chunk_id, other_size, other = self._kept[at]
            if size and size == other_size:
                continue
            own = text.all if own is None else own
            others = self._compared[at] = self._compared.get(at) or other.all
            if len(own & others) >= self._threshold * len(own | others):
                return chunk_id
        return None

    def add(self, chunk_id: str, text: _Shingles, size: int) -> None:
        for shingle in text.prefix:
            self._by_shingle.setdefault(shingle, []).append(len(self._kept))
        self._kept.append((chunk_id, size, text))
