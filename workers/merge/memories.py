"""The sources that a summary's prompt has room for: best first, each its fair part, cut at sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import shown
from shared.language.sentences import sentences
from shared.models import Facet, MergedHit
from shared.providers.llm.prompts import MAX_MEMORY_CHARS, Memory, escaped
from shared.providers.metering import usual_tokens

#: A source gets so many tokens at least, or is left out; its tag takes about this many.
_LEAST, _TAG = 100, 40
_MOST_NAMED = 5


def memories(hits: Sequence[MergedHit], room: int) -> tuple[list[Memory], str]:
    """The hits by number as far as `room` tokens go, and a sentence that names what was cut or left out, or "".

    What a short source does not need is shared among the others.
    """
    kept = hits[: max(1, room // (_LEAST + _TAG))]
    texts = [hit.full_text[:MAX_MEMORY_CHARS] for hit in kept]
    limits = _fair([_tokens(text) for text in texts], max(_LEAST, room - _TAG * len(kept)))
    found, cut = list[Memory](), list[int]()
    for number, (hit, text, limit) in enumerate(zip(kept, texts, limits, strict=True), start=1):
        part = text if _tokens(text) <= limit else _begun(text, limit)
        if len(part) < len(hit.full_text):
            cut.append(number)
            part = f"{part}…"
        source = min(hit.sources, key=lambda source: (source.rank, -source.score), default=None)
        facet = source.facet if source else Facet.CORE.value  # of the leaf that ranked the hit best
        found.append(Memory(number=number, facet=facet, path=hit.path, date=hit.date, text=part))
    return found, _left_out(hits, cut, range(len(kept) + 1, len(hits) + 1))


def _tokens(text: str) -> int:
    return usual_tokens(escaped(text))


def _fair(needs: Sequence[int], room: int) -> list[int]:
    """The part of each: all it needs, or the same as every other that needs more."""
    parts, left = [0] * len(needs), room
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        parts[place] = min(needs[place], left // (len(needs) - done))
        left -= parts[place]
    return parts


def _begun(text: str, limit: int) -> str:
    """Whole sentences from the beginning as far as they fit; a first one that does not fit is cut itself."""
    end = 0
    for sentence in sentences(text):
        at = text.find(sentence, end)
        if at < 0 or _tokens(text[: at + len(sentence)]) > limit:
            break
        end = at + len(sentence)
    while not end:
        text = text[: max(1, len(text) * 9 // 10)]
        end = len(text) if _tokens(text) <= limit or len(text) == 1 else 0
    return text[:end]


def _left_out(hits: Sequence[MergedHit], cut: Sequence[int], beyond: Sequence[int]) -> str:
    if not cut and not beyond:
        return ""
    parts = [f"the ends of {_named(hits, cut)}"] if cut else []
    parts += [_named(hits, beyond)] if beyond else []
    return f"The summary was written without {' and without '.join(parts)}: llm_prompt_tokens leaves no room for them."


def _named(hits: Sequence[MergedHit], numbers: Sequence[int]) -> str:
    names = ", ".join(f"[{number}] {shown(hits[number - 1].title)}" for number in numbers[:_MOST_NAMED])
    return f"{names} and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else names
