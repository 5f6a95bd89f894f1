"""Enrichment (D8): what a person reads of a hit, the part of its text that speaks of the question."""

from __future__ import annotations

from shared.settings import stages as s
from shared.text import sentences, terms
from workers.search.state import State
from workers.search.tools import Tools


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
    """At most `chars` characters from the first sentence that shares most terms with the question, on one line."""
    found = sentences(text)
    if not found:
        return " ".join(text.split())[:chars]
    best = max(range(len(found)), key=lambda n: (len(asked.intersection(terms(found[n]))), -n))
    joined = " ".join(" ".join(found[best:]).split())
    return joined if len(joined) <= chars else f"{joined[: chars - 1].rstrip()}…"
