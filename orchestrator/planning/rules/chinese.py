"""Reads Chinese questions: sentences, clauses, comparisons, facets, in this order. The phrases are in zh.toml."""

from __future__ import annotations

from orchestrator.planning.rules.chinese_clauses import split
from orchestrator.planning.rules.chinese_comparison import compared
from orchestrator.planning.rules.chinese_facets import facet_questions
from orchestrator.planning.rules.chinese_phrases import PHRASES, asks, bare, spaced
from orchestrator.planning.rules.reading import MAX_PART, MAX_SENTENCE, MIN_PART, Kind, Part, Reading
from orchestrator.planning.rules.sentences import sentences

_MAX_SENTENCES = 40


def read(text: str) -> Reading:
    """Kind and parts of a Chinese question in simplified characters."""
    found = [s for s in sentences(text)[:_MAX_SENTENCES] if len(s) <= MAX_SENTENCE]
    asking = [_as_question(sentence) for sentence in found if _is_request(sentence)]
    if len(asking) > 1:
        reading = _compound(split("。".join(asking)))
    else:
        reading = _read_sentence(asking[0]) if asking else Reading()
    parts = (part.model_copy(update={"query": spaced(part.query, like=text)}) for part in reading.parts)
    return reading.model_copy(update={"parts": tuple(parts)})


def _is_request(sentence: str) -> bool:
    text = bare(sentence)
    if PHRASES.compiled["asks"].match(text) or sentence.rstrip().endswith("?"):
        return True
    return bool(PHRASES.compiled["task"].match(text) or PHRASES.compiled["ordered"].match(sentence))


def _as_question(sentence: str) -> str:
    """Without lead-in; "help me optimise X" becomes "how to optimise X"."""
    text = bare(sentence)
    ordered = PHRASES.compiled["ordered"].match(sentence) or PHRASES.compiled["task"].match(text)
    starts_with_verb = any(text.startswith(verb) for verb in PHRASES.verb_class)
    return f"如何{text}" if ordered and starts_with_verb and not asks(text) else text


def _read_sentence(sentence: str) -> Reading:
    if comparison := compared(sentence):
        return Reading(kind=Kind.COMPARISON, parts=comparison)
    pieces = split(sentence)
    compound = _compound(pieces)
    if compound.parts:
        return compound
    context, piece = pieces[0] if pieces else ("", sentence)
    if comparison := compared(piece):
        return Reading(kind=Kind.COMPARISON, parts=comparison)
    kind, parts = facet_questions(piece)
    if context:
        parts = tuple(part.model_copy(update={"query": f"{context},{part.query}"}) for part in parts)
    return Reading(kind=kind, parts=parts)


def _compound(pieces: list[tuple[str, str]]) -> Reading:
    """One part for each clause that asks; fewer than two are no compound."""
    parts = []
    for context, piece in pieces:
        query = f"{context},{piece}?" if context else f"{piece}?"
        if MIN_PART <= len(query) <= MAX_PART:
            broad = bool(compared(piece)) or facet_questions(piece)[0] is not Kind.SIMPLE
            parts.append(Part(facet=PHRASES.facet_of(piece), query=query, broad=broad, asked=True))
    return Reading(kind=Kind.COMPOUND, parts=tuple(parts)) if len(parts) > 1 else Reading()
