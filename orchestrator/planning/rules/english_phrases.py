"""The English table, loaded once, and the small rewritings that every English rule needs."""

from __future__ import annotations

import re

from orchestrator.planning.rules.phrases import load

PHRASES = load("en")
_SECOND = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "we": "you", "us": "you",
    "our": "your", "ours": "yours", "ourselves": "yourselves", "i'm": "you're", "i am": "you are", "am i": "are you",
    "we're": "you're", "i've": "you've", "we've": "you've",
}  # fmt: skip
_FIRST = re.compile(rf"\b(?:{'|'.join(sorted(_SECOND, key=len, reverse=True))})\b", re.IGNORECASE)
_UPPER = re.compile(r"\b(?:US|ME|MY)\b")


def bare(sentence: str) -> str:
    """`sentence` without lead-in, end marks and thanks."""
    text = PHRASES.without_lead_in(PHRASES.compiled["tail"].sub("", sentence.strip()))
    return PHRASES.compiled["tail"].sub("", text)


def second_person(phrase: str) -> str:
    """Makes "your query" of "my query": a facet question speaks to the one who asks. US and ME in capitals stay."""

    def second(found: re.Match[str]) -> str:
        # Without regard to case a Turkish dotless i is an "i", too, but not when it is made small.
        return found[0] if _UPPER.fullmatch(found[0]) else _SECOND.get(found[0].lower(), found[0])

    return _FIRST.sub(second, phrase)


def is_indirect(sentence: str) -> bool:
    """True for "what Raft is", which is no question unless something like "explain" stands before it."""
    return PHRASES.compiled["indirect"].match(sentence) is not None
