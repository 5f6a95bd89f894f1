"""The rules' front: question in, Decomposition out. Knows no phrase of any language."""

from __future__ import annotations

from orchestrator.planning.rules import chinese, chinese_nesting, english, english_nesting
from orchestrator.planning.rules.context import in_context
from orchestrator.planning.rules.reading import Part, Reading
from orchestrator.planning.same import folded
from shared.errors import shown
from shared.language import (
    is_traditional,
    language,
    narrowed,
    simplified,
    traditional,
    widened,
)
from shared.models import Decomposition, Facet, SubQuery
from shared.references import references

#: Which facets go first when there is no room for all.
_PRIORITY = (Facet.CORE, Facet.HOW, Facet.WHY, Facet.NOTE, Facet.CASE)


def read(question: str) -> Reading:
    """How the rules read `question`. Neither English nor Chinese: simple, without parts."""
    text = narrowed(question)
    spoken = language(text)
    if spoken != "zh":
        return english.read(text) if spoken == "en" else Reading()
    old = is_traditional(text)
    reading = chinese.read(simplified(text) if old else text)
    return reading.model_copy(update={"parts": tuple(_written(part, old=old) for part in reading.parts)})


def nested(question: str) -> tuple[str, ...]:
    """The steps of a question whose parts wait for each other (G13), with `#n` in them; none for any other one."""
    text = narrowed(question)
    spoken = language(text)
    if spoken != "zh":
        return english_nesting.steps(text) if spoken == "en" else ()
    old = is_traditional(text)
    found = chinese_nesting.steps(simplified(text) if old else text)
    return tuple(traditional(widened(step)) if old else widened(step) for step in found)


def _written(part: Part, *, old: bool) -> Part:
    query = widened(part.query)
    return part.model_copy(update={"query": traditional(query) if old else query})


def decompose_by_rules(question: str, most: int) -> Decomposition:
    """At most `most` subqueries for `question`, in order; none for a simple one (the original is always searched).

    A nested question gives its steps, each depending on the ones that it names (G13), if all of them fit. Parts of a
    compound question that do not fit are named in a warning; facets that do not fit are just not chosen. Linear in the
    length of the question.
    """
    if (steps := nested(question)) and len(steps) <= most:
        chain = (SubQuery(dimension=Facet.CORE, query=step, depends_on=references(step)) for step in steps)
        return Decomposition(subqueries=tuple(chain), by="rules")
    kept, dropped = _chosen(_different(in_context(read(question).parts)), most)
    warnings: tuple[str, ...] = ()
    if dropped:
        names = "; ".join(shown(part.query) for part in dropped)
        warnings = (f"The question has more parts than the {most} that fit; left to the search as a whole: {names}.",)
    subqueries = tuple(SubQuery(dimension=part.facet, query=part.query, needs_refinement=part.broad) for part in kept)
    return Decomposition(subqueries=subqueries, by="rules", warnings=warnings)


def _different(parts: tuple[Part, ...]) -> list[Part]:
    first: dict[str, Part] = {}
    for part in parts:
        first.setdefault(folded(part.query), part)
    return list(first.values())


def _chosen(parts: list[Part], most: int) -> tuple[list[Part], list[Part]]:
    asked = [part for part in parts if part.asked]
    beside = sorted((part for part in parts if not part.asked), key=lambda part: _PRIORITY.index(part.facet))
    room = (asked + beside)[: max(0, most)]
    return [part for part in parts if part in room], [part for part in asked if part not in room]
