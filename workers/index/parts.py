"""What a section is of its page: compiled truth, timeline or neither. Read from headings and rules alone.

The page model is GBrain's: what holds now stands above, how it came to be stands below, by date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.language import derived, languages
from shared.models.hits import Part
from workers.index.blocks import Block, Kind
from workers.index.facets import labels

#: A line of its own that opens the timeline whatever follows.
_SENTINELS = frozenset({"<!-- timeline -->", "--- timeline ---"})


def part_of(title: str, headings: Sequence[str]) -> Part | None:
    """The part that a heading path names, the deepest heading first; None when no heading says so.

    The document's own title may make it all a timeline ("Changelog"), never all truth.
    """
    for heading in reversed(headings):
        if part := _named(heading):
            return part
    return Part.TIMELINE if _named(title) is Part.TIMELINE else None


def timeline_start(blocks: Sequence[Block]) -> int | None:
    """The index of the block with which the page's timeline begins, None when nothing parts it from the rest.

    That is a rule (`---`) with a timeline heading or a dated entry right behind it, or a line `<!-- timeline -->`.
    Everything above is compiled truth then.
    """
    for place, block in enumerate(blocks):
        if block.kind is Kind.TEXT and block.text.strip().casefold() in _SENTINELS:
            return place
        if block.kind is Kind.RULE and place + 1 < len(blocks) and _opens_timeline(blocks[place + 1]):
            return place
    return None


def _opens_timeline(block: Block) -> bool:
    if block.kind is Kind.HEADING:
        return _named(block.text) is Part.TIMELINE or bool(_dated().match(block.text))
    return block.kind is Kind.TEXT and bool(_dated().match(block.text))


def _named(heading: str) -> Part | None:
    return next((part for label in labels(heading) if (part := _headings().get(label))), None)


@derived
def _headings() -> dict[str, Part]:
    sections = [language.words.sections for language in languages()]
    timeline = {heading: Part.TIMELINE for section in sections for heading in section.timeline}
    return timeline | {heading: Part.TRUTH for section in sections for heading in section.truth}


@derived
def _dated() -> re.Pattern[str]:
    """A line that begins with a day or a month, behind a list's mark, a number or a bracket."""
    dates = (r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?", *(form for each in languages() for form in each.dates.headings))
    return re.compile(rf"(?:[-*+]|\d{{1,3}}[.)]|>)?\s{{0,3}}(?:\*\*|__|\[|【|\|)?\s?(?:{'|'.join(dates)})(?!\d)")
