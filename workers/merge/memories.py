"""The sources that a summary's prompt has room for: best first, each its fair part, cut at sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import shown
from shared.models import Facet, MergedHit
from shared.providers.llm.prompts import MAX_MEMORY_CHARS, Memory
from shared.providers.llm.room import begun, fair_parts, written_tokens

#: A source gets so many tokens at least, or is left out; its tag takes about this many.
_LEAST, _TAG = 100, 40
_MOST_NAMED = 5


def memories(hits: Sequence[MergedHit], room: int) -> tuple[list[Memory], str]:
    """The hits by number as far as `room` tokens go, and a sentence that names what was cut or left out, or "".

    Where not all have room, the best of each facet comes first, then the others in the merge's order. What a short
    source does not need is shared among the others.
    """
    numbers = _chosen(hits, max(1, room // (_LEAST + _TAG)))
    kept = [hits[number - 1] for number in numbers]
    texts = [hit.full_text[:MAX_MEMORY_CHARS] for hit in kept]
    limits = fair_parts([written_tokens(text) for text in texts], max(_LEAST, room - _TAG * len(kept)))
    found, cut = list[Memory](), list[int]()
    for number, hit, text, limit in zip(numbers, kept, texts, limits, strict=True):
        part = begun(text, limit)
        if len(part) < len(hit.full_text):
            cut.append(number)
            part = f"{part}…"
        found.append(Memory(number=number, facet=_facet(hit), path=hit.path, date=hit.date, text=part))
    beyond = [number for number in range(1, len(hits) + 1) if number not in set(numbers)]
    return found, _left_out(hits, cut, beyond)


def _chosen(hits: Sequence[MergedHit], most: int) -> list[int]:
    """The numbers of at most so many hits, in their order."""
    best: dict[str, int] = {}
    for number, hit in enumerate(hits, start=1):
        best.setdefault(_facet(hit), number)
    order = dict.fromkeys((*best.values(), *range(1, len(hits) + 1)))
    return sorted(list(order)[:most])


def _facet(hit: MergedHit) -> str:
    """That of the leaf that ranked the hit best."""
    source = min(hit.sources, key=lambda source: (source.rank, -source.score), default=None)
    return source.facet if source else Facet.CORE.value


def _left_out(hits: Sequence[MergedHit], cut: Sequence[int], beyond: Sequence[int]) -> str:
    if not cut and not beyond:
        return ""
    parts = [f"the ends of {_named(hits, cut)}"] if cut else []
    parts += [_named(hits, beyond)] if beyond else []
    return f"The summary was written without {' and without '.join(parts)}: llm_prompt_tokens leaves no room for them."


def _named(hits: Sequence[MergedHit], numbers: Sequence[int]) -> str:
    names = ", ".join(f"[{number}] {shown(hits[number - 1].title)}" for number in numbers[:_MOST_NAMED])
    return f"{names} and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else names
