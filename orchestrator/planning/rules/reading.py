"""What the rules make of a question: its kind and its parts. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from shared.models import Facet
from shared.models.base import Model

#: The longest sentence that the phrase patterns look at, in characters. Longer ones are searched as they stand, which
#: keeps every pattern's work small whatever it is given.
MAX_SENTENCE = 300
#: How long a part may be, in characters (B4).
MIN_PART, MAX_PART = 5, 300


class Kind(StrEnum):
    """How a question is to be taken apart."""

    SIMPLE = "simple"
    COMPOUND = "compound"
    COMPARISON = "comparison"
    BROAD = "broad"


class Part(Model):
    """One subquestion. `broad`: it can be taken apart itself. `asked`: a part of the question, no facet beside it."""

    facet: Facet
    query: str
    broad: bool = False
    asked: bool = False


class Reading(Model):
    """A question as the rules read it; no parts: it is searched as it stands."""

    kind: Kind = Kind.SIMPLE
    parts: tuple[Part, ...] = ()


def facets(templates: Mapping[Facet, str], slots: Mapping[str, str]) -> tuple[Part, ...]:
    """The templates as questions, `{name}` replaced by its slot. Slot text is never read as a template."""
    parts = []
    for facet, template in templates.items():
        query = template.format_map(slots)
        parts.append(Part(facet=facet, query=query[:1].upper() + query[1:]))
    return tuple(part for part in parts if len(part.query) <= MAX_PART)


def as_asked(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same parts, marked as what the question itself asks for."""
    return tuple(part.model_copy(update={"asked": True}) for part in parts)
