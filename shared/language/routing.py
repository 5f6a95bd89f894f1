"""Reads a question by rules: its type, what it is after, how sure that is and why. Pure; never looks into the corpus.

A question is prepared first: bounded, cleaned, without courtesies, down to what it asks. Each rule that fires gives its
weight to what it speaks for; weights for the same add up as independent evidence, 1 - (1-a)(1-b). The confidence is the
best sum less half the second best: two that are near to each other cancel out.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from shared.language import derived, languages
from shared.language.tables import CompiledRule, RoutingRules, Says
from shared.language.text import normalised
from shared.models.route import Hops, Intent, QueryType, Reason, Routed

#: Below this confidence a decision counts as unsure (routing.unsure_below).
UNSURE_BELOW = 0.5
_SHOWN = 60
_NOTHING_FITS = 0.3
_NOTHING_ASKED = Reason(rule="nothing_asked", says="none", words="only courtesies, marks or emoji", weight=0.95)
_TYPE_OF: dict[Says, QueryType] = {
    "simple_rule": QueryType.SIMPLE_RULE,
    "aspects": QueryType.COMPLEX_REASONING,
    "multi_hop": QueryType.COMPLEX_REASONING,
    "enumeration": QueryType.ENUMERATION,
    "none": QueryType.NONE,
}


#: Of a longer text only its beginning and its end are read, in characters: that is where people put their question.
_HEAD = _TAIL = 500
_JOINT = "\n"
_WORD = re.compile(r"[a-z0-9][a-z0-9']*")
_HIDDEN = {"Cf": None, "Cc": " ", "Cs": " ", "Co": None, "Cn": None}
#: A full stop ends a sentence only behind a word and before a capital; "?" may stand within a title.
_BETWEEN = re.compile(
    r"\n+|(?<=[?!。])\s*(?=[\u3400-\u9fff])|(?<=[?!])\s+(?=\w)|(?<=[a-z0-9]{3}\.)\s+(?=[A-Z\"])|(?<=。)\s*(?=\w)"
)
_EDGES = " ,.!?;:~…。、-\"'()[]{}"
_COURTESIES = 8


@dataclass(frozen=True, slots=True)
class Question:
    """What the rules see. `text` keeps its capitals, `low` is the same in lower case; both are one line.

    `words` are its words in Latin letters; `asking` is how many of its sentences ask; `stated` is True for a text that
    ends like a statement. An empty `text` asks nothing.
    """

    text: str
    low: str
    words: frozenset[str]
    asking: int
    stated: bool


def prepared(question: str) -> Question:
    """The part of `question` that asks, ready for the rules. Linear in its length, which is bounded first."""
    whole = _without_courtesies(_cleaned(_bounded(question)))
    parts = [part for part in _BETWEEN.split(whole) if part and part.strip(_EDGES)]
    asking = [part for part in parts if asks(part)]
    text = " ".join((asking or parts)[-3:]) if len(parts) > 1 else whole
    text = " ".join(text.split())
    stated = text.endswith((".", "。")) and not asking
    text = text.strip(_EDGES)
    low = text.lower()
    words = frozenset(_WORD.findall(low))
    return Question(
        text=text if len(text) == len(low) else low,
        low=low,
        words=words,
        asking=sum(part.rstrip().endswith("?") for part in asking),
        stated=stated,
    )


def _bounded(question: str) -> str:
    if len(question) <= _HEAD + _TAIL:
        return question
    return f"{question[:_HEAD]}{_JOINT}{question[-_TAIL:]}"


def _cleaned(text: str) -> str:
    """Compatibility forms unified, in the tables' spelling, nothing hidden; lines stay."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
        text = normalised(text)
    if not text.replace("\n", " ").isprintable():
        text = "".join(
            c if c == "\n" or c.isprintable() else _HIDDEN.get(unicodedata.category(c), " ") or "" for c in text
        )
    return text.strip()


def _without_courtesies(text: str) -> str:
    """`text` without greetings, thanks and the like at its start; empty when it holds nothing else."""
    for _ in range(_COURTESIES):
        text = text.lstrip(_EDGES + "\n")
        end = _courtesy_end(text[:80].lower())
        if not end:
            break
        text = text[end:]
    return text if any(c.isalnum() for c in text) else ""


def _courtesy_end(low: str) -> int:
    """Where the courtesy at the start of `low` ends; 0 without one."""
    found = (rules.courtesy.match(low) for rules in _routing() if rules.courtesy)
    return next((match.end() for match in found if match), 0)


