"""Who describes a directory: the LLM when there is one, else, and when it fails, its documents' own sentences."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from shared.errors import RamifyError, ReplyError, TransientError
from shared.language import reader_sentence
from shared.language.sentences import BlockKind, sentence_spans, sentences
from shared.language.text import is_cjk_text, terms
from shared.models import Chunk, Cost
from shared.providers.llm.client import LLM, LLMReply, spent
from shared.providers.llm.prompts import escaped, filled
from shared.providers.llm.replies import readable, summary_text
from workers.display import plain_line, safe

ABSTRACT_CHARS, OVERVIEW_CHARS = 256, 4000
#: Characters of a chunk that are read, and of a document's lead.
_READ, LEAD_CHARS = 4000, 600
_SENTENCES_EACH = 2
_SENTENCE_CHARS = 140  # of the abstract; the rest is for titles
_FEWEST = 2  # terms of the titles in a sentence that speaks for all
_SHORT = 4  # terms; what is shorter does not gain by it
_LINE = (48, 400)  # characters of a line of the overview, at least and at most
_ENDS = (".", "。", "?", "？", "!", "！", "…")
_PAUSES = " ,;:.，；：、。"
_MIN_TIME_S = 0.5  # for a call of the LLM
_CUT_MARK = 2  # characters that `summary_text` may add to a text that it cuts


class DirectoryItem(NamedTuple):
    """Something in a directory: its title and how it begins, one line; `describes`: it speaks of the directory."""

    title: str
    lead: str
    is_directory: bool = False
    describes: bool = False


class Contents(NamedTuple):
    """What a directory is described by: `items` are read, `more` are titles alone, `left` counts what is not named."""

    path: str
    items: Sequence[DirectoryItem]
    more: Sequence[str] = ()
    left: int = 0


class Described(NamedTuple):
    """A directory's abstract and overview, what they cost, and why the LLM did not write them, if it should have."""

    abstract: str
    overview: str
    cost: Cost = Cost()
    fault: str | None = None


def describe(contents: Contents, llm: LLM | None, end: float) -> Described:
    """Describe a directory; the LLM is asked until `end` (time.monotonic()). Never raises for the LLM's faults."""
    abstract = abstract_of(contents)
    plain = Described(abstract, overview_of(contents, abstract))
    if llm is None:
        return plain
    cost = Cost()
    try:
        reply = _ask(llm, _overview_prompt(contents), end)
        cost += reply.cost
        overview = safe(summary_text(safe(readable(reply.text)), OVERVIEW_CHARS - _CUT_MARK))
        values = {"path": escaped(plain_line(contents.path)), "overview": escaped(overview)}
        reply = _ask(llm, filled("abstract", values), end)
        cost += reply.cost
        abstract = plain_line(summary_text(safe(readable(reply.text)), ABSTRACT_CHARS - _CUT_MARK))
        if not abstract or not overview:
            raise ReplyError("the reply holds no text to describe it by")
    except RamifyError as error:
        return plain._replace(cost=cost + spent(error).cost, fault=str(error).strip().rstrip("."))
    return Described(clipped(abstract, ABSTRACT_CHARS), overview, cost)


def _ask(llm: LLM, prompt: str, end: float) -> LLMReply:
    left = end - time.monotonic()
    if left < _MIN_TIME_S:
        raise TransientError("no time was left for it (hierarchy.llm_budget_s)")
    return llm.complete(prompt, timeout_s=left)


def _overview_prompt(contents: Contents) -> str:
    values = {
        "path": escaped(plain_line(contents.path)),
        "contents": "\n".join(map(_element, contents.items)) or "(none)",
        "more": escaped("; ".join(map(plain_line, contents.more))) or "(none)",
        "left": str(contents.left),
    }
    return filled("overview", values)


def _element(item: DirectoryItem) -> str:
    name = "directory" if item.is_directory else "document"
    return f'<{name} title="{escaped(plain_line(item.title))}">{escaped(item.lead)}</{name}>'


def lead_of(chunk: Chunk) -> str:
    """How a chunk begins, as one line of plain text: its prose; what else it has where it has none."""
    text = chunk.text[:_READ]
    prose: list[str] = []
    width = 0
    for span in sentence_spans(text):
        if span.kind is BlockKind.PROSE and width < LEAD_CHARS:
            prose.append(plain_line(text[span.start : span.end]))
            width += len(prose[-1]) + 1
    joined = "".join(part if not prose or is_cjk_text(part) else f"{part} " for part in prose if part)
    return clipped(joined.strip() or plain_line(text[:LEAD_CHARS]), LEAD_CHARS)


