"""Enrichment: what a person reads of a hit, the part of its text that speaks of the question."""

from __future__ import annotations

import re
from itertools import pairwise

from shared.settings import stages as s
from shared.text import terms
from workers.search.state import State
from workers.search.tools import Tools

_END = re.compile(r"[.!?](?=\s)\s*|[。！？\n]\s*")


def enrich(state: State, options: s.Enrich, tools: Tools) -> State:  # noqa: ARG001
    """Give every candidate a snippet."""
    asked = frozenset(terms(state.query.text))
    return state.but(
        candidates=tuple(
            candidate._replace(
                hit=candidate.hit.model_copy(update={"snippet": snippet(candidate.hit.text, asked, options.chars)})
            )
            for candidate in state.candidates
        )
    )


def snippet(text: str, asked: frozenset[str], chars: int) -> str:
    """At most `chars` characters from the first sentence that holds most terms of the question, on one line.

    Terms are looked for as letters, not as words: 50 candidates must cost well under a millisecond.
    """
    starts = [0, *(end.end() for end in _END.finditer(text))]
    folded = text.lower()
    counts = [sum(term in folded[at:until] for term in asked) for at, until in pairwise([*starts, len(text)])]
    best = max(range(len(counts)), key=lambda n: (counts[n], -n))
    joined = " ".join(text[starts[best] : starts[best] + 2 * chars].split())
    return joined if len(joined) <= chars else f"{joined[: chars - 1].rstrip()}…"
