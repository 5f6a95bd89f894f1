"""The sentences of a pool that may be quoted: verbatim slices of their chunks, with their terms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shared.models import Citation, Hit
from shared.sentences import BlockKind, is_cjk_text, sentence_spans
from shared.text import terms
from workers.merge.display import has_controls, one_line, without_links

_LONGEST = 400  # characters; a CJK one counts as two
_CLIPPED = 300
_BREAKS = " ,;，；、"
_FEWEST_TERMS = 2


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence of the pool's hit `number` (from 1), the `position`-th of its chunk (from 0)."""

    number: int
    position: int
    quote: str
    text: str
    words: frozenset[str]


def passages(hits: Iterable[Hit]) -> list[Passage]:
    """All quotable sentences of `hits`: prose that states something.

    Headings, tables and code fences are left out, as are questions, lead-ins that end in a colon, and sentences with
    control characters. What is longer than a person reads is clipped at a pause.
    """
    found: list[Passage] = []
    for number, hit in enumerate(hits, start=1):
        for position, quote in enumerate(_prose(hit.text)):
            text = one_line(quote)
            words = frozenset(terms(without_links(quote)))
            if len(words) >= _FEWEST_TERMS and not text.endswith(("?", "？", ":", "：")):
                found.append(Passage(number, position, quote, text, words))
    return found


def citation(number: int, hit: Hit, quote: str) -> Citation:
    """`[number]` stands for `hit`; `quote` is a verbatim slice of its text."""
    return Citation(
        number=number, chunk_id=hit.chunk_id, path=one_line(hit.path), title=one_line(hit.title), quote=quote
    )


def best_quote(hit: Hit, claim: str) -> str:
    """The sentence of `hit` that shares most terms with `claim`; its first one when none does, "" without any."""
    asked = frozenset(terms(claim))
    sentences = passages([hit])
    best = max(sentences, key=lambda p: (len(p.words & asked) / len(p.words | asked), -p.position), default=None)
    return best.quote if best else ""


def _prose(text: str) -> Iterator[str]:
    for span in sentence_spans(text):
        quote = text[span.start : span.end]
        if span.kind is BlockKind.PROSE and not has_controls(quote):
            yield _clip(quote)


def _clip(quote: str) -> str:
    """The first part of an overlong sentence, up to a pause: still a verbatim slice."""
    wide = 2 if is_cjk_text(quote) else 1
    if len(quote) * wide <= _LONGEST:
        return quote
    part = quote[: _CLIPPED // wide]
    pause = max(part.rfind(mark) for mark in _BREAKS)
    return part[:pause] if pause > len(part) // 2 else part
