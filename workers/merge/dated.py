"""Statements of several days about the same: the latest first, and what was said before it named as earlier. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from shared.language import reader_sentence
from shared.language.text import days_in, flat
from shared.models import MergedHit
from workers.display import plain_line
from workers.merge.identifiers import named_numbers
from workers.merge.pieces import QuotableSentence

Day = tuple[int, int, int]
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
#: So much of a page's beginning is read for its date.
_READ = 300
_AT_START = 24
#: Terms without digits that two rows have to have in common to be versions of one.
_LEAST_COMMON = 1


class Days:
    """The day of each sentence of a pool: that which it begins with, its heading's, its page's, or one that it names.

    `superseded`: the pages that say of themselves that they hold no longer, and how they say it.
    """

    def __init__(self, hits: Sequence[MergedHit]) -> None:
        self._hits, self._pages = hits, dict[str, Day]()
        self.superseded = dict[str, str]()
        for hit in sorted(hits, key=lambda hit: hit.ordinal):
            if hit.doc_id not in self._pages and (day := _of_page(hit)):
                self._pages[hit.doc_id] = day
            if hit.superseded:
                self.superseded[hit.doc_id] = hit.superseded

    def day(self, one: QuotableSentence) -> Day | None:
        """The day as of which it was said; None where nothing tells."""
        hit = self._hits[one.number - 1]
        named, page = days_in(one.text), self._pages.get(hit.doc_id)
        if named and one.text[:1].isdigit() and days_in(one.text[:_AT_START]):
            return named[0]
        return next(iter(days_in(hit.heading)), None) or page or max(named, default=None)

    def of_page(self, one: QuotableSentence) -> Day | None:
        """The day of its page."""
        return self._pages.get(self._hits[one.number - 1].doc_id)

    def newest_first(
        self, question: str, chosen: Sequence[QuotableSentence], latest: QuotableSentence | None
    ) -> list[QuotableSentence]:
        """`latest`, then the rest; where one is older than another version of it, behind that, with its day."""
        ordered, versioned = list(chosen), latest is not None or not _YEAR.search(question)
        if latest:
            rest = [one for one in chosen if one != latest]
            ordered = [latest, *sorted(rest, key=lambda one: self.day(one) or (), reverse=True)]
        older = set[QuotableSentence]()
        for one in ordered:
            day = self.day(one)
            versions = [other for other in ordered if other is not one and day and self._is_newer(other, one, day)]
            if versioned and ((latest and one != latest and day and day < (self.day(latest) or day)) or versions):
                older.add(one)
        named = named_numbers(question, self._hits)
        past = {one: line for one in ordered if one.number not in named and (line := self.superseded_by(one))}
        return [
            *(self._as_of(question, one) for one in ordered if one not in older and one not in past),
            *(self._earlier(question, one) for one in ordered if one in older and one not in past),
            *(replace(one, text=reader_sentence("not_in_force", question, past[one], one.text)) for one in past),
        ]

    def _as_of(self, question: str, one: QuotableSentence) -> QuotableSentence:
        """With the day that the heading of its section is, where it does not say that itself."""
        heading = self._hits[one.number - 1].heading
        days = days_in(heading) if len(heading) <= _AT_START else []
        if not days or days_in(one.text):
            return one
        return replace(one, text=reader_sentence("as_of", question, iso(days[0]), one.text))

    def successors(self, near: AbstractSet[int]) -> frozenset[int]:
        """The hits, numbered from 1, of the pages that those of `near` which hold no longer name in their place."""
        lines = [self.superseded.get(self._hits[number - 1].doc_id, "") for number in near]
        return frozenset(number for line in lines if line for number in named_numbers(line, self._hits))

    def superseded_by(self, one: QuotableSentence) -> str:
        """The line by which its page says that it holds no longer; "" where it does, and for that line itself."""
        line = plain_line(self.superseded.get(self._hits[one.number - 1].doc_id, ""))
        return "" if flat(line) in flat(one.text) else line

    def _is_newer(self, other: QuotableSentence, one: QuotableSentence, day: Day) -> bool:
        """True for the same statement with other values on a page of a later day."""
        later = self.day(other)
        same = _without_digits(one) == _without_digits(other) and len(_without_digits(one)) >= _LEAST_COMMON
        apart = self._hits[one.number - 1].doc_id != self._hits[other.number - 1].doc_id
        return bool(later and later > day and same and apart and one.words != other.words)

    def _earlier(self, question: str, one: QuotableSentence) -> QuotableSentence:
        day = self.day(one)
        if day is None or days_in(one.text):
            return one
        return replace(one, text=reader_sentence("earlier", question, iso(day), one.text))


def _of_page(hit: MergedHit) -> Day | None:
    found = days_in(hit.date or "") or days_in(hit.title) or days_in(hit.text[:_READ].split("\n\n", 1)[0])
    year = _YEAR.search(hit.title)
    return found[0] if found else (int(year[0]), 0, 0) if year else None


def _without_digits(one: QuotableSentence) -> frozenset[str]:
    return frozenset(term for term in one.words if not any(map(str.isdigit, term)))


def iso(day: Day) -> str:
    """As text, without what is not known of it."""
    return "-".join(str(part).zfill(2) for part in day if part)
