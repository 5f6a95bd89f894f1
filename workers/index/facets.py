"""Which storage facet (B9) a section is, by its heading. Never reads the section's text."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_FACETS = {title: facet for facet, titles in _TITLES.items() for title in titles}
_NUMBER = re.compile(r"[\W_]*(?:(?:\d{1,3}|[一二三四五六七八九十]{1,3})[.、．)）:：]\s*)*")
_PARTS = re.compile(r"[（()）/／|·:：]")


def facet_of(headings: Sequence[str]) -> str | None:
    """context, intent, action, result or insight for a heading path, the deepest heading first.

    Numbers before a heading and a translation in brackets do not matter: "二、行（Action）" is action.
    """
    for heading in reversed(headings):
        for part in _PARTS.split(heading[_leading(heading) :]):
            if facet := _FACETS.get(part.strip(" *_").casefold()):
                return facet
    return None


def _leading(heading: str) -> int:
    found = _NUMBER.match(heading)
    return found.end() if found else 0
