"""The Chinese table, loaded once, and the small rewritings that every Chinese rule needs."""

from __future__ import annotations

import re

from orchestrator.planning.rules.phrases import load

PHRASES = load("zh")
_TOUCHING = re.compile(r"(?<=[A-Za-z0-9+#])(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])")


def bare(sentence: str) -> str:
    """`sentence` without lead-in, end marks and thanks."""
    text = peeled(sentence.strip(), "tail")
    return peeled(PHRASES.without_lead_in(text), "tail")


def peeled(text: str, pattern: str, times: int = 6) -> str:
    """`text` with what the named pattern finds taken off, up to `times` layers; never to nothing."""
    for _ in range(times):
        shorter = PHRASES.compiled[pattern].sub("", text, count=1).strip()
        if shorter in {text, ""}:
            return text
        text = shorter
    return text


def asks(clause: str) -> bool:
    """True when a question word stands in `clause`."""
    return PHRASES.compiled["ask"].search(clause) is not None


def spaced(query: str, like: str) -> str:
    """`query` with a space between Latin and Chinese, unless the question `like` writes them without one."""
    return query if _TOUCHING.search(like) else _TOUCHING.sub(" ", query)
