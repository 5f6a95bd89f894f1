"""The sentences of a pool that may be quoted: verbatim slices of their chunks, with their terms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from shared.language.sentences import BlockKind, sentence_spans
from shared.language.text import is_cjk_text, terms
from shared.models import Citation, Hit
from workers.merge.display import has_controls, plain_line, without_links

_LONGEST = 400  # characters; a CJK one counts as two
_CLIPPED = 300
_BREAKS = " ,;，；、"
_FEWEST_TERMS = 2


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence, or two that follow each other, of the pool's hit `number` (from 1), the `position`-th (from 0)."""

    number: int
    position: int
    quote: str
    text: str
    words: frozenset[str]


def passages(hits: Iterable[Hit], *, joined: bool = True) -> list[Passage]:
    """All quotable pieces of `hits`: sentences that state something, and table rows.

    `joined`: a sentence brings the next one of its paragraph along. Headings, code fences and table heads are left
    out, as are questions, lead-ins that end in a colon, and what holds control characters. What is longer than a
    person reads is clipped at a pause.
    """
    found: list[Passage] = []
    for number, hit in enumerate(hits, start=1):
        for position, (quote, shown) in enumerate(_pieces(hit.text, joined=joined)):
            text = plain_line(shown)
            words = frozenset(terms(without_links(quote)))
            if len(words) >= _FEWEST_TERMS and not text.endswith(("?", "？", ":", "：")):
                found.append(Passage(number, position, quote, text, words))
    return found


def citation(number: int, hit: Hit, quote: str) -> Citation:
    """`[number]` stands for `hit`; `quote` is a verbatim slice of its text."""
    return Citation(
        number=number,
        chunk_id=hit.chunk_id,
        path=plain_line(hit.path),
        title=plain_line(hit.title),
        quote=quote,
    )


def best_quote(hit: Hit, claim: str) -> str:
    """The sentence of `hit` that shares most terms with `claim`; its first one when none does, "" without any."""
    asked = frozenset(terms(claim))
    sentences = passages([hit], joined=False)
    best = max(sentences, key=lambda p: (len(p.words & asked) / len(p.words | asked), -p.position), default=None)
    return best.quote if best else ""


def _pieces(text: str, *, joined: bool) -> Iterator[tuple[str, str]]:
    """(verbatim slice, as it is shown) of every sentence and table row, in order."""
    spans = [span for span in sentence_spans(text) if span.kind in {BlockKind.PROSE, BlockKind.TABLE}]
    for span, following in zip_longest(spans, spans[1:]):
        if span.kind is BlockKind.TABLE:
            yield from _rows(text[span.start : span.end])
            continue
        quote = text[span.start : span.end]
        if has_controls(quote):
            continue
        if joined and following and following.kind is span.kind and _goes_on(text[span.end : following.start]):
            both = text[span.start : following.end]
            if _width(both) <= _LONGEST and not has_controls(both):
                quote = both
        clipped = _clip(quote)
        yield clipped, clipped


def _rows(table: str) -> Iterator[tuple[str, str]]:
    """The rows of a table without its head; the cells are shown with a dash between."""
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if len(row) <= _LONGEST and not has_controls(row):
            yield row.strip(), " – ".join(cell for cell in cells if cell)


def _goes_on(between: str) -> bool:
    """True inside a paragraph: nothing but white space, and no blank line or list mark."""
    return not between.strip() and between.count("\n") < 2


def _width(text: str) -> int:
    return len(text) * (2 if is_cjk_text(text) else 1)


def _clip(quote: str) -> str:
    """The first part of an overlong sentence, up to a pause: still a verbatim slice."""
    if _width(quote) <= _LONGEST:
        return quote
    part = quote[: _CLIPPED * len(quote) // _width(quote)]
    pause = max(part.rfind(mark) for mark in _BREAKS)
    return part[:pause] if pause > len(part) // 2 else part