def abstract_of(contents: Contents) -> str:
    """L0: up to 256 characters: what a README says first, then titles, the most typical first, then typical sentences.

    Typical is what holds most of what the titles have in common. A directory that only wraps another one is what that
    one is.
    """
    items = contents.items
    if len(items) == 1 and items[0].is_directory and items[0].lead:
        return clipped(items[0].lead, ABSTRACT_CHARS)
    # What the titles have in common: a term weighs the logarithm of how many hold it.
    counts = Counter(term for item in items for term in frozenset(terms(item.title)))
    weights = {term: math.log(1 + count) for term, count in counts.items()}
    opening = next((found[0] for item in items if item.describes and (found := sentences(item.lead))), "")
    parts = [clipped(opening, _SENTENCE_CHARS)] if opening else []
    if titles := _titles(items, weights, ABSTRACT_CHARS - len("".join(parts)) - 1):
        parts.append(titles if titles.endswith(_ENDS) else f"{titles}{reader_sentence('full_stop', titles)}")
    for sentence in _sentences(items, weights):
        if len(" ".join([*parts, sentence])) <= ABSTRACT_CHARS and sentence != opening:
            parts.append(sentence)
    return clipped(" ".join(parts), ABSTRACT_CHARS)


def overview_of(contents: Contents, abstract: str) -> str:
    """L1: up to 4,000 characters: the abstract, then a line for each item, then the titles of more."""
    text = "\n".join(f"{item.title} {item.lead}" for item in contents.items)
    below, documents, also = (reader_sentence(name, text) for name in ("directories", "documents", "also"))
    room = OVERVIEW_CHARS - len(abstract) - sum(len(label) + 16 for label in (below, documents, also))
    each = max(_LINE[0], min(_LINE[1], room // max(1, len(contents.items) + bool(contents.more))))
    blocks = [abstract]
    for label, wanted in ((below, True), (documents, False)):
        lines = [f"- {_line(item, each - 3)}" for item in contents.items if item.is_directory is wanted]
        if lines:
            blocks.append("\n".join([f"{label}:", *lines]))
    text = "\n\n".join(block for block in blocks if block)
    if len(text) > OVERVIEW_CHARS:
        text = text[:OVERVIEW_CHARS].rpartition("\n")[0] or text[:OVERVIEW_CHARS]
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


def _sentences(items: Sequence[DirectoryItem], weights: dict[str, float]) -> list[str]:
    """The most typical first sentences: of documents, if they hold two terms of the titles, and of directories."""
    found = [sentence for item in items if not item.is_directory for sentence in sentences(item.lead)[:_SENTENCES_EACH]]
    found = [sentence for sentence in found if len(weights.keys() & terms(sentence)) >= _FEWEST]
    found += [
        f"{item.title}: {sentence}" for item in items if item.is_directory for sentence in sentences(item.lead)[:1]
    ]
    worth = {sentence: _worth(frozenset(terms(sentence)), weights) for sentence in found}
    return sorted(worth, key=lambda sentence: (-worth[sentence], sentence))[:_FEWEST]


def _titles(items: Sequence[DirectoryItem], weights: dict[str, float], room: int) -> str:
    """Titles for `room` characters, the most typical first, each saying something that those before do not."""
    left = {item.title: frozenset(terms(item.title)) for item in items if item.title and not item.describes}
    covered: frozenset[str] = frozenset()
    chosen: list[str] = []
    while left:
        best = max(left, key=lambda title: _worth(left[title] - covered, weights))
        covered |= left.pop(best)
        if len(_list([*chosen, best])) <= room:
            chosen.append(best)
        elif not chosen:
            return clipped(best, room)
    return _list(chosen)


def _worth(words: frozenset[str], weights: dict[str, float]) -> float:
    """The weight of its terms over the root of their number: the cosine to the centroid, but for its own length."""
    # Sets come in another order in every process, and so would the last digit of a plain sum, which decides ties.
    return math.fsum(weights.get(word, 0.0) for word in words) / math.sqrt(max(_SHORT, len(words)))


def _line(item: DirectoryItem, most: int) -> str:
    lead = item.lead.removeprefix(item.title).lstrip(" .:：—-")
    return clipped(f"{item.title}: {lead}" if lead else item.title, most)


def _list(titles: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(title for title in titles if title))
