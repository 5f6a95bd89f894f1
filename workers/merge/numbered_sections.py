"""The numbered sections of the page that a question for a way names: "1. Stop the pool" are its steps. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from shared.language import derived, languages
from shared.language.text import term_set
from shared.models import Hit
from workers.display import plain_line
from workers.merge.pieces import QuotableSentence, quotable_sentences

_MOST = 12
_MIN_TITLE = 2
_LEAST_FOUND = 0.6
_LEVEL = " > "
_ENDS = ("?", "!", ".", ":", "？", "！", "。", "：")


def steps_of_page(asked: frozenset[str], hits: Sequence[Hit]) -> tuple[list[QuotableSentence], list[int]]:
    """How each numbered section of the page that `asked` (terms) names begins, in order, each behind its heading.

    The second are the numbers of sections that are not among `hits`. Both are empty where no page of at least two
    such sections is named, the first of them among `hits`, and most of the others.
    """
    for hit in hits:
        title = term_set(hit.title)
        if (asked and asked <= title) or (len(title) >= _MIN_TITLE and title <= asked):
            return _steps(hit.doc_id, hits)
    return [], []


def _steps(doc_id: str, hits: Sequence[Hit]) -> tuple[list[QuotableSentence], list[int]]:
    first: dict[int, tuple[int, str]] = {}
    for place, hit in sorted(enumerate(hits), key=lambda one: one[1].ordinal):
        if hit.doc_id == doc_id and (found := _numbered(hit.heading)):
            first.setdefault(found[0], (place, found[1]))
    last = max(first, default=0)
    if 1 not in first or not 1 < len(first) <= _MOST or len(first) < _LEAST_FOUND * last:
        return [], []
    steps = []
    for number, (place, heading) in sorted(first.items()):
        said, name = quotable_sentences(hits[place : place + 1]), plain_line(heading)
        if said:
            begins = f"{number}. {name}{' ' if name.endswith(_ENDS) else ': '}{said[0].text}"
            steps.append(replace(said[0], number=place + 1, text=begins))
    return steps, [number for number in range(1, last) if number not in first]


def _numbered(heading: str) -> tuple[int, str] | None:
    """Number and name of the numbered section that a path of headings is in."""
    for part in heading.split(_LEVEL):
        if found := _pattern().match(part):
            said = found["number"]
            return (int(said) if said.isdecimal() else 1 + _numerals().index(said)), found["name"]
    return None


@derived
def _numerals() -> str:
    return "".join(language.words.sections.numerals for language in languages())


@derived
def _pattern() -> re.Pattern[str]:
    spelt = f"|[{_numerals()}]" if _numerals() else ""
    return re.compile(rf"\W*(?:[A-Za-z]{{2,8}} |\w)?(?P<number>[1-9]\d?{spelt})\w?[.)、:：]\s*(?P<name>\S.*)")
