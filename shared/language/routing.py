"""Reads a question by rules: its type, what it is after, how sure that is and why. Pure; never looks into the corpus.

A question is prepared first: bounded, cleaned, without courtesies, down to what it asks. Each rule that fires gives its
weight to what it speaks for; weights for the same add up as independent evidence, 1 - (1-a)(1-b). The confidence is the
best sum less half the second best: two that are near to each other cancel out.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.language import Language, languages
from shared.language.tables import R, RuleIndex
from shared.language.text import normalised
from shared.models.route import TYPE_OF, Hops, Intent, QueryType, Reason, Routed

#: Below this confidence a decision counts as unsure (routing.unsure_below).
UNSURE_BELOW = 0.5
_MAX_SHOWN_CHARS = 60
#: Confidence in a lookup where no rule fired.
_NOTHING_FITS = 0.3
_NOTHING_ASKED = Reason(rule="nothing_asked", says="none", words="only courtesies, marks or emoji", weight=0.95)
#: Of a longer text only its beginning and its end are read, in characters: that is where people put their question.
_HEAD = _TAIL = 500
_WORD = re.compile(r"[a-z0-9][a-z0-9']*")
#: Unicode categories of characters that leave no space behind: format, private use, unassigned.
_DROPPED = frozenset({"Cf", "Co", "Cn"})
#: A full stop ends a sentence only behind a word and before a capital; "?" may stand within a title.
_BETWEEN = re.compile(
    r"\n+|(?<=[?!。])\s*(?=[\u3400-\u9fff])|(?<=[?!])\s+(?=\w)|(?<=[a-z0-9]{3}\.)\s+(?=[A-Z\"])|(?<=。)\s*(?=\w)"
)
_EDGES = " ,.!?;:~…。、-\"'()[]{}"
_MAX_COURTESIES = 8


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
    reasons = _evidence(asked)
    sums = _summed(reasons)
    kind, confidence = _best(sums)
    hops = None
    if kind is QueryType.COMPLEX_REASONING:
        hops = Hops.MULTI_HOP if sums.get("multi_hop", 0) >= sums.get("aspects", 0) else Hops.ASPECTS
    intent = Intent.GENERAL
    found = matches(asked, lambda language: language.routing.intent_rules)
    if kind is not QueryType.NONE and (first := next(found, None)):
        name, rule, words = first
        intent = rule.intent
        reasons.append(Reason(rule=name, says=intent.value, words=words, weight=1.0))
    return Routed(
        type=kind, intent=intent, hops=hops, confidence=_shown(confidence, unsure_below),
        unsure=confidence < unsure_below, reasons=tuple(reasons),
    )  # fmt: skip


def asks(sentence: str) -> bool:
    """True for a question: it ends with a mark, or it begins with or holds what questions of some language do."""
    if sentence.rstrip().endswith("?"):
        return True
    low = sentence[:200].strip(_EDGES).lower()
    return any(language.routing.asking.search(low) for language in languages())


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """What the rules see. `text` keeps its capitals, `low` is the same in lower case; both are one line.

    `words` are its words in Latin letters; `asking` is how many of its sentences ask; `stated` is True for a text that
    ends like a statement. An empty `text` asks nothing.
    """

    text: str
    low: str
    words: frozenset[str]
    asking: int
    stated: bool


def prepared(question: str) -> PreparedQuestion:
    """The part of `question` that asks, ready for the rules. Linear in its length, which is bounded first."""
    if len(question) > _HEAD + _TAIL:
        question = f"{question[:_HEAD]}\n{question[-_TAIL:]}"
    whole = _without_courtesies(_cleaned(question))
    parts = [part for part in _BETWEEN.split(whole) if part and part.strip(_EDGES)]
    asking = [part for part in parts if asks(part)]
    text = " ".join((asking or parts)[-3:]) if len(parts) > 1 else whole
    text = " ".join(text.split())
    stated = text.endswith((".", "。")) and not asking
    text = text.strip(_EDGES)
    low = text.lower()
    return PreparedQuestion(
        text=text if len(text) == len(low) else low,
        low=low,
        words=frozenset(_WORD.findall(low)),
        asking=sum(part.rstrip().endswith("?") for part in asking),
        stated=stated,
    )


def _cleaned(text: str) -> str:
    """Compatibility forms unified, in the tables' spelling, without characters that cannot be seen; lines stay."""
    if not text.isascii():
        text = normalised(unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'"))
    if not text.replace("\n", " ").isprintable():
        shown = (
            c if c == "\n" or c.isprintable() else "" if unicodedata.category(c) in _DROPPED else " " for c in text
        )
        text = "".join(shown)
    return text.strip()


def _without_courtesies(text: str) -> str:
    """`text` without greetings, thanks and the like at its start; empty when it holds nothing else."""
    for _ in range(_MAX_COURTESIES):
        text = text.lstrip(_EDGES + "\n")
        low = text[:80].lower()
        matches = (language.routing.courtesy.match(low) for language in languages())
        end = next((found.end() for found in matches if found), 0)
        if not end:
            break
        text = text[end:]
    return text if any(c.isalnum() for c in text) else ""


def matches(asked: PreparedQuestion, rules: Callable[[Language], RuleIndex[R]]) -> Iterator[tuple[str, R, str]]:
    """The rules of all languages that fire: full name ("en.list_all"), rule, and the words that it fired on."""
    for language in languages():
        if keys := language.routing_keys(asked.low, asked.words):
            for rule, words in rules(language).matches(asked.text, asked.low, keys):
                shown = words if len(words) <= _MAX_SHOWN_CHARS else f"{words[:_MAX_SHOWN_CHARS]}…"
                yield f"{language.code}.{rule.name}", rule, shown


def _evidence(asked: PreparedQuestion) -> list[Reason]:
    """The rules that fired, strongest first; of those about form only the best, at half its weight beside any other."""
    content: list[Reason] = []
    form: list[Reason] = []
    for name, rule, words in matches(asked, lambda language: language.routing.type_rules):
        (form if rule.form else content).append(Reason(rule=name, says=rule.says, words=words, weight=rule.weight))
    if asked.asking > 1:
        content.append(Reason(rule="several_questions", says="aspects", words=f"{asked.asking} questions", weight=0.8))
    if asked.stated:
        form.append(Reason(rule="statement", says="simple_rule", words="a statement", weight=0.55))
    strongest = max(form, key=lambda reason: reason.weight, default=None)
    if strongest and content:
        strongest = strongest.model_copy(update={"weight": strongest.weight / 2})
    return sorted([*content, *([strongest] if strongest else [])], key=lambda reason: -reason.weight)


def _summed(reasons: list[Reason]) -> dict[str, float]:
    """The weights for the same thing as one: 1 - (1-a)(1-b)."""
    missing: dict[str, float] = {}
    for reason in reasons:
        missing[reason.says] = missing.get(reason.says, 1.0) * (1 - reason.weight)
    return {says: 1 - rest for says, rest in missing.items()}


def _best(sums: dict[str, float]) -> tuple[QueryType, float]:
    """The type with the largest sum, and how sure that is. Without any evidence: a lookup, unsure."""
    by_type: dict[QueryType, float] = {}
    for says, kind in TYPE_OF.items():
        by_type[kind] = 1 - (1 - by_type.get(kind, 0.0)) * (1 - sums.get(says, 0.0))
    ranked = sorted(by_type.items(), key=lambda item: -item[1])  # stable: ties go to the cheaper type
    (kind, first), (_, second) = ranked[0], ranked[1]
    return (kind, first - second / 2) if first else (QueryType.SIMPLE_RULE, _NOTHING_FITS)


def _shown(confidence: float, threshold: float) -> float:
    """`confidence` with two digits; what lies below the threshold is not rounded up to it."""
    rounded = round(confidence, 2)
    return rounded if (rounded < threshold) == (confidence < threshold) else math.floor(confidence * 100) / 100
