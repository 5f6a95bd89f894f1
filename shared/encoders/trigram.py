"""Words as hashed trigrams, for keyword search that forgives typos. Only words of letters: CJK has BM25's own."""

from __future__ import annotations

import math
import re
import zlib

from shared.encoders.base import SparseVector
from shared.language.text import fold

_WORD = re.compile(r"[^\W\d_\u2e80-\u9fff\uac00-\ud7af]{4,40}")
_TITLE = 2.0
#: Distinct words of a passage that are indexed; a chunk rarely has more, and the index stays small.
_MOST_WORDS = 120


class TrigramEncoder:
    """Passages: trigrams of the title (twice as heavy) and of the distinct words; queries: those of each word."""

    name = "trigram:v1"

    def encode_query(self, text: str) -> SparseVector:
        """One weight per trigram."""
        return _vector(dict.fromkeys(_trigrams(_words(text)), 1.0))

    def encode_passage(self, text: str) -> SparseVector:
        """`text` as BM25 gets it, the title in its first line. Long passages weigh less per trigram."""
        title, _, rest = text.partition("\n")
        weights = dict.fromkeys(_trigrams(_words(rest)[:_MOST_WORDS]), 1.0)
        weights |= dict.fromkeys(_trigrams(_words(title)), _TITLE)
        norm = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return _vector({index: weight / norm for index, weight in weights.items()})


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(fold(text))))


def _trigrams(words: list[str]) -> list[int]:
    """Hashes of the trigrams of each word, its edges marked."""
    padded = (f"^{word}$" for word in words)
    return [zlib.crc32(word[at : at + 3].encode()) for word in padded for at in range(len(word) - 2)]


def _vector(weights: dict[int, float]) -> SparseVector:
    indices = sorted(weights)
    return SparseVector(indices=tuple(indices), values=tuple(weights[index] for index in indices))
