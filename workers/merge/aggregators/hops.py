"""The steps of one leaf that went from passage to passage. Pure."""

from __future__ import annotations

from shared.language import said
from shared.language.text import flat, terms
from shared.models import Facet, Hit
from shared.models.reasoning import Step
from workers.merge.aggregators.base import Findings
from workers.merge.aggregators.paths import Path, best_path
from workers.merge.extract import written
from workers.merge.passages import Passage, passages


def hop_steps(found: Findings, most: int) -> tuple[list[Step], list[Passage]]:
    """A step for each passage on the way to the best one, with its sentences; none where nothing led on."""
    path = best_path(found.question, found.pool.hits, most)
    if path is None:
        return [], []
    chosen = [_sentence(found, path, at) for at in range(len(path.numbers))]
    return [_step(found, path, at, chosen[at]) for at in range(len(path.numbers))], [one for one in chosen if one]


def _step(found: Findings, path: Path, at: int, sentence: Passage | None) -> Step:
    number, whole = path.numbers[at], len(path.bridges) == len(path.numbers)
    reached = path.bridges[at if whole else at - 1] if whole or at else None
    onward = path.bridges[at + whole] if at + whole < len(path.bridges) else None
    hit = found.pool.hits[number - 1]
    gap = None
    if reached is not None and reached.start is None:
        gap = said("unseen", found.question, reached.name)
    return Step(
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
