"""Facet questions about the topic of one Chinese sentence; none when no frame fits surely."""

from __future__ import annotations

import re

from orchestrator.planning.rules.chinese_phrases import PHRASES, asks, peeled
from orchestrator.planning.rules.reading import Kind, Part, as_asked, facets

_MAX_TOPIC = 40
_MIN_OBJECT = 2
_NONE: tuple[Kind, tuple[Part, ...]] = (Kind.SIMPLE, ())
#: Verbs that say no more than "do": what comes before them holds the real one.
_LIGHT = frozenset({"做", "进行", "实现", "搞", "开展", "落地", "操作", "弄"})
_STANDING = ("它", "这个", "那个", "这些")


def facet_questions(sentence: str) -> tuple[Kind, tuple[Part, ...]]:
    """Kind and facets of one sentence without lead-in and end mark."""
    framed = PHRASES.frame(sentence)
    if framed is None or not all(_fits(text) for text in framed[1].values() if text):
        return _NONE
    frame, slots = framed
    if frame in {"howto", "task"}:
        return _verb_phrase(slots["vp"])
    if frame == "object_first":
        return _object_first(slots["object"], slots["verb"])
    if frame in {"why", "problem", "trouble"}:
        return _clause(frame, slots)
    parts = facets(PHRASES.templates[frame], slots)
    return (Kind.COMPOUND, as_asked(parts)) if frame == "pros" else (Kind.BROAD, parts)


def _fits(text: str) -> bool:
    return len(text) <= _MAX_TOPIC and not asks(text) and not any(word in text for word in (*_STANDING, ","))


def _verb_phrase(vp: str) -> tuple[Kind, tuple[Part, ...]]:
    adverbs = "|".join(PHRASES.words["adverb"])
    vp = re.sub(rf"^(?:{adverbs})+\s*", "", vp)
    verb = max((verb for verb in PHRASES.verb_class if vp.startswith(verb)), key=len, default="")
    thing = _unmeasured(vp[len(verb) :].strip())
    if not verb:
        return Kind.SIMPLE, facets(PHRASES.templates["narrow"], {"vp": vp}) if len(vp) > _MIN_OBJECT else ()
    return _classed(verb, thing)


def _object_first(thing: str, verb: str) -> tuple[Kind, tuple[Part, ...]]:
    """Questions that name the object first: "X 怎么优化", "X 优化怎么做"."""
    thing = thing.removesuffix("的").strip()
    if verb not in _LIGHT:
        known = PHRASES.verb_class.get(verb, "write")
        return _NONE if known == "write" else _classed(verb, thing)
    inner = next((verb for verb in PHRASES.verbs["noun_like"] if thing.endswith(verb)), "")
    if inner and len(thing) >= len(inner) + _MIN_OBJECT:
        return _classed(inner, thing.removesuffix(inner).strip())
    return Kind.BROAD, facets(PHRASES.templates["topic"], {"x": thing})


def _classed(verb: str, thing: str) -> tuple[Kind, tuple[Part, ...]]:
    if len(thing) < _MIN_OBJECT:
        return _NONE
    kind = PHRASES.verb_class[verb]
    if kind in {"write", "build"}:
        kind = "write" if PHRASES.compiled["document"].search(thing) else "build"
    if kind == "noun_like" and PHRASES.compiled["metric"].search(thing):
        kind = "noun_like_metric"
    return Kind.BROAD, facets(PHRASES.templates[kind], {"verb": verb, "object": thing, "vp": f"{verb}{thing}"})


def _unmeasured(thing: str) -> str:
    """Without owner and measure word: "我们的一份季度报告" is asked about as "季度报告"."""
    measures = "|".join(sorted(PHRASES.words["measure"], key=len, reverse=True))
    return re.sub(rf"^(?:我们?的)?(?:{measures})?\s*", "", thing)


def _clause(frame: str, slots: dict[str, str]) -> tuple[Kind, tuple[Part, ...]]:
    """Why-questions and "what to do when": a state that is bad gets causes and cures, any other one its reason."""
    clause = peeled(slots["clause"], "connective", times=1).removeprefix("会").removesuffix("的").strip()
    clause = re.sub(r"^我们?的\s*", "", f"{slots.get('head', '')}{clause}")
    if frame == "trouble" or PHRASES.compiled["problem"].search(clause):
        return Kind.BROAD, facets(PHRASES.templates["problem"], {"clause": clause})
    if frame == "problem" or len(clause) < _MIN_OBJECT:  # "what to do when" of no trouble: too little to go by
        return _NONE
    return Kind.SIMPLE, facets(PHRASES.templates["why"], {"clause": clause})
