"""Decides by rules alone how a question is answered (E1) and what it is after (F3). Pure; never looks into the corpus.

Each rule that fires gives its weight to what it speaks for; weights for the same add up as independent evidence,
1 - (1-a)(1-b). The confidence is the best sum less half the second best: two that are near to each other cancel out.
"""

from __future__ import annotations

from shared.models.route import Hops, Intent, QueryType, Reason, Routed
from shared.routing.reading import Question, read
from shared.routing.tables import Compiled, Says, rules

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


def route_by_rules(question: str, unsure_below: float = UNSURE_BELOW) -> Routed:
    """How `question` reads: type, hops, intent, with the rules that fired, strongest first.

    Any text is taken; one in a language without rules is `unsure`. Microseconds; linear in the text's length.
    """
    asked = read(question)
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


def _rules_for(asked: Question) -> list[Compiled]:
    own = rules("en").types.candidates(asked.words) if asked.words else []
    return own + rules("zh").types.candidates(asked.chars | asked.words) if asked.chars else own


def _match(rule: Compiled, asked: Question) -> str | None:
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
    own = rules("en").intents.candidates(asked.words) if asked.words else []
    for rule in own + rules("zh").intents.candidates(asked.chars) if asked.chars else own:
        words = _match(rule, asked)
        if words is not None:
            return rule.intent, (Reason(rule=rule.name, says=rule.intent.value, words=words, weight=1.0),)
    return Intent.GENERAL, ()
