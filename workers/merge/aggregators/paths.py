"""How a search went from passage to passage, and the steps that tell of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.language import reader_sentence
from shared.language.names import MAX_NAME, bare
from shared.language.text import flat, terms
from shared.models import Facet, Hit
from shared.models.answer import Bridge, ReasoningStep
from shared.store.page_keys import PAGE_KEYS, is_page_key
from workers.display import plain_line
from workers.merge.extract import Passage, passages, written
from workers.merge.findings import Findings

#: Results among which a way is looked for by names, and of which one may end it.
_NEAR = 6
TITLE = "title"
#: A shorter title stands in too many texts, in characters; a Chinese one in two.
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Path:
    """Results by number, from the one that the question found to the last; `bridges` lead from each to the next.

    With one bridge more than gaps between them, the first bridge comes from a passage that is no result.
    """

    numbers: tuple[int, ...]
    bridges: tuple[Bridge, ...]


def bridges_of(hits: Sequence[Hit], numbers: Sequence[int]) -> tuple[Bridge, ...]:
    """What the search noted of how these results were reached."""
    places = _places(hits)
    return tuple(found for number in numbers if (found := _noted(hits[number - 1], number, places)))


def best_path(question: str, hits: Sequence[Hit], most: int) -> Path | None:
    """The way over at most `most` bridges to the best hit that was reached from another one; None when none was.

    A hit that the question found itself counts as reached when a better one names its page and the question does not.
    """
    places = _places(hits)
    asked = frozenset(terms(question))
    leads = {}
    for number, hit in enumerate(hits, start=1):
        bridge = _noted(hit, number, places) or (_titled(number, hits[:_NEAR], asked) if number <= _NEAR else None)
        if bridge is not None:
            leads[number] = bridge
    for number in sorted(leads)[:_NEAR]:
        path = _traced(number, leads, most)
        if len(path.numbers) > 1 or path.bridges[0].start is None:
            return path
    return None


def _traced(end: int, leads: dict[int, Bridge], most: int) -> Path:
    numbers, bridges = [end], list[Bridge]()
    while len(bridges) < most and (bridge := leads.get(numbers[0])) is not None:
        if bridge.start in numbers:
            break  # pages that name each other
        bridges.insert(0, bridge)
        if bridge.start is None:
            break
        numbers.insert(0, bridge.start)
    return Path(tuple(numbers), tuple(bridges) or (leads[end],))


def _places(hits: Sequence[Hit]) -> dict[str, int]:
    return {hit.chunk_id: number for number, hit in enumerate(hits, start=1)}


def _noted(hit: Hit, number: int, places: dict[str, int]) -> Bridge | None:
    via = hit.via
    if via is None or via.chunk_id == hit.chunk_id:
        return None
    return Bridge(start=places.get(via.chunk_id), name=_shown(via.bridge), end=number, how=via.how)


def _titled(number: int, hits: Sequence[Hit], asked: frozenset[str]) -> Bridge | None:
    """The best passage above hit `number` that names its page; a name of the question's own words leads nowhere."""
    hit = hits[number - 1]
    name = bare(hit.title)
    needle = flat(name)
    if not _telling(needle) or asked.issuperset(terms(name)):
        return None
    keys = {key for key in hit.defines if is_page_key(key)}
    for start, other in enumerate(hits[: number - 1], start=1):
        if other.doc_id != hit.doc_id and (
            not keys.isdisjoint((*other.refs, *other.mentions)) or needle in flat(other.text)
        ):
            return Bridge(start=start, name=_shown(name), end=number, how=TITLE)
    return None


def _telling(needle: str) -> bool:
    letters = needle.replace(" ", "")
    return not letters.isdecimal() and (len(letters) >= _SHORTEST or (len(letters) == 2 and not letters.isascii()))


def _shown(name: str) -> str:
    """A name or an edge's key as people read it."""
    for kind in PAGE_KEYS:
        name = name.removeprefix(kind)
    return plain_line(name)[:MAX_NAME]


def hop_steps(found: Findings, most: int) -> tuple[list[ReasoningStep], list[Passage]]:
    """A step for each passage on the way to the best one, with its sentences; none where nothing led on."""
    path = best_path(found.question, found.pool.hits, most)
    if path is None:
        return [], []
    chosen = [_sentence(found, path, at) for at in range(len(path.numbers))]
    return [_step(found, path, at, chosen[at]) for at in range(len(path.numbers))], [one for one in chosen if one]


def _step(found: Findings, path: Path, at: int, sentence: Passage | None) -> ReasoningStep:
    number, whole = path.numbers[at], len(path.bridges) == len(path.numbers)
    reached = path.bridges[at if whole else at - 1] if whole or at else None
    onward = path.bridges[at + whole] if at + whole < len(path.bridges) else None
    hit = found.pool.hits[number - 1]
    gap = None
    if reached is not None and reached.start is None:
        gap = reader_sentence("unseen", found.question, reached.name)
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
        passages=(number,),
        bridges=(reached,) if reached else (),
        gap=gap,
    )


def _sentence(found: Findings, path: Path, at: int) -> Passage | None:
    """The sentence that names what comes next, else the one most like the question; None for a text without any."""
    number, whole = path.numbers[at], len(path.bridges) == len(path.numbers)
    onward = path.bridges[at + whole].name if at + whole < len(path.bridges) else ""
    hit: Hit = found.pool.hits[number - 1]
    asked, needle = frozenset(terms(found.question)), flat(onward) if onward else ""

    def worth(one: Passage) -> tuple[bool, float, int]:
        return (
            bool(needle) and needle in flat(one.quote),
            len(one.words & asked) / len(one.words | asked),
            -one.position,
        )

    best = max(passages([hit], joined=False), key=worth, default=None)
    return Passage(number, best.position, best.quote, best.text, best.words) if best else None
