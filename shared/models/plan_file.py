"""A plan as a file has it: `ramify plan` writes it, people edit it, `ramify ask --plan` runs it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared.models.base import Model
from shared.models.plan import Facet
from shared.models.plan_rules import Links, PlanFaultError, check_links, in_order
from shared.models.request import MAX_ENTRIES, MAX_QUESTION_CHARS, Filters, Name, PlanEntry
from shared.references import references, renumbered

_Id = Annotated[int, Field(ge=1, le=99)]


class FileEntry(Model):
    """One subquestion. `id` is its number for `depends_on`, `under` and `#n`; without one it is its place, from 1."""

    id: _Id | None = None
    query: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    dimension: Facet = Facet.CORE
    depends_on: tuple[_Id, ...] = Field(default=(), max_length=MAX_ENTRIES)
    under: _Id | None = None


class PlanFile(Model):
    """A question and its subquestions. With none, the question is searched as it is."""

    question: str | None = Field(default=None, max_length=MAX_QUESTION_CHARS)
    strategy: Name | None = None
    filters: Filters | None = None
    subqueries: tuple[FileEntry, ...] = Field(default=(), max_length=MAX_ENTRIES)

    def entries(self) -> tuple[PlanEntry, ...]:
        """The subquestions as a request has them: in an order in which each stands behind those that it waits for.

        Raises: PlanFaultError (its number is the entry's id).
        """
        given = self._by_id()
        links = {number: _links(number, entry, given) for number, entry in given.items()}
        check_links(links)
        places = {number: place for place, number in enumerate(in_order(links), 1)}
        return tuple(
            PlanEntry(
                query=renumbered(given[number].query, places.get),
                dimension=given[number].dimension,
                depends_on=tuple(sorted(places[other] for other in links[number].depends_on)),
                under=places[under] if (under := links[number].under) is not None else None,
            )
            for number in places
        )

    def _by_id(self) -> dict[int, FileEntry]:
        found: dict[int, FileEntry] = {}
        for place, entry in enumerate(self.subqueries, 1):
            number = entry.id if entry.id is not None else place
            if number in found:
                raise PlanFaultError(number, "id", number, "two entries have that number: give each its own")
            if not entry.query.strip():
                raise PlanFaultError(number, "query", repr(entry.query), "it is empty: write a question")
            if entry.dimension is Facet.ORIGINAL:
                fix = "the question's own leaf is there anyway: use core, why, how, case or note"
                raise PlanFaultError(number, "dimension", entry.dimension.value, fix)
            found[number] = entry
        return found


def _links(number: int, entry: FileEntry, known: dict[int, FileEntry]) -> Links:
    """A `#2` in the text waits for entry 2; the number of no entry is plain text."""
    implied = (n for n in references(entry.query) if n in known and n != number)
    return Links(tuple(sorted({*entry.depends_on, *implied})), entry.under)
