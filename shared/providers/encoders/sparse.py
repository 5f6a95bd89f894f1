"""Sparse vectors, the same for the embedded store and the server: BM25, whose IDF the store adds, and trigrams."""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from bisect import bisect_left
from functools import lru_cache

import qdrant_edge as edge

from shared.errors import InputError
from shared.language.text import fold
from shared.providers.encoders.base import SparseVector

#: Goes up when the tokens or weights of the same text change; collections record it.
NAME = "bm25:multilingual+code:v1"
#: Until a corpus has been measured, in tokens.
DEFAULT_AVG_LEN = 256.0
K1 = 1.2
B = 0.75
#: k -> infinity without length normalisation turns BM25's weight into the plain token count.
_COUNTING_K = 1e6
#: Words with trigrams have letters only: Chinese, Japanese and Korean ones are segmented by BM25's tokenizer.
_WORD = re.compile(r"[^\W\d_\u2e80-\u9fff\uac00-\ud7af]{4,40}")
#: The same in a text of ASCII in lower case, for half the time.
_ASCII_WORD = re.compile("[a-z]{4,40}")
_TITLE_WEIGHT = 2.0
#: Distinct words of a passage that get trigrams; a chunk rarely has more, and the index stays small.
_MOST_WORDS = 120


class Bm25Encoder:
    """Two tokenizers, united by the larger weight of a token.

    The multilingual one segments Chinese but drops numbers; the code one keeps numbers and splits camelCase and
    snake_case. English and Chinese stop words, English Snowball stemmer, k 1.2, b 0.75. Full-width letters and digits
    meet their ASCII twins (NFKC), accents are folded. Simplified and traditional Chinese
    are segmented differently and rarely meet: convert one of them before, if a corpus mixes both.
    """

    def __init__(self, avg_len: float = DEFAULT_AVG_LEN) -> None:
        """`avg_len`: average passage length in tokens, as `length` counts. Raises: InputError when not above 0."""
        if not (math.isfinite(avg_len) and avg_len > 0):
            raise InputError("avg_len", avg_len, "give a number of tokens above 0")
        self.name = NAME
        self.avg_len = avg_len
        self._arms = _arms(K1, B, avg_len)

    def encode_query(self, text: str) -> SparseVector:
        """Weight 1 for each distinct token."""
        clean = _clean(text)
        return _united([arm.embed_query(clean) for arm in self._arms])

    def encode_passage(self, text: str) -> SparseVector:
        """BM25 weights. The caller gives title, heading and text as three lines, so that titles are found too."""
        clean = _clean(text)
        return _united([arm.embed_document(clean) for arm in self._arms])

    def length(self, text: str) -> int:
        """Tokens that count for `avg_len`: of both tokenizers united, stop words left out."""
        clean = _clean(text)
        counts = _united([arm.embed_document(clean) for arm in _arms(_COUNTING_K, 0.0, 1.0)])
        return sum(round(value) for value in counts.values)


class TrigramEncoder:
    """Words as hashed trigrams, for keyword search that tolerates typos.

    Passages: trigrams of the title (twice as heavy) and of the distinct words; queries: those of each word.
    """

    name = "trigram:v1"

    def encode_query(self, text: str) -> SparseVector:
        """One weight per trigram."""
        return _vector(dict.fromkeys(_trigrams(_words(text)), 1.0))

    def encode_passage(self, text: str) -> SparseVector:
        """`text` as BM25 gets it, the title in its first line. Long passages weigh less per trigram."""
        title, _, rest = text.partition("\n")
        heavy = _trigrams(_words(title))
        light = _trigrams(_words(rest)[:_MOST_WORDS]) - heavy
        norm = math.sqrt(len(light) + _TITLE_WEIGHT**2 * len(heavy)) or 1.0
        indices = sorted(light | heavy)
        values = [1.0 / norm] * len(indices)
        for index in heavy:
            values[bisect_left(indices, index)] = _TITLE_WEIGHT / norm
        return SparseVector.of_valid({"indices": tuple(indices), "values": tuple(values)})


def _clean(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))


@lru_cache(maxsize=8)
def _arms(k: float, b: float, avg_len: float) -> tuple[edge.Bm25, ...]:
    tokenizers = (edge.TokenizerType.Multilingual, edge.TokenizerType.Code)
    return tuple(
        edge.Bm25(
            edge.Bm25Config(
                k=k,
                b=b,
                avg_len=avg_len,
                tokenizer=tokenizer,
                lowercase=True,
                ascii_folding=True,
                stopwords=edge.StopwordsSet(languages={edge.Language.English, edge.Language.Chinese}),
                stemmer=edge.SnowballParams(edge.SnowballLanguage.English),
            )
        )
        for tokenizer in tokenizers
    )


def _united(vectors: list[edge.SparseVector]) -> SparseVector:
    first, *others = vectors
    weights = dict(zip(first.indices, first.values, strict=True))
    known = weights.get
    for vector in others:
        weights |= {
            index: value
            for index, value in zip(vector.indices, vector.values, strict=True)
            if value > known(index, 0.0)
        }
    return _vector(weights)


def _words(text: str) -> list[str]:
    return list(dict.fromkeys((_ASCII_WORD if text.isascii() else _WORD).findall(fold(text))))


def _trigrams(words: list[str]) -> set[int]:
    return set().union(*map(_trigrams_of, words))


@lru_cache(maxsize=20_000)
def _trigrams_of(word: str) -> tuple[int, ...]:
    """Hashes of the trigrams of a word, its edges marked."""
    padded = f"^{word}$"
    return tuple(zlib.crc32(padded[at : at + 3].encode()) for at in range(len(padded) - 2))


def _vector(weights: dict[int, float]) -> SparseVector:
    """Unchecked: keys that are sorted ascend and are unique, and a passage has a thousand of them."""
    indices = sorted(weights)
    fields = {"indices": tuple(indices), "values": tuple(map(weights.__getitem__, indices))}
    return SparseVector.of_valid(fields)
