"""The path of a search from passage to passage, and the reasoning steps that describe it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from shared.language import reader_sentence
from shared.language.names import MAX_NAME, bare
from shared.language.page_keys import PAGE_KEYS, is_page_key
from shared.language.text import flat, terms
from shared.models import Facet, Hit
from shared.models.answer import Bridge, ReasoningStep
from workers.display import plain_line
from workers.merge.extract import written
from workers.merge.findings import Findings
from workers.merge.pieces import QuotableSentence, quotable_sentences

#: Results among which a path is looked for by names, and of which one may end it.
_BEST = 6
TITLE = "title"
#: Fewest characters of a title that is looked for in texts; two of a Chinese one.
_MIN_TITLE = 3


class PathStop(NamedTuple):
    """One result of a path by its number, over which bridge it was reached, and which leads on from it.

    The first stop may have been reached over a bridge that starts at a passage that is no result.
    """

    number: int
    reached: Bridge | None
    onward: Bridge | None


def bridges_of(hits: Sequence[Hit], numbers: Sequence[int]) -> tuple[Bridge, ...]:
    """The bridges over which the search reached these results."""
    places = _places(hits)
    return tuple(found for number in numbers if (found := _search_bridge(hits[number - 1], number, places)))


def best_path(question: str, hits: Sequence[Hit], limit: int) -> list[PathStop]:
    """The path over at most `limit` bridges to the best hit that was reached from another one; empty when none was.

    A hit that the question found itself counts as reached when a better one names its page and the question does not.
    """
    places = _places(hits)
    asked = frozenset(terms(question))
    leads = {}
    for number, hit in enumerate(hits, start=1):
        bridge = _search_bridge(hit, number, places)
        if bridge is None and number <= _BEST:
            bridge = _title_bridge(number, hits[:_BEST], asked)
        if bridge is not None:
            leads[number] = bridge
    for number in sorted(leads)[:_BEST]:
        path = _traced(number, leads, limit)
        if len(path) > 1 or leads[number].start is None:
            return path
    return []


def _traced(end: int, leads: dict[int, Bridge], limit: int) -> list[PathStop]:
    path, onward = list[PathStop](), None
    number: int | None = end
    while number is not None:
        reached = leads.get(number) if len(path) < limit else None
        if reached is not None and reached.start in {number, *(stop.number for stop in path)}:
            reached = None  # pages that name each other
        path.insert(0, PathStop(number, reached, onward))
        number, onward = (reached.start, reached) if reached is not None else (None, None)
    return path


def _places(hits: Sequence[Hit]) -> dict[str, int]:
    return {hit.chunk_id: number for number, hit in enumerate(hits, start=1)}


def _search_bridge(hit: Hit, number: int, places: dict[str, int]) -> Bridge | None:
    via = hit.via
    if via is None or via.chunk_id == hit.chunk_id:
        return None
    return Bridge(start=places.get(via.chunk_id), name=_readable(via.bridge), end=number, how=via.how)


def _title_bridge(number: int, hits: Sequence[Hit], asked: frozenset[str]) -> Bridge | None:
    """The best passage above hit `number` that names its page; none for a name of the question's own words."""
    hit = hits[number - 1]
    name = bare(hit.title)
    needle = flat(name)
    if not _is_distinctive(needle) or asked.issuperset(terms(name)):
        return None
    keys = {key for key in hit.defines if is_page_key(key)}
    for start, other in enumerate(hits[: number - 1], start=1):
        if other.doc_id != hit.doc_id and (
            not keys.isdisjoint((*other.refs, *other.mentions)) or needle in flat(other.text)
        ):
            return Bridge(start=start, name=_readable(name), end=number, how=TITLE)
    return None


def _is_distinctive(needle: str) -> bool:
    letters = needle.replace(" ", "")
    return not letters.isdecimal() and (len(letters) >= _MIN_TITLE or (len(letters) == 2 and not letters.isascii()))


def _readable(name: str) -> str:
    """A name or an edge's key as plain text."""
    for kind in PAGE_KEYS:
        name = name.removeprefix(kind)
    return plain_line(name)[:MAX_NAME]


def hop_steps(found: Findings, limit: int) -> tuple[list[ReasoningStep], list[QuotableSentence]]:
    """A step for each passage on the path to the best one, with its sentences; none where nothing led on."""
    path = best_path(found.question, found.pool.hits, limit)
    chosen = [_sentence(found, stop) for stop in path]
    steps = [_step(found, at, stop, chosen[at]) for at, stop in enumerate(path)]
    return steps, [sentence for sentence in chosen if sentence]


def _step(found: Findings, at: int, stop: PathStop, sentence: QuotableSentence | None) -> ReasoningStep:
    hit, reached, onward = found.pool.hits[stop.number - 1], stop.reached, stop.onward
    unseen = reached is not None and reached.start is None
    return ReasoningStep(
        number=at + 1,
        kind="hop",
        node_id=hit.sources[0].node_id if hit.sources else "0.0",
        facet=hit.sources[0].facet if hit.sources else Facet.ORIGINAL.value,
        question=reached.name if reached else found.question,
        after=(at,) if at else (),
        found=(onward.name,) if onward else (),
        found_by="names" if onward else None,
        text=written([sentence] if sentence else []),
        passages=(stop.number,),
        bridges=(reached,) if reached else (),
        gap=reader_sentence("unseen", found.question, reached.name) if reached and unseen else None,
    )


def _sentence(found: Findings, stop: PathStop) -> QuotableSentence | None:
    """The sentence that names what comes next, else the one most like the question; None for a text without any."""
    asked, needle = frozenset(terms(found.question)), flat(stop.onward.name) if stop.onward else ""

    def fit(one: QuotableSentence) -> tuple[bool, float, int]:
        named = bool(needle) and needle in flat(one.quote)
        return named, len(one.words & asked) / len(one.words | asked), -one.position

    best = max(quotable_sentences([found.pool.hits[stop.number - 1]]), key=fit, default=None)
    return replace(best, number=stop.number) if best else None
