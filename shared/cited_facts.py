"""What an answer cites, and how two answers differ in that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.language.text import fold
from shared.models import Answer
from shared.models.standing import CitedFact

#: Facts of one answer that are kept, and characters of one.
_MOST, _MOST_CHARS = 200, 1000


def facts_of(answer: Answer) -> tuple[CitedFact, ...]:
    """The words of sources that its sentences rest on, each once; of a list its rows."""
    if answer.table is not None:
        rows = (CitedFact(path=row.path, text=row.title[:_MOST_CHARS]) for row in answer.table.rows)
        return _once([CitedFact(path="", text=f"{answer.table.matched} documents"), *rows])
    paths = {one.number: one.path for one in answer.summary.citations}
    spans = answer.summary.support.spans if answer.summary.support else ()
    quoted = [(paths.get(quote.number, ""), quote.text) for span in spans for quote in span.quotes]
    cited = [(one.path, one.quote) for one in answer.summary.citations]
    return _once(CitedFact(path=path, text=text[:_MOST_CHARS]) for path, text in quoted or cited if text)


def _once(facts: Iterable[CitedFact]) -> tuple[CitedFact, ...]:
    found = dict[str, CitedFact]()
    for fact in facts:
        found.setdefault(_key(fact), fact)
    return tuple(found.values())[:_MOST]


def _key(fact: CitedFact) -> str:
    return " ".join(fold(fact.text).split())


def changed(before: Sequence[CitedFact], now: Sequence[CitedFact]) -> tuple[list[CitedFact], list[CitedFact]]:
    """Facts that are cited now and were not, and those that were and are not.

    The same words of another document count as the same.
    """
    known, found = set(map(_key, before)), set(map(_key, now))
    return [one for one in now if _key(one) not in known], [one for one in before if _key(one) not in found]
