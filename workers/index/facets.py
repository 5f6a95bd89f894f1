"""Which storage facet (B9) a section is: by its heading, by a label at its start, by the document's front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TITLES = {
    "context": ("context", "background", "境", "背景", "情境", "背景情况"),
    "intent": ("intent", "intention", "purpose", "goal", "goals", "欲", "目的", "意图", "意图目的"),
    "action": ("action", "actions", "行", "过程", "行动", "行动过程", "做法"),
    "result": ("result", "results", "outcome", "effect", "果", "结果", "效果", "结果效果"),
    "insight": (
        "insight", "insights", "lesson", "lessons", "lessons learned", "lessons learnt",
        "悟", "教训", "经验", "感悟", "经验教训", "经验与教训",
    ),
}  # fmt: skip
FACETS = tuple(_TITLES)
_FACETS = {title: facet for facet, titles in _TITLES.items() for title in titles}
_NUMBER = re.compile(r"[\W_]*(?:(?:\d{1,3}|[一二三四五六七八九十]{1,3})[.、．)）:：]\s*)*")
_PARTS = re.compile(r"[（()）/／|·:：]")
_LABEL = re.compile(r"[\W_]{0,8}([^\W_][^:：*_\n]{0,40}+)(?:\*\*|__|\*|_)?\s{0,2}[:：]")


def labels(heading: str) -> list[str]:
    """What a heading says, folded: the whole of it and its parts, without number, emphasis and brackets.

    "二、行（Action）" says 行 and action.
    """
    found = _NUMBER.match(heading)
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
    return (facet for label in labels(heading) if (facet := _FACETS.get(label)))