def asks(sentence: str) -> bool:
    """True for a question: it ends with a mark, or it begins with or holds what questions of some language do."""
    if sentence.rstrip().endswith("?"):
        return True
    low = sentence[:200].strip(_EDGES).lower()
    return any(rules.asks.search(low) for rules in _routing() if rules.asks)


@derived
def _routing() -> tuple[RoutingRules, ...]:
    return tuple(language.routing for language in languages())


def route_by_rules(question: str, unsure_below: float = UNSURE_BELOW) -> Routed:
    """How `question` reads: type, hops, intent, with the rules that fired, strongest first.

    Any text is taken; one in a language without rules is `unsure`. Microseconds; linear in the text's length.
    """
    asked = prepared(question)
    if not asked.text:
        return Routed(
            type=QueryType.NONE, intent=Intent.GENERAL, confidence=_NOTHING_ASKED.weight,
            unsure=_NOTHING_ASKED.weight < unsure_below, reasons=(_NOTHING_ASKED,),
        )  # fmt: skip
    reasons = _fired(asked)
    sums = _summed(reasons)
    kind, confidence = _best(sums)
    hops = None
    if kind is QueryType.COMPLEX_REASONING:
        hops = Hops.MULTI_HOP if sums.get("multi_hop", 0) >= sums.get("aspects", 0) else Hops.ASPECTS
    intent, why = _intent(asked) if kind is not QueryType.NONE else (Intent.GENERAL, ())
    return Routed(
        type=kind, intent=intent, hops=hops, confidence=round(confidence, 2),
        unsure=confidence < unsure_below, reasons=(*reasons, *why),
    )  # fmt: skip


def _fired(asked: Question) -> list[Reason]:
    """The rules that fired, strongest first; those about form at half their weight beside any about content."""
    content: list[Reason] = []
    form: list[Reason] = []
    for rule in _rules_for(asked):
        words = _match(rule, asked)
        if words is not None:
            kept = form if rule.form else content
            kept.append(Reason(rule=rule.name, says=rule.says, words=words, weight=rule.weight))
    if asked.asking > 1:
        content.append(Reason(rule="several_questions", says="aspects", words=f"{asked.asking} questions", weight=0.8))
    if asked.stated:
        form.append(Reason(rule="statement", says="simple_rule", words="a statement", weight=0.55))
    strongest = max(form, key=lambda reason: reason.weight, default=None)
    if strongest and content:
        strongest = strongest.model_copy(update={"weight": strongest.weight / 2})
    return sorted([*content, *([strongest] if strongest else [])], key=lambda reason: -reason.weight)


def _rules_for(asked: Question) -> list[CompiledRule]:
    return [
        rule
        for language in languages()
        if (keys := language.routing_keys(asked.low, asked.words))
        for rule in language.routing.types.candidates(keys)
    ]


def _match(rule: CompiledRule, asked: Question) -> str | None:
    """The words that `rule` fired on, or None."""
    found = rule.pattern.search(asked.text if rule.cased else asked.low)
    if found is None or (rule.unless and rule.unless.search(asked.low)):
        return None
    words = found[0].strip()
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"


def _summed(reasons: list[Reason]) -> dict[str, float]:
    missing: dict[str, float] = {}
    for reason in reasons:
        missing[reason.says] = missing.get(reason.says, 1.0) * (1 - reason.weight)
    return {says: 1 - rest for says, rest in missing.items()}


def _best(sums: dict[str, float]) -> tuple[QueryType, float]:
    """The type with the largest sum, and how sure that is. Without any evidence: a lookup, unsure."""
    by_type: dict[QueryType, float] = {}
    for says, kind in _TYPE_OF.items():
        by_type[kind] = 1 - (1 - by_type.get(kind, 0.0)) * (1 - sums.get(says, 0.0))
    ranked = sorted(by_type.items(), key=lambda item: -item[1])  # stable: ties go to the cheaper type
    (kind, first), (_, second) = ranked[0], ranked[1]
    return (kind, first - second / 2) if first else (QueryType.SIMPLE_RULE, _NOTHING_FITS)


def _intent(asked: Question) -> tuple[Intent, tuple[Reason, ...]]:
    for language in languages():
        keys = language.routing_keys(asked.low, asked.words)
        for rule in language.routing.intents.candidates(keys) if keys else ():
            words = _match(rule, asked)
            if words is not None:
                return rule.intent, (Reason(rule=rule.name, says=rule.intent.value, words=words, weight=1.0),)
    return Intent.GENERAL, ()
