"""Typed queries of a question in its conversation: by the LLM, asked twice at most, else by rules in microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from orchestrator.intent.smalltalk import needs_nothing, without_talk
from orchestrator.intent.topic import pointless, refers_back, topic_of
from orchestrator.planning.same import folded
from shared.errors import shown
from shared.language import question_language, worded
from shared.language.base import TypedPhrases
from shared.llm.client import LLM
from shared.llm.dialogue import Dialogue
from shared.llm.prompts import intent_again_prompt, intent_prompt
from shared.llm.replies import parse_plan
from shared.models.session import MAX_QUERIES, MAX_TYPED_CHARS, ContextType, Intent, Session, TypedQuery

_BY_RULES = "The queries were made by rules instead."


class Analyst:
    """Reads one question in its conversation; safe for threads if its LLM is. `llm` None: by rules, no warning."""

    def __init__(self, llm: LLM | None = None) -> None:
        self._llm = llm

    def analyse(self, question: str, session: Session, timeout_s: float) -> Intent:
        """What `question` asks to be looked up, within `timeout_s` seconds for both asks together.

        Never raises for a fault of the LLM: each fallback leaves a warning, and failed asks count in the cost. What
        the rules know to be small talk is not asked about.
        """
        ruled = intent_by_rules(question, session)
        if self._llm is None or not ruled.retrieval:
            return ruled
        asking = Dialogue(
            self._llm, partial(parse_plan, most=MAX_QUERIES), timeout_s, wanted="queries", instead=_BY_RULES
        )
        again = partial(intent_again_prompt, question, session, MAX_QUERIES)
        reply = asking.reply(intent_prompt(question, session, MAX_QUERIES), again)
        if reply is None:
            return ruled.model_copy(update={"warnings": tuple(asking.warnings), "cost": asking.cost})
        if reply.none:
            reason = f"The LLM found that nothing needs to be looked up ({reply.none})."
            return Intent(
                standalone=question, reason=reason, by="llm", warnings=tuple(asking.warnings), cost=asking.cost
            )
        standalone = in_context(question, session)
        queries = chosen(question, standalone, reply.queries)
        return Intent(
            queries=queries,
            standalone=standalone,
            reason="The question is searched as asked and by the LLM's queries.",
            by="llm",
            warnings=(*asking.warnings, *_left_out(reply.queries, queries)),
            cost=asking.cost,
        )


def _left_out(given: tuple[TypedQuery, ...], taken: tuple[TypedQuery, ...]) -> list[str]:
    known = {(folded(query.query), query.context_type) for query in taken}
    names = [shown(query.query) for query in given if (folded(query.query), query.context_type) not in known]
    return (
        [f"{len(names)} of the LLM's queries found no room among {MAX_QUERIES}: {'; '.join(names)}."] if names else []
    )


AS_ASKED = "the question as asked"
_IN_CONTEXT = "the question with what it refers to"
_PURPOSES = {
    ContextType.SKILL: "how it is done",
    ContextType.RESOURCE: "what is written about it",
    ContextType.MEMORY: "what the user has noted of it",
}


def intent_by_rules(question: str, session: Session) -> Intent:
    """Up to five queries, the question itself first; none where nothing needs to be looked up."""
    nothing = needs_nothing(question)
    if nothing:
        return Intent(standalone=question, reason=nothing)
    standalone = in_context(question, session)
    phrases = _phrases(question, session, follows=standalone != question)
    return Intent(
        queries=chosen(question, standalone, _typed(phrases)),
        standalone=standalone,
        reason="The question is searched as asked and by kind of document.",
    )


def in_context(question: str, session: Session) -> str:
    """The question; where it refers back, with the topic of the conversation in place of the words that point there."""
    asked = without_talk(question)
    topic = topic_of(session, question) if session and refers_back(asked) else ""
    if not topic:
        return question
    own = pointless(asked)
    if not own:
        return topic
    return worded("in_context", topic, own, topic)


def chosen(question: str, standalone: str, typed: Iterable[TypedQuery]) -> tuple[TypedQuery, ...]:
    """The plan: the question first, then, for one that refers back, the question in context, then `typed` by priority.

    At most five; the same wording for the same type stands once.
    """
    first = [TypedQuery(query=question, intent=AS_ASKED, priority=1)]
    if standalone != question:
        first.append(TypedQuery(query=standalone[:MAX_TYPED_CHARS], intent=_IN_CONTEXT, priority=1))
    plan: dict[tuple[str, ContextType | None], TypedQuery] = {}
    for query in (*first, *sorted(typed, key=lambda query: query.priority)):
        plan.setdefault((folded(query.query), query.context_type), query)
    return tuple(plan.values())[:MAX_QUERIES]


def _phrases(question: str, session: Session, *, follows: bool) -> TypedPhrases:
    asked = without_talk(question)
    text = f"{pointless(asked)} {topic_of(session, question)}" if follows else asked
    text = " ".join(text.split()).strip(" ?？.。!！")
    language = question_language(text)
    return language.typed_phrases(text) if language else TypedPhrases()


def _typed(phrases: TypedPhrases) -> Iterable[TypedQuery]:
    """A skill first where there is one to be done; what the user noted before what anybody wrote."""
    by_type = {
        ContextType.SKILL: phrases.skill,
        ContextType.MEMORY: phrases.memory,
        ContextType.RESOURCE: phrases.resource,
    }
    for place, (kind, text) in enumerate((kind, text) for kind, text in by_type.items() if text):
        yield TypedQuery(query=text[:MAX_TYPED_CHARS], context_type=kind, intent=_PURPOSES[kind], priority=2 + place)
