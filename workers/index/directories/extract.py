"""Abstract and overview without a model: the documents' own sentences, those nearest to what all have in common. Pure.

Never words a statement itself; the same directory gives the same text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from shared.models import Chunk
from shared.sentences import BlockKind, is_cjk_text, sentence_spans, sentences
from shared.text import terms
from workers.merge.display import one_line

ABSTRACT_CHARS, OVERVIEW_CHARS = 256, 4000
#: Characters of a chunk that are read, and of a document's lead.
_READ, LEAD_CHARS = 4000, 600
_SENTENCES_EACH = 2
_SHORT = 6  # terms; a shorter sentence counts in proportion
_FIRST, _DESCRIBES, _TITLE = 1.2, 1.5, 2
_WORTH = 0.5  # of the best sentence; what is weaker is left out
_LINE = (48, 400)  # characters of a line of the overview, at least and at most
_PAUSES = " ,;:.，；：、。"
_LABELS = (("Directories", "Documents", "Also"), ("目录", "文档", "另有"))


class Item(NamedTuple):
    """Something in a directory: its title and how it begins, one line; `describes`: it speaks of the directory."""

    title: str
    lead: str
    is_directory: bool = False
    describes: bool = False


class Contents(NamedTuple):
    """What is told of a directory: `items` are read, `more` are titles alone, `left` counts what is not even named."""

    path: str
    items: Sequence[Item]
    more: Sequence[str] = ()
    left: int = 0


def lead_of(chunk: Chunk) -> str:
    """How a chunk begins, as one line of plain text: its prose; what else it has where it has none."""
    text = chunk.text[:_READ]
    prose: list[str] = []
    width = 0
    for span in sentence_spans(text):
        if span.kind is BlockKind.PROSE and width < LEAD_CHARS:
            prose.append(one_line(text[span.start : span.end]))
            width += len(prose[-1]) + 1
    joined = "".join(part if not prose or is_cjk_text(part) else f"{part} " for part in prose if part)
    return clipped(joined.strip() or one_line(text[:LEAD_CHARS]), LEAD_CHARS)


def abstract_of(contents: Contents) -> str:
    """L0: up to 256 characters, the sentences that cover best what the items have in common; titles without any.

    A term weighs the logarithm of how many items hold it, titles doubled; a sentence is worth the weight of its terms
    over the root of their number (a centroid), less what was said before.
    """
    weights = _centroid(contents.items)
    candidates = [
        (sentence, frozenset(terms(sentence)), _FIRST ** (place == 0) * (_DESCRIBES if item.describes else 1.0))
        for item in contents.items
        for place, sentence in enumerate(sentences(item.lead)[:_SENTENCES_EACH])
    ]
    chosen: list[str] = []
    covered: set[str] = set()
    bar = 0.0
    while candidates:
        room = ABSTRACT_CHARS - sum(len(sentence) + 1 for sentence in chosen)
        worth = [factor * _worth(words, covered, weights) for _, words, factor in candidates]
        best = max(range(len(candidates)), key=lambda at: (worth[at], -at))
        sentence, words, _ = candidates.pop(best)
        if worth[best] <= bar:
            break
        if len(sentence) > room and chosen:
            continue
        bar = bar or _WORTH * worth[best]
        chosen.append(clipped(sentence, room))
        covered |= words
    return _joined(chosen) or clipped(_list([item.title for item in contents.items]), ABSTRACT_CHARS)


def overview_of(contents: Contents, abstract: str) -> str:
    """L1: up to 4,000 characters: the abstract, then a line for each item, then the titles of more."""
    chinese = is_cjk_text("\n".join(f"{item.title} {item.lead}" for item in contents.items))
    below, documents, also = _LABELS[chinese]
    room = OVERVIEW_CHARS - len(abstract) - sum(len(label) + 16 for label in _LABELS[chinese])
    each = max(_LINE[0], min(_LINE[1], room // max(1, len(contents.items) + bool(contents.more))))
    blocks = [abstract]
    for label, wanted in ((below, True), (documents, False)):
        lines = [f"- {_line(item, each - 3)}" for item in contents.items if item.is_directory is wanted]
        if lines:
            blocks.append("\n".join([f"{label}:", *lines]))
    text = _whole_lines("\n\n".join(block for block in blocks if block))
    rest = [*contents.more, *([f"+{contents.left}"] if contents.left else [])]
    room = OVERVIEW_CHARS - len(text) - len(also) - 4
    return f"{text}\n\n{also}: {clipped(_list(rest), room)}" if rest and room > _LINE[0] else text


def clipped(text: str, most: int) -> str:
    """`text` in at most `most` characters, cut at a pause and marked as cut."""
    if len(text) <= most:
        return text
    part = text[: max(0, most - 1)]
    pause = max(part.rfind(mark) for mark in _PAUSES)
    return f"{part[:pause].rstrip(_PAUSES) if pause > most // 2 else part}…"


def _centroid(items: Sequence[Item]) -> dict[str, float]:
    counts = Counter[str]()
    for item in items:
        titled = frozenset(terms(item.title))
        counts.update(dict.fromkeys(titled, _TITLE))
        counts.update(frozenset(terms(item.lead)) - titled)
    return {term: math.log(1 + count) for term, count in counts.items()}


def _worth(words: frozenset[str], covered: set[str], weights: dict[str, float]) -> float:
    fresh = sum(weights.get(word, 0.0) for word in words - covered)
    return fresh / math.sqrt(max(_SHORT, len(words)))


def _line(item: Item, most: int) -> str:
    lead = item.lead.removeprefix(item.title).lstrip(" .:：—-")
    return clipped(f"{item.title}: {lead}" if lead else item.title, most)


def _list(titles: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(title for title in titles if title))


def _joined(chosen: Sequence[str]) -> str:
    return "".join(part if not at or is_cjk_text(part) else f" {part}" for at, part in enumerate(chosen))


def _whole_lines(text: str) -> str:
    if len(text) <= OVERVIEW_CHARS:
        return text
    return text[:OVERVIEW_CHARS].rpartition("\n")[0] or text[:OVERVIEW_CHARS]
