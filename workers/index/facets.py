"""Which storage facet a section is: by its heading, by a label at its start, by the document's front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from shared.language import derived, languages

FACETS = ("context", "intent", "action", "result", "insight")
_PARTS = re.compile(r"[（()）/／|·:：]")
_LABEL = re.compile(r"[\W_]{0,8}([^\W_][^:：*_\n]{0,40}+)(?:\*\*|__|\*|_)?\s{0,2}[:：]")


def labels(heading: str) -> list[str]:
    """What a heading says, folded: the whole of it and its parts, without number, emphasis and brackets.

    "二、行（Action）" says 行 and action.
    """
    found = _number().match(heading)
    bare = heading[found.end() if found else 0 :]
    return [part.strip(" *_").casefold() for part in (bare, *_PARTS.split(bare))]


def facet_of(headings: Sequence[str]) -> str | None:
    """context, intent, action, result or insight for a heading path, the deepest heading first."""
    return next((facet for heading in reversed(headings) for facet in _named(heading)), None)


def label_of(text: str) -> str | None:
    """The facet that a text is labelled with at its start: "**Result:** ...", "- Result: ...", "结果：..."."""
    found = _LABEL.match(text)
    return next(_named(found[1]), None) if found else None


def _named(heading: str) -> Iterator[str]:
    return (facet for label in labels(heading) if (facet := _facets().get(label)))


@derived
def _facets() -> Mapping[str, str]:
    tables = (language.words.sections.facets for language in languages())
    return {title: facet for table in tables for facet, titles in table.items() for title in titles}


@derived
def _number() -> re.Pattern[str]:
    """The number of a heading, in digits or numerals, and marks around it."""
    numerals = [f"[{each}]{{1,3}}" for language in languages() if (each := language.words.sections.numerals)]
    counted = "|".join((r"\d{1,3}", *numerals))
    return re.compile(rf"[\W_]*(?:(?:{counted})[.、．)）:：]\s*)*")
