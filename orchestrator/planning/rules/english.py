"""Reads English questions: sentences, clauses, comparisons, facets, in this order. The phrases are in en.toml."""

from __future__ import annotations

import re

from orchestrator.planning.rules import english_clauses as clauses
from orchestrator.planning.rules.english_comparison import compared
from orchestrator.planning.rules.english_phrases import PHRASES, bare, is_indirect, second_person
from orchestrator.planning.rules.reading import MAX_PART, MAX_SENTENCE, MIN_PART, Kind, Part, Reading, as_asked, facets
from orchestrator.planning.rules.sentences import sentences

#: Sentences beyond these are not looked at: nobody asks so many things at once.
_MAX_SENTENCES = 40
_WORDS = (2, 18)
#: Question types whose facets merely vary one narrow question.
_NARROW = frozenset({"narrow", "why"})


def read(text: str) -> Reading:
    """Kind and parts of an English question."""
    found = sentences(text)[:_MAX_SENTENCES]
    asking = [
        bare(sentence) for sentence in found if len(sentence) <= MAX_SENTENCE and (len(found) == 1 or _asks(sentence))
    ]
    if len(found) > 1 and len(asking) > 1:
        parts = _parts(asking)
        if len(parts) > 1:
            return Reading(kind=Kind.COMPOUND, parts=parts)
    if len(asking) != 1:
        return Reading()
    return _read_sentence(asking[0])


def _asks(sentence: str) -> bool:
    text = PHRASES.without_lead_in(sentence)
    return any(PHRASES.compiled[name].match(text) for name in ("asks", "task")) or bool(PHRASES.comparison(bare(text)))


def _read_sentence(sentence: str) -> Reading:
    pieces = clauses.split(sentence)
    parts = _parts(pieces)
    if len(parts) > 1:
        return Reading(kind=Kind.COMPOUND, parts=parts)
    sentence = pieces[0] if len(pieces) > 1 else sentence  # the rest does not stand alone; the original leaf has it
    if comparison := compared(sentence):
        return Reading(kind=Kind.COMPARISON, parts=comparison)
    return _facets(sentence)


def _parts(texts: list[str]) -> tuple[Part, ...]:
    """Each text as a question of its own; a pronoun is replaced by what the one before is about, or the text left."""
    parts: list[Part] = []
    about: str | None = None
    for text in texts:
        standing = clauses.resolved(text, about)
        if standing is None or len(standing.split()) < _WORDS[0]:
            continue
        about = clauses.subject(standing) or about
        query = _question(standing)
        if MIN_PART <= len(query) <= MAX_PART:
            broad = _is_broad(standing)
            parts.append(Part(facet=PHRASES.facet_of(standing), query=query, broad=broad, asked=True))
    return tuple(parts)


def _is_broad(sentence: str) -> bool:
    if compared(sentence):
        return True
    return _facets(sentence).kind is not Kind.SIMPLE


def _question(sentence: str) -> str:
    if is_indirect(sentence):
        return PHRASES.sentences["explain"].format(part=sentence)
    text = sentence[:1].upper() + sentence[1:]
    if re.match(r"(?:explain|describe|compare|tell|give|list|outline|summari[sz]e)\b", text, re.IGNORECASE):
        return f"{text}."
    return f"{text}." if PHRASES.compiled["task"].match(text) else f"{text}?"


def _facets(sentence: str) -> Reading:
    """Facet questions about the topic of one sentence; simple without parts when no frame fits surely."""
    framed = PHRASES.frame(sentence)
    if framed is None:
        return Reading()
    frame, slots = framed
    if frame in {"why", "why_clause"}:
        return _why(slots)
    if frame in {"howto", "task", "purpose"}:
        return _verb_phrase(frame, slots["vp"])
    topic = second_person(" ".join(filter(None, (slots["x"], slots.get("rest", "")))))
    topic = re.sub(r" (?:internally|under the hood|exactly)$", "", topic)
    if not _fits(topic, least=1) or PHRASES.compiled["question_word"].match(topic):
        return Reading()
    parts = facets(PHRASES.templates[frame], {"x": topic})
    if frame == "pros":
        return Reading(kind=Kind.COMPOUND, parts=as_asked(parts))
    return Reading(kind=Kind.BROAD, parts=parts)


def _verb_phrase(frame: str, vp: str) -> Reading:
    adverbs = "|".join(PHRASES.words["adverb"])
    vp = second_person(re.sub(rf"^(?:{adverbs}) ", "", vp, flags=re.IGNORECASE))
    vp = vp[:1].lower() + vp[1:]
    if not _fits(vp):
        return Reading()
    verb, kind = _verb(vp)
    kind = "purpose" if frame == "purpose" else kind
    thing = vp[len(verb) :].strip() if verb else ""
    if not thing and kind != "purpose":
        return Reading()
    if kind == "write" and not re.match(r"(?:an?|the|your|some|new)\b", thing):
        kind = "narrow"
    parts = facets(PHRASES.templates[kind], {"vp": vp, "object": thing})
    return Reading(kind=Kind.SIMPLE if kind in _NARROW else Kind.BROAD, parts=parts)


def _verb(vp: str) -> tuple[str, str]:
    """The verb that `vp` starts with and its class; an unknown one makes a narrow question."""
    words = vp.lower().split()
    for count in (4, 3, 2, 1):
        verb = " ".join(words[:count])
        if verb in PHRASES.verb_class:
            return verb, PHRASES.verb_class[verb]
    return words[0], "narrow"


def _why(slots: dict[str, str]) -> Reading:
    clause = second_person(slots["clause"]) if "clause" in slots else clauses.declarative(slots["aux"], slots["rest"])
    if clause is None or not _fits(clause):
        return Reading()
    kind = "problem" if PHRASES.compiled["problem"].search(clause) else "why"
    parts = facets(PHRASES.templates[kind], {"clause": clause})
    return Reading(kind=Kind.BROAD if kind == "problem" else Kind.SIMPLE, parts=parts)


def _fits(phrase: str, least: int = _WORDS[0]) -> bool:
    """True for a phrase that stands alone in a question: not too long, no pronoun that points elsewhere."""
    words = len(phrase.split())
    return least <= words <= _WORDS[1] and not PHRASES.compiled["pronoun"].search(phrase)
